"""How long workers wait for each other's rows in MariaDB while they crawl.

Several workers crawl one LCC, 64 providers, pages of 8 KB. The server counts how long anybody waited for a
lock on a row: nothing else may use it meanwhile. ``LCC_BENCH_MARIADB`` names another one than the usual.

    python bench/lock_waits.py
    python bench/lock_waits.py --source ../before --workers 4 --rounds 5
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.lcc import LCC, Lcc, database, in_mariadb, no_mariadb
from crawling.running import Failed, Launch, Measured
from crawling.site import Site

PROVIDERS, SIZE = 64, 8_000
HEADINGS = (
    "checkout", "ms waited per 1,000 pages", "range", "waits", "pages/s", "range", "CPU s per 1,000", "n",
)  # fmt: skip


@dataclass(frozen=True)
class Waits:
    """How often the server made somebody wait for a row so far, and how many milliseconds in all."""

    count: int
    time: int

    @classmethod
    def so_far(cls) -> "Waits":
        """Ask the server."""
        found = dict(in_mariadb("show global status like 'innodb_row_lock%'"))
        return cls(*(int(str(found[f"Innodb_row_lock_{name}"])) for name in ("waits", "time")))


@dataclass(frozen=True)
class Run:
    """One crawl, and what of it was waiting, for 1,000 pages."""

    measured: Measured
    waits: float
    waited: float


def crawl(source: Path, home: Path, site: Site, given: argparse.Namespace) -> Run:
    """Fill an LCC and crawl it."""
    home.mkdir()
    with database("mariadb", home) as url:
        lcc = Lcc(home, url)
        urls = {pid: site.urls(pid, SIZE, given.pages // PROVIDERS) for pid in range(1, PROVIDERS + 1)}
        lcc.command("init")
        lcc.register({pid: site.root(pid) for pid in urls})
        lcc.push(urls, site.pages[SIZE])
        os.sync()
        pages, before = lcc.waiting(), Waits.so_far()
        command = (*LCC, "crawl", "--workers", str(given.workers), "-a", "stop_when_done=1")
        launch = Launch([command], lcc.environment | {"PYTHONPATH": str(source)}, home)
        measured = running.run(launch, site, pages, PROVIDERS, lambda: pages - lcc.waiting())
        after = Waits.so_far()
        if lcc.cached() != pages:
            raise Failed(f"{lcc.cached():,} of {pages:,} pages were kept: see {home}")
    return Run(measured, (after.count - before.count) * 1e3 / pages, (after.time - before.time) * 1e3 / pages)


def row(source: Path, runs: Sequence[Run]) -> tuple[str, ...]:
    waited, rates = [one.waited for one in runs], [one.measured.rate for one in runs]
    return (
        source.name, f"{median(waited):,.0f}", f"{min(waited):,.0f}-{max(waited):,.0f}",
        f"{median(one.waits for one in runs):.1f}",
        f"{median(rates):,.0f}", f"{min(rates):,.0f}-{max(rates):,.0f}",
        f"{median(one.measured.cpu for one in runs):.3f}", str(len(runs)),
    )  # fmt: skip


def main() -> None:
    """Measure and print."""
    given = options()
    runs: dict[Path, list[Run]] = {source: [] for source in given.sources}
    with running.scratch(given.scratch) as folder, Site(folder / "site", [SIZE]) as site:
        for number in range(given.rounds):
            for source, found in runs.items():
                found.append(crawl(source, folder / f"{number}-{len(found)}-{source.name}", site, given))
                print(f"{source.name}: {found[-1]}", flush=True)
    title = f"{given.workers} workers on MariaDB, {PROVIDERS} providers, load {os.getloadavg()[0]:.1f}"
    tables.show(title, HEADINGS, [row(*one) for one in runs.items()], given.markdown)


def options() -> argparse.Namespace:
    """Read the command line."""
    options = parser(__doc__, "--markdown", "--scratch", "--source")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--workers", type=int, default=4)
    options.add_argument("--pages", type=int, default=12_800)
    given = parsed(options)
    if reason := no_mariadb():
        options.exit(0, f"not measured: {reason}\n")
    return given


if __name__ == "__main__":
    main()
