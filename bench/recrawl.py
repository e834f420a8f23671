"""What a crawl costs in which nothing has changed: all pages pushed again, answered with 304s.

Each round fills an LCC, crawls it, pushes the same URLs once more without saying what they are, and crawls
them again; 64 providers, pages of 8 KB.

    python bench/recrawl.py
    python bench/recrawl.py --database mariadb --pages 20000
"""

import argparse
import os
from collections.abc import Sequence
from statistics import median

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.lcc import Lcc, database
from crawling.running import Failed, Launch, Measured
from crawling.site import Site
from crawling.variants import CRAWL

PROVIDERS, SIZE = 64, 8_000
HEADINGS = ("crawl", "pages/s", "range", "x the first", "range", "CPU s per 1,000", "n")


def twice(lcc: Lcc, site: Site, pages: int) -> tuple[Measured, Measured]:
    """Crawl everything, and again."""
    urls = {pid: site.urls(pid, SIZE, pages // PROVIDERS) for pid in range(1, PROVIDERS + 1)}
    lcc.command("init")
    lcc.register({pid: site.root(pid) for pid in urls})
    lcc.push(urls, site.pages[SIZE])
    first = crawl(lcc, site)
    lcc.push(urls, None, login=2)
    again = crawl(lcc, site)
    if (first.unchanged, again.unchanged) != (0, again.pages) or first.pages != again.pages:
        raise Failed(f"{again.unchanged:,} of {again.pages:,} pages were answered with 304")
    return first, again


def crawl(lcc: Lcc, site: Site) -> Measured:
    os.sync()
    pages = lcc.waiting()
    launch = Launch([CRAWL], lcc.environment, lcc.folder)
    return running.run(launch, site, pages, PROVIDERS, lambda: pages - lcc.waiting())


def row(title: str, runs: Sequence[Measured], firsts: Sequence[Measured]) -> tuple[str, ...]:
    rates = [one.rate for one in runs]
    ratio = tables.Ratio.of(runs, firsts, tables.rate)
    return (
        title, f"{median(rates):,.0f}", f"{min(rates):,.0f}-{max(rates):,.0f}", f"{ratio.value:.2f}",
        ratio.range, f"{median(one.cpu for one in runs):.3f}", str(len(runs)),
    )  # fmt: skip


def main() -> None:
    """Measure and print."""
    given = options()
    runs = []
    with running.scratch(given.scratch) as folder, Site(folder / "site", [SIZE]) as site:
        for number in range(given.rounds):
            home = folder / str(number)
            home.mkdir()
            with database(given.database, home) as url:
                runs.append(twice(Lcc(home, url), site, given.pages))
    firsts, again = [one for one, _ in runs], [other for _, other in runs]
    title = f"re-crawl on {given.database}, {PROVIDERS} providers, load {os.getloadavg()[0]:.1f}"
    table = [row("first", firsts, firsts), row("again, all 304 (wanted: 1.5 x)", again, firsts)]
    tables.show(title, HEADINGS, table, given.markdown)


def options() -> argparse.Namespace:
    """Read the command line."""
    options = parser(__doc__, "--database", "--markdown", "--scratch")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--pages", type=int, default=6_400, help="in each crawl")
    return parsed(options)


if __name__ == "__main__":
    main()
