"""The public endpoint of a real ``lcc web``: what strangers find there, at each of its addresses."""

import http.client
import json
import socket

import pytest
from ports import free_port
from push_process import push_server
from test_cli import House

from lcc_scrapy.apps.sources.rules import Source
from lcc_scrapy.apps.sources.store import rows_in

SITE = "http://127.0.0.1:1/"
KEY = "0123456789abcdef"


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    made.lcc("init")
    made.lcc(
        "provider", "add", "7", "--password-file", "-", "--root", SITE, "--allow-private", stdin="secret\n"
    )
    return made


def ask(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


ASKED = [
    ("GET", "/register", 200, "Register"),
    ("GET", f"/indexnow?url={SITE}a&key={KEY}", 202, ""),
    ("GET", "/v1/websub/nobody", 404, "no such subscription"),
    ("GET", "/mail/unsubscribe?t=1-x", 404, "This link is not valid"),
    ("POST", "/v1/push", 401, ""),
]


def test_all_features_are_served_at_all_endpoints(house):
    second = free_port()
    with push_server(house, LCC_PUSH_ENDPOINTS=f"127.0.0.1:0 127.0.0.1:{second}", **ALL) as server:
        for port in (server.port, second):
            for method, path, status, text in ASKED:
                told = ask(port, method, path)
                assert (told[0], text in told[1]) == (status, True), (path, told)
        many = {"host": "127.0.0.1:1", "key": KEY, "urlList": [f"{SITE}{'x' * 100}{n}" for n in range(5000)]}
        assert ask(second, "POST", "/indexnow", json.dumps(many))[0] in {200, 202}


ALL = {"LCC_REGISTRATION": "open", "LCC_INDEXNOW": "known", "LCC_PUBLIC_URL": "https://lcc.example.org"}
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


def subscribed(house):
    """Give a source a subscription; returns the path of its callback."""
    store = house.store()
    with store.begin() as tx:
        rows_in(tx).put_source(
            Source(1, 7, "websub", f"{SITE}feed", 3600, callback="name", secret="secret", due=2**31)
        )
    store.close()
    return "/v1/websub/name"


def begun(port, path, kind, announced, body=b"{"):
    """Begin to send a body."""
    link = socket.create_connection(("127.0.0.1", port), 300)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {announced}\r\n\r\n"
    link.sendall(head.encode() + body)
    return link


def test_a_body_that_does_not_come_is_told_so_and_one_that_is_cut_costs_nothing(house):
    callback = subscribed(house)
    paths = [("/register", FORM), ("/v1/registrations", JSON), ("/indexnow", JSON), (callback, JSON)]
    with push_server(house, LCC_HTTP_SILENCE="1s", **ALL) as server:  # which has no traceback in its log
        slow = [begun(server.port, path, kind, 1000) for path, kind in paths]
        told = [link.recv(4096).split()[1] for link in slow]
        for path, kind in paths:
            begun(server.port, path, kind, 1000).close()
        for link in slow:
            link.close()
        assert told == [b"408", b"408", b"400", b"408"]
        assert ask(server.port, "GET", "/register")[0] == 200


def test_bodies_that_are_announced_and_do_not_come_keep_nobody_out(house):
    callback = subscribed(house)
    with push_server(house, LCC_HTTP_SILENCE="1h", **ALL) as server:
        links = [begun(server.port, "/indexnow", JSON, 24_000_000) for _ in range(20)]
        links += [begun(server.port, callback, JSON, 5_000_000) for _ in range(20)]
        try:
            many = {
                "host": "127.0.0.1:1",
                "key": KEY,
                "urlList": [f"{SITE}{'x' * 100}{n}" for n in range(5000)],
            }
            assert ask(server.port, "POST", "/indexnow", json.dumps(many))[0] == 202
            assert ask(server.port, "POST", callback, "x" * 1_000_000)[0] == 202
        finally:
            for link in links:
                link.close()


def test_features_that_are_off_have_no_routes(house):
    with push_server(house) as server:
        for method, path, _, _ in ASKED[:-1]:
            status, told = ask(server.port, method, path)
            assert (status, "no such subscription" in told, "This link" in told) == (404, False, False)
