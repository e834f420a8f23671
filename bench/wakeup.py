"""How soon the LCC fetches what a provider pushes: from the set's last byte to the request at the site.

A provider whose queue is empty logs in, sends a set, and waits until all of it was fetched; then it pauses
for a time that is never the same. Everything as configured by default, in one process; with ``--redis``,
``lcc uns`` is on one machine, and the crawl on another one, which is woken over Redis. Then the part from the
message on is told beside it; it is sent when the set is in the queue.

    python bench/wakeup.py
    python bench/wakeup.py --database mariadb --pushes 50
    python bench/wakeup.py --database mariadb --redis redis://127.0.0.1:6379/0 --pushes 300
"""

import argparse
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from statistics import median, quantiles

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.lcc import LCC, MIMETYPE, Lcc, database
from crawling.recording import RecordingSite
from crawling.running import Failed, Launch
from crawling.site import await_listener
from crawling.variants import SCRAPY

from lcc_scrapy.login.passwords import hash_password
from lcc_scrapy.machine import wake_redis
from lcc_scrapy.machine.data_directory import DataDirectory
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
HEADINGS = (
    "URLs in the set", "median ms", "range", "nine of ten within", "99 of 100 within",
    "median from the message", "n",
)  # fmt: skip


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


@dataclass(frozen=True)
class Latency:
    """Milliseconds to the first request: from the last byte of a set, and from the message (None: none)."""

    whole: float
    woken: float | None


class Listening:
    """Notes when the first message is heard in a channel of a Redis after ``at`` was None."""

    def __init__(self, url: str, channel: str) -> None:
        self.at: float | None = None
        if url:
            listener = wake_redis.client_of(url).pubsub(ignore_subscribe_messages=True)
            listener.subscribe(**{channel: self._note})
            listener.run_in_thread(sleep_time=1, daemon=True)

    def _note(self, _message: object) -> None:
        self.at = self.at or time.monotonic()


def latencies(lcc: Lcc, site: RecordingSite, pushes: int, urls: int, listening: Listening) -> list[Latency]:
    """Push again and again; return what each took."""
    found = []
    for number in islice(NUMBERS, pushes):
        time.sleep(random.uniform(0.1, PAUSE))
        paths = [f"set{number}/{one}.html" for one in range(urls)]
        listening.at = None
        sent = push(lcc.port, site.root, paths)
        end = time.monotonic() + PATIENCE
        while not all(f"/{path}" in site.asked for path in paths):
            if time.monotonic() > end:
                raise Failed(f"not fetched within {PATIENCE:.0f} s: see {lcc.folder}")
            time.sleep(0.02)
        asked = min(site.asked[f"/{path}"] for path in paths)
        woken = None if listening.at is None else 1000 * (asked - listening.at)
        found.append(Latency(1000 * (asked - sent), woken))
    return found


def row(urls: int, latencies: list[Latency]) -> tuple[str, ...]:
    found = [one.whole for one in latencies]
    woken = [one.woken for one in latencies if one.woken is not None]
    late, latest = (quantiles(found, n=parts, method="inclusive")[-1] for parts in (10, 100))
    return (
        f"{urls:,}", f"{median(found):.0f}", f"{min(found):.0f}-{max(found):.0f}", f"{late:.0f}",
        f"{latest:.0f}", f"{median(woken):.0f}" if woken else "-", str(len(found)),
    )  # fmt: skip


@dataclass(frozen=True)
class Woken(Lcc):
    """A machine of an LCC that wakes others over a Redis, or is woken."""

    redis: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of its commands and crawls."""
        return super().environment | {"LCC_WAKE_REDIS": self.redis}

    @property
    def id(self) -> str:
        """Return the id of the LCC."""
        return DataDirectory.find(self.folder / "lcc-data").lcc_id


@contextmanager
def together(lcc: Lcc) -> Iterator[None]:
    """Run UNS and crawl in one process."""
    with running.started(Launch([(*SCRAPY, "crawl", "lcc_push")], lcc.environment, lcc.folder)):
        yield


@contextmanager
def apart(lcc: Woken, folder: Path) -> Iterator[None]:
    """Run the UNS, and the crawl on another machine."""
    folder.mkdir()
    other = Woken(folder, lcc.database_url, redis=lcc.redis)
    other.command("init", "--machine")
    crawl = other.environment | {"LCC_UNS_ENDPOINTS": ""}
    with (
        running.started(Launch([(*LCC, "uns")], lcc.environment, lcc.folder)),
        running.started(Launch([(*SCRAPY, "crawl", "lcc_push")], crawl, folder)),
    ):
        yield


def main() -> None:
    """Measure and print."""
    given = options()
    site = RecordingSite()
    with running.scratch(given.scratch) as folder, database(given.database, folder) as url:
        lcc = Woken(folder, url, redis=given.redis)
        lcc.command("init")
        lcc.register({1: site.root}, hash_password(PASSWORD))
        with apart(lcc, folder / "other") if given.redis else together(lcc):
            await_listener(lcc.port)
            listening = Listening(given.redis, wake_redis.channel_of(lcc.id))
            latencies(lcc, site, 1, 1, listening)  # with the site's robots.txt
            table = [row(urls, latencies(lcc, site, given.pushes, urls, listening)) for urls in SIZES]
    how = "over Redis" if given.redis else "in one process"
    title = f"wake-up {how} on {given.database} (wanted: 20 ms), load {os.getloadavg()[0]:.1f}"
    tables.show(title, HEADINGS, table, given.markdown)


def options() -> argparse.Namespace:
    """Read the command line."""
    options = parser(__doc__, "--database", "--markdown", "--scratch")
    options.add_argument("--redis", default="", metavar="URL")
    options.add_argument("--pushes", type=int, default=30, help="of each size")
    given = parsed(options)
    if given.redis and given.database == "sqlite":
        options.error("--redis: machines share a --database mariadb")
    return given


if __name__ == "__main__":
    main()
