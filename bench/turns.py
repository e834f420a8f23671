"""What a scheduling decision costs, and what memory, by the number of providers.

A real queue manager on a real SQLite file, without network: every URL handed out is settled at once as
"failed for good" (the cheapest outcome), so that what is measured is choosing, leasing, refilling and
taking rows away.

    python bench/turns.py                                  # 100, 10,000 and 100,000 providers
    python bench/turns.py --registered 100 --active 100
"""

import argparse
import gc
import itertools
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import insert
from twisted.internet.defer import execute
from twisted.internet.task import Clock

from lcc_scrapy.db import schema
from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import SetPart, StoredTurn
from lcc_scrapy.db.sql.rows import RowsOf
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.queue import Failed, QueuedUrl
from lcc_scrapy.domain.turn_limits import TurnLimits
from lcc_scrapy.queue.group_commit import GroupCommit
from lcc_scrapy.queue.queue_manager import QueueManager
from lcc_scrapy.queue.settlement import Settlement
from lcc_scrapy.queue.turn_leases import Identity

SIZES = ((100, 100), (10_000, 1_000), (100_000, 10_000))
"""(providers registered, of which active)."""

URLS = 100
"""URLs that wait per active provider."""

DECISIONS = 20_000


class SameThread:
    """Runs the store's work at once, so that its time can be told from that of the decisions."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def run(self, work: Any, *args: Any) -> Any:
        begun = time.perf_counter()
        try:
            return execute(work, *args)
        finally:
            self.seconds += time.perf_counter() - begun


def fill(store: SqlStore, registered: int, active: int) -> None:
    """Write providers, and the queue of the active ones, as intake would leave it."""
    with store.begin() as tx:
        connection = tx._c  # type: ignore[attr-defined]  # noqa: SLF001 - a million rows by the short way
        for pids in _batches(range(1, registered + 1), 5000):
            queue = URLS
            rows = [
                Provider(pid, "", priority=pid % 3, nurlproc=queue if pid <= active else 0) for pid in pids
            ]
            RowsOf(t.pidb, Provider).insert(connection, rows)
            connection.execute(insert(t.proots), [{"pid": pid, "root": f"http://h{pid}/"} for pid in pids])
        for pids in _batches(range(1, active + 1), 500):
            tx.insert_queued([_row(pid, number) for pid in pids for number in range(1, URLS + 1)])
            RowsOf(t.qpsdb, SetPart).insert(connection, [SetPart(pid, "", pid, -1, 0, URLS) for pid in pids])
            RowsOf(t.turns, StoredTurn).insert(
                connection,
                [StoredTurn(str(pid), priority=pid % 3, waiting=URLS, arrivals=1) for pid in pids],
            )


def _batches(items: Any, size: int) -> Any:
    items = iter(items)
    return iter(lambda: list(itertools.islice(items, size)), [])


def _row(pid: int, number: int) -> QueuedUrl:
    url = f"http://h{pid}/folder/document-{number:06d}.html"
    key = urlkey(pid, url, "text/html")
    return QueuedUrl(
        key, pid, url, "text/html", "", url, url, 1, 1000, "0" * 32, "", pid, number, "fetch", 1, 0, 0
    )


def measure(registered: int, active: int) -> None:
    """Measure one size in this process and print one line."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'lcc.sqlite'}"
        schema.upgrade(url)
        store = SqlStore(url)
        fill(store, registered, active)
        gc.collect()
        before = _megabytes()
        clock, thread = Clock(), SameThread()
        clock.rightNow = time.time()

        def commit(outcomes: Any) -> Any:
            with store.begin() as tx:
                return _settlement(tx, outcomes, int(clock.seconds())).run()

        anything: Any = thread
        manager = QueueManager(
            store,
            anything,
            GroupCommit(anything, clock, commit),
            clock,
            identity=Identity("1/0"),
            dead_owners=lambda: (),
            zone=ZoneInfo("UTC"),
            limits=TurnLimits(),
            wake=lambda: None,
            now=clock.seconds,
        )
        begun = time.perf_counter()
        manager.start()
        taking = time.perf_counter() - begun
        held = len(manager.turns)
        thread.seconds, times, settled = 0.0, [], 0
        begun = time.perf_counter()
        flying: list[Any] = []
        while settled < min(DECISIONS, active * URLS):
            inside, started = thread.seconds, time.perf_counter()
            ticket = manager.next_ticket()
            times.append(time.perf_counter() - started - (thread.seconds - inside))
            if ticket is not None:
                flying.append(ticket)
            if ticket is None or len(flying) == 64:
                for one in flying:
                    manager.fetch_ended(one)
                _settle(manager, flying, clock)
                settled += len(flying)
                flying = []
                clock.advance(0.01)
        elapsed = time.perf_counter() - begun
        print(
            f"{registered:7d} registered {active:6d} active {active * URLS:8d} queued: "
            f"decision {statistics.median(times) * 1e6:5.1f} µs (99 %: {_percentile(times) * 1e6:6.1f}), "
            f"with all work of the store {elapsed / settled * 1e6:6.0f} µs per URL; "
            f"{held} turns taken in {taking:.1f} s; memory +{_megabytes() - before:.0f} MB"
        )


def _settle(manager: QueueManager, tickets: list[Any], clock: Clock) -> None:
    for ticket in tickets:
        manager.settle(Failed(ticket, 404, "", int(clock.seconds()), final=True))


def _settlement(tx: Tx, outcomes: Any, now: int) -> Settlement:
    return Settlement(
        tx, outcomes, owner="1/0", machineid=1, now=now, policy=QueuePolicy(), keep=lambda _: None
    )


def _percentile(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure each size in a process of its own, for the memory's sake."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--registered", type=int)
    parser.add_argument("--active", type=int)
    given = parser.parse_args()
    if given.registered:
        measure(given.registered, given.active or given.registered)
        return
    for registered, active in SIZES:
        words = ["--registered", str(registered), "--active", str(active)]
        subprocess.run([sys.executable, __file__, *words], check=True)


if __name__ == "__main__":
    main()
