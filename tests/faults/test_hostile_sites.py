"""What a hostile site may do to a crawl: little. Each attack gets its code, in bounded memory and time.

``LCC_BOMBS=all`` stores 512 MiB of zeros in every coding with the default settings, where otherwise gzip will do.
"""

import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import brotli
import pytest
from backports import zstd

from lcc_scrapy.domain.providers import Provider
from tests.acceptance.pushers import Conversation
from tests.faults.canary import Canary
from tests.faults.handling import Stopwatch
from tests.harness import Lcc
from tests.integration.site import Answer, Endless, Site, page

pytestmark = pytest.mark.slow

MIB = 1 << 20
BOMB = 512 * MIB
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
OK = HEAD + b"Content-Length: 2\r\n\r\nok"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def deflated(size: int) -> bytes:
    packer, zeros = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16), bytes(MIB)
    return b"".join(packer.compress(zeros) for _ in range(size // MIB)) + packer.flush()


def brotlied(size: int) -> bytes:
    packer, zeros = brotli.Compressor(quality=1), bytes(MIB)
    return b"".join(packer.process(zeros) for _ in range(size // MIB)) + packer.finish()


def zstandard(size: int, window: int = 20) -> bytes:
    options = {zstd.CompressionParameter.window_log: window, zstd.CompressionParameter.compression_level: 1}
    packer, zeros = zstd.ZstdCompressor(options=options), bytes(MIB)
    return b"".join(packer.compress(zeros) for _ in range(size // MIB)) + packer.flush()


CODINGS: dict[str, Callable[[int], bytes]] = {"gzip": deflated, "br": brotlied, "zstd": zstandard}


@cache
def bomb(coding: str) -> bytes:
    """Return 512 MiB of zeros, coded."""
    return CODINGS[coding](BOMB)


def coded(coding: str, body: bytes) -> Answer:
    return page(body, content_encoding=coding)


def endless(first: bytes, again: bytes, gap: float = 0.0) -> Answer:
    return Answer(Endless(first, again), gap=gap)


@dataclass(frozen=True)
class Attack:
    """What a site answers, and the code that its provider is told (0: none, the page is stored)."""

    name: str
    code: int
    make: Callable[[], Answer]


FLOOD = 64 * 1024
ATTACKS = (
    Attack("nothing: an honest page", 0, lambda: page("hello")),
    Attack("gzip bomb", 604, lambda: coded("gzip", bomb("gzip"))),
    Attack("br bomb", 604, lambda: coded("br", bomb("br"))),
    Attack("zstd bomb", 604, lambda: coded("zstd", bomb("zstd"))),
    Attack("gzip inside gzip", 614, lambda: coded("gzip, gzip", gzip.compress(bomb("gzip")))),
    Attack("a hundred codings", 614, lambda: coded(", ".join(["gzip"] * 100), gzip.compress(b"x"))),
    Attack("zstd with a window of 128 MiB", 614, lambda: coded("zstd", zstandard(MIB, 27))),
    Attack("gzip of empty members", 614, lambda: coded("gzip", gzip.compress(b"") * 100_000)),
    Attack("zstd of empty frames", 614, lambda: coded("zstd", zstd.compress(b"") * 100_000)),
    Attack("zstd of skippable frames", 614, lambda: coded("zstd", b"\x50\x2a\x4d\x18\0\0\0\0" * 100_000)),
    Attack("endless body", 604, lambda: endless(HEAD + b"\r\n", bytes(MIB))),
    Attack("endless chunks", 604, lambda: endless(CHUNKED, b"10000\r\n" + bytes(65536) + b"\r\n")),
    Attack("endless junk behind a gzip body", 604, lambda: endless(HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"x"), bytes(MIB))),
    Attack("dripping body", 603, lambda: endless(HEAD + b"\r\n", b"x", 0.5)),
    Attack("dripping head", 603, lambda: endless(HEAD, b"X", 0.5)),
    Attack("endless header line", 614, lambda: endless(HEAD + b"X: ", b"x" * FLOOD)),
    Attack("endless headers", 614, lambda: endless(HEAD, b"X: y\r\n" * 10_000)),
    Attack("endless status line", 614, lambda: endless(b"HTTP/1.1 200 ", b"x" * FLOOD)),
    Attack("endless informational answers", 614, lambda: endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000, 0.01)),
    Attack("dripping informational answers", 603, lambda: endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.5)),
    Attack("endless chunk extension", 614, lambda: endless(CHUNKED + b"2;", b"x" * FLOOD, 0.01)),
    Attack("endless trailers", 614, lambda: endless(CHUNKED + b"2\r\nok\r\n0\r\n", b"X: y\r\n" * 1000)),
    Attack("chunk of negative size", 614, lambda: Answer((CHUNKED + b"-2\r\nok\r\n",))),
    Attack("chunk beyond all sizes", 614, lambda: Answer((CHUNKED + b"f" * 40 + b"\r\nok\r\n",))),
    Attack("body longer than its length", 0, lambda: Answer((OK + bytes(MIB),))),
    Attack("body shorter than its length", 614, lambda: Answer((HEAD + b"Content-Length: 999999999999\r\n\r\nok",))),
    Attack("two lengths", 614, lambda: Answer((HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok",))),
    Attack("length and chunks", 0, lambda: Answer((HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",))),
    Attack("no HTTP at all", 614, lambda: Answer((b"SSH-2.0-OpenSSH_9.2\r\n",))),
    Attack("endless body of a redirect", 404, lambda: endless(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n\r\n", bytes(MIB))),
    Attack("endless body of an error", 404, lambda: endless(b"HTTP/1.1 404 Not Found\r\n\r\n", bytes(MIB))),
    Attack("upgrade to something else", 614, lambda: Answer((b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",))),
)  # fmt: skip
ROBOTS: tuple[tuple[str, int, Callable[[str], Answer]], ...] = (
    ("robots.txt bomb", 604, lambda _: coded("gzip", bomb("gzip"))),
    ("endless robots.txt", 604, lambda _: endless(HEAD + b"\r\n", b"Disallow: /x\n" * 5000)),
    ("robots.txt of rules", 0, lambda _: page("User-agent: *\n" + "Disallow: /*a*b*c\n" * 28_000)),
    (
        "robots.txt of one endless pattern",
        0,
        lambda _: page("User-agent: *\nDisallow: /" + "*a" * 250_000 + "\n"),
    ),
    (
        "robots.txt that leads to another private host",
        615,
        lambda canary: page("", "302 Found", location=canary),
    ),
)
BOUNDS = {"LCC_FETCH_MAX_BYTES": "20M", "LCC_HOST_PATIENCE": "0", "LCC_RETRY_DELAYS": ""}
PATIENT = {"LCC_FETCH_TIMEOUT": "10m", "LCC_FETCH_DEADLINE": "20m"}
"""For attacks that other bounds end: however busy the machine, none is given up for being slow."""
HASTY = {"LCC_FETCH_TIMEOUT": "4s", "LCC_FETCH_DEADLINE": "12s"}
LATE = 603
ROOM = 100
"""MB that all attacks together may take; one that succeeds takes hundreds."""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


def memory(lcc: Lcc) -> int:
    """Return the crawl's memory at its height, in MB."""
    assert lcc.crawl is not None
    lines = Path(f"/proc/{lcc.crawl.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1000


def submit(lcc: Lcc, pid: int, *urls: str) -> None:
    conversation = Conversation(lcc.port, pid)
    assert "init_accepted" in conversation.login_answer()
    entries: list[dict[str, object]] = [{"curl": url, "mimetype": "text/html"} for url in urls]
    assert f'received="{len(urls)}"' in conversation.push("partial", entries)
    conversation.close()


class Stage:
    """One provider per attack, each with a host of its own, so that all run at the same time."""

    def __init__(self, lcc: Lcc, site: Site, canary: Canary, *, late: bool) -> None:
        self.lcc, self._site, self.expected = lcc, site, {}
        self._hosts: list[str] = []
        for attack in ATTACKS:
            if (attack.code == LATE) == late:
                self._add(attack.name, attack.code, {"page.html": attack.make()})
        self._exempt = len(self._hosts)
        for name, code, make in () if late else ROBOTS:
            target = f"http://127.0.0.1:{canary.port}/robots.txt"
            self._add(name, code, {"robots.txt": make(target), "page.html": page("ok")})

    def _add(self, name: str, code: int, pages: dict[str, Answer]) -> None:
        self.expected[name] = code
        port = self._site.listen()
        self._hosts.append(f"http://127.0.0.1:{port}/")
        for path, answer in pages.items():
            self._site.put(f"{port}/{path}", answer)

    def play(self) -> dict[str, int]:
        """Let all of it happen; returns what the providers are told."""
        pids = range(1, len(self._hosts) + 1)
        providers = [Provider(pid, "", allowprivate=True, ignorerobots=pid <= self._exempt) for pid in pids]
        self.lcc.register(*providers, roots=[[host] for host in self._hosts])
        self.lcc.start()
        before, watch = memory(self.lcc), Stopwatch()
        for pid, host in zip(pids, self._hosts, strict=True):
            submit(self.lcc, pid, f"{host}page.html")
        self.lcc.wait_until_fetched(150)
        self.grown = memory(self.lcc) - before
        told = dict(self.lcc.sql("select pid, code from urlerrors"))
        print(f"\n{len(pids)} attacks at a time, {watch.seconds:.0f} s: {before} MB and {self.grown} MB more")
        return {name: int(str(told.get(pid, 0))) for pid, name in zip(pids, self.expected, strict=True)}


def test_every_attack_gets_its_code_and_takes_no_more_than_its_share(
    make_lcc: Callable[..., Lcc], site: Site
) -> None:
    with Canary() as canary:
        stage = Stage(make_lcc(**BOUNDS, **PATIENT), site, canary, late=False)
        codes = stage.play()
        for name, code in codes.items():
            print(f"  {code or 'stored'}  {name}")
        assert codes == stage.expected
        assert canary.visitors == []
    assert stage.grown < ROOM
    assert {url for (url,) in stage.lcc.sql("select furl from lccurl")} >= {f"{stage._hosts[0]}page.html"}
    assert stage.lcc.stop() == 0


def test_what_drips_is_given_up(make_lcc: Callable[..., Lcc], site: Site) -> None:
    with Canary() as canary:
        stage = Stage(make_lcc(**BOUNDS, **HASTY), site, canary, late=True)
        assert stage.play() == stage.expected
    assert len(stage.expected) == 3
    assert stage.lcc.stop() == 0


def explode(lcc: Lcc, site: Site, codings: Sequence[str]) -> int:
    """Have bombs fetched one after the other; returns the MB by which memory grew."""
    host = f"http://127.0.0.1:{site.listen()}/"
    for coding in codings:
        site.put(f"/{coding}", coded(coding, bomb(coding)))
    lcc.register(Provider(1, "", allowprivate=True, ignorerobots=True), roots=[[host]])
    lcc.start()
    before, watch = memory(lcc), Stopwatch()
    submit(lcc, 1, *(host + coding for coding in codings))
    lcc.wait_until_fetched(170)
    grown = memory(lcc) - before
    wire = ", ".join(f"{coding} {len(bomb(coding)) / 1000:.0f} kB" for coding in codings)
    print(f"\n512 MiB of zeros ({wire}) in {watch.seconds:.0f} s: {before} MB and {grown} MB more")
    return grown


def test_half_a_gigabyte_of_zeros_is_legal_by_default_and_stored_in_bounded_memory(
    make_lcc: Callable[..., Lcc], site: Site
) -> None:
    codings = list(CODINGS) if os.environ.get("LCC_BOMBS") == "all" else ["gzip"]
    lcc = make_lcc()
    assert explode(lcc, site, codings) < ROOM
    assert lcc.sql("select fetched_len, count(*) from lccurl group by 1") == [(BOMB, len(codings))]
    assert lcc.stop() == 0


def test_it_is_refused_where_less_is_permitted(make_lcc: Callable[..., Lcc], site: Site) -> None:
    lcc = make_lcc(LCC_FETCH_MAX_BYTES="100M", LCC_RETRY_DELAYS="")
    assert explode(lcc, site, list(CODINGS)) < ROOM
    assert lcc.sql("select code, count(*) from urlerrors group by 1") == [(604, len(CODINGS))]
    assert lcc.sql("select count(*) from lccurl") == [(0,)]
    assert not list((lcc.folder / "lcc-data" / "content").rglob("body-*"))
    assert lcc.stop() == 0
