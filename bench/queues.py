"""Crowds of providers and long queues: who begins when, who ends when, and how fast pages come.

Real crawls of one nginx from queues that are full before they start:

    crowd    many providers with a few URLs each: to the end
    short    64 providers with as many URLs together: to the end, or for as long as the others
    one      one provider with a long queue, for some seconds
    hundred  a hundred providers with as many URLs together as ``one``, for some seconds
    brief    one provider with a queue that is just long enough for these seconds

    python bench/queues.py                                        # small, some minutes
    python bench/queues.py --providers 10000 --urls 10 --long 1000000 --seconds 30 --database mariadb
    python bench/queues.py --source ../before --cases crowd short # another checkout, in turns with this one
"""

import argparse
import itertools
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from crawling import running, tables
from crawling.lcc import Lcc, database, no_mariadb
from crawling.running import Launch
from crawling.site import Site
from crawling.variants import CRAWL

HERE = Path(__file__).resolve().parent.parent
SIZE = 2_000
SHORT, HUNDRED = 64, 100
MOST_A_SECOND = 4_000
"""Pages that a crawl surely does not do in a second: how long the queue of ``brief`` is."""
HEADINGS = (
    "checkout", "queue", "first page s", "pages", "pages/s", "x 64 providers", "all begun s",
    "half begun s", "finishing times", "MB",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A queue: so many providers with so many URLs each; ``to_end``: the crawl goes on until it is empty."""

    name: str
    providers: int
    urls: int
    to_end: bool


@dataclass(frozen=True)
class Found:
    """What a crawl was seen to do: (epoch seconds, provider) of each page, start, peak memory (MB)."""

    pages: list[tuple[float, int]]
    started: float
    peak: float

    @property
    def first(self) -> float:
        return self.pages[0][0] - self.started

    @property
    def rate(self) -> float:
        """Return pages a second, from the first fifth of them to the last tenth."""
        moments = [at for at, _ in self.pages]
        low, high = (int(len(moments) * share) for share in running.STEADY)
        return (high - low) / max(0.001, moments[high] - moments[low])

    def begun(self, providers: int, share: float) -> str:
        """Return after how many seconds so many of the providers had begun."""
        firsts = sorted({pid: at for at, pid in reversed(self.pages)}.values())
        wanted = int(providers * share)
        return f"{firsts[wanted - 1] - self.started:.1f}" if len(firsts) >= wanted else "-"

    def spread(self, providers: int, urls: int) -> str:
        """Return the longest time to the end of a provider's queue, as a multiple of the shortest."""
        counted = Counter(pid for _, pid in self.pages)
        ends = sorted({pid: at for at, pid in self.pages}.values())
        if len(ends) < providers or min(counted.values()) < urls:
            return "-"
        return f"{(ends[-1] - self.started) / (ends[0] - self.started):.2f} x"


def fill(url: str, root: str, providers: int, urls: int) -> None:
    """Write providers and their queue as intake would leave it, by the checkout that this runs in."""
    from sqlalchemy import insert  # noqa: PLC0415

    from lcc_scrapy.domain.entries import urlkey  # noqa: PLC0415
    from lcc_scrapy.domain.providers import Provider  # noqa: PLC0415
    from lcc_scrapy.domain.queue import QueuedUrl  # noqa: PLC0415
    from lcc_scrapy.storage import tables as t  # noqa: PLC0415
    from lcc_scrapy.storage.records import SetPart, StoredTurn  # noqa: PLC0415
    from lcc_scrapy.storage.sql import SqlStore  # noqa: PLC0415
    from lcc_scrapy.storage.sql.rows import RowsOf  # noqa: PLC0415

    def row(pid: int, number: int) -> QueuedUrl:
        place = f"{Site.root_at(root, pid)}{SIZE}/p{pid}/document-{number:07d}.html"
        key = urlkey(pid, place, "text/html")
        return QueuedUrl(
            key, pid, place, "text/html", "", place, place, None, None, None, "", pid, number,
            "fetch", 1, 0, 0,
        )  # fmt: skip

    store = SqlStore(url)
    rows = (row(pid, number) for pid in range(1, providers + 1) for number in range(1, urls + 1))
    for part in batches(rows, 20_000):
        with store.begin() as tx:
            tx.insert_queued(part)
    for pids in batches(range(1, providers + 1), 5_000):
        with store.begin() as tx:
            connection = tx._c  # type: ignore[attr-defined]  # noqa: SLF001 - many rows by the short way
            made = [Provider(pid, "", allowprivate=True, nurlproc=urls) for pid in pids]
            RowsOf(t.pidb, Provider).insert(connection, made)
            roots = [{"pid": pid, "root": Site.root_at(root, pid)} for pid in pids]
            connection.execute(insert(t.proots), roots)
            parts = [SetPart(pid, "", pid, -1, 0, urls) for pid in pids]
            RowsOf(t.qpsdb, SetPart).insert(connection, parts)
            turns = [StoredTurn(str(pid), waiting=urls, arrivals=1) for pid in pids]
            RowsOf(t.turns, StoredTurn).insert(connection, turns)
    store.close()


def batches(items: object, size: int) -> Iterator[list]:  # type: ignore[type-arg]
    iterator = iter(items)  # type: ignore[call-overload]
    return iter(lambda: list(itertools.islice(iterator, size)), [])


def crawl(lcc: Lcc, site: Site, source: Path, case: Case, seconds: float) -> Found:
    """Fill an LCC, crawl it, and read what the site has served."""
    environment = lcc.environment | {"PYTHONPATH": os.pathsep.join((str(source), str(HERE / "bench")))}
    environment |= {"LCC_FETCHES": str(SHORT), "LOG_LEVEL": "INFO"}
    running.wait_for(("init",), environment, lcc.folder)
    words = ("--fill", lcc.database_url, site.address, str(case.providers), str(case.urls))
    subprocess.run([sys.executable, __file__, *words], env=environment, check=True)
    os.sync()
    beginning, book, started = site.log.stat().st_size, running.Book(site.pid), time.time()
    wanted, pages, rest, told = case.providers * case.urls, list[tuple[float, int]](), b"", False
    with (
        running.started(Launch([CRAWL], environment, lcc.folder)) as crawls,
        site.log.open("rb") as log,
    ):
        log.seek(beginning)
        for _ in running.looks(crawls, lcc.folder):
            book.look(one.pid for one in crawls)
            *lines, rest = (rest + log.read()).split(b"\n")
            pages += [served for line in lines if (served := page(line))]
            over = pages and not case.to_end and time.time() - pages[0][0] > seconds
            if (over or len(pages) >= wanted) and not told:
                told = True  # once: a second signal would end it at once
                for one in crawls:
                    one.terminate()
    return Found(pages, started, book.peak / 1e6)


def page(line: bytes) -> tuple[float, int] | None:
    """Return when which provider's page was served, None for anything else."""
    at, status, path = line.split()
    return (float(at), int(path.split(b"/")[2][1:])) if status == b"200" and b"/p" in path else None


def once(folder: Path, site: Site, source: Path, case: Case, given: argparse.Namespace) -> Found:
    folder.mkdir()
    with database(given.database, folder) as url:
        found = crawl(Lcc(folder, url), site, source, case, given.seconds)
    print(f"{source.name}: {case.name}: {len(found.pages):,} pages, {found.rate:,.0f} pages/s", flush=True)
    return found


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--fill"]:
        fill(*sys.argv[2:4], *map(int, sys.argv[4:6]))
        return
    given = options()
    if given.database == "mariadb" and (reason := no_mariadb()):
        raise SystemExit(f"not measured: {reason}")
    together = given.providers * given.urls
    cases = [
        Case("short", SHORT, max(1, together // SHORT), to_end=True),
        Case("crowd", given.providers, given.urls, to_end=True),
        Case("brief", 1, int(given.seconds * MOST_A_SECOND), to_end=False),
        Case("one", 1, given.long, to_end=False),
        Case("hundred", HUNDRED, max(1, given.long // HUNDRED), to_end=False),
    ]
    found: dict[tuple[str, str], list[Found]] = {}
    with running.scratch(given.scratch) as folder:
        site = Site(folder / "site", [SIZE])
        try:
            for number in range(given.rounds):
                for case in (one for one in cases if one.name in given.cases):
                    for source in given.sources:
                        where = folder / f"{number}-{case.name}-{source.name}"
                        one = once(where, site, source, case, given)
                        found.setdefault((source.name, case.name), []).append(one)
        finally:
            site.close()
    rows = [row(key, runs, cases, found) for key, runs in sorted(found.items())]
    tables.show(f"queues on {given.database}, pages of {SIZE:,} bytes", HEADINGS, rows, None)


def row(
    key: tuple[str, str],
    runs: Sequence[Found],
    cases: Sequence[Case],
    found: dict[tuple[str, str], list[Found]],
) -> tuple[str, ...]:
    source, name = key
    case = next(one for one in cases if one.name == name)
    base = found.get((source, "short"))
    rate = median(one.rate for one in runs)
    ratio = f"{rate / median(one.rate for one in base):.2f}" if base else "-"
    last = runs[-1]
    return (
        source, f"{name}: {case.providers:,} x {case.urls:,}", f"{median(one.first for one in runs):.1f}",
        f"{len(last.pages):,}", f"{rate:,.0f}", ratio, last.begun(case.providers, 1),
        last.begun(case.providers, 0.5), last.spread(case.providers, case.urls),
        f"{max(one.peak for one in runs):.0f}",
    )  # fmt: skip


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--providers", type=int, default=1_000, help="of the crowd (1,000)")
    parser.add_argument("--urls", type=int, default=10, help="of each of them (10)")
    parser.add_argument("--long", type=int, default=100_000, help="URLs of a long queue (100,000)")
    parser.add_argument("--seconds", type=float, default=10, help="for which long queues are crawled (10)")
    names = ("short", "crowd", "brief", "one", "hundred")
    parser.add_argument("--cases", nargs="+", choices=names, default=names)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--database", choices=("sqlite", "mariadb"), default="sqlite")
    parser.add_argument("--source", type=Path, action="append", default=[], help="another checkout")
    parser.add_argument("--scratch", type=Path, default=Path.cwd(), help="where everything is written")
    given = parser.parse_args()
    given.sources = [*(one.resolve() for one in given.source), HERE]
    return given


if __name__ == "__main__":
    main()
