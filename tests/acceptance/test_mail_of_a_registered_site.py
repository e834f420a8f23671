"""A site owner who gave an address: the pair by mail, the digest of what failed, a full set that is wanted, no more."""

import http.client
import json
import re
from base64 import b64encode
from urllib.parse import urlsplit

import pytest

from lcc_scrapy.apps.mail.rules import MARGIN
from lcc_scrapy.db.sql.store import SqlStore
from tests.harness import wait_for
from tests.mail_server import mail_server
from tests.ports import free_port
from tests.push_process import push_server
from tests.registration_site import little_site

ADDRESS = "me@example.org"

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


@pytest.fixture
def site():
    with little_site() as made:
        yield made


@pytest.fixture
def server():
    with mail_server() as made:
        yield made


@pytest.fixture
def lcc(make_lcc, site, server):
    port = free_port()
    return make_lcc(
        LCC_REGISTRATION="open", LCC_REGISTRATION_PRIVATE="yes", LCC_REGISTRATION_PORTS=str(site.port),
        LCC_PUSH_ENDPOINTS=f"127.0.0.1:{port}", LCC_PUBLIC_URL=f"http://127.0.0.1:{port}",
        LCC_MAIL_FROM="LCC <lcc@example.org>", LCC_MAIL_PORT=str(server.port), LCC_MAIL_DIGEST="",
        LCC_UNS_ENDPOINTS="", LCC_RETRY_DELAYS="",
    )  # fmt: skip


def ask(port, method, path, body=None, login=""):
    """Ask ``lcc web``; gives status and text."""
    headers = {"Content-Type": "application/json"} if body is not None else {}
    if login:
        headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    told = connection.getresponse()
    found = told.status, told.read().decode()
    connection.close()
    return found


def lines_of(mail):
    return dict(re.findall(r"^(provider id|password|secret): +(\w+)$", mail.text, re.MULTILINE))


def age_outcomes(lcc):
    """Let what was fetched just now be old enough for a digest."""
    store = SqlStore(lcc.shared_url)
    try:
        with store.engine.begin() as connection:
            connection.exec_driver_sql(f"update outcomes set at = at - {MARGIN + 60}")
    finally:
        store.close()


def test_a_registered_owner_gets_the_pair_the_digest_and_a_link_that_ends_it(lcc, site, server):
    with push_server(lcc, LCC_PUSH_ENDPOINTS=lcc.settings["LCC_PUSH_ENDPOINTS"]) as web:
        wanted = {"site": site.url, "email": ADDRESS, "mail": True}
        assert ask(web.port, "POST", "/v1/registrations", wanted)[0] == 201
        wait_for(lambda: server.mails, what="the pair")
        pair = lines_of(server.mails[0])
        pid, password = pair["provider id"], pair["password"]
        site.put(pair["secret"])
        assert ask(web.port, "POST", f"/v1/registrations/{pid}/activate", {"password": password})[0] == 200

        lcc.fetch_only()
        pushed = {"set": "partial", "urls": [f"{site.url}missing.html"]}
        assert ask(web.port, "POST", "/v1/push", pushed, f"{pid}:{password}")[0] == 200
        wait_for(lambda: lcc.sql("select code from outcomes") == [(404,)], what="the outcome")
        age_outcomes(lcc)
        assert (
            lcc.lcc("-s", "LCC_MAIL_DIGEST=06:00", "mail", "send").stdout == "1 sent, 0 delayed, 0 refused\n"
        )
        digest = server.mails[1]
        assert (digest.to, "404 Not Found" in digest.text) == ([ADDRESS], True)
        assert f"{site.url}missing.html" in digest.text
        _unsubscribe(digest, web)

        lcc.lcc("provider", "want-full", pid, "--reason", "cache crash")
        assert lcc.lcc("mail", "send").stdout.startswith("0 sent")
        lcc.lcc("provider", "set", pid, "--mail", "on")
        lcc.stop()
        lcc.fetch_only()
        wait_for(lambda: len(server.mails) == 3, what="the mail of a crawl")
        assert "cache crash" in server.mails[2].text
        assert lcc.stop() == 0


def _unsubscribe(mail, web):
    link = urlsplit(mail.message["List-Unsubscribe"].strip("<>"))
    assert link.geturl() in mail.text
    where = f"{link.path}?{link.query}"
    assert link.port == web.port
    status, page = ask(web.port, "GET", where)
    assert (status, "<button>Unsubscribe</button>" in page) == (200, True)
    status, page = ask(web.port, "POST", where)
    assert (status, "no more mail" in page) == (200, True)
