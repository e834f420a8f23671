"""What a process has to work with: disks with room, disks that keep what they take, descriptors."""

import logging
import os
import resource
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.python.failure import Failure

from lcc_scrapy.content.ballast import Ballast
from lcc_scrapy.domain.errors import (
    DiskFailed,
    DiskFull,
    Exhausted,
    NotDurable,
    NotNow,
    StoreFull,
)
from lcc_scrapy.domain.room import Reserve

_log = logging.getLogger(__name__)

LOOK = 2.0
"""Seconds between two looks at the disks."""

REST = 5.0
"""Seconds for which nothing is begun after something was short, whatever the disks say."""


def free_bytes(folder: Path) -> int:
    """Return what may still be written to the disk of a folder."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


class Disks:
    """The disks that a process writes to, by one folder each, and the ballast. Everything here blocks."""

    def __init__(self, folders: Iterable[Path], reserve: Reserve, ballast: Ballast) -> None:
        self._folders = list(folders)
        self._reserve = reserve
        self._ballast = ballast
        self._home = self._folders[0]

    def look(self, *, resting: bool, full: bool) -> str:
        """Give up or renew the ballast; return why nothing new may be begun, empty = it may."""
        free = free_bytes(self._home)
        if self._ballast.is_held:
            if self._reserve.gives_up(free, full=full) and self._ballast.give_up():
                _log.warning("the disk of %s is full: the ballast file is given up", self._home)
        elif not full and self._reserve.renews(free):
            self._ballast.make()
        return self.shortage(resting=resting)

    def shortage(self, *, resting: bool = False) -> str:
        """Return what is short, empty = nothing."""
        wanted = self._reserve.wanted(resting=resting)
        for folder, free in self.free().items():
            if free < wanted:
                return (
                    f"{free} bytes free on the disk of {folder}, LCC_DISK_MIN_FREE is {self._reserve.floor}"
                )
        if not self._ballast.is_held:
            return f"no room for the ballast file in {self._home}"
        return ""

    def free(self) -> Mapping[Path, int]:
        """Return the free space of each disk, by the first of its folders."""
        disks: dict[int, Path] = {}
        for folder in self._folders:
            if folder.is_dir():
                disks.setdefault(folder.stat().st_dev, folder)
        return {folder: free_bytes(folder) for folder in disks.values()}


class Means:
    """Looks after the means of one process. ``short``: begin nothing new now.

    ``end`` must not return: it ends the process of a disk that failed.
    """

    def __init__(self, disks: Disks, reactor: Any, end: Callable[[DiskFailed], object]) -> None:
        self._disks = disks
        self._reactor = reactor
        self._end = end
        self._ending = Lock()
        self._why = ""
        self._full = False
        self._rest_until = 0.0
        self._timer: Any = None
        self._stopped = False

    @property
    def short(self) -> bool:
        """Tell whether to begin nothing new now."""
        return bool(self._why) or self._reactor.seconds() < self._rest_until

    def notice(self, error: BaseException) -> None:
        """Take note of an error, from any thread; one of a disk that failed ends the process here and now."""
        if isinstance(error, DiskFailed):
            with self._ending:
                self._end(error)
        elif isinstance(error, (NotDurable, StoreFull, Exhausted)) and not isinstance(error, NotNow):
            self._full = self._full or isinstance(error, (DiskFull, StoreFull))
            self._rest_until = self._reactor.seconds() + REST

    def look(self) -> str:
        """Look at the disks once (blocks); returns what is short."""
        full, self._full = self._full, False
        try:
            why = self._disks.look(resting=bool(self._why), full=full)
        except NotDurable as error:
            why = str(error)
        except DiskFailed as error:
            self.notice(error)
            raise
        if why and not self._why:
            _log.warning("intake and fetching rest: %s", why)
        elif self._why and not why:
            _log.info("there is room again: intake and fetching go on")
        self._why = why
        return why

    def start(self) -> None:
        """Look now and every ``LOOK`` seconds, off the event loop."""
        looking: Deferred[str] = deferToThreadPool(self._reactor, self._reactor.getThreadPool(), self.look)
        looking.addErrback(self._not_seen)
        looking.addBoth(lambda _: self._again())

    def stop(self) -> None:
        """Look no more."""
        self._stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _not_seen(self, failure: Failure) -> None:
        _log.error("cannot look at the disks: %s", failure.getErrorMessage())

    def _again(self) -> None:
        if not self._stopped:
            self._timer = self._reactor.callLater(LOOK, self.start)


def provide_descriptors(wanted: int) -> None:
    """Let this process have as many descriptors as it may, and warn when that is less than ``wanted``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < enough:
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))
        soft = enough
    if soft != resource.RLIM_INFINITY and soft < wanted:
        _log.warning(
            "this process may open %d files, and could use %d: raise `ulimit -n`,"
            " or lower LCC_FETCHES and LCC_CONNECTIONS_MAX", soft, wanted,
        )  # fmt: skip
