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
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any
from zoneinfo import ZoneInfo

from crawling import running
from crawling.command_line import parsed, parser
from crawling.lcc import Lcc, database
from crawling.long_queue import Size, absorb, peak, register, write
from crawling.recording import RecordingSite
from crawling.running import Launch
from crawling.variants import SCRAPY
from sqlalchemy import text

from lcc_scrapy.db.records import WorkerRow
from lcc_scrapy.db.sql.store import SqlStore, make_engine
from lcc_scrapy.domain.absorption import WaitRule
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.queue import Failed
from lcc_scrapy.intake import login_rows
from lcc_scrapy.queue.leases import look_around
from lcc_scrapy.queue.settlement import Settlement
from lcc_scrapy.queue.window_rows import Wanted, windows_of
from lcc_scrapy.uns.spool import ReadySet

SIZES = ((1_000, 1), (100_000, 1), (100_000, 1_000))
"""(URLs, providers)"""

WINDOW = 32
ROUNDS = 5


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
    heads, patience = {head.pid: login_rows.Head(waited=0.0, sending=False)}, WaitRule("a UNS", 60.0)
    choices = [
        timed(lambda: login_rows.look_at(store, [head], heads, 1 << 40, patience)) for _ in range(ROUNDS)
    ]
    windows, settling, settled, ring = [], [], 0, cycle(granted)
    for _ in range(ROUNDS):
        reading = writing = 0.0
        done = 0
        while done < decisions:
            turn, begun = next(ring), time.perf_counter()
            with store.begin() as tx:
                wanted = Wanted(turn.lease, tuple(turn.members), WINDOW, ())
                (found,) = windows_of(tx, [wanted], time.time(), zone=ZoneInfo("UTC"))
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


def reopen(lcc: Lcc, site: RecordingSite, seconds: float) -> Opened:
    """Start a crawl, let it fetch for some seconds, and kill it."""
    site.asked.clear()
    begun = time.monotonic()
    with running.started(Launch([(*SCRAPY, "crawl", "lcc_push")], lcc.environment, lcc.folder)) as (crawl,):
        while not site.asked:
            if crawl.poll() is not None or time.monotonic() - begun > 60:
                raise SystemExit(f"the crawl does not fetch: it needs more --urls, or see {lcc.folder}")
            time.sleep(0.005)
        time.sleep(seconds)
        return Opened(min(site.asked.values()) - begun, len(site.asked) / seconds, peak(crawl.pid))


# --- one size ----------------------------------------------------------------------------------------


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


def measure(size: Size, given: argparse.Namespace) -> None:
    """Measure one size and print it."""
    site, kind = RecordingSite(), given.database
    with running.scratch(given.scratch) as folder, database(kind, folder) as url:
        lcc = Lcc(folder, url)
        lcc.command("init")
        place = (url, folder / "lcc-data/spool", site.root, size)
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
        first = reopen(lcc, site, given.seconds)
        again = reopen(lcc, site, given.seconds)
        waiting, distinct, cached = books(url)
    print(
        f"  first request after {first.first:.2f} s; after kill -9 after {again.first:.2f} s;"
        f" then {again.rate:.0f} requests/s; peak {again.peak:.0f} MB\n"
        f"  {waiting:,} wait ({distinct:,} different), {cached:,} fetched,"
        f" {size.urls - chosen.settled - waiting - cached:,} lost",
        flush=True,
    )


def main() -> None:
    options = parser(__doc__, "--database", "--scratch")
    options.add_argument("--urls", type=int, help="how many wait (default: see above)")
    options.add_argument("--providers", type=int, default=1)
    options.add_argument("--seconds", type=float, default=5, help="for which a crawl fetches (5)")
    options.add_argument(
        "--per-set", type=int, default=100_000, help="URLs in a set at most (default 100,000)"
    )
    options.add_argument(
        "--bulk", action="store_true", help="fill it without intake, but for the last 100,000"
    )
    given = parsed(options)
    for urls, providers in ((given.urls, given.providers),) if given.urls else SIZES:
        measure(Size(urls, providers, given.per_set, given.bulk), given)


if __name__ == "__main__":
    main()
