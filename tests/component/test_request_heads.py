"""Heads of requests to our own HTTP servers: their bound is exact, and what may be read in two ways is refused."""

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_network

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from web_house import WebHouse

from lcc_scrapy.domain.http_serving import Bounds, Endpoint, Service
from lcc_scrapy.web.app import make_app
from lcc_scrapy.web.guards import Guards
from lcc_scrapy.web.public import make_public_app
from lcc_scrapy.web.server import HEAD_BYTES, Server, fault_of

HOST = b"Host: x\r\n"
DONE = b"Connection: close\r\n\r\n"
LONG_BODY = b"b" * 200_000


class Wire(asyncio.Transport):
    """A transport that leads nowhere; the test says what comes over it."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 5), "sockname": ("127.0.0.1", 80)})
        self.sent = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    abort = close

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def length(scope, receive, send):
    """Answer how long the body was."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await PlainTextResponse(f"<{len(body)}>")(scope, receive, send)


def said_to(*pieces: bytes) -> tuple[list[bytes], bool]:
    """Return the status of each answer to these bytes, and whether the connection was closed."""

    async def talk() -> Wire:
        server = Server(length, Endpoint("127.0.0.1", 0), Service(), lifespan=False)
        server.config.load()
        wire = Wire()
        protocol = server.config.http_protocol_class(  # type: ignore[operator, call-arg]
            server.config, server.server_state, {}, asyncio.get_running_loop()
        )
        protocol.connection_made(wire)
        for piece in pieces:
            if not wire.closed:
                protocol.data_received(piece)
            for _ in range(20):
                await asyncio.sleep(0)
        protocol.connection_lost(None)
        return wire

    with ThreadPoolExecutor(1) as beside:  # a loop of the reactor's runs in this thread
        wire = beside.submit(asyncio.run, talk()).result()
    return [answer[:3] for answer in wire.sent.split(b"HTTP/1.1 ")[1:]], wire.closed


def head_of(size: int, more: bytes = b"") -> bytes:
    """Return a whole head of so many bytes."""
    begun = b"GET / HTTP/1.1\r\n" + HOST + more + b"X: "
    return begun + b"x" * (size - len(begun) - len(b"\r\n" + DONE)) + b"\r\n" + DONE


def cut(data: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


@pytest.mark.parametrize("size", [1000, 4096, 65_536, 1 << 20])
@pytest.mark.parametrize(
    ("bytes_", "status"),
    [(HEAD_BYTES - 1, b"200"), (HEAD_BYTES, b"200"), (HEAD_BYTES + 1, b"400"), (70_000, b"400")],
)
def test_the_bound_of_a_head_is_exact_however_it_is_cut(bytes_, status, size):
    assert said_to(*cut(head_of(bytes_), size)) == ([status], True)


@pytest.mark.parametrize("bytes_", [HEAD_BYTES, HEAD_BYTES + 1, 70_000])
def test_the_bound_holds_for_a_head_behind_another_request(bytes_):
    before = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 200000\r\n\r\n" + LONG_BODY
    statuses, closed = said_to(before + head_of(bytes_))
    assert (statuses, closed) == ([b"200", b"200" if bytes_ <= HEAD_BYTES else b"400"], True)


def test_many_short_lines_are_as_long_as_one():
    lines = b"".join(b"a%d: b\r\n" % number for number in range(3000))
    assert said_to(b"GET / HTTP/1.1\r\n" + HOST + lines + DONE) == ([b"400"], True)
    assert said_to(b"GET /" + b"x" * HEAD_BYTES + b" HTTP/1.1\r\n" + HOST + DONE) == ([b"400"], True)


SMUGGLED = b"0\r\n\r\nGET /smuggled HTTP/1.1\r\n" + HOST + b"\r\n"
BOTH = {
    "length first": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "coding first": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    "other letters": b"content-LENGTH: 5\r\ntransfer-ENCODING: CHUNKED\r\n",
    "far from each other": b"Content-Length: 5\r\n" + b"a: b\r\n" * 1000 + b"Transfer-Encoding: chunked\r\n",
    "identity": b"Content-Length: 5\r\nTransfer-Encoding: identity\r\n",
    "a blank before the colon": b"Content-Length : 5\r\nTransfer-Encoding : chunked\r\n",
    "bare line feeds": b"Content-Length: 5\nTransfer-Encoding: chunked\n",
    "nothing in it": b"Content-Length:\r\nTransfer-Encoding:\r\n",
    "length 0": b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
}


@pytest.mark.parametrize("size", [7, 1 << 20])
@pytest.mark.parametrize("kind", BOTH)
def test_content_length_beside_transfer_encoding_is_refused_and_ends_the_connection(kind, size):
    asked = b"POST / HTTP/1.1\r\n" + HOST + BOTH[kind] + b"\r\n" + SMUGGLED
    assert said_to(*cut(asked, size)) == ([b"400"], True)


def test_one_of_both_is_read_and_names_in_other_places_are_no_headers():
    for headers, body in (
        (b"Content-Length: 5\r\n", b"abcde"),
        (b"Transfer-Encoding: chunked\r\n", b"5\r\nabcde\r\n0\r\n\r\n"),
        (b"Content-Length: 5\r\nX: Transfer-Encoding: chunked\r\n", b"abcde"),
        (b"Content-Length: 5\r\nX-Transfer-Encoding: chunked\r\n", b"abcde"),
        (b"Content-Length: 32\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ):
        statuses, _ = said_to(b"POST / HTTP/1.1\r\n" + HOST + headers + b"Connection: close\r\n\r\n" + body)
        assert statuses == [b"200"], headers


def test_what_has_begun_is_no_fault():
    whole = head_of(3000)
    assert {fault_of(whole[:size]) for size in range(len(whole) + 1)} == {""}


# --- the log, and HSTS ---------------------------------------------------------------------------


@contextmanager
def lines_of(caplog) -> Iterator[list[str]]:
    found: list[str] = []
    with caplog.at_level(logging.INFO, "lcc_scrapy.web.guards"):
        yield found
        found += [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("peer", "told", "logged"),
    [
        ("10.0.0.1", "192.0.2.7", "192.0.2.7"), ("10.0.0.1", "6.6.6.6, 192.0.2.7", "192.0.2.7"),
        ("10.0.0.1", "", "10.0.0.1"), ("10.0.0.1", "nonsense\x1b", "10.0.0.1"), ("192.0.2.9", "192.0.2.7", "192.0.2.9"),
        ("::ffff:10.0.0.1", "2001:db8::1", "2001:db8::1"),
    ],
)  # fmt: skip
def test_the_log_has_the_address_of_the_client_behind_our_proxies(peer, told, logged, caplog):
    app = Guards(length, Bounds(proxies=(ip_network("10.0.0.0/8"),)))
    with lines_of(caplog) as lines:
        headers = {"X-Forwarded-For": told} if told else {}
        TestClient(app, client=(peer, 5)).get("/a", headers=headers)
    assert lines == [f"{logged} GET /a 200"]


def test_every_server_traces_its_clients(caplog):
    proxies = (ip_network("10.0.0.0/8"),)
    house = WebHouse(proxies=proxies)
    for app in (house.app, make_public_app([], Bounds(proxies=proxies))):
        caplog.clear()
        with lines_of(caplog) as lines:
            client = TestClient(app, client=("10.0.0.1", 5))
            client.get("/nothing", headers={"X-Forwarded-For": "192.0.2.7"})
        assert [line.split()[0] for line in lines] == ["192.0.2.7"]


@pytest.mark.parametrize("https", [False, True])
def test_browsers_keep_to_https_for_a_day_where_clients_come_by_it(https):
    house = WebHouse()
    app = make_app(replace(house.lcc, https=https))
    for path in ("/nothing", "/v1/changes"):
        answer = TestClient(app).get(path)
        assert answer.headers.get("Strict-Transport-Security") == ("max-age=86400" if https else None)
