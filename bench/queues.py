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
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.filling import SIZE, fill, path_of
from crawling.lcc import Lcc, database
from crawling.running import Launch
from crawling.site import Site
from crawling.variants import CRAWL

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


def crawl(lcc: Lcc, site: Site, source: Path, case: Case, seconds: float) -> Found:
    """Fill an LCC, crawl it, and read what the site has served."""
    environment = lcc.environment | path_of(source) | {"LCC_FETCHES": str(SHORT), "LOG_LEVEL": "INFO"}
    running.wait_for(("init",), environment, lcc.folder)
    fill(environment, site, case.providers, case.urls)
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
    given = options()
    together = given.providers * given.urls
    cases = [
        Case("short", SHORT, max(1, together // SHORT), to_end=True),
        Case("crowd", given.providers, given.urls, to_end=True),
        Case("brief", 1, int(given.seconds * MOST_A_SECOND), to_end=False),
        Case("one", 1, given.long, to_end=False),
        Case("hundred", HUNDRED, max(1, given.long // HUNDRED), to_end=False),
    ]
    found: dict[tuple[str, str], list[Found]] = {}
    with running.scratch(given.scratch) as folder, Site(folder / "site", [SIZE]) as site:
        for number in range(given.rounds):
            for case in (one for one in cases if one.name in given.cases):
                for source in given.sources:
                    where = folder / f"{number}-{case.name}-{source.name}"
                    one = once(where, site, source, case, given)
                    found.setdefault((source.name, case.name), []).append(one)
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
    options = parser(__doc__, "--database", "--source", "--scratch")
    options.add_argument("--providers", type=int, default=1_000, help="of the crowd (1,000)")
    options.add_argument("--urls", type=int, default=10, help="of each of them (10)")
    options.add_argument("--long", type=int, default=100_000, help="URLs of a long queue (100,000)")
    options.add_argument("--seconds", type=float, default=10, help="for which long queues are crawled (10)")
    names = ("short", "crowd", "brief", "one", "hundred")
    options.add_argument("--cases", nargs="+", choices=names, default=names)
    options.add_argument("--rounds", type=int, default=1)
    return parsed(options)


if __name__ == "__main__":
    main()
