"""How soon another machine fetches on where one was lost: from ``kill -9`` to the next request at the site.

A provider's site is slow, so its turn is held all the time. All processes of the machine that holds it are
killed. Its lease has to run out (``LCC_LEASE``), and the other machine has to look (``LCC_POLL``). Then the
lost one is started again, and waits for the next loss.

    python bench/takeover.py
    python bench/takeover.py --database postgresql --lease 10s --losses 20
"""

import argparse
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from statistics import median
from subprocess import Popen

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.lcc import Lcc, database
from crawling.recording import RecordingSite
from crawling.running import Failed, Launch
from crawling.variants import SCRAPY

PAGE_SECONDS = 0.1
PATIENCE = 600.0
HEADINGS = ("LCC_LEASE", "median s", "range", "n")


@dataclass
class Machine:
    """A machine of an LCC."""

    lcc: Lcc
    lease: str
    stack: ExitStack

    def start(self) -> None:
        """Run its crawl, and wait until others see it."""
        before = self.lcc.workers()
        settings = {"LCC_UNS_ENDPOINTS": "", "LCC_LEASE": self.lease}
        command = (*SCRAPY, "crawl", "lcc_push")
        launch = Launch([command], self.lcc.environment | settings, self.lcc.folder)
        self.crawl: Popen[bytes]
        (self.crawl,) = self.stack.enter_context(running.started(launch))
        wait_for(lambda: self.lcc.workers() > before)

    def lose(self) -> None:
        """Kill all its processes."""
        for pid in list(running.family([self.crawl.pid])):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.crawl.wait()


def wait_for(true: Callable[[], object]) -> None:
    """Wait until something is true."""
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            raise Failed("nobody fetches")
        time.sleep(0.01)


def take_over(holder: Machine, other: Machine, site: RecordingSite) -> float:
    """Lose who fetches; return seconds until the other one does."""
    other.start()
    time.sleep(random.uniform(0, 5))
    holder.lose()
    killed = time.monotonic()
    wait_for(lambda: site.latest > killed)
    return site.latest - killed


def main() -> None:
    """Measure and print."""
    given = options()
    site = RecordingSite(PAGE_SECONDS)
    with (
        running.scratch(given.scratch) as folder,
        database(given.database, folder) as url,
        ExitStack() as stack,
    ):
        holder, other = (Machine(Lcc(folder / name, url), given.lease, stack) for name in ("one", "two"))
        for machine, words in ((holder, ["init"]), (other, ["init", "--machine"])):
            machine.lcc.folder.mkdir()
            machine.lcc.command(*words)
        holder.lcc.register({1: site.root})
        holder.lcc.push({1: [f"{site.root}{number}.html" for number in range(100_000)]}, None)
        holder.start()
        wait_for(lambda: site.latest)
        took = []
        for _ in range(given.losses):
            took.append(take_over(holder, other, site))
            holder, other = other, holder
    row = (given.lease, f"{median(took):.1f}", f"{min(took):.1f}-{max(took):.1f}", str(len(took)))
    title = f"take-over on {given.database}, load {os.getloadavg()[0]:.1f}"
    tables.show(title, HEADINGS, [row], given.markdown)


def options() -> argparse.Namespace:
    """Read the command line."""
    options = parser(__doc__, "--markdown", "--scratch")
    options.add_argument("--database", choices=("mariadb", "postgresql"), default="mariadb")
    options.add_argument("--lease", default="60s", help="LCC_LEASE")
    options.add_argument("--losses", type=int, default=5)
    return parsed(options)


if __name__ == "__main__":
    main()
