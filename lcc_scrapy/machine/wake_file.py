"""A file in the data directory that tells crawls: there is something new in the queue.

Crawls look into the database every ``LCC_POLL``. A process that queues URLs beside them touches this file,
and they look at once. Whoever misses it looks a little later: nothing depends on it.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

NAME = "wake"
EVERY = 0.25
"""Seconds between two looks at the file: each costs some microseconds."""

_MODE = 0o640


class Clock(Protocol):
    """What is needed of a reactor: its timers."""

    def callLater(self, delay: float, callable: Callable[..., Any], *args: Any) -> Any:  # noqa: A002, N802
        """Call something later."""


class WakeFile:
    """The file of one data directory."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._seen = self._stamp()

    def touch(self) -> None:
        """Wake the crawls of this data directory."""
        now = time.time_ns()  # finer than the file system's own time: two touches are never alike
        with suppress(OSError):
            self._path.touch(_MODE)
            os.utime(self._path, ns=(now, now))

    def is_touched(self) -> bool:
        """Tell whether it was touched since this was asked last."""
        before, self._seen = self._seen, self._stamp()
        return before != self._seen

    def _stamp(self) -> int:
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0


class Waking:
    """Calls ``wake`` soon after the file was touched, until it is stopped."""

    def __init__(self, file: WakeFile, clock: Clock, wake: Callable[[], object]) -> None:
        self._file = file
        self._clock = clock
        self._wake = wake
        self._timer: Any = None

    def start(self) -> None:
        """Look at the file from now on."""
        self._timer = self._clock.callLater(EVERY, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self.start()
        if self._file.is_touched():
            self._wake()
