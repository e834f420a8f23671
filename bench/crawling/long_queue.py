"""A long queue, filled as it is in service: sets are spooled durably, and absorbed by intake.

Most of a very long one may be written straight into the tables.
"""

import re
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import event

from lcc_scrapy.db.records import TurnDelta
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.entries import Declared, UrlEntry, urlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.queue import QueuedUrl
from lcc_scrapy.intake.absorbing import PSETID, Intake
from lcc_scrapy.intake.spooled import SpooledFile
from lcc_scrapy.providers.registration import add as add_provider
from lcc_scrapy.uns.spool import SpoolFolder
from lcc_scrapy.uns.spool_file import SpoolHeader

AT_ONCE = 1_000_000
"""URLs that are written in one transaction with ``--bulk``."""

HASTY = ("journal_mode=OFF", "synchronous=OFF", "cache_size=-4194304")
"""How SQLite writes with ``--bulk``: keys come in no order, and each writes a page of its own."""

LAST = 100_000
"""URLs that intake absorbs all the same."""


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


def peak(pid: int | str = "self") -> float:
    """Return the most memory that a process has had (MB of 10^6 bytes)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024 / 1e6


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

    def __init__(self, store: SqlStore, spool: SpoolFolder, root: str) -> None:
        self._store = store
        self._spool = spool
        self._root = root
        self.spooling = 0.0
        self.working = 0.0
        self.steps: list[tuple[float, int]] = []

    def register(self, providers: int) -> None:
        for pid in range(1, providers + 1):
            one = Provider(pid, "", allowprivate=True, ignorerobots=True)
            add_provider(self._store, one, [f"{self._root}p{pid}/"])

    def push(self, pid: int, first: int, count: int) -> None:
        """Let intake absorb a set."""
        begun = time.perf_counter()
        writer = self._spool.begin(SpoolHeader(pid, first + 1, 0), time.time())
        for url, declared in self._urls(pid, first, count):
            writer.add(UrlEntry(url, "text/html", furl=url, burl=url, declared=declared))
        path = writer.commit()
        self.spooling += time.perf_counter() - begun
        intake = Intake(self._store, SpooledFile(path), QueuePolicy())
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
            url = f"{self._root}p{pid}/folder{n % 97}/document-{n:08d}.html"
            yield url, Declared(1700000000, 6, f"{n:032x}")


def queued(pid: int, url: str, declared: Declared, psetid: int, position: int) -> QueuedUrl:
    key = urlkey(pid, url, "text/html")
    return QueuedUrl(
        key, pid, url, "text/html", "", url, url, declared.mtime, declared.length, declared.md5, "",
        psetid, position, "fetch", 1, 0, 0,
    )  # fmt: skip


def write(url: str, folder: Path, root: str, size: Size) -> float:
    """Write what intake is not to absorb; return seconds."""
    store = SqlStore(url)
    if store.url.get_backend_name() == "sqlite":
        event.listen(store.engine, "connect", hasten)
    filler, (sets, _) = Filler(store, SpoolFolder(folder), root), size.ways()
    at_once = max(1, AT_ONCE // size.per_set)
    begun = time.perf_counter()
    for start in range(0, len(sets), at_once):
        filler.write(sets[start : start + at_once])
    store.close()
    return time.perf_counter() - begun


def hasten(connection: sqlite3.Connection, _record: object) -> None:
    for pragma in HASTY:
        connection.execute(f"PRAGMA {pragma}").close()


def register(url: str, folder: Path, root: str, size: Size) -> None:
    """Register the providers."""
    store = SqlStore(url)
    Filler(store, SpoolFolder(folder), root).register(size.providers)
    store.close()


def absorb(url: str, folder: Path, root: str, size: Size) -> Filled:
    """Push the other sets, and let intake absorb them."""
    store, spool = SqlStore(url), SpoolFolder(folder)
    spool.lock()
    spool.recover()
    filler = Filler(store, spool, root)
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
