"""The public endpoint of a real ``lcc web``: what strangers find there, at each of its addresses."""

import http.client
import json

import pytest
from ports import free_port
from push_process import push_server
from test_cli import House

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
    settings = {
        "LCC_PUSH_ENDPOINTS": f"127.0.0.1:0 127.0.0.1:{second}",
        "LCC_REGISTRATION": "open",
        "LCC_INDEXNOW": "known",
        "LCC_PUBLIC_URL": "https://lcc.example.org",
    }
    with push_server(house, **settings) as server:
        for port in (server.port, second):
            for method, path, status, text in ASKED:
                told = ask(port, method, path)
                assert (told[0], text in told[1]) == (status, True), (path, told)
        many = {"host": "127.0.0.1:1", "key": KEY, "urlList": [f"{SITE}{'x' * 100}{n}" for n in range(5000)]}
        assert ask(second, "POST", "/indexnow", json.dumps(many))[0] in {200, 202}


def test_features_that_are_off_have_no_routes(house):
    with push_server(house) as server:
        for method, path, _, _ in ASKED[:-1]:
            status, told = ask(server.port, method, path)
            assert (status, "no such subscription" in told, "This link" in told) == (404, False, False)
