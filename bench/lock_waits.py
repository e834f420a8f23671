"""How long workers wait for each other's rows while they crawl, in MariaDB or PostgreSQL.

Several workers crawl one LCC, 64 providers, pages of 8 KB. MariaDB counts how long anybody waited for a
lock on a row: nothing else may use it meanwhile. PostgreSQL does not count, so its sessions are looked at
every 10 ms. ``LCC_BENCH_MARIADB`` and ``LCC_BENCH_POSTGRESQL`` name other servers than the usual.

    python bench/lock_waits.py
    python bench/lock_waits.py --source ../before --workers 4 --rounds 5
    python bench/lock_waits.py --database mariadb postgresql --workers 1 2 4 8
    python bench/lock_waits.py --workers 4 --redis redis://127.0.0.1:6379/0
"""

import argparse
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.lcc import LCC, POSTGRESQL, Lcc, database, in_mariadb, no_mariadb, no_postgresql
from crawling.running import Failed, Launch, Measured
from crawling.site import Site

from lcc_scrapy.db.sql.store import make_engine

PROVIDERS, SIZE = 64, 8_000
LOOK = 0.01
HEADINGS = (
    "checkout", "database", "Redis", "workers", "ms waited per 1,000 pages", "range", "waits",
    "statements per page", "pages/s", "range",
    "CPU s per 1,000", "n",
)  # fmt: skip


@dataclass
class Waits:
    """How often somebody had to wait for a lock, and how many milliseconds in all; what the server was asked.

    None = it does not count.
    """

    count: float | None = None
    time: float = 0
    statements: float | None = None


@contextmanager
def waits_in_mariadb(_: str) -> Iterator[Waits]:
    """Give what the server has counted meanwhile; filled in at the end."""
    found, before = Waits(), _counted()
    yield found
    found.count, found.time, found.statements = (
        now - then for now, then in zip(_counted(), before, strict=True)
    )


def _counted() -> list[int]:
    names = ("Innodb_row_lock_waits", "Innodb_row_lock_time", "Questions")
    rows = in_mariadb(f"show global status where variable_name in {names}")
    status = {str(name): int(str(value)) for name, value in rows}
    return [status[name] for name in names]


@contextmanager
def waits_in_postgresql(url: str) -> Iterator[Waits]:
    """Give how long sessions of a database waited for a lock meanwhile, as seen by looking often."""
    found, over = Waits(), threading.Event()
    looking = threading.Thread(target=_look, args=(url.rpartition("/")[2], found, over))
    looking.start()
    try:
        yield found
    finally:
        over.set()
        looking.join()


def _look(name: str, found: Waits, over: threading.Event) -> None:
    waiting = f"select count(*) from pg_stat_activity where datname = '{name}' and wait_event_type = 'Lock'"
    engine = make_engine(POSTGRESQL)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        before = time.monotonic()
        while not over.wait(LOOK):
            count = connection.exec_driver_sql(waiting).scalar_one()
            now = time.monotonic()
            found.time, before = found.time + count * (now - before) * 1e3, now
    engine.dispose()


WAITS = {"mariadb": (waits_in_mariadb, no_mariadb), "postgresql": (waits_in_postgresql, no_postgresql)}


@dataclass(frozen=True)
class Case:
    """What is crawled how: a checkout, a database, a Redis that wakes (empty: none), workers."""

    source: Path
    database: str
    redis: str
    workers: int


@dataclass(frozen=True)
class Run:
    """One crawl, and what of it was waiting, for 1,000 pages."""

    measured: Measured
    waits: float | None
    waited: float
    statements: float | None


def crawl(case: Case, home: Path, site: Site, given: argparse.Namespace) -> Run:
    """Fill an LCC and crawl it."""
    home.mkdir()
    with database(case.database, home) as url:
        lcc = Lcc(home, url)
        urls = {pid: site.urls(pid, SIZE, given.pages // PROVIDERS) for pid in range(1, PROVIDERS + 1)}
        lcc.command("init")
        lcc.register({pid: site.root(pid) for pid in urls})
        lcc.push(urls, site.pages[SIZE])
        os.sync()
        pages = lcc.waiting()
        command = (*LCC, "crawl", "--workers", str(case.workers), "-a", "stop_when_done=1")
        settings = {"PYTHONPATH": str(case.source), "LCC_WAKE_REDIS": case.redis}
        launch = Launch([command], lcc.environment | settings, home)
        with WAITS[case.database][0](url) as waits:
            measured = running.run(launch, site, pages, PROVIDERS, lambda: pages - lcc.waiting())
        if lcc.cached() != pages:
            raise Failed(f"{lcc.cached():,} of {pages:,} pages were kept: see {home}")
    counted, statements = (None if one is None else one / pages for one in (waits.count, waits.statements))
    return Run(measured, None if counted is None else counted * 1e3, waits.time * 1e3 / pages, statements)


def row(case: Case, runs: Sequence[Run]) -> tuple[str, ...]:
    waited, rates = [one.waited for one in runs], [one.measured.rate for one in runs]
    counted = [one.waits for one in runs if one.waits is not None]
    asked = [one.statements for one in runs if one.statements is not None]
    return (
        case.source.name, case.database, "yes" if case.redis else "no", str(case.workers),
        f"{median(waited):,.0f}", f"{min(waited):,.0f}-{max(waited):,.0f}",
        f"{median(counted):.1f}" if counted else "-",
        f"{median(asked):.2f}" if asked else "-",
        f"{median(rates):,.0f}", f"{min(rates):,.0f}-{max(rates):,.0f}",
        f"{median(one.measured.cpu for one in runs):.3f}", str(len(runs)),
    )  # fmt: skip


def main() -> None:
    """Measure and print."""
    given = options()
    cases = [Case(*one) for one in product(given.sources, given.database, given.redis, given.workers)]
    runs: dict[Case, list[Run]] = {case: [] for case in cases}
    with running.scratch(given.scratch) as folder, Site(folder / "site", [SIZE]) as site:
        for number, case in product(range(given.rounds), cases):
            runs[case].append(crawl(case, folder / f"{number}-{cases.index(case)}", site, given))
            print(f"{case}: {runs[case][-1]}", flush=True)
    title = f"Waiting for locks, {PROVIDERS} providers, load {os.getloadavg()[0]:.1f}"
    tables.show(title, HEADINGS, [row(*one) for one in runs.items()], given.markdown)


def options() -> argparse.Namespace:
    """Read the command line."""
    options = parser(__doc__, "--markdown", "--scratch", "--source")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--database", nargs="+", choices=WAITS, default=["mariadb"])
    options.add_argument("--workers", type=int, nargs="+", default=[4])
    options.add_argument("--redis", metavar="URL", help="crawl with LCC_WAKE_REDIS, too")
    options.add_argument("--pages", type=int, default=12_800)
    given = parsed(options)
    given.redis = ["", given.redis] if given.redis else [""]
    for name in given.database:
        if reason := WAITS[name][1]():
            options.exit(0, f"not measured: {reason}\n")
    return given


if __name__ == "__main__":
    main()
