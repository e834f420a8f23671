"""Changes as they happen for 200 viewers of a real `lcc web`: real connections, two users, one slow viewer.

``LCC_VIEWERS`` makes them more.
"""

import http.client
import json
import os
import selectors
import socket
import time
from contextlib import ExitStack
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from harness import PATIENCE

from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.users import Role, User
from lcc_scrapy.login import people
from lcc_scrapy.login.passwords import hash_password
from tests.web_process import serving

pytestmark = pytest.mark.slow

VIEWERS = int(os.environ.get("LCC_VIEWERS", "200"))
PASSWORD = "correct horse battery"
EVIL = '"><script>alert(1)</script>\u202e'
CHANGES = 5


@pytest.fixture
def house(make_lcc):
    return make_lcc()


@pytest.fixture
def store(house):
    made = SqlStore(house.shared_url)
    for name, role, pids in (("otto", Role.OPERATOR, ""), ("sven", Role.OWNER, "7")):
        people.add(made, User(name, role, pids, hash_password(PASSWORD), 1))
    with made.begin() as tx:
        for pid in (7, 8):
            tx.insert_provider(Provider(pid, "", created=1), [f"http://h{pid}.example/"])
    yield made
    made.close()


def add(store, pid, name):
    url = f"http://h{pid}.example/{name}"
    key, now = urlkey(pid, url, "text/html"), int(time.time())
    with store.begin() as tx:
        seq = tx.take("feed", 1)
        row = CachedUrl(
            key, pid, url, "text/html", "", None, url, None, None, None, "", now, 1, seq, 9, "0" * 32, "0" * 64,
            "text/html", "utf-8", "", url, "", "", now, "push", seq, 0, 0, 0,
        )  # fmt: skip
        tx.insert_cached([replace(row, fetched_fileid=seq)])


def cookie_of(port, name):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    form = urlencode({"name": name, "password": PASSWORD})
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/dashboard/sign-in", form, kind)
    told = connection.getresponse()
    cookie = told.headers["Set-Cookie"].partition(";")[0]
    connection.close()
    return cookie


class Stream:
    """One viewer's connection."""

    def __init__(self, port, cookie):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        asked = f"GET /dashboard/changes/events?after=0 HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n\r\n"
        self.socket.sendall(asked.encode())
        self.text = b""

    def fileno(self):
        return self.socket.fileno()

    def read(self):
        got = self.socket.recv(65_536)
        self.text += got
        return bool(got)

    def told(self):
        lines = self.text.decode().split("\n")
        return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


def read_until(streams, done):
    end, open_ones, ready = time.monotonic() + PATIENCE, set(streams), selectors.DefaultSelector()
    for stream in streams:
        ready.register(stream, selectors.EVENT_READ)
    while not all(map(done, streams)) and open_ones:
        assert time.monotonic() < end, f"{sum(map(done, streams))} of {len(streams)} are done"
        for key, _ in ready.select(1):
            if not key.fileobj.read():
                open_ones.discard(key.fileobj)
                ready.unregister(key.fileobj)
    ready.close()
    assert all(map(done, streams))


def test_all_viewers_are_told_what_they_may_see_and_end_with_their_session(house, store):
    with serving(house) as (port, _), ExitStack() as open_ones:
        cookies = {name: cookie_of(port, name) for name in ("otto", "sven")}
        viewers = [("otto", "sven")[number % 10 == 0] for number in range(VIEWERS)]
        streams = {Stream(port, cookies[name]): name for name in viewers}
        for stream in streams:
            open_ones.callback(stream.socket.close)
        read_until(list(streams), lambda one: b"retry: 3000" in one.text)
        for number in range(CHANGES):
            add(store, 7 + number % 2, f"{number}{EVIL}")
        wanted = {"otto": [7, 8, 7, 8, 7], "sven": [7, 7, 7]}
        read_until(list(streams), lambda one: len(one.told()) == len(wanted[streams[one]]))
        for stream, name in streams.items():
            assert stream.text.startswith(b"HTTP/1.1 200")
            assert [told["pid"] for told in stream.told()] == wanted[name]
            assert "\u202e" not in stream.told()[0]["url"]
        people.remove(store, "sven")
        svens = [stream for stream, name in streams.items() if name == "sven"]
        read_until(svens, lambda one: one.text.endswith(b"0\r\n\r\n"))
        assert not any(one.text.endswith(b"0\r\n\r\n") for one, name in streams.items() if name == "otto")
