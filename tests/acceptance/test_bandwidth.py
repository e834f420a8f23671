"""Bandwidth as the sites see it: bytes per provider, counted where they are sent.

With ``LCC_MEASURE_SECONDS`` (``make soak``) rates are measured for as long, on a machine that has nothing else to do;
``-s`` shows the figures. Otherwise only what no other work on the machine can bring about fails a test.
"""

import asyncio
import os
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Self

import pytest

from lcc_scrapy.domain.bandwidth import CREDIT
from lcc_scrapy.domain.providers import Provider
from tests.harness import Lcc, wait_for
from tests.integration.site import Site, page, unknown_certificate

SECONDS = float(os.environ.get("LCC_MEASURE_SECONDS", "0"))
ENOUGH = 8.0
"""Seconds' worth of its limit that every provider gets before anything is compared."""
UNREAD = 300_000
"""Bytes that may have been sent and not read: in the buffers of a connection, and ahead of its limit."""
SETTLING = 3.0
"""Seconds after all may be fetched from in which everybody gets going."""

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.slow,
    pytest.mark.timeout(900 + 2 * SECONDS),
]

PIECE = 2048
PAUSE = 0.05
"""Seconds without a byte after which a new burst begins."""

K, M = 1000, 1000_000


@dataclass(frozen=True)
class Party:
    """A provider: its limit in bytes per second (0 = none), and the size of its files in bytes."""

    limit: int
    size: int

    def files(self) -> int:
        """Return how many files last for the whole test, and longer."""
        return 3 + int((self.limit or EVERYTHING) * (SECONDS + 60) / self.size)


SIZES = (4 * K, 8 * K, 16 * K, 30 * K, 20 * K, 500 * K, 60 * K, 600 * K, 40 * K, 20 * M,
         100 * K, 1 * M, 50 * K, 1 * M, 200 * K, 25 * M, 80 * K, 500 * K, 100 * K, 50 * M)  # fmt: skip
LIMITED = tuple(Party(20 * K * number, size) for number, size in enumerate(SIZES, 1))
ALL_LIMITS = sum(party.limit for party in LIMITED)
EVERYTHING = 6 * M
UNLIMITED = (Party(0, 50 * M), Party(0, 300 * K))


class Meter:
    """A web server that sends as fast as it may, and notes every piece that the other side took."""

    def __init__(self, parties: Sequence[Party]) -> None:
        self._parties = parties
        self.sent: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
        self.begun: defaultdict[int, set[float]] = defaultdict(set)

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * PIECE)  # nothing waits on this side
        self.port = int(listening.getsockname()[1])
        starting = asyncio.start_server(self._serve, sock=listening)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(300)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(300)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(300)
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.2)  # what was aborted is closed at the next turns of the loop

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(high=0)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await self._answer(writer, head.split(b" ")[1].decode().split("/")[1])
        writer.transport.abort()

    async def _answer(self, writer: asyncio.StreamWriter, area: str) -> None:
        size = self._parties[int(area) - 1].size if area.isdigit() else 0
        status = "200 OK" if size else "404 Not Found"
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {size}\r\n\r\n".encode()
        )
        for start in range(0, size, PIECE):
            piece = min(PIECE, size - start)
            writer.write(b"x" * piece)
            self.sent[int(area)].append((now := time.monotonic(), piece))
            if not start:
                self.begun[int(area)].add(now)
            await writer.drain()

    def got(self, pid: int) -> int:
        return sum(size for _, size in self.sent[pid].copy())

    def rate(self, pid: int, start: float, end: float) -> float:
        """Return the bytes per second of a provider in a stretch of time: of whole files, or else of whole bursts."""
        inside = [one for one in self.sent[pid] if start <= one[0] < end]
        files = [number for number, (at, _) in enumerate(inside) if at in self.begun[pid]]
        bursts = [
            number for number, (one, then) in enumerate(pairwise(inside), 1) if then[0] - one[0] > PAUSE
        ]
        whole = next((marks for marks in (files, bursts) if len(marks) > 1), [0, len(inside) - 1])
        sent = sum(size for _, size in inside[whole[0] : whole[-1]])
        return sent / (inside[whole[-1]][0] - inside[whole[0]][0])

    def total(self, start: float, end: float) -> float:
        """Return the bytes per second of all together."""
        return sum(size for pid in self.sent for at, size in self.sent[pid] if start <= at < end) / (
            end - start
        )


@dataclass
class Figures:
    """What was measured: bytes per second of each provider, and of all."""

    parties: Sequence[Party]
    rates: list[float]
    total: float
    off: dict[int, float] = field(init=False)

    def __post_init__(self) -> None:
        self.off = {
            pid: rate / party.limit - 1
            for pid, (party, rate) in enumerate(zip(self.parties, self.rates, strict=True), 1)
            if party.limit
        }

    def judge(self, expected: int) -> None:
        assert {pid: off for pid, off in self.off.items() if abs(off) > 0.05} == {}
        assert 0.95 <= self.total / expected <= 1.05

    def show(self, limit: int) -> None:
        print(f"\n{'files of':>10} {'limit':>8} {'measured':>9} {'off':>7}   (kB, kB/s)")
        for pid, (party, rate) in enumerate(zip(self.parties, self.rates, strict=True), 1):
            off = f"{self.off[pid]:+7.1%}" if pid in self.off else ""
            print(f"{party.size / K:10.0f} {party.limit / K or '-':>8} {rate / K:9.1f} {off:>7}")
        print(f"{'all':>10} {limit / K or '-':>8} {self.total / K:9.1f} over {SECONDS:.0f} s")


def compare(parties: Sequence[Party], meter: Meter, begun: float) -> None:
    """Wait until all have got something, and compare: with their limits, which nobody passes, and with each other."""
    limited = {pid: party.limit for pid, party in enumerate(parties, 1) if party.limit}
    least = {pid: ENOUGH * limited.get(pid, 20 * K) for pid in range(1, len(parties) + 1)}
    wait_for(lambda: all(meter.got(pid) >= least[pid] for pid in least), what="everybody to get a share")
    got = {pid: meter.got(pid) for pid in least}
    took = time.monotonic() - begun
    worth = {pid: got[pid] / limit for pid, limit in limited.items()}
    print(f"\n{sum(got.values()) / took / K:.0f} kB/s; of their limits {min(worth.values()):.1f} to"
          f" {max(worth.values()):.1f} s' worth in {took:.1f} s")  # fmt: skip
    too_much = {pid: got[pid] for pid, limit in limited.items() if got[pid] > 1.3 * limit * took + UNREAD}
    assert too_much == {}
    assert sum(got.values()) <= 1.3 * EVERYTHING * took + UNREAD * len(parties)
    assert min(worth.values()) > 0.1 * max(worth.values()), "some are held up by others"


@pytest.fixture
def measure(make_lcc: Callable[..., Lcc]) -> Callable[..., None]:
    """Return what lets providers be fetched from for a while."""

    def run(parties: Sequence[Party], expected: int) -> None:
        with Meter(parties) as meter:
            lcc = make_lcc(LCC_BANDWIDTH=str(EVERYTHING))
            roots = [[f"http://127.0.0.1:{meter.port}/{pid}/"] for pid in range(1, len(parties) + 1)]
            providers = [
                Provider(pid, "", bandwidth=party.limit, allowprivate=True)
                for pid, party in enumerate(parties, 1)
            ]
            lcc.register(*providers, roots=roots)
            lcc.start()
            lcc.lcc("provider", "pause", "--all")
            for pid, (party, (root,)) in enumerate(zip(parties, roots, strict=True), 1):
                urls = [{"c": f"{root}{number}", "mimetype": "text/plain"} for number in range(party.files())]
                assert lcc.push_urls(pid, urls).returncode == 0
            begun = time.monotonic()
            lcc.lcc("provider", "resume", "--all")
            if not SECONDS:
                compare(parties, meter, begun)
                lcc.stop()
                return
            time.sleep(SETTLING)
            start, end = time.monotonic(), time.monotonic() + SECONDS
            time.sleep(SECONDS)
            rates = [meter.rate(pid, start, end) for pid in range(1, len(parties) + 1)]
            figures = Figures(parties, rates, meter.total(start, end))
            lcc.stop()
        figures.show(EVERYTHING)
        figures.judge(expected)

    return run


def test_every_provider_gets_its_limit_when_all_fit_together(measure: Callable[..., None]) -> None:
    measure(LIMITED, ALL_LIMITS)


def test_those_without_a_limit_fill_what_the_others_leave(measure: Callable[..., None]) -> None:
    measure((*LIMITED, *UNLIMITED), EVERYTHING)


def test_a_limit_holds_over_tls_too(make_lcc: Callable[..., Lcc], tmp_path: Path) -> None:
    with Site() as site:
        prefix = f"https://127.0.0.1:{site.listen(unknown_certificate(tmp_path))}/"
        names = "abcd"
        for name in names:
            site.put(f"/{name}", page(b"x" * 100_000))
        lcc = make_lcc()
        lcc.register(Provider(1, "", bandwidth=100 * K, allowprivate=True), roots=[[prefix]])
        lcc.start("-s", "DOWNLOAD_VERIFY_CERTIFICATES=0")
        urls = [{"c": prefix + name, "mimetype": "text/html"} for name in names]
        assert lcc.push_urls(1, urls).returncode == 0
        lcc.wait_until_fetched(30)
        starts = [visit.start for visit in site.visits if visit.path != "/robots.txt"]
    assert len(starts) == len(names)
    assert starts[-1] - starts[0] > 3 - CREDIT - 0.3
