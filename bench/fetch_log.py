"""What the fetch log costs a crawl: the same crawl with and without it, in turns.

CPU seconds of the crawl's process for 1,000 pages, from the steady part of each run. Rounds are interleaved,
and begin with the one and the other in turns; each pair gives a ratio. On a busy machine these differ by more
than the log costs, so that it is also measured alone: making lines and writing them, by both threads, in
batches as large as commits.

    python bench/fetch_log.py
    python bench/fetch_log.py --pages 16000 --rounds 7 --database mariadb
"""

import argparse
import itertools
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

from crawling import running
from crawling.command_line import parsed, parser
from crawling.site import Site
from crawling.variants import Job, on
from settling import pages as made_up

from lcc_scrapy.fetchlog.writing import FetchLog, RotatingFile
from lcc_scrapy.queue.settlement import STORED, Settled

WITH, WITHOUT = "with", "without"


def measure(way: str, site: Site, folder: Path, given: argparse.Namespace) -> float:
    """Crawl once; return CPU seconds for 1,000 pages."""
    folder.mkdir()
    job = Job(site, folder, given.providers, given.size, given.pages)
    with on(given.database, job) as ready:
        environment = dict(ready.launch.environment)
        if way == WITHOUT:
            environment["LCC_FETCH_LOG"] = ""
        launch = replace(ready.launch, environment=environment)
        os.sync()  # what others wrote is not to be waited for
        found = running.run(launch, site, job.pages, job.providers, ready.settled)
        ready.check()
    lines = [line for path in folder.glob("lcc-data/fetch-*.log") for line in path.open()]
    if len(lines) != (job.pages if way == WITH else 0):
        raise SystemExit(f"{len(lines)} lines for {job.pages} pages")
    if lines:
        json.loads(lines[-1])
    return found.cpu


def alone(folder: Path, pages: int, batch: int = 128) -> float:
    """Log pages, without a crawl; return CPU seconds for 1,000 of them."""
    served = [Settled(one, STORED) for one in itertools.islice(made_up(batch, 64, 100), batch)]
    log = FetchLog(RotatingFile(folder / "alone-0.log", 100_000_000, 5))
    rounds = max(1, pages // batch)
    before = time.process_time()
    for _ in range(rounds):
        log.note(served)
        log.flushed().wait()
    took = time.process_time() - before
    log.close()
    return took / (rounds * batch) * 1000


def main() -> None:
    """Measure in turns and print what came of it."""
    given = options()
    ways = [WITH, WITHOUT]
    found: dict[str, list[float]] = {way: [] for way in ways}
    with running.scratch(given.scratch) as folder, Site(folder / "site", [given.size]) as site:
        for number in range(given.rounds):
            for way in ways if number % 2 else reversed(ways):
                found[way].append(measure(way, site, folder / f"{number}-{way}", given))
            print(
                f"round {number + 1}: " + ", ".join(f"{found[way][-1]:.3f} {way}" for way in ways), flush=True
            )
        direct = alone(folder, given.pages)
    ratios = sorted(one / other for one, other in zip(found[WITH], found[WITHOUT], strict=True))
    share = direct / median(found[WITHOUT])
    print(f"alone: {direct:.4f} CPU s per 1,000 pages, {share:.1%} of a crawl")
    print(
        f"CPU s per 1,000 pages: {median(found[WITH]):.3f} with, {median(found[WITHOUT]):.3f} without;"
        f" ratio {median(ratios):.3f} ({ratios[0]:.3f}-{ratios[-1]:.3f}); load {os.getloadavg()[0]:.1f}"
    )


def options() -> argparse.Namespace:
    """Read the command line."""
    options = parser(__doc__, "--database", "--scratch")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--pages", type=int, default=9600)
    options.add_argument("--providers", type=int, default=64)
    options.add_argument("--size", type=int, default=8000, help="bytes of a page")
    return parsed(options)


if __name__ == "__main__":
    main()
