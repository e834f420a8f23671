"""How soon the LCC fetches what a provider pushes: from the set's last byte to the request at the site.

A provider whose queue is empty logs in, sends a set, and waits until all of it was fetched; then it pauses
for a time that is never the same. Everything as configured by default, in one process.

    python bench/wakeup.py
    python bench/wakeup.py --database mariadb --pushes 50
"""

import argparse
import os
import random
import time
from collections.abc import Iterator
from itertools import count, islice
from statistics import median, quantiles

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.lcc import MIMETYPE, Lcc, database
from crawling.recording import RecordingSite
from crawling.running import Failed, Launch
from crawling.site import await_listener
from crawling.variants import SCRAPY

from lcc_scrapy.login.passwords import hash_password
from lcc_scrapy.push.client import Address, connect
from lcc_scrapy.wire.messages import Init, InitAccepted, SetAccepted, SetStart

PASSWORD = "wachtwoord"
SIZES = (1, 100)
"""URLs in a set."""
PAUSE = 1.5
"""Seconds between two sets at most."""
PATIENCE = 60.0
NUMBERS = count(1)
"""Of the sets: no URL is pushed twice."""
HEADINGS = ("URLs in the set", "median ms", "range", "nine of ten within", "n")


def push(port: int, root: str, paths: list[str]) -> float:
    """Push a set as a provider does; return when its last byte was about to be sent."""
    sent = 0.0

    def lines() -> Iterator[bytes]:
        nonlocal sent
        yield from (f'<url curl="{path}" mimetype="{MIMETYPE}"/>\n'.encode() for path in paths)
        sent = time.monotonic()

    conversation = connect(Address("127.0.0.1", port), PATIENCE)
    try:
        login = conversation.login(Init("1", PASSWORD))
        if not isinstance(login, InitAccepted):
            raise Failed(f"no login: {login}")
        verdict = conversation.submit(SetStart(full=False, urlprefix=root), lines(), print)
        if not isinstance(verdict, SetAccepted):
            raise Failed(f"not accepted: {verdict}")
    finally:
        conversation.close()
    return sent


def latencies(lcc: Lcc, site: RecordingSite, pushes: int, urls: int) -> list[float]:
    """Push again and again; return milliseconds."""
    found = []
    for number in islice(NUMBERS, pushes):
        time.sleep(random.uniform(0.1, PAUSE))
        paths = [f"set{number}/{one}.html" for one in range(urls)]
        sent = push(lcc.port, site.root, paths)
        end = time.monotonic() + PATIENCE
        while not all(f"/{path}" in site.asked for path in paths):
            if time.monotonic() > end:
                raise Failed(f"not fetched within {PATIENCE:.0f} s: see {lcc.folder}")
            time.sleep(0.02)
        found.append(1000 * (min(site.asked[f"/{path}"] for path in paths) - sent))
    return found


def row(urls: int, found: list[float]) -> tuple[str, ...]:
    late = quantiles(found, n=10)[-1] if len(found) > 1 else found[0]
    return (
        f"{urls:,}", f"{median(found):.0f}", f"{min(found):.0f}-{max(found):.0f}", f"{late:.0f}",
        str(len(found)),
    )  # fmt: skip


def main() -> None:
    """Measure and print."""
    given = options()
    site = RecordingSite()
    with running.scratch(given.scratch) as folder, database(given.database, folder) as url:
        lcc = Lcc(folder, url)
        lcc.command("init")
        lcc.register({1: site.root}, hash_password(PASSWORD))
        with running.started(Launch([(*SCRAPY, "crawl", "lcc_push")], lcc.environment, lcc.folder)):
            await_listener(lcc.port)
            latencies(lcc, site, 1, 1)  # with the site's robots.txt
            table = [row(urls, latencies(lcc, site, given.pushes, urls)) for urls in SIZES]
    title = f"wake-up on {given.database} (wanted: 20 ms), load {os.getloadavg()[0]:.1f}"
    tables.show(title, HEADINGS, table, given.markdown)


def options() -> argparse.Namespace:
    """Read the command line."""
    options = parser(__doc__, "--database", "--markdown", "--scratch")
    options.add_argument("--pushes", type=int, default=30, help="of each size")
    return parsed(options)


if __name__ == "__main__":
    main()
