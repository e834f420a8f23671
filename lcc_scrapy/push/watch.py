"""``lcc-push --watch``: pushes what changes, as it does, until it is ended."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from lcc_scrapy.push.command import Notes, Status, Stop
from lcc_scrapy.push.delivery import FIRST_DELAY, LONGEST_DELAY
from lcc_scrapy.push.docroot import DocrootSource, walk
from lcc_scrapy.push.inotify import Inotify, NoInotify
from lcc_scrapy.push.one_push import Source
from lcc_scrapy.push.options import Asked

SETTLED = 1.0
"""Seconds without a change, after which what changed is pushed."""
SETTLED_MOST = 30.0
"""Seconds after which it is pushed though changes go on."""
POLL = 5.0
INTERVAL = 3600.0
SITEMAP_INTERVAL = 300.0
_FATAL = frozenset({Status.USAGE, Status.NO_INPUT, Status.LOGIN_REFUSED})


class Watcher(Protocol):
    """Tells when something changed since it was last asked."""

    def changed(self, timeout: float) -> bool:
        """Wait for a change, at most ``timeout`` seconds."""


@dataclass
class Polling:
    """Compares names, sizes and times of all files every ``seconds``."""

    root: bytes
    seconds: float = POLL
    sleep: Callable[[float], None] = time.sleep
    _before: bytes = b""

    def __post_init__(self) -> None:
        self._before = snapshot(self.root)

    def changed(self, timeout: float) -> bool:
        """Wait, and look."""
        self.sleep(min(self.seconds, timeout))
        before, self._before = self._before, snapshot(self.root)
        return before != self._before


class Timer:
    """For a source that cannot be watched: nothing changes but by the interval."""

    def changed(self, timeout: float) -> bool:
        """Wait."""
        time.sleep(timeout)
        return False


def snapshot(root: bytes) -> bytes:
    """Return a digest of the files below a folder: path, size and time; b"" where they cannot be read."""
    digest = blake2b(digest_size=16)
    try:
        for path in sorted(walk(root)):
            found = os.stat(path)  # noqa: PTH116 - bytes
            digest.update(b"%s\0%d\0%d\n" % (path, found.st_size, found.st_mtime_ns))
    except (OSError, Stop):
        return b""
    return digest.digest()


def interval_of(asked: Asked, source: Source) -> float:
    """Return the longest time between two pushes (seconds); raises `Stop` (64)."""
    return asked.seconds("interval", INTERVAL if isinstance(source, DocrootSource) else SITEMAP_INTERVAL)


def watcher_of(options: Namespace, source: Source, notes: Notes) -> Watcher:
    """Return what tells of changes: inotify where there is one, else polling."""
    if not isinstance(source, DocrootSource):
        return Timer()
    root = os.fsencode(source.docroot)
    if not options.poll:
        try:
            return Inotify(root)
        except NoInotify as error:
            notes.warn(f"{error}: looking for changes every {POLL:g} s instead")
    return Polling(root)


def keep_pushing(
    push: Callable[[], Status], watcher: Callable[[], Watcher], interval: float, notes: Notes
) -> Status:
    """Push, wait for changes, push again; returns, or raises `Stop`, only for what no change mends.

    The watcher is made before the first push, so that nothing falls between.
    """
    watching, delay = watcher(), 0.0
    while True:
        status = _tried(push, notes)
        if status in _FATAL:
            return status
        later = status in {Status.TRY_LATER, Status.UNAVAILABLE}
        delay = min(max(FIRST_DELAY, 2 * delay), LONGEST_DELAY) if later else 0.0
        try:
            _await_change(watching, min(delay or interval, interval))
        except NoInotify as error:
            notes.warn(f"{error}: watching anew")
            watching = watcher()


def _tried(push: Callable[[], Status], notes: Notes) -> Status:
    try:
        return push()
    except Stop as stop:
        if stop.status in _FATAL:
            raise
        notes.warn(str(stop))
        return stop.status


def _await_change(watching: Watcher, most: float) -> None:
    """Wait for a change, and then for its end; at most ``most`` seconds for the first one."""
    end = time.monotonic() + most
    while not watching.changed(max(0.0, end - time.monotonic())):
        if time.monotonic() >= end:
            return
    end = time.monotonic() + SETTLED_MOST
    while time.monotonic() < end and watching.changed(SETTLED):
        pass
