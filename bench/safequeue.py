"""What a long queue costs: to fill it, to open it again after ``kill -9``, to choose from it, and memory.

The properties are those of WebRACE's SafeQueue (seed 002 section 3). The queue is filled as it is in
service: sets are spooled durably and absorbed by intake, in a process that does nothing else; ``--bulk``
writes all but the last 100,000 rows straight into the tables. Then ``scrapy crawl lcc_push`` is started
beside a tiny web server, killed with ``kill -9`` while it fetches, and started again.

    python bench/safequeue.py                  # 1,000 URLs; 100,000 of 1 provider and of 1,000
    python bench/safequeue.py --urls 10000000 --bulk
    python bench/safequeue.py --urls 1000000 --providers 1000 --database mariadb
    python bench/safequeue.py --urls 100000 --per-set 10 --bulk
"""

import argparse
import asyncio
import os
import re
import secrets
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any
from zoneinfo import ZoneInfo

import pymysql
from sqlalchemy import event, text

from lcc_scrapy.domain.absorption import Patience
from lcc_scrapy.domain.entries import Declared, UrlEntry, urlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.queue import Failed, QueuedUrl
from lcc_scrapy.storage import logins
from lcc_scrapy.storage.intake import PSETID, Intake
from lcc_scrapy.storage.providers import add as add_provider
from lcc_scrapy.storage.records import TurnDelta, WorkerRow
from lcc_scrapy.storage.settling import Settlement
from lcc_scrapy.storage.spooled import open_spooled
from lcc_scrapy.storage.sql import SqlStore
from lcc_scrapy.storage.sql.store import make_engine
from lcc_scrapy.storage.turnstile import look_around
from lcc_scrapy.storage.windows import window_of
from lcc_scrapy.uns.spool import ReadySet, SpoolFolder
from lcc_scrapy.uns.spoolfile import SpoolHeader

BIN = Path(sys.executable).parent
SIZES = ((1_000, 1), (100_000, 1), (100_000, 1_000))
"""(URLs, providers)"""

AT_ONCE = 1_000_000
"""URLs that are written in one transaction with ``--bulk``."""

HASTY = ("journal_mode=OFF", "synchronous=OFF", "cache_size=-4194304")
"""How SQLite writes with ``--bulk``: keys come in no order, and each writes a page of its own."""

LAST = 100_000
"""URLs that intake absorbs all the same."""

WINDOW = 32
ROUNDS = 5
FETCHING = 5.0
"""Seconds for which a crawl fetches before it is killed."""

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\nhello\n"


@dataclass(frozen=True)
class Filled:
    """Seconds to spool and to absorb, and of the latter at work in this process; URLs a second absorbed in
    the first and the last tenth of the steps; the peak of the process (MB)."""

    spooling: float
    absorbing: float
    working: float
    first: float
    last: float
    peak: float


@dataclass(frozen=True)
class Choosing:
    """Milliseconds: for the windows of 1,000 tickets, to settle them, of a look, intake's choice, a count.

    ``settled`` is how many URLs left the queue by that.
    """

    windows: float
    settling: float
    look: float
    choice: float
    count: float
    settled: int


@dataclass(frozen=True)
class Opened:
    """Seconds from the start of a crawl to its first request, requests a second after it, the peak (MB)."""

    first: float
    rate: float
    peak: float


def peak(pid: int | str = "self") -> float:
    """Return the most memory that a process has had (MB of 10^6 bytes)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024 / 1e6


# --- filling -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """How much is to wait: URLs in all, of how many providers, in sets of how many, by which way."""

    urls: int
    providers: int
    per_set: int
    bulk: bool

    def sets(self) -> Iterator[tuple[int, int, int]]:
        """Yield (pid, number of its first URL, how many URLs), one set of each provider after the other."""
        each = self.urls // self.providers
        for first in range(0, each, self.per_set):
            for pid in range(1, self.providers + 1):
                yield pid, first, min(self.per_set, each - first)

    def ways(self) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
        """Return the sets that are written straight into the tables, and those that intake absorbs."""
        sets = list(self.sets())
        by_intake = max(1, LAST // self.per_set) if self.bulk else len(sets)
        return sets[:-by_intake], sets[-by_intake:]


class Filler:
    """Fills the queue of one LCC."""

    def __init__(self, store: SqlStore, spool: SpoolFolder, host: str) -> None:
        self._store = store
        self._spool = spool
        self._host = host
        self.spooling = 0.0
        self.working = 0.0
        self.steps: list[tuple[float, int]] = []

    def register(self, providers: int) -> None:
        for pid in range(1, providers + 1):
            one = Provider(pid, "", allowprivate=True, ignorerobots=True)
            add_provider(self._store, one, [f"{self._host}/p{pid}/"])

    def push(self, pid: int, first: int, count: int) -> None:
        """Let intake absorb a set."""
        begun = time.perf_counter()
        writer = self._spool.begin(SpoolHeader(pid, first + 1, 0), time.time())
        for url, declared in self._urls(pid, first, count):
            writer.add(UrlEntry(url, "text/html", furl=url, burl=url, declared=declared))
        path = writer.commit()
        self.spooling += time.perf_counter() - begun
        intake = Intake(self._store, open_spooled(path), QueuePolicy())
        finished = False
        while not finished:
            begun, working = time.perf_counter(), time.process_time()
            step = intake.step(int(time.time()))
            finished = step.finished
            self.steps.append((time.perf_counter() - begun, step.entries))
            self.working += time.process_time() - working
        intake.close()
        path.unlink()

    def write(self, sets: Sequence[tuple[int, int, int]]) -> None:
        """Write sets as intake would leave them, in one transaction."""
        waiting = Counter[int]()
        with self._store.begin() as tx:
            psetid = tx.take(PSETID, len(sets))
            for number, (pid, first, count) in enumerate(sets, psetid):
                waiting[pid] += count
                urls = enumerate(self._urls(pid, first, count), 1)
                tx.insert_queued([queued(pid, url, declared, number, at) for at, (url, declared) in urls])
            parts = {(number, "", pid): count for number, (pid, _, count) in enumerate(sets, psetid)}
            tx.add_to_parts(parts, {})
            tx.add_to_turns({str(pid): TurnDelta(count, arrived=True) for pid, count in waiting.items()})
            for pid, count in waiting.items():
                tx.add_to_provider(pid, {"nurlproc": count})

    def _urls(self, pid: int, first: int, count: int) -> Iterator[tuple[str, Declared]]:
        for n in range(first, first + count):
            url = f"{self._host}/p{pid}/folder{n % 97}/document-{n:08d}.html"
            yield url, Declared(1700000000, 6, f"{n:032x}")


def queued(pid: int, url: str, declared: Declared, psetid: int, position: int) -> QueuedUrl:
    key = urlkey(pid, url, "text/html")
    return QueuedUrl(
        key, pid, url, "text/html", "", url, url, declared.mtime, declared.length, declared.md5, "",
        psetid, position, "fetch", 1, 0, 0,
    )  # fmt: skip


def write(url: str, folder: Path, host: str, size: Size) -> float:
    """Write what intake is not to absorb; return seconds."""
    store = SqlStore(url)
    if store.url.get_backend_name() == "sqlite":
        event.listen(store.engine, "connect", hasten)
    filler, (sets, _) = Filler(store, SpoolFolder(folder), host), size.ways()
    at_once = max(1, AT_ONCE // size.per_set)
    begun = time.perf_counter()
    for start in range(0, len(sets), at_once):
        filler.write(sets[start : start + at_once])
    store.close()
    return time.perf_counter() - begun


def hasten(connection: sqlite3.Connection, _record: object) -> None:
    for pragma in HASTY:
        connection.execute(f"PRAGMA {pragma}").close()


def register(url: str, folder: Path, host: str, size: Size) -> None:
    """Register the providers."""
    store = SqlStore(url)
    Filler(store, SpoolFolder(folder), host).register(size.providers)
    store.close()


def absorb(url: str, folder: Path, host: str, size: Size) -> Filled:
    """Push the other sets, and let intake absorb them."""
    store, spool = SqlStore(url), SpoolFolder(folder)
    spool.lock()
    spool.recover()
    filler = Filler(store, spool, host)
    for one in size.ways()[1]:
        filler.push(*one)
    store.close()
    spool.unlock()
    tenth = max(1, len(filler.steps) // 10)
    absorbing = sum(took for took, _ in filler.steps)
    paces = pace(filler.steps[:tenth]), pace(filler.steps[-tenth:])
    return Filled(filler.spooling, absorbing, filler.working, *paces, peak())


def pace(steps: list[tuple[float, int]]) -> float:
    """Return URLs a second."""
    return sum(count for _, count in steps) / sum(took for took, _ in steps)


# --- choosing ----------------------------------------------------------------------------------------


def choose(url: str, decisions: int) -> Choosing:
    """Do what a worker does for every 1,000 URLs: read windows, and settle (as failed for good)."""
    store, me = (
        SqlStore(url),
        WorkerRow("bench/0", 1, 0, 0, 0, int(time.time()) + 3600, 16, 0, 0, 0, hungry=False),
    )

    def look() -> Any:
        with store.begin() as tx:
            return look_around(tx, me, time.time(), dead=(), limit=500, only=None, seen=0, drained={})

    granted = look().granted
    looking = [timed(look) for _ in range(ROUNDS)]
    head = ReadySet(Path("none"), granted[0].members[0].provider.pid, 1 << 40, 0)
    heads, patience = {head.pid: logins.Head(waited=0.0, sending=False)}, Patience("a UNS", 60.0)
    choices = [timed(lambda: logins.look_at(store, [head], heads, 1 << 40, patience)) for _ in range(ROUNDS)]
    windows, settling, settled, ring = [], [], 0, cycle(granted)
    for _ in range(ROUNDS):
        reading = writing = 0.0
        done = 0
        while done < decisions:
            turn, begun = next(ring), time.perf_counter()
            with store.begin() as tx:
                found = window_of(
                    tx, turn.lease, turn.members, time.time(), zone=ZoneInfo("UTC"), limit=WINDOW, out=()
                )
            read = time.perf_counter()
            outcomes = [Failed(one, 404, "", int(time.time()), final=True) for one in found.tickets]
            with store.begin() as tx:
                Settlement(
                    tx, outcomes, owner=me.owner, machineid=1, now=int(time.time()), policy=QueuePolicy(),
                    keep=lambda _: None,
                ).run()  # fmt: skip
            reading, writing = reading + read - begun, writing + time.perf_counter() - read
            done += len(outcomes)
        settled += done
        windows.append(reading / done)
        settling.append(writing / done)
    with store.begin() as tx:
        tx.free_turns_of(me.owner)
        tx.drop_worker(me.owner)
    count = timed(lambda: total(store))
    store.close()
    return Choosing(
        median(windows) * 1e6, median(settling) * 1e6, median(looking) * 1e3, median(choices) * 1e3,
        count * 1e3, settled,
    )  # fmt: skip


def total(store: SqlStore) -> dict[str, int]:
    """Count as ``lcc status`` does."""
    with store.read() as tx:
        return tx.totals()


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


# --- opening -----------------------------------------------------------------------------------------


class Site:
    """A web server that has a short answer to everything, and remembers when it was asked."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)
        self.host = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.asked.append(time.monotonic())
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def reopen(environment: dict[str, str], site: Site) -> Opened:
    """Start a crawl, let it fetch for a while, and kill it."""
    site.asked.clear()
    begun = time.monotonic()
    with Path(environment["LCC_DATA_DIR"], "crawl.log").open("ab") as log:
        crawl = subprocess.Popen(
            [str(BIN / "scrapy"), "crawl", "lcc_push"], env=environment, stdout=log, stderr=log
        )
    try:
        while not site.asked:
            if crawl.poll() is not None or time.monotonic() - begun > 60:
                raise SystemExit(f"the crawl does not fetch: it needs more --urls, or see {log.name}")
            time.sleep(0.005)
        time.sleep(FETCHING)
        return Opened(site.asked[0] - begun, len(site.asked) / FETCHING, peak(crawl.pid))
    finally:
        crawl.send_signal(signal.SIGKILL)
        crawl.wait(30)


# --- one size ----------------------------------------------------------------------------------------


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """Give the address of a new database of a kind (``sqlite``, ``mariadb``)."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'lcc.sqlite'}"
        return
    name = f"lcc_bench_{secrets.token_hex(4)}"
    with pymysql.connect(host="127.0.0.1", user="root") as connection, connection.cursor() as cursor:
        cursor.execute(f"create database {name}")
    try:
        yield f"mysql+pymysql://root@127.0.0.1/{name}"
    finally:
        with pymysql.connect(host="127.0.0.1", user="root") as connection, connection.cursor() as cursor:
            cursor.execute(f"drop database {name}")


def alone(work: Callable[..., Any], *args: object) -> Any:
    """Run in a process of its own, for the memory's sake."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def books(url: str) -> tuple[int, int, int]:
    """Return how many rows wait, of how many different documents, and how many are cached."""
    engine = make_engine(url)
    with engine.connect() as connection:
        waiting, distinct = connection.execute(text("select count(*), count(distinct curl) from qdb")).one()
        cached = connection.execute(text("select count(*) from lccurl")).scalar_one()
    engine.dispose()
    return waiting, distinct, cached


def measure(size: Size, kind: str) -> None:
    """Measure one size and print it."""
    site = Site()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, database(kind, Path(folder)) as url:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LCC_", "SCRAPY_"))}
        environment = kept | {
            "SCRAPY_SETTINGS_MODULE": "lcc_scrapy.settings",
            "LCC_DATA_DIR": str(Path(folder) / "data"),
            "LCC_DATABASE_URL": url,
            "LCC_UNS_ENDPOINTS": "tcp:0:interface=127.0.0.1",
        }
        subprocess.run([str(BIN / "lcc"), "init"], env=environment, check=True, capture_output=True)
        place = (url, Path(folder) / "data/spool", site.host, size)
        alone(register, *place)
        writing, filled = alone(write, *place), alone(absorb, *place)
        print(
            f"{kind}, {size.urls:,} URLs of {size.providers:,} providers in sets of {size.per_set:,} at most;"
            f" load {os.getloadavg()[0]:.1f}\n"
            f"  filled: {writing:.0f} s to write rows, {filled.spooling:.1f} s to spool,"
            f" {filled.absorbing:.1f} s to absorb, {filled.working:.1f} s of them at work"
            f" ({filled.first:,.0f} URLs/s, at the end {filled.last:,.0f}); peak {filled.peak:.0f} MB",
            flush=True,
        )
        chosen = alone(choose, url, min(1000, size.urls // 10 // ROUNDS))
        print(
            f"  per 1,000 URLs: windows {chosen.windows:.0f} ms, settling {chosen.settling:.0f} ms;"
            f" a look {chosen.look:.1f} ms, intake's choice {chosen.choice:.1f} ms,"
            f" the counts of lcc status {chosen.count:.0f} ms",
            flush=True,
        )
        first = reopen(environment, site)
        again = reopen(environment, site)
        waiting, distinct, cached = books(url)
    print(
        f"  first request after {first.first:.2f} s; after kill -9 after {again.first:.2f} s;"
        f" then {again.rate:.0f} requests/s; peak {again.peak:.0f} MB\n"
        f"  {waiting:,} wait ({distinct:,} different), {cached:,} fetched,"
        f" {size.urls - chosen.settled - waiting - cached:,} lost",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--urls", type=int, help="how many wait (default: see above)")
    parser.add_argument("--providers", type=int, default=1)
    parser.add_argument(
        "--per-set", type=int, default=100_000, help="URLs in a set at most (default 100,000)"
    )
    parser.add_argument(
        "--bulk", action="store_true", help="fill it without intake, but for the last 100,000"
    )
    parser.add_argument("--database", choices=("sqlite", "mariadb"), default="sqlite")
    given = parser.parse_args()
    for urls, providers in ((given.urls, given.providers),) if given.urls else SIZES:
        measure(Size(urls, providers, given.per_set, given.bulk), given.database)


if __name__ == "__main__":
    main()
