"""From an IndexNow submission to a cached document, and to its removal: ``lcc web`` and a crawl, two processes."""

import importlib.util
import json
import subprocess
import sys
import urllib.request

import pytest

from tests.harness import missing, wait_for
from tests.indexnow_house import PID, Receiver
from tests.integration.site import NOT_FOUND, Site, page

pytestmark = pytest.mark.acceptance
KEY = "3f2a9c0d8e7b4615a0c1d2e3f4a5b6c7"
NAMES = tuple("abcdefghijkl")


def documents(receiver):
    with receiver.store.read() as tx:
        return {row.furl: row for row in tx.cached_of(PID, b"", 1000)}


def submit(receiver, site, *names):
    said = {"host": site.host, "key": KEY, "urlList": [site.url + name for name in names]}
    kind = {"Content-Type": "application/json"}
    asked = urllib.request.Request(f"{receiver.url}/indexnow", json.dumps(said).encode(), kind)
    with urllib.request.urlopen(asked, timeout=300) as answer:
        assert answer.status == 200


def submit_by_a_client_from_pypi(receiver, site, *names):
    if importlib.util.find_spec("indexnow") is None:
        missing("studiolabs-indexnow", "pip install studiolabs-indexnow")
    urls = [site.url + name for name in names]
    program = (
        f"import indexnow; indexnow.ENDPOINT = '{receiver.url}/indexnow';"
        f"print(indexnow.submit('{site.host}', '{KEY}', '{site.url}{KEY}.txt', {urls}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "(200, '')\n"), done.stderr


def test_a_submitted_page_is_fetched_fetched_again_and_removed_when_it_is_gone(make_lcc):
    lcc = make_lcc(LCC_POLL="1h")  # so that the submission is what wakes the crawl
    with Site() as site:
        site.host = f"127.0.0.1:{site.listen()}"
        site.url = f"http://{site.host}/"
        site.put(f"/{KEY}.txt", page(KEY))
        for name in NAMES:
            site.put(f"/{name}", page(f"<p>first {name}</p>"))
        with Receiver(lcc, site.url) as receiver:
            lcc.start()
            submit_by_a_client_from_pypi(receiver, site, *NAMES)
            wait_for(lambda: len(documents(receiver)) == len(NAMES), what="all documents")
            row = documents(receiver)[site.url + "a"]
            assert (row.mimetype, row.origin, row.fetched_len) == ("text/html", "push", len("<p>first a</p>"))
            site.put("/a", page("<p>second, and longer</p>"))
            site.put("/b", NOT_FOUND)
            submit(receiver, site, "a", "b")
            wait_for(lambda: site.url + "b" not in documents(receiver), what="the removal")
            wait_for(
                lambda: documents(receiver)[site.url + "a"].fetched_len == len("<p>second, and longer</p>")
            )
            assert len(documents(receiver)) == len(NAMES) - 1
            assert lcc.stop() == 0
