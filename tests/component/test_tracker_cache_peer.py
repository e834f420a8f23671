"""What ``lcc tracker serve`` tells caches over HTTP."""

import asyncio
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime

import pytest
from fastapi.testclient import TestClient

from lcc_scrapy.apps.tracker import cache_peer, served_digest
from lcc_scrapy.apps.tracker.serving import make_app
from lcc_scrapy.config.config import load
from lcc_scrapy.config.project import PlainSettings
from tests.harness import wait_for
from tests.mirrors import NOW, Tracker, tree_of
from tests.sqlite_store import sqlite_store

TREE = tree_of("pub/own 2\npub/1.0/app.tgz 5\npub/1.0/a%20b 6\npub/1.0/c%3Fd 7")
ORIGIN, MIRROR = "ftp://ftp.example.org/", "http://m.example.de/"
DIGEST = "/squid-internal-periodic/store_digest"


@pytest.fixture
def app(tmp_path):
    tracker = Tracker(sqlite_store())
    tracker.load(ORIGIN, TREE, at=NOW, digests={(b"pub", b"1.0"): [(b"app.tgz", bytes(32))]})
    tracker.load(MIRROR, {b"1.0": TREE[b"pub"][b"1.0"]}, "de", at=NOW + 1)
    return make_app(load(PlainSettings({}, {}), {"LCC_DATA_DIR": str(tmp_path)}), tracker.store).app


def sent(app, target, method="GET", query=b""):
    """Send a request line as a cache does; returns status, headers, and the pieces of the body."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": target, "raw_path": target.encode(), "query_string": query, "root_path": "",
        "headers": [(b"host", b"ftp.example.org")], "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 80),
    }  # fmt: skip
    told = []

    requests = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive():
        return next(requests, None) or await asyncio.Future()  # its client stays

    async def send(message):
        told.append(message)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, app(scope, receive, send)).result()
    headers = {name.decode().lower(): value.decode() for name, value in told[0]["headers"]}
    return told[0]["status"], headers, [one["body"] for one in told[1:] if one["body"]]


def test_a_known_url_in_absolute_form_is_redirected(app):
    status, headers, _ = sent(app, f"{ORIGIN}pub/1.0/app.tgz")
    assert (status, headers["location"]) == (302, f"{MIRROR}1.0/app.tgz")


@pytest.mark.parametrize(
    "target",
    [
        f"{ORIGIN}pub/own",
        f"{MIRROR}1.0/app.tgz",
        "http://elsewhere.example/x",
        "http://",
        "ftp://[",
        f"{ORIGIN}pub/%2e%2e/x",
    ],
)
def test_what_has_no_better_replica_is_told_504_so_that_caches_ask_elsewhere(app, target):
    status, headers, _ = sent(app, target)
    assert (status, headers.get("location")) == (504, None)


def test_a_query_is_part_of_the_url_and_makes_it_unknown(app):
    assert sent(app, f"{ORIGIN}pub/1.0/app.tgz", query=b"x=1")[0] == 504


def test_nothing_is_sent_through_it(app):
    assert sent(app, f"{ORIGIN}pub/1.0/app.tgz", "POST")[0] == 405


@pytest.mark.parametrize(
    "target", [DIGEST, f"http://tracker.example.org:8090{DIGEST}"], ids=["relative", "absolute"]
)
def test_the_digest_is_served_in_both_forms_its_beginning_alone(app, target, monkeypatch):
    monkeypatch.setattr(cache_peer, "PAUSE", 0)
    status, headers, pieces = sent(app, target)
    assert (status, headers["content-type"]) == (200, "application/cache-digest")
    assert headers["content-length"] == str(128 + 2)
    assert [len(one) for one in pieces] == [128, 2]
    assert struct.unpack("!hhiiiiBBh", pieces[0][:24]) == (5, 3, 2, 2, 0, 2, 5, 4, 0)
    assert parsedate_to_datetime(headers["expires"]) > parsedate_to_datetime(headers["last-modified"])


def test_strangers_get_no_digest(app):
    with TestClient(app, client=("192.0.2.7", 5)) as client:
        assert client.get(DIGEST).status_code == 403


def test_while_the_first_digest_is_made_caches_are_told_to_come_again_and_others_are_served(app, monkeypatch):
    released, begun = threading.Event(), []

    def hangs(*_args):
        begun.append(threading.current_thread().name)
        released.wait(60)
        return [f"{ORIGIN}pub/1.0/"]

    monkeypatch.setattr(served_digest, "PATIENCE", 0)
    monkeypatch.setattr(cache_peer, "PAUSE", 0)
    monkeypatch.setattr(served_digest, "digest_urls", hangs)
    with TestClient(app, client=("127.0.0.1", 5)) as client:
        try:
            told = [client.get(DIGEST) for _ in range(12)]  # more than there are threads
            assert {(one.status_code, one.headers["retry-after"]) for one in told} == {(503, "60")}
            assert client.get("/").status_code == 200
        finally:
            released.set()
        wait_for(lambda: client.get(DIGEST).status_code == 200, 20, "the digest")
    assert len(begun) == 1
    assert begun[0].startswith("digest")


def test_an_old_digest_is_served_while_the_next_is_made(app, monkeypatch):
    monkeypatch.setattr(cache_peer, "PAUSE", 0)
    released = threading.Event()
    with TestClient(app, client=("127.0.0.1", 5)) as client:
        first = client.get(DIGEST)
        monkeypatch.setattr(served_digest, "KEPT", -1)
        monkeypatch.setattr(served_digest, "digest_urls", lambda *_args: released.wait(60) and [])
        try:
            assert client.get(DIGEST).content == first.content
        finally:
            released.set()
        wait_for(lambda: client.get(DIGEST).content != first.content, 20, "the next digest")


def test_a_digest_that_cannot_be_made_is_one_line_in_the_log_and_made_when_it_can(app, monkeypatch, caplog):
    monkeypatch.setattr(cache_peer, "PAUSE", 0)
    with TestClient(app, client=("127.0.0.1", 5)) as client:
        with monkeypatch.context() as broken:
            broken.setattr(served_digest, "digest_urls", lambda *_args: 1 // 0)
            assert client.get(DIGEST).status_code == 503
        assert "no cache digest: ZeroDivisionError" in caplog.messages
        assert client.get(DIGEST).status_code == 200


def test_the_log_has_the_site_of_what_caches_ask_and_no_more(app, caplog):
    caplog.set_level("INFO")
    sent(app, f"{ORIGIN}pub/secret", query=b"token=x")
    assert "127.0.0.1 GET ftp://ftp.example.org 504" in caplog.messages


def test_the_digest_can_be_turned_off(tmp_path):
    settings = {"LCC_DATA_DIR": str(tmp_path), "LCC_TRACKER_DIGEST_URLS": "0"}
    served = make_app(load(PlainSettings({}, {}), settings), sqlite_store()).app
    with TestClient(served) as client:
        assert client.get(DIGEST).status_code == 404
