"""Answers of every kind, byte for byte from a raw server: the real handler makes the right outcome of each.

Codes are those of ``docs/outcomes.md``; what a whole crawl makes of the worst of them is at the end.
"""

import asyncio
import contextlib
import gzip
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import brotli
import pytest
from backports import zstd
from scrapy import Request

from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.fetch.download_handler import BODY, PRIVATE_HOSTS, TYPES, LccDownloadHandler
from lcc_scrapy.fetch.turn import code_of
from lcc_scrapy.http.answer import FIELDS_MAX, HEAD_MAX, INFORMATIONAL
from lcc_scrapy.http.chunks import FRAMES_MAX
from tests.certificates import DAY, NOW, Authority
from tests.faults.handling import LOOPS, Handling, Stopwatch, outcome, run
from tests.harness import Lcc
from tests.integration.site import Answer, Endless, Site, page, raw
from tests.odd_answers import ODD

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
TEXT = b"<p>the body</p>" * 7
LENGTH = b"Content-Length: %d\r\n\r\n" % len(TEXT)
WHOLE = OK + LENGTH + TEXT
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNKS = b"%x\r\n%b\r\n5\r\nlater\r\n0\r\n\r\n" % (len(TEXT), TEXT)
HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
CUT, LATE, LARGE, TLS, REFUSED = 614, 603, 604, 612, 602
HOURS = 3600.0
"""Seconds that no test takes."""


@dataclass(frozen=True)
class Got:
    """What became of one fetch: ``code`` is the status, or the wire code of the failure."""

    code: int
    body: bytes = b""
    headers: dict[bytes, bytes] | None = None
    protocol: str | None = None
    peer: str = ""


@dataclass
class Scene:
    """A site and a handler."""

    site: Site
    handling: Handling
    loop: str
    port: int
    host: str = "127.0.0.1"
    scheme: str = "http"

    def serve(self, *answers: Answer, path: str = "/x") -> None:
        self.site.put(path, *answers)

    def url(self, path: str = "/x") -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{path}"

    def fetch(self, *paths: str, whole: bool = False, **request: Any) -> list[Got]:
        """Fetch one after the other with one handler, each when the site has said ``whole`` that it had to say."""

        async def scenario() -> list[Got]:
            handler, found = self.handling.handler(), []
            for path in paths or ["/x"]:
                found.append(await fetched(handler, self.url(path), f"{self.host}:{self.port}", **request))
                while whole and (self.site.is_busy or not self.site.visits):
                    await asyncio.sleep(0.02)
                await asyncio.sleep(0.2 if whole else 0)  # what has arrived is looked at
            await handler.close()
            return found

        return list(run(scenario, self.loop))

    def get(self, *answers: Answer, **request: Any) -> Got:
        self.serve(*answers)
        return self.fetch(**request)[0]

    @property
    def connections(self) -> int:
        return self.site.connections[self.port]


async def fetched(handler: LccDownloadHandler, url: str, approved: str, **request: Any) -> Got:
    meta = {PRIVATE_HOSTS: frozenset({approved}), **request.pop("meta", {})}
    try:
        response = await handler.download_request(Request(url, meta=meta, **request))
    except Exception as error:
        return Got(code_of(error))
    headers = {name: b"|".join(values) for name, values in response.headers.items()}
    body = response.body or Path(meta_body(response).path or "/dev/null").read_bytes()
    return Got(response.status, body, headers, response.protocol, str(response.ip_address))


def meta_body(response: Any) -> Any:
    return response.request.meta[BODY]


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.fixture
def scene(site: Site, tmp_path: Path) -> Scene:
    """A handler with patience: what is noticed is noticed without a time-out, however busy the machine."""
    patient = {"fetch_timeout": 120.0, "fetch_deadline": 180.0, "fetch_max_bytes": 1_000_000}
    return Scene(site, Handling(tmp_path, **patient), "asyncio", site.listen())


@pytest.fixture
def hasty(scene: Scene) -> Scene:
    """One with little patience, for sites that need more."""
    scene.handling.config.fetch_timeout, scene.handling.config.fetch_deadline = 1.0, 3.0
    return scene


def drip(data: bytes, gap: float, size: int = 1) -> Answer:
    return Answer([data[at : at + size] for at in range(0, len(data), size)], gap=gap, last=False)


# --- what is a document --------------------------------------------------------------------------

GOOD: dict[str, tuple[bytes, bytes]] = {
    "a length": (WHOLE, TEXT),
    "no length, until the connection is closed": (OK + b"\r\n" + TEXT, TEXT),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\n" + TEXT, TEXT),
    "HTTP/1.0 with a length": (b"HTTP/1.0 200 OK\r\n" + LENGTH + TEXT, TEXT),
    "no words behind the status": (b"HTTP/1.1 200\r\n" + LENGTH + TEXT, TEXT),
    "chunks": (CHUNKED + CHUNKS, TEXT + b"later"),
    "chunks with extensions": (CHUNKED + b'2;a=b;c="d"\r\nok\r\n0;e\r\n\r\n', b"ok"),
    "chunks with a blank behind the size": (CHUNKED + b"2 \r\nok\r\n0\r\n\r\n", b"ok"),
    "Transfer-Encoding in capitals": (
        OK + b"TRANSFER-ENCODING: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"ok",
    ),
    "trailers": (CHUNKED + b"2\r\nok\r\n0\r\nX-Sum: 1\r\nSet-Cookie: a=b\r\n\r\n", b"ok"),
    "identity": (OK + b"Transfer-Encoding: identity\r\n\r\n" + TEXT, TEXT),
    "empty": (OK + b"Content-Length: 0\r\n\r\n", b""),
    "100 Continue that nobody asked for": (b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE, TEXT),
    "as many early hints as may be": (HINT * INFORMATIONAL + WHOLE, TEXT),
    "lines that end in LF": (WHOLE.replace(b"\r\n", b"\n"), TEXT),
    "a folded header line": (OK + b"X-Fold: a\r\n\tb\r\n" + LENGTH + TEXT, TEXT),
    "an upgrade that is offered": (OK + b"Connection: Upgrade\r\nUpgrade: h2c\r\n" + LENGTH + TEXT, TEXT),
    "an empty line behind it": (WHOLE + b"\r\n", TEXT),
    "longer than its length": (WHOLE + b"more", TEXT),
    "a second answer": (WHOLE + WHOLE, TEXT),
    **{name: (odd.wire(TEXT), TEXT) for name, odd in ODD.items()},
}
BAD: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", CUT),
    "half a head": (OK, CUT),
    "shorter than its length": (OK + LENGTH + TEXT[:9], CUT),
    "a chunk that is cut": (CHUNKED + b"ff\r\nonly this", CUT),
    "chunks without an end": (CHUNKED + CHUNKS[:-5], CUT),
    "trailers that are cut": (CHUNKED + b"2\r\nok\r\n0\r\nX: y\r\n", CUT),
    "a chunk of no size": (CHUNKED + b"zz\r\nok\r\n0\r\n\r\n", CUT),
    "a chunk of negative size": (CHUNKED + b"-2\r\nok\r\n0\r\n\r\n", CUT),
    "a chunk beyond all sizes": (CHUNKED + b"f" * 17 + b"\r\nok\r\n", CUT),
    "a chunk longer than its size": (CHUNKED + b"2\r\nokay\r\n0\r\n\r\n", CUT),
    "two lengths": (OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok", CUT),
    "a transfer coding that is not known": (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", CUT),
    "another protocol": (b"SSH-2.0-OpenSSH_9.2\r\n", CUT),
    "no status": (b"HTTP/1.1 OK\r\n\r\n", CUT),
    "a status below all": (b"HTTP/1.1 007 Bond\r\n\r\n", CUT),
    "NUL in a header": (OK + b"X: a\0b\r\n" + LENGTH + TEXT, CUT),
    "101": (b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nabc", CUT),
    "101 without saying to what": (b"HTTP/1.1 101 Switching\r\n\r\n", CUT),
    "one early hint too many": (HINT * (INFORMATIONAL + 1) + WHOLE, CUT),
    "too many header fields": (OK + b"X: y\r\n" * FIELDS_MAX + LENGTH + TEXT, CUT),
    "a header line too long": (OK + b"X: " + b"y" * HEAD_MAX + b"\r\n" + LENGTH + TEXT, CUT),
    "too many trailers": (CHUNKED + b"2\r\nok\r\n0\r\n" + b"X: y\r\n" * FRAMES_MAX + b"\r\n", CUT),
    "a body too large": (OK + b"Content-Length: 1000001\r\n\r\n" + bytes(1_000_001), LARGE),
    "gzip that is cut": (OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(TEXT)[:-9], CUT),
}  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("name", GOOD)
def test_what_is_a_document_arrives_whole(scene: Scene, name: str, loop: str) -> None:
    wire, body = GOOD[name]
    scene.loop = loop
    got = scene.get(raw(wire))
    assert (got.code, got.body) == (200, body)
    assert scene.handling.charged == (len(body) if name not in ODD else ODD[name].length(body))


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("name", ["chunks", "trailers", "100 Continue that nobody asked for", "HTTP/1.0"])
def test_however_it_is_cut_into_pieces(scene: Scene, name: str, size: int) -> None:
    wire, body = GOOD[name]
    got = scene.get(
        drip(wire, 0.0005, size) if name != "HTTP/1.0" else raw(wire[:size], wire[size:], gap=0.1)
    )
    assert (got.code, got.body) == (200, body)


@pytest.mark.parametrize("name", BAD)
def test_what_is_none_gets_its_code(scene: Scene, name: str) -> None:
    wire, code = BAD[name]
    assert scene.get(raw(wire)).code == code


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        pytest.param("gzip", gzip.compress(TEXT), id="gzip"),
        pytest.param("x-gzip", gzip.compress(TEXT), id="x-gzip"),
        pytest.param("deflate", zlib.compress(TEXT), id="deflate"),
        pytest.param("deflate", zlib.compress(TEXT)[2:-4], id="bare deflate"),
        pytest.param("br", brotli.compress(TEXT), id="br"),
        pytest.param("zstd", zstd.compress(TEXT), id="zstd"),
    ],
)
@pytest.mark.parametrize("framed", ["length", "chunks", "close"])
def test_codings_are_decoded_in_every_framing(scene: Scene, coding: str, packed: bytes, framed: str) -> None:
    head = OK + f"Content-Encoding: {coding}\r\n".encode()
    wire = {
        "length": head + b"Content-Length: %d\r\n\r\n" % len(packed) + packed,
        "chunks": head
        + b"Transfer-Encoding: chunked\r\n\r\n"
        + b"".join(b"1\r\n" + packed[at : at + 1] + b"\r\n" for at in range(len(packed)))
        + b"0\r\n\r\n",
        "close": head + b"\r\n" + packed,
    }[framed]
    got = scene.get(raw(wire))
    assert (got.code, got.body) == (200, TEXT)
    assert b"Content-Encoding" not in (got.headers or {})
    assert scene.handling.charged == len(packed)


def test_the_head_is_told_as_it_came(scene: Scene) -> None:
    wire = b"HTTP/1.0 404 Not  here\r\nSet-Cookie: a=1\r\nX-Odd: \xff\xe4 \t\r\nset-cookie: b=2\r\nX-Empty:\r\n\r\ngone"
    got = scene.get(raw(wire))
    assert (got.code, got.body, got.protocol, got.peer) == (404, b"gone", "HTTP/1.0", "127.0.0.1")
    assert got.headers == {b"Set-Cookie": b"a=1|b=2", b"X-Odd": b"\xff\xe4", b"X-Empty": b""}


@pytest.mark.parametrize("line", ["204 No Content", "304 Not Modified"])
def test_answers_without_a_body_end_with_their_head(scene: Scene, line: str) -> None:
    scene.serve(page("", line, content_length="17"))
    got = scene.fetch("/x", "/x")
    assert [(one.code, one.body) for one in got] == [(int(line[:3]), b"")] * 2
    assert scene.connections == 1


def test_the_answer_to_head_has_no_body_whatever_it_says(scene: Scene) -> None:
    got = scene.get(Answer((OK + b"Content-Length: 999\r\n\r\n",), last=False), method="HEAD")
    assert (got.code, got.body) == (200, b"")


def test_a_request_may_have_a_body(scene: Scene) -> None:
    received: list[bytes] = []
    with serving(lambda peer: received.append(peer.recv(1 << 16)) or peer.sendall(WHOLE)) as port:
        scene.port = port
        (got,) = scene.fetch(method="POST", body=b"a=b", headers={"Content-Type": "text/x"})
    assert got.code == 200
    head, _, body = received[0].partition(b"\r\n\r\n")
    assert body == b"a=b"
    assert head.splitlines()[0] == b"POST /x HTTP/1.1"
    assert {b"Host: 127.0.0.1:%d" % port, b"Content-Length: 3"} <= set(head.splitlines())


def test_the_target_is_sent_as_it_was_pushed(scene: Scene) -> None:
    path = "/x/%7euser/a%2Fb/./c/../d//e;f=1?q=%C3%a4+b&c"
    scene.serve(page(TEXT), path=path)
    assert scene.fetch(path, meta={"verbatim_url": True})[0].code == 200


@pytest.mark.parametrize("field", [{"X": "a\r\nHost: other"}, {"X": "a\nb"}, {"X\r\nY": "a"}, {"X": "a\0b"}])
def test_no_header_of_a_request_begins_another_line(scene: Scene, field: dict[str, str]) -> None:
    assert scene.get(page(TEXT), headers=field).code == 616
    assert not scene.site.visits


# --- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "answer", "least"),
    [
        ("silence", Answer((WHOLE,), wait=HOURS), 1.0),
        ("a dripping head", drip(WHOLE[:40] + b"X: y\r\n" * 1000 + WHOLE[40:], 0.2), 1.0),
        ("dripping hints", drip(HINT * (INFORMATIONAL - 1) + OK, 0.2, len(HINT)), 1.0),
        ("half a head", Answer((OK,), wait=0.0, last=False), 1.0),
        ("a body that stalls", raw(OK + LENGTH + TEXT[:9], TEXT[9:], gap=HOURS), 1.0),
        ("chunks that stall", raw(CHUNKED + b"2\r\no", b"k\r\n0\r\n\r\n", gap=HOURS), 1.0),
        ("a body that drips too long", drip(OK + b"Content-Length: 99999\r\n\r\n" + bytes(99999), 0.2, 60), 2.7),
    ],
)  # fmt: skip
def test_slow_sites_are_given_up_in_time(hasty: Scene, name: str, answer: Answer, least: float) -> None:
    if name == "a body that drips too long":
        hasty.handling.config.fetch_timeout = HOURS  # where this test stands still, the site is silent
    watch = Stopwatch()
    code = hasty.get(answer).code
    assert code == (LATE if hasty.site.visits else REFUSED), "only a machine that stands still connects late"
    assert least <= watch.seconds < HOURS


def test_a_slow_drip_that_ends_in_time_is_a_document(scene: Scene) -> None:
    """It takes longer than any silence may last, and is never silent for as long."""
    scene.handling.config.fetch_timeout = 6.0
    pieces = [OK + LENGTH + TEXT[:30], *(TEXT[at : at + 10] for at in range(30, len(TEXT), 10))]
    watch = Stopwatch()
    got = scene.get(raw(*pieces, gap=1.0))
    stood_still = watch.seconds > len(pieces) + 5.0  # then the site was silent for too long, perhaps
    assert stood_still or (len(pieces), got.code, got.body) == (9, 200, TEXT)


@pytest.mark.parametrize(
    "flood",
    [
        (OK + b"X: ", b"y" * 8192),
        (OK, b"X: y\r\n" * 100),
        (b"HTTP/1.1 200 ", b"y" * 8192),
        (HINT, HINT * 10),
        (CHUNKED + b"2;", b"x" * 8192),
        (CHUNKED + b"2\r\nok\r\n0\r\n", b"X: y\r\n" * 100),
        (CHUNKED + b"2\r\nok\r\n0\r\nX: ", b"y" * 8192),
    ],
)
def test_floods_of_what_is_no_body_end_long_before_they_cost(
    scene: Scene, flood: tuple[bytes, bytes]
) -> None:
    """Else it would go on until the deadline, and be late."""
    scene.handling.config.fetch_deadline = 60.0
    assert scene.get(Answer(Endless(*flood), gap=0.001)).code == CUT


# --- connections ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a length", "chunks", "trailers", "100 Continue that nobody asked for", "empty"]
)
def test_a_connection_is_used_again_after_a_complete_answer(scene: Scene, name: str) -> None:
    scene.serve(Answer((GOOD[name][0],), last=False))
    assert [got.body for got in scene.fetch(*["/x"] * 5)] == [GOOD[name][1]] * 5
    assert scene.connections == 1


@pytest.mark.parametrize(
    "wire",
    [
        OK + b"Connection: close\r\n" + LENGTH + TEXT,
        b"HTTP/1.0 200 OK\r\n" + LENGTH + TEXT,
        b"HTTP/2.0 200 OK\r\n" + LENGTH + TEXT,
    ],
)
def test_it_is_not_where_the_site_does_not_want_it(scene: Scene, wire: bytes) -> None:
    scene.serve(Answer((wire,), last=False))
    assert [got.body for got in scene.fetch("/x", "/x")] == [TEXT] * 2
    assert scene.connections == 2


def test_nor_after_bytes_that_stood_behind_an_answer(scene: Scene) -> None:
    scene.serve(Answer((WHOLE, b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"), gap=0.2, last=False))
    assert [got.body for got in scene.fetch("/x", "/x", whole=True)] == [TEXT] * 2
    assert scene.connections == 2


def test_nor_when_a_body_was_not_read(scene: Scene) -> None:
    scene.serve(
        Answer((OK + b"Content-Length: 100000\r\n\r\n" + bytes(9), bytes(99991)), gap=0.3, last=False)
    )
    assert [got.code for got in scene.fetch("/x", "/x", meta={TYPES: ("image/*",)})] == [703] * 2
    assert scene.connections == 2
    assert scene.handling.charged == 0


def test_a_connection_that_the_site_closed_between_two_requests_is_noticed(scene: Scene) -> None:
    scene.serve(raw(WHOLE))
    assert [got.code for got in scene.fetch("/x", "/x", "/x", whole=True)] == [200] * 3
    assert (len(scene.site.visits), scene.connections) == (3, 3)


def test_a_request_on_a_connection_that_just_died_is_sent_once_more(scene: Scene) -> None:
    scene.serve(page(TEXT), path="/before")
    scene.serve(raw(b""), page(TEXT))
    assert [got.code for got in scene.fetch("/before", "/x")] == [200] * 2
    assert len(scene.site.asked("/x")) == 2


def test_but_not_one_that_may_do_something(scene: Scene) -> None:
    scene.serve(page(TEXT), path="/before")
    scene.serve(raw(b""), page(TEXT))
    assert [got.code for got in scene.fetch("/before", "/x", method="POST")] == [200, CUT]
    assert len(scene.site.asked("/x")) == 1


def test_nor_when_something_of_an_answer_came(scene: Scene) -> None:
    assert scene.get(raw(b"HTTP/1.1 2"), page(TEXT)).code == CUT
    assert len(scene.site.visits) == 1


def test_nor_more_than_once(scene: Scene) -> None:
    assert scene.get(raw(b"")).code == CUT
    assert len(scene.site.visits) == 2


@contextlib.contextmanager
def serving(act: Callable[[socket.socket], object], times: int = 1) -> Iterator[int]:
    """Do something with each of so many connections; gives the port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for _ in range(times):
                peer, _ = listening.accept()
                with peer, contextlib.suppress(OSError):
                    act(peer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listening.getsockname()[1])
        thread.join(300)


def half_closing(wire: bytes) -> Callable[[socket.socket], None]:
    def act(peer: socket.socket) -> None:
        peer.recv(65536)
        peer.sendall(wire)
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(65536):
            pass

    return act


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("wire", "code"),
    [(WHOLE, 200), (OK + b"\r\n" + TEXT, 200), (WHOLE[:-9], CUT), (CHUNKED + CHUNKS[:-9], CUT), (OK, CUT)],
)
def test_a_half_closed_connection_is_a_closed_one(scene: Scene, loop: str, wire: bytes, code: int) -> None:
    scene.loop = loop
    with serving(half_closing(wire)) as scene.port:
        assert scene.fetch()[0].code == code


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("wire", [OK + b"\r\n" + TEXT, WHOLE[:-9], OK])
def test_a_reset_never_makes_an_answer_complete(scene: Scene, loop: str, wire: bytes) -> None:
    def act(peer: socket.socket) -> None:
        peer.recv(65536)
        peer.sendall(wire)
        threading.Event().wait(0.3)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    scene.loop = loop
    with serving(act) as scene.port:
        assert scene.fetch()[0].code == CUT


def test_ipv6_is_spoken(scene: Scene) -> None:
    try:
        scene.port, scene.host = scene.site.listen(address="::1"), "::1"
    except OSError:
        pytest.skip("no IPv6 here")
    got = scene.get(page(TEXT))
    assert (got.code, got.body, got.peer) == (200, TEXT, "::1")
    assert scene.site.visits[0].headers["host"] == f"[::1]:{scene.port}"


def test_a_site_that_sends_faster_than_it_may_is_held_back(site: Site, tmp_path: Path) -> None:
    """Not only is it read slowly: what it has sent and nobody read is bounded, down to TCP."""
    sent = 0

    def act(peer: socket.socket) -> None:
        nonlocal sent
        peer.recv(65536)
        peer.sendall(OK + b"\r\n")
        for _ in range(1000):
            peer.sendall(bytes(10_000))
            sent += 10_000

    handling = Handling(tmp_path)
    handling._worker.manager.limit = lambda _: 20_000
    handling._worker.manager.charge = lambda *_: 60.0

    async def scenario() -> None:
        handler = handling.handler()
        under_way = asyncio.ensure_future(fetched(handler, f"http://127.0.0.1:{port}/", f"127.0.0.1:{port}"))
        while not sent:
            await asyncio.sleep(0.05)
        await asyncio.sleep(1.5)
        under_way.cancel()
        await asyncio.gather(under_way, return_exceptions=True)
        await handler.close()

    with serving(act) as port:
        run(scenario, "asyncio")
    assert 0 < sent < 5_000_000, "the system takes in what its own buffers hold, and no more"


# --- TLS -----------------------------------------------------------------------------------------


def tls_of(folder: Path, authority: Authority, *names: str, **validity: Any) -> ssl.SSLContext:
    authority.issue(*names, **validity).write(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """Return an authority that this machine trusts."""
    authority = Authority()
    (tmp_path / "ours.pem").write_bytes(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ours.pem"))
    return authority


def over_tls(scene: Scene, context: ssl.SSLContext) -> Scene:
    scene.port, scene.scheme = scene.site.listen(context), "https"
    return scene


@pytest.mark.parametrize("loop", LOOPS)
def test_over_tls_all_is_the_same(scene: Scene, ours: Authority, tmp_path: Path, loop: str) -> None:
    scene.loop = loop
    over_tls(scene, tls_of(tmp_path / "tls", ours, "127.0.0.1"))
    scene.serve(page(TEXT * 5000), path="/large")
    scene.serve(Answer((CHUNKED + CHUNKS,), last=False))
    got = scene.fetch("/x", "/large", "/x")
    assert [one.body for one in got] == [TEXT + b"later", TEXT * 5000, TEXT + b"later"]
    assert scene.connections == 1


@pytest.mark.parametrize(
    ("names", "validity", "trusted"),
    [
        (("127.0.0.1",), {"begins": NOW - 3 * DAY, "ends": NOW - DAY}, True),
        (("www.example.org",), {}, True),
        (("127.0.0.1",), {}, False),
    ],
    ids=["expired", "another host's", "signed by nobody we know"],
)
def test_a_certificate_that_does_not_verify_is_612(
    scene: Scene, ours: Authority, tmp_path: Path, *, names: Sequence[str], validity: Any, trusted: bool
) -> None:
    authority = ours if trusted else Authority("somebody")
    over_tls(scene, tls_of(tmp_path / "tls", authority, *names, **validity))
    assert scene.get(page(TEXT)).code == TLS
    assert not scene.site.visits


def test_plain_http_at_the_port_of_tls_is_612(scene: Scene) -> None:
    scene.scheme = "https"
    with serving(
        lambda peer: peer.recv(9) and peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    ) as scene.port:
        assert scene.fetch()[0].code == TLS


def test_a_handshake_that_never_ends_is_no_connection(hasty: Scene) -> None:
    released = threading.Event()
    hasty.scheme, hasty.handling.config.fetch_deadline = "https", HOURS
    with serving(lambda _: released.wait(HOURS)) as hasty.port:
        assert hasty.fetch()[0].code == REFUSED
        released.set()


# --- through a proxy -----------------------------------------------------------------------------


def tunnelling(told: list[bytes], target: int, answer: bytes) -> Callable[[socket.socket], None]:
    """Be a proxy: tell what it was asked, and pass all bytes on if ``answer`` says so."""

    def act(peer: socket.socket) -> None:
        told.append(peer.recv(65536))
        peer.sendall(answer)
        with socket.create_connection(("127.0.0.1", target)) as site:
            back = threading.Thread(target=pipe, args=(site, peer))
            back.start()
            pipe(peer, site)
            back.join(300)

    return act


def pipe(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


KNOCK = {"Proxy-Authorization": "Basic eDp5"}


@pytest.mark.parametrize(("user", "headers"), [("", KNOCK), ("x:y@", {}), ("a:b@", KNOCK)])
def test_an_http_proxy_gets_the_whole_url_and_its_password(
    scene: Scene, user: str, headers: dict[str, str]
) -> None:
    told: list[bytes] = []
    with serving(lambda peer: told.append(peer.recv(65536)) or peer.sendall(WHOLE)) as proxy:
        (got,) = scene.fetch(meta={"proxy": f"http://{user}127.0.0.1:{proxy}"}, headers=headers)
    assert (got.code, got.body) == (200, TEXT)
    lines = told[0].splitlines()
    assert lines[0] == f"GET {scene.url()} HTTP/1.1".encode()
    assert f"Host: 127.0.0.1:{scene.port}".encode() in lines
    assert [line for line in lines if line.startswith(b"Proxy-")] == [b"Proxy-Authorization: Basic eDp5"]


@pytest.mark.parametrize("loop", LOOPS)
def test_https_goes_through_a_tunnel_that_the_password_does_not_enter(
    scene: Scene, ours: Authority, tmp_path: Path, loop: str
) -> None:
    told: list[bytes] = []
    scene.loop = loop
    over_tls(scene, tls_of(tmp_path / "tls", ours, "127.0.0.1"))
    scene.serve(page(TEXT))
    with serving(tunnelling(told, scene.port, b"HTTP/1.1 200 Connected\r\n\r\n")) as proxy:
        got = scene.fetch("/x", "/x", meta={"proxy": f"http://127.0.0.1:{proxy}"}, headers=KNOCK)
    assert [one.body for one in got] == [TEXT] * 2
    assert scene.connections == 1
    lines = told[0].splitlines()
    assert lines[0] == f"CONNECT 127.0.0.1:{scene.port} HTTP/1.1".encode()
    assert b"Proxy-Authorization: Basic eDp5" in lines
    assert "proxy-authorization" not in scene.site.visits[0].headers


@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 Who are you\r\n\r\n", b"SSH-2.0-x\r\n", b""])
def test_a_proxy_that_makes_no_tunnel_is_no_connection(scene: Scene, answer: bytes) -> None:
    scene.scheme = "https"
    with serving(lambda peer: peer.recv(65536) and peer.sendall(answer)) as proxy:
        assert scene.fetch(meta={"proxy": f"http://127.0.0.1:{proxy}"})[0].code == REFUSED


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "http://", "http://h:x", "http://h/path"])
def test_only_http_proxies_are_used(scene: Scene, proxy: str) -> None:
    assert scene.fetch(meta={"proxy": proxy})[0].code == 705


def test_a_proxy_at_a_private_address_is_for_those_who_may_go_there(scene: Scene) -> None:
    async def scenario() -> int:
        handler = scene.handling.handler()
        request = Request("http://www.example.org/", meta={"proxy": f"http://127.0.0.1:{scene.port}"})
        try:
            return int((await handler.download_request(request)).status)
        except Exception as error:
            return code_of(error)
        finally:
            await handler.close()

    assert run(scenario) == 615
    assert not scene.site.visits


# --- many, and a whole crawl ---------------------------------------------------------------------


@pytest.mark.parametrize("loop", LOOPS)
def test_many_at_once_do_not_mix_their_answers(scene: Scene, loop: str) -> None:
    paths = [f"/{number}" for number in range(200)]
    for number, path in enumerate(paths):
        kinds = (
            page(path * 50),
            raw(OK + b"\r\n" + path.encode() * 50),
            drip(page(path * 50).pieces[0], 0.001, 99),
        )
        scene.serve(kinds[number % 3], path=path)

    async def scenario() -> list[Got]:
        handler = scene.handling.handler()
        places = asyncio.Semaphore(40)

        async def one(path: str) -> Got:
            async with places:
                return await fetched(handler, scene.url(path), f"127.0.0.1:{scene.port}")

        found = await asyncio.gather(*map(one, paths))
        await handler.close()
        return found

    assert [got.body for got in run(scenario, loop)] == [path.encode() * 50 for path in paths]


def test_no_more_connections_than_agreed_are_open(scene: Scene) -> None:
    scene.handling.config.connections_out = 4
    scene.serve(Answer((WHOLE,), wait=0.1, last=False))

    async def scenario() -> list[int]:
        handler = scene.handling.handler()
        codes = await asyncio.gather(
            *(outcome(handler, scene.url(), f"127.0.0.1:{scene.port}") for _ in range(20))
        )
        await handler.close()
        return codes

    assert run(scenario) == [200] * 20
    assert max(visit.together for visit in scene.site.visits) == 4
    assert scene.connections <= 20


CRAWLED = (
    "a length",
    "chunks",
    "trailers",
    "HTTP/1.0",
    "as many early hints as may be",
    "a folded header line",
    "a second answer",
)
REFUSED_THERE = (
    "shorter than its length",
    "two lengths",
    "chunks without an end",
    "one early hint too many",
    "too many header fields",
    "too many trailers",
    "101",
    "NUL in a header",
)


def test_a_whole_crawl_makes_the_same_of_them(make_lcc: Callable[..., Lcc], site: Site) -> None:
    lcc = make_lcc(LCC_RETRY_DELAYS="", LCC_HOST_PATIENCE="0")
    root = f"http://127.0.0.1:{site.listen()}/"
    for number, name in enumerate(CRAWLED + REFUSED_THERE):
        site.put(f"/{number}", raw((GOOD | BAD)[name][0]))
    lcc.register(Provider(1, "", allowprivate=True, ignorerobots=True), roots=[[root]])
    site.put("/line", raw(WHOLE.replace(b"HTTP/1.1 200 OK", b"HTTP/1.0 200 Quite  f\xefne")))
    lcc.start()
    total = len(CRAWLED + REFUSED_THERE)
    urls = [{"curl": f"{root}{number}", "mimetype": "text/html"} for number in [*range(total), "line"]]
    assert lcc.push_urls(1, urls).returncode == 0
    lcc.wait_until_fetched(60)
    stored = lcc.sql("select furl, fetched_machineid, fetched_fileid from lccurl")
    bodies = {
        str(url).rpartition("/")[2]: lcc.path_of(int(str(machine)), int(str(file))).read_bytes()
        for url, machine, file in stored
    }
    expected = {str(number): GOOD[name][1] for number, name in enumerate(CRAWLED)}
    assert bodies == expected | {"line": TEXT}
    asked = "select status_line from lccmeta m join lccurl u on u.urlkey = m.urlkey where furl like '%/line'"
    assert lcc.sql(asked) == [("HTTP/1.0 200 Quite  f\xefne",)]
    assert lcc.sql("select code, count(*) from urlerrors group by code") == [(CUT, len(REFUSED_THERE))]
    assert lcc.stop() == 0
