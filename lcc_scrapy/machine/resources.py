"""Resources of a process: free space, disks that keep what they take, file descriptors."""

import logging
import resource
from collections.abc import Callable
from threading import Lock
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.python.failure import Failure

from lcc_scrapy.domain.errors import (
    DiskFailed,
    DiskFull,
    Exhausted,
    NotDurable,
    NotNow,
    StoreFull,
)
from lcc_scrapy.machine.free_space import Disks

_log = logging.getLogger(__name__)

LOOK = 2.0
"""Seconds between two looks at the disks."""

REST = 5.0
"""Seconds for which nothing is begun after something was short, whatever the disks say."""


class Resources:
    """Looks after the resources of one process. ``short``: begin nothing new now.

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

    @property
    def why(self) -> str:
        """Return what is short, or was a moment ago."""
        return self._why or "disk space or file descriptors were short a moment ago"

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
            _log.warning("intake and fetching have stopped: %s", why)
        elif self._why and not why:
            _log.info("there is room again: intake and fetching resume")
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
            " or lower LCC_FETCHES, LCC_FETCHES_PACED and LCC_CONNECTIONS_MAX", soft, wanted,
        )  # fmt: skip
