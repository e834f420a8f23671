"""Writing the fetch log: by a thread of its own, so that nothing else waits for its disk."""

import logging
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Event, Thread

from lcc_scrapy.fetchlog.files import RotatingFile
from lcc_scrapy.fetchlog.lines import lines_of
from lcc_scrapy.queue.settlement import Settled

WAITING_MAX = 8_000_000
"""Bytes that wait for the disk at most; further outcomes get no line."""

LAST_WORDS = 2.0
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
        self._thread.join(LAST_WORDS)

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
