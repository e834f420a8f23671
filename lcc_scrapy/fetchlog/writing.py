"""Writing the fetch log: by a thread of its own, so that nothing else waits for its disk.

Each worker has a file of its own, which rotates by size. Of ``LCC_FETCH_LOG = fetch.log``, worker 0 writes
``fetch-0.log``. When that is full it becomes ``fetch-0.log.1``, the former ``.1`` becomes ``.2`` and so on;
the oldest goes.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread

from lcc_scrapy.fetchlog.lines import lines_of
from lcc_scrapy.queue.settlement import Settled

_MODE = 0o640


def file_of(path: Path, worker: int) -> Path:
    """Return the file of a worker by its number."""
    return path.with_name(f"{path.stem}-{worker}{path.suffix}")


def files_of_all(path: Path) -> dict[Path, int]:
    """Return the file of each worker that has one, with how often the oldest that is left was rotated."""
    rule = re.compile(rf"({re.escape(path.stem)}-\d+{re.escape(path.suffix)})(?:\.(\d+))?")
    found: dict[Path, int] = {}
    for match in filter(None, map(rule.fullmatch, _names_in(path.parent))):
        name = path.with_name(match[1])
        found[name] = max(found.get(name, 0), int(match[2] or 0))
    return dict(sorted(found.items()))


def numbered(path: Path, number: int) -> Path:
    """Return what a worker's file is called after so many rotations."""
    return path.with_name(f"{path.name}.{number}") if number else path


def _names_in(folder: Path) -> list[str]:
    try:
        return [one.name for one in folder.iterdir()]
    except FileNotFoundError:
        return []


class RotatingFile:
    """A file to which whole lines are added; raises ``OSError`` where they cannot be.

    ``most`` is its size in bytes, ``count`` the number of files with those that were rotated away. It is
    made, with its folder, when something is written. A line that a kill cut off is ended first.
    """

    def __init__(self, path: Path, most: int, count: int) -> None:
        self._path = path
        self._most = most
        self._count = count
        self._descriptor = -1
        self._size = 0

    def append(self, lines: bytes) -> None:
        """Add lines, all of them or none."""
        self._open_if_gone()
        if self._size and self._size + len(lines) > self._most:
            self._rotate()
        try:
            left = memoryview(lines)
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(lines)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open_if_gone(self) -> None:
        """Open the file, also where an operator took the former one away."""
        if self._descriptor >= 0:
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._descriptor), self._path.stat()):
                    return
            self.close()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, _MODE)
        self._size = os.fstat(self._descriptor).st_size
        if self._size and os.pread(self._descriptor, 1, self._size - 1) != b"\n":
            self._size += os.write(self._descriptor, b"\n")

    def _rotate(self) -> None:
        self.close()
        for number in range(self._count - 1, 0, -1):
            with suppress(FileNotFoundError):
                numbered(self._path, number - 1).replace(numbered(self._path, number))
        if self._count == 1:
            self._path.unlink()
        self._open_if_gone()


WAITING_MAX = 8_000_000
"""Bytes that wait for the disk at most; further outcomes get no line."""

CLOSE_TIMEOUT = 2.0
"""Seconds that the end of the process waits for what is left to be written."""

_log = logging.getLogger(__name__)


class FetchLog:
    """Writes a line for each outcome that was settled. It is diagnostics: what fails here stops nothing.

    Trouble is warned of once, until lines can be written again. A kill may lose the last ones.
    """

    def __init__(self, file: RotatingFile, now: Callable[[], float] = time.time) -> None:
        self._file = file
        self._now = now
        self._blocks: SimpleQueue[bytes | Event] = SimpleQueue()
        self._given = 0
        self._taken = 0
        self._lost = 0
        self._failed = 0
        self._thread = Thread(target=self._write_all, name="lcc-fetchlog", daemon=True)
        self._thread.start()

    def note(self, settled: Sequence[Settled]) -> None:
        """Write lines about outcomes soon. To be called from one thread."""
        lines = lines_of(settled, self._now())
        if not lines:
            return
        block = ("\n".join(lines) + "\n").encode("ascii")
        if self._given - self._taken + len(block) > WAITING_MAX:
            self._lost += len(lines)
            if self._lost == len(lines):
                _log.warning("the fetch log's disk is too slow: some outcomes get no line")
            return
        self._given += len(block)
        self._blocks.put(block)

    def flushed(self) -> Event:
        """Return an event that is set when everything given so far was tried."""
        done = Event()
        self._blocks.put(done)
        return done

    def close(self) -> None:
        """Write what waits, and end the thread; a disk that hangs is left alone."""
        self._blocks.put(b"")
        self._thread.join(CLOSE_TIMEOUT)

    # --- in the thread ---------------------------------------------------------------------------

    def _write_all(self) -> None:
        while block := self._blocks.get():
            if isinstance(block, Event):
                block.set()
                continue
            self._write(block)
            self._taken += len(block)
        self._file.close()

    def _write(self, block: bytes) -> None:
        try:
            self._file.append(block)
        except OSError as error:
            if not self._failed:
                _log.warning("cannot write the fetch log, fetching continues without it: %s", error)
            self._failed += block.count(b"\n")
            return
        if self._failed:
            _log.info("the fetch log is written again; %d outcomes are not in it", self._failed)
            self._failed = 0
