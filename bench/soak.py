"""Mixed load on all processes of an LCC for hours: how memory, descriptors, rows and logs grow.

A crawl of two workers with its UNS, `lcc web`, `lcc query`, `lcc annotate`, `lcc alarms watch`, `lcc files`
and `lcc tracker serve` run on one database. Providers push pages that are new, changed, removed and dead;
strangers log in with wrong passwords; content users read the feed. Growth is the slope of a straight line
through the second half of the samples, in an hour.

    python bench/soak.py --hours 8 --database mariadb
    python bench/soak.py --hours 0.02
"""

import http.client
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.lcc import LCC, Lcc, database
from crawling.site import Site, free_port
from sqlalchemy import select

from lcc_scrapy.db.schema import tables_of
from lcc_scrapy.db.sql.store import READING, make_engine
from lcc_scrapy.login.passwords import hash_password

HEADINGS = ("what", "at the beginning", "at the end", "highest", "in an hour")
PASSWORD = "a password of the bench"
PROVIDERS, PAGES = 8, 250
EVERY = 10.0
"""Seconds between two samples."""

SERVERS = ("web", "query", "annotate", "alarms watch", "files", "tracker serve")
SIZE = 8_000


@dataclass
class Samples:
    """What was seen: seconds since the beginning with a number, by what it is of."""

    begun: float = field(default_factory=time.monotonic)
    seen: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def note(self, what: str, number: float) -> None:
        """Add one."""
        self.seen.setdefault(what, []).append((time.monotonic() - self.begun, number))

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield lines of the table."""
        for what, seen in self.seen.items():
            later = seen[len(seen) // 2 :]
            numbers = [number for _, number in seen]
            slope = 0.0
            if len({moment for moment, _ in later}) > 1:
                slope = linear_regression(*zip(*later, strict=True)).slope * 3600
            yield (
                what,
                f"{numbers[0]:,.1f}",
                f"{numbers[-1]:,.1f}",
                f"{max(numbers):,.1f}",
                f"{slope:+,.1f}",
            )


@contextmanager
def started(lcc: Lcc, words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of `lcc`, with a log of its own."""
    with (lcc.folder / f"{words.replace(' ', '-')}.log").open("wb") as log:
        command = [*LCC, *words.split()]
        process = subprocess.Popen(command, env=lcc.environment, cwd=lcc.folder, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def sample(lcc: Lcc, processes: dict[str, subprocess.Popen[bytes]], samples: Samples) -> None:
    """Look at everything once; raises ``Failed`` when a process has ended."""
    for name, process in processes.items():
        if process.poll() is not None:
            log = (lcc.folder / f"{name.replace(' ', '-')}.log").read_text()
            raise running.Failed(f"lcc {name} ended: {log[-1000:]}")
        its = [*running.family([process.pid])]
        samples.note(f"{name}: MB", sum(map(_memory, its)) / 1e6)
        samples.note(f"{name}: descriptors", sum(map(_descriptors, its)))
        samples.note(f"{name}: log, kB", (lcc.folder / f"{name.replace(' ', '-')}.log").stat().st_size / 1e3)
    engine = make_engine(lcc.database_url)
    with engine.connect().execution_options(**{READING: True}) as connection:
        counts = {
            table.name: len(connection.execute(select(*table.primary_key)).all()) for table in tables_of()
        }
    engine.dispose()
    for name, count in counts.items():
        if count:
            samples.note(f"rows of {name}", count)
    samples.note(
        "content files", sum(1 for one in (lcc.folder / "lcc-data/content").rglob("*") if one.is_file())
    )


def _memory(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _descriptors(pid: int) -> int:
    with suppress(OSError):
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return 0


# --- load ----------------------------------------------------------------------------------------------


def lcccp(lcc: Lcc, pid: int, password: str, lines: Sequence[str]) -> int:
    """Push a set as providers do; returns the status."""
    text = "\n".join([*lines, f'<end count="{len(lines)}"/>\n'])
    command = [*(LCC[0], "-m", "lcc_scrapy.push.lcccp"), f"--uns=127.0.0.1:{lcc.port}", f"--pid={pid}"]
    environment = {**lcc.environment, "LCC_PWD": password}
    done = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, check=False)
    return done.returncode


def pushing(lcc: Lcc, roots: dict[int, str], chance: random.Random) -> None:
    """Push some pages of a provider: mostly changed ones, some that are gone or were never there."""
    pid = chance.choice(list(roots))
    lines = []
    for number in chance.sample(range(PAGES), 10):
        kind = chance.random()
        name = f"{SIZE}/{number}.html" if kind < 0.95 else f"dead/{number}"
        gone = ' furl=""' if kind < 0.1 else ""
        lines.append(
            f'<url curl="{roots[pid]}{name}" mimetype="text/html" mtime="{int(time.time())}"{gone}/>'
        )
    lcccp(lcc, pid, PASSWORD if chance.random() < 0.95 else "wrong", lines)


def reading(port: int, chance: random.Random) -> None:
    """Ask `lcc web` for something."""
    path = chance.choice(["/v1/changes?limit=100", "/v1/providers", "/v1/status", "/nothing", "/metrics"])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    connection.getresponse().read()
    connection.close()


def again_and_again(
    what: Callable[[random.Random], None], pause: float, end: threading.Event
) -> threading.Thread:
    """Do something again and again until the end."""

    def run() -> None:
        chance = random.Random(7)
        while not end.wait(pause):
            with suppress(OSError, http.client.HTTPException):
                what(chance)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def main() -> None:
    """Run it, and print."""
    options = parser(__doc__, "--database", "--markdown", "--scratch")
    options.add_argument("--hours", type=float, default=8.0)
    options.add_argument("--pause", type=float, default=1.0, help="seconds between two pushes")
    given = parsed(options)
    web = free_port()
    settings = {
        "LCC_WEB_ENDPOINT": f"127.0.0.1:{web}",
        "LCC_QUERY_ENDPOINTS": f"tcp:{free_port()}:interface=127.0.0.1",
        "LCC_FILES_ENDPOINT": f"127.0.0.1:{free_port()}",
        "LCC_TRACKER_ENDPOINT": f"127.0.0.1:{free_port()}",
        "LCC_RETRY_DELAYS": "10s,30s",
        "LCC_ALARM_COMMAND": "true",
        "LCC_MIMETYPES": "*/*",
    }
    samples, end = Samples(), threading.Event()
    with (
        running.scratch(given.scratch) as folder,
        Site(folder / "site", [SIZE]) as site,
        database(given.database, folder) as url,
        ExitStack() as open_now,
    ):
        lcc = Lcc(folder, url, settings)
        lcc.command("init")
        roots = {pid: site.root(pid) for pid in range(1, PROVIDERS + 1)}
        lcc.register(roots, hash_password(PASSWORD))
        processes = {
            words: open_now.enter_context(started(lcc, words)) for words in ("crawl --workers 2", *SERVERS)
        }
        threads = [
            again_and_again(lambda chance: pushing(lcc, roots, chance), given.pause, end),
            again_and_again(lambda chance: reading(web, chance), given.pause / 4, end),
        ]
        try:
            time.sleep(EVERY)
            last = time.monotonic() + given.hours * 3600
            while time.monotonic() < last:
                sample(lcc, processes, samples)
                time.sleep(EVERY)
        finally:
            end.set()
            for thread in threads:
                thread.join()
    tables.show(
        f"{given.hours:g} hours of mixed load, {given.database}",
        HEADINGS,
        list(samples.rows()),
        given.markdown,
    )


if __name__ == "__main__":
    main()
