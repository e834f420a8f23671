"""Runs a crawler to its end, and measures the part of it in which it does nothing but crawl."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from crawling.site import Site

STEADY = (0.2, 0.9)
"""The share of a crawl's pages between which it is measured: neither its start nor its stragglers."""

PATIENCE = 900.0
"""Seconds after which a crawl counts as one that does not end."""

_LOOK = 0.05
_TICK = os.sysconf("SC_CLK_TCK")
_PAGES = {b"200", b"304", b"404"}


class Failed(Exception):
    """A crawl did not do what it was to do."""


@dataclass(frozen=True)
class Launch:
    """What starts a crawl: commands that run side by side, their environment and folder."""

    commands: Sequence[Sequence[str]]
    environment: dict[str, str]
    folder: Path


@dataclass(frozen=True)
class Measured:
    """What a crawl did in its steady part.

    Pages a second, CPU seconds of its processes for 1,000 pages, their peak memory together (MB of 10^6
    bytes), the processors that everything else used meanwhile, the site left out (a database server is in
    it, and whatever the machine had to do besides); pages served in all, and how many of them by a 304;
    which share of them went through ``LccPipeline`` (None: nobody asked).
    """

    rate: float
    cpu: float
    peak: float
    others: float
    pages: int
    unchanged: int
    through: float | None = None


@dataclass
class Served:
    """What a site has served to a crawl so far."""

    pages: int = 0
    unchanged: int = 0
    """How many of them by a 304."""
    robots: int = 0

    _rest: bytes = b""

    def read(self, log: bytes) -> None:
        """Read the next bytes of the site's log, whose lines are: when, status, path."""
        *lines, self._rest = (self._rest + log).split(b"\n")
        for line in lines:
            _, status, path = line.split()
            self.robots += path == b"/robots.txt"
            self.pages += status in _PAGES and path != b"/robots.txt"
            self.unchanged += status == b"304"

    def has(self, pages: float, hosts: int, total: int) -> bool:
        """Tell whether so many pages were served, and every host was asked for its robots.txt.

        A crawler may know them from before; half of the pages are enough to believe that.
        """
        return self.pages >= max(1, pages) and (self.robots >= hosts or self.pages >= total / 2)


@dataclass(frozen=True)
class Sample:
    """CPU seconds until a moment (epoch seconds), of the crawl, and of all but it and the site."""

    at: float
    cpu: float
    others: float


@dataclass(frozen=True)
class Mark:
    """How many pages a crawl has done with at a moment, and what it has used for them."""

    done: int
    used: Sample


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    """Give a folder to write to; it is gone at the end, also when this process is told to stop."""
    stop_when_told()
    with tempfile.TemporaryDirectory(prefix="lcc-bench-", dir=parent.absolute()) as name:
        folder = Path(name)
        folder.chmod(0o755)  # nginx may drop its rights
        yield folder


def stop_when_told() -> None:
    """Let a SIGTERM end this process as an exception would, so that it cleans up."""
    signal.signal(signal.SIGTERM, _stop)


def _stop(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second one would interrupt the cleaning up
    sys.exit("stopped")


def run(
    launch: Launch, site: Site, pages: int, hosts: int, settled: Callable[[], int] | None = None
) -> Measured:
    """Run a crawl of so many pages of so many hosts of a site, and measure it.

    Pages that were served count, from the first fifth of them to the last tenth. With ``settled``, which
    tells how many the crawl has done with for good, it ends when all but a tenth are settled, and those that
    were served before the beginning do not count though they were settled after it.
    """
    book, served, marks = Book(site.pid), Served(), list[Mark]()
    low, high = STEADY
    done = settled or (lambda: served.pages)
    with site.log.open("rb") as log, started(launch) as crawl:
        pids = [one.pid for one in crawl]

        def begin() -> None:
            book.forget_peaks()  # those of short helpers at the start
            marks.append(Mark(served.pages, book.look(pids)))

        def end() -> None:
            marks.append(Mark(done(), book.look(pids)))

        log.seek(0, os.SEEK_END)
        first = Mark(0, book.look(pids))
        for _ in looks(crawl, launch.folder):
            book.look(pids)
            served.read(log.read())
            if not marks and served.has(low * pages, hosts, pages):
                begin()
            elif len(marks) == 1 and served.pages >= high * pages and done() >= high * pages:
                end()
        if len(marks) == 1:
            end()
    if len(marks) < 2:
        raise Failed(f"{served.pages:,} of {pages:,} pages were served: see {launch.folder}")
    begun, ended = marks
    if ended.done <= begun.done:  # few pages, all served between two looks: their start counts, too
        begun = first
    return measured(begun, ended, book.peak, served)


def looks(crawl: Sequence[subprocess.Popen[bytes]], folder: Path) -> Iterator[None]:
    """Look again and again until all processes have ended, and once after that."""
    end = time.monotonic() + PATIENCE
    while any(one.poll() is None for one in crawl):
        if time.monotonic() > end:
            raise Failed(f"a crawl does not end: see {folder}")
        yield
        time.sleep(_LOOK)
    yield
    statuses = [one.returncode for one in crawl]
    if any(statuses):
        said = (folder / "crawl.log").read_text(errors="replace")
        raise Failed(f"a crawl ended with status {statuses}: {said[-3000:]}")


@contextmanager
def started(launch: Launch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start commands; what still runs at the end is killed."""
    with (launch.folder / "crawl.log").open("ab") as out:
        crawl = [
            subprocess.Popen(command, env=launch.environment, cwd=launch.folder, stdout=out, stderr=out)
            for command in launch.commands
        ]
    try:
        yield crawl
    finally:
        for one in crawl:
            if one.poll() is None:
                one.kill()
                one.wait(10)


def wait_for(words: Sequence[str], environment: dict[str, str], folder: Path) -> None:
    """Run a command of ``lcc`` to its end."""
    command = [sys.executable, "-m", "lcc_scrapy.cli.main", *words]
    done = subprocess.run(command, env=environment, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"lcc {' '.join(words)}: {done.stderr}")


@dataclass
class Book:
    """What processes have used, also of those that have ended."""

    site: int
    _cpu: dict[int, float] = field(default_factory=dict)
    _peak: dict[int, int] = field(default_factory=dict)

    def look(self, pids: Iterable[int]) -> Sample:
        """Look at processes and their children."""
        at, busy, site = time.time(), _busy(), _cpu(self.site)
        for pid in family(pids):
            with suppress(OSError):  # it may have ended
                self._cpu[pid] = _cpu(pid)
                self._peak[pid] = _peak(pid) or self._peak.get(pid, 0)
        cpu = sum(self._cpu.values())
        return Sample(at, cpu, busy - site - cpu)

    @property
    def peak(self) -> int:
        """Return the most memory that each has had, together (bytes)."""
        return sum(self._peak.values())

    def forget_peaks(self) -> None:
        """Count only processes that are there from now on, with what they have had since they began."""
        self._peak.clear()


def family(pids: Iterable[int]) -> Iterator[int]:
    """Yield processes and all that they have begun."""
    for pid in pids:
        yield pid
        with suppress(OSError):
            yield from family(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / _TICK


def _peak(pid: int) -> int:
    kilobytes = Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split(maxsplit=1)
    return int(kilobytes[0]) * 1024 if kilobytes else 0  # one that has ended has none


def _busy() -> float:
    """Return the CPU seconds that this machine has worked for (user, nice, system, interrupts)."""
    user, nice, system, _, _, irq, softirq, *_ = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    return sum(map(int, (user, nice, system, irq, softirq))) / _TICK


def measured(begun: Mark, ended: Mark, peak: int, served: Served) -> Measured:
    """Measure what was done between two marks."""
    pages, took = ended.done - begun.done, ended.used.at - begun.used.at
    if pages <= 0:
        raise Failed(f"{served.pages:,} pages are too few to measure")
    return Measured(
        pages / took, 1000 * (ended.used.cpu - begun.used.cpu) / pages, peak / 1e6,
        (ended.used.others - begun.used.others) / took, served.pages, served.unchanged,
    )  # fmt: skip
