"""How many pages a second 1 to 50 crawl machines settle on one database, by a model of queues.

Workers fetch a group of pages with their own processor; then the group goes through the stations that all
share, each first come, first served: the network of the database, its processors, and the feed's counter, a
row that one transaction at a time holds. The constants were measured on one machine (docs/performance.md);
the time for the counter is measured anew by ``--measure``.

    python bench/machines.py                                  # with the constants of docs/capacity.md
    python bench/machines.py --measure postgresql             # the time for the counter on this machine
    python bench/machines.py --counter-ms 5 --group 100 --plot chart.svg
"""

import argparse
import heapq
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from crawling import running, tables
from crawling.command_line import parser
from crawling.lcc import Lcc, database

from lcc_scrapy.db.records import FEED
from lcc_scrapy.db.sql.store import SqlStore

MACHINES = (1, 2, 5, 10, 20, 30, 40, 50)
HEADINGS = ("machines", "pages/s", "of what they could", "busiest station", "busy", "second", "busy")
BAR, ROW = 480, 22
"""Pixels of the longest bar, and from one bar to the next."""

Draw = Callable[[], float]
"""Gives the seconds of the next service."""


@dataclass
class Station:
    """Some servers with one queue before them, first come, first served."""

    name: str
    draw: Draw
    servers: int = 1
    busy: float = 0.0
    _free: list[float] = field(default_factory=list)

    def serve(self, now: float) -> float:
        """Return when a job that comes now is done; jobs come in the order of time."""
        self._free = self._free or [0.0] * self.servers
        took = self.draw()
        done = max(now, self._free[0]) + took
        heapq.heapreplace(self._free, done)
        self.busy += took
        return done


def closed(jobs: int, alone: Draw, shared: Sequence[Station], until: float) -> int:
    """Let jobs work alone, then pass the shared stations, again and again; return the rounds done."""
    events = [(alone(), job, 0) for job in range(jobs)]
    heapq.heapify(events)
    rounds = 0
    while events[0][0] < until:
        now, job, stage = heapq.heappop(events)
        if stage < len(shared):
            heapq.heappush(events, (shared[stage].serve(now), job, stage + 1))
        else:
            rounds += 1
            heapq.heappush(events, (now + alone(), job, 0))
    return rounds


def opened(arrivals: Iterator[float], station: Station) -> float:
    """Return the mean time in a station of jobs that come at given moments."""
    spent = [station.serve(at) - at for at in arrivals]
    return sum(spent) / len(spent)


def exponential(mean: float, chance: random.Random) -> Draw:
    """Return draws of an exponential distribution."""
    return partial(chance.expovariate, 1 / mean)


def simulated(machines: int, given: argparse.Namespace) -> tuple[str, ...]:
    """Return the row of the table for so many machines."""
    chance = random.Random(machines)
    pages, workers = given.group, machines * given.workers
    alone = pages * given.worker_us / 1e6
    shared = [
        Station("network", lambda: pages * given.row_bytes / given.network),
        Station("processors", exponential(pages * given.database_us / 1e6, chance), given.processors),
        Station("counter", exponential(given.counter_ms / 1e3, chance)),
    ]
    seconds = max(20.0, 20 * alone)
    rate = closed(workers, exponential(alone, chance), shared, seconds) * pages / seconds
    busy = sorted(((one.busy / seconds / one.servers, one.name) for one in shared), reverse=True)
    (most, first), (less, second) = busy[:2]
    ideal = workers * pages / alone
    return (
        str(machines), f"{rate:,.0f}", f"{rate / ideal:.0%}", first, f"{min(most, 1):.0%}",
        second, f"{min(less, 1):.0%}",
    )  # fmt: skip


def limits(given: argparse.Namespace) -> list[tuple[float, str]]:
    """Return at how many pages a second each station is always busy, the first limit first."""
    return sorted(
        [
            (given.network / given.row_bytes, "network of the database"),
            (given.processors * 1e6 / given.database_us, "processors of the database"),
            (given.group * 1e3 / given.counter_ms, "counter of the feed"),
        ]
    )


def counter_seconds(url: str, threads: int = 8, seconds: float = 4.0) -> float:
    """Measure how long one transaction after the other has the feed's counter, commits included."""
    store, done, end = SqlStore(url), [0] * threads, time.monotonic() + seconds

    def take(number: int) -> None:
        while time.monotonic() < end:
            with store.begin() as tx:
                tx.take(FEED, 1)
            done[number] += 1

    workers = [threading.Thread(target=take, args=(number,)) for number in range(threads)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    store.close()
    return seconds / sum(done)


def chart(rows: Sequence[tuple[str, ...]], title: str) -> str:
    """Return an SVG with a bar of pages a second for each number of machines."""
    rates = [int(row[1].replace(",", "")) for row in rows]
    bars = [
        f'<text x="50" y="{y + 14}" text-anchor="end">{row[0]}</text>'
        f'<rect x="58" y="{y}" width="{BAR * rate / max(rates):.0f}" height="16" fill="#4477aa"/>'
        f'<text x="{64 + BAR * rate / max(rates):.0f}" y="{y + 13}">{row[1]} ({row[3]} {row[4]})</text>'
        for y, row, rate in zip(range(30, 1000, ROW), rows, rates, strict=False)
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{40 + ROW * len(rows)}"'
    style = ' font-family="sans-serif" font-size="13"><rect width="100%" height="100%" fill="white"/>'
    return "\n".join([head + style, f'<text x="8" y="18">{title}</text>', *bars, "</svg>", ""])


def measure(kind: str, scratch: Path) -> None:
    """Print the counter's time on a database of this machine."""
    with running.scratch(scratch) as folder, database(kind, folder) as url:
        Lcc(folder, url).command("init")
        print(f"{kind}: {1e3 * counter_seconds(url):.2f} ms for the counter")


def main() -> None:
    """Simulate and print, or measure."""
    given = options()
    if given.measure:
        measure(given.measure, given.scratch)
        return
    rows = [simulated(machines, given) for machines in MACHINES]
    title = f"{given.workers} workers a machine, {given.group} pages a commit, {given.counter_ms} ms counter"
    tables.show(title, HEADINGS, rows, given.markdown)
    for rate, name in limits(given):
        print(f"{name}: {rate:,.0f} pages/s")
    if given.plot:
        given.plot.write_text(chart(rows, f"pages/s by machines: {title}"), encoding="utf-8")


def options() -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__, "--markdown", "--scratch")
    made.add_argument("--measure", choices=("sqlite", "mariadb", "postgresql"))
    made.add_argument("--workers", type=int, default=2, help="of each machine")
    made.add_argument("--worker-us", type=float, default=392, help="CPU of a worker for a page")
    made.add_argument("--database-us", type=float, default=111, help="CPU of the database for a page")
    made.add_argument("--processors", type=int, default=16, help="of the database")
    made.add_argument("--counter-ms", type=float, default=2.2, help="for which one commit has the counter")
    made.add_argument("--group", type=int, default=100, help="pages of a commit")
    made.add_argument("--row-bytes", type=float, default=3_000, help="to and from the database for a page")
    made.add_argument("--network", type=float, default=125e6, help="bytes/s of the database's machine")
    made.add_argument("--plot", type=Path, help="write a chart to this SVG file")
    return made.parse_args()


if __name__ == "__main__":
    main()
