"""The timeline of a first crawl by `lcc_spider`: how long nothing is asked for, and when.

A site of pages with many links each, all of which lead to each other, is visited from one start page. What
counts is the longest time between two requests, and how many there were in each second.

    python bench/spider_gap.py
    python bench/spider_gap.py --pages 3000 --links 172 --database mariadb --rounds 3
    python bench/spider_gap.py --source ../before       # another checkout, in turns with this one
"""

import argparse
import random
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.lcc import Lcc, database
from crawling.running import Launch
from crawling.site import Site
from crawling.variants import SCRAPY

PID = 1
OWN = 12
"""Links of a page that it shares with no others."""
CRAWL = (*SCRAPY, "crawl", "lcc_spider", "-a", f"provider={PID}")
HEADINGS = ("checkout", "pages", "seconds", "longest gap s", "after pages", "gaps above 1 s", "pages/s")


@dataclass(frozen=True)
class Timeline:
    """When (epoch seconds) each page was asked for, in order."""

    moments: tuple[float, ...]

    @property
    def seconds(self) -> float:
        return self.moments[-1] - self.moments[0]

    @property
    def gaps(self) -> list[float]:
        return [then - one for one, then in pairwise(self.moments)]

    def row(self, title: str) -> tuple[str, ...]:
        """Return its row of the table."""
        gaps = self.gaps
        longest = max(gaps)
        return (
            title, f"{len(self.moments):,}", f"{self.seconds:.1f}", f"{longest:.2f}",
            f"{gaps.index(longest) + 1:,}", str(sum(gap > 1 for gap in gaps)),
            f"{len(self.moments) / self.seconds:.0f}",
        )  # fmt: skip

    def by_second(self) -> str:
        """Return how many pages were asked for in each second."""
        counted = Counter(int(one - self.moments[0]) for one in self.moments)
        return " ".join(str(counted[second]) for second in range(int(self.seconds) + 1))


def write_pages(folder: Path, pages: int, links: int, size: int) -> None:
    """Write a site whose pages share most of their links; the same one every time.

    Three fifths of it are named by its first pages, the rest only by pages that are visited just before the
    end of those: what is new is found late, as in large manuals.
    """
    chance, shared, early = random.Random(1), links - OWN, pages * 3 // 5
    late = early - (pages - early) // OWN - 1
    filler = "<p>What is said here is of no importance, and there is much of it.</p>\n" * (size // 70)
    for number in range(pages):
        first = early + (number - late) * OWN if number >= late else shared + number * OWN
        names_new = first < early or late <= number < early
        own = range(first, first + OWN) if names_new else sorted(chance.sample(range(early), OWN))
        targets = [*range(min(shared, pages)), *(one for one in own if one < pages)]
        found = "".join(f'<li><a href="/p/{one}.html">Page {one}</a></li>\n' for one in targets)
        html = f"<!DOCTYPE html><html><head><title>Page {number}</title></head><body><ul>\n{found}</ul>\n"
        (folder / f"{number}.html").write_text(f"{html}{filler}</body></html>\n")


def crawl(lcc: Lcc, site: Site, source: Path) -> Timeline:
    """Visit a site for the first time; return what it was asked for, and when."""
    environment = lcc.environment | {"PYTHONPATH": str(source)}
    password = lcc.folder / "password"
    password.write_text("wachtwoord-of-17\n")
    root = site.root(PID)
    beginning = site.log.stat().st_size
    for words in (
        ("init",),
        ("provider", "add", str(PID), "--root", root, "--password-file", str(password), "--allow-private"),
    ):
        running.wait_for(words, environment, lcc.folder)
    start = ("-a", f"start={root}p/0.html")
    with running.started(Launch([(*CRAWL, *start)], environment, lcc.folder)) as processes:
        for _ in running.looks(processes, lcc.folder):
            pass
    with site.log.open("rb") as log:
        log.seek(beginning)
        lines = [line.split() for line in log]
    return Timeline(tuple(float(at) for at, status, path in lines if status == b"200" and b"/p/" in path))


def main() -> None:
    """Measure and print."""
    given = options()
    with running.scratch(given.scratch) as folder, Site(folder / "site", []) as site:
        (site.folder / "p").mkdir()
        write_pages(site.folder / "p", given.pages, given.links, given.size)
        rows = [
            once(folder / f"{source.name}-{number}", site, source, given)
            for number in range(given.rounds)
            for source in given.sources
        ]
    tables.show(f"first visit of {given.pages:,} pages with {given.links} links each", HEADINGS, rows, None)


def once(folder: Path, site: Site, source: Path, given: argparse.Namespace) -> tuple[str, ...]:
    folder.mkdir()
    with database(given.database, folder) as url:
        found = crawl(Lcc(folder, url), site, source)
    if len(found.moments) != given.pages:
        print(f"{len(found.moments):,} pages were visited, not {given.pages:,}")
    print(f"{source.name}, pages in each second: {found.by_second()}", flush=True)
    return found.row(source.name)


def options() -> argparse.Namespace:
    """Read the command line."""
    options = parser(__doc__, "--database", "--source", "--scratch")
    options.add_argument("--pages", type=int, default=1500, help="of the site (1,500)")
    options.add_argument("--links", type=int, default=172, help="on each of them (172)")
    options.add_argument("--size", type=int, default=10_000, help="bytes of a page but its links (10,000)")
    options.add_argument("--rounds", type=int, default=1)
    return parsed(options)


if __name__ == "__main__":
    main()
