"""Heartbeats: a worker's leases are renewed by a thread and a connection that no job of the store delays.

One short UPDATE of the worker's own row each time. On SQLite it waits for the write lock, at most for the
longest transaction; on MariaDB and PostgreSQL nobody else locks that row but the worker itself, when it looks
around. Settling goes by lease tokens as before: a renewal that comes too late renews nothing.
"""

import logging
import time
from collections.abc import Callable
from typing import Any

from twisted.python.failure import Failure

from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.db.tx import Store

BEATS = 6
"""Renewals in the time of a lease."""

STUCK = 600.0
"""Seconds of one job from which on its thread counts as hanging: other workers may have the turns then."""

_log = logging.getLogger(__name__)


class Heartbeat:
    """Renews the leases of one worker, which lives as long as its event loop and its store thread go on.

    ``thread`` is for this alone; ``job`` tells for how many seconds the present job of the store thread has
    been running. ``lease`` in seconds, ``now`` in epoch seconds.
    """

    def __init__(
        self,
        store: Store,
        thread: StoreThread,
        clock: Clock,
        *,
        lease: float,
        job: Callable[[], float],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._thread = thread
        self._clock = clock
        self._lease = lease
        self._job = job
        self._now = now
        self._timer: Any = None
        self._owner = ""
        self._token = 0
        self._renewed: Callable[[int], object] = lambda _: None
        self._lost: Callable[[], object] = lambda: None
        self._failure = ""
        self._stopped = False

    def begin(
        self, owner: str, token: int, renewed: Callable[[int], object], lost: Callable[[], object]
    ) -> None:
        """Beat for a worker that has registered.

        ``renewed`` hears until when its leases hold, ``lost`` that it is not registered any more.
        """
        if not self._owner:
            self._owner, self._token, self._renewed, self._lost = owner, token, renewed, lost
            self._later()

    def stop(self) -> None:
        """Beat no more."""
        self._stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _later(self) -> None:
        if not self._stopped:
            self._timer = self._clock.callLater(self._lease / BEATS, self._beat)

    def _beat(self) -> None:
        if self._job() >= STUCK:
            _log.critical("a job of the store's thread hangs: the leases are not renewed any more")
            self._later()
            return
        beating = self._thread.run(self._renew)
        beating.addCallbacks(self._beaten, self._failed)
        beating.addBoth(lambda _: self._later())

    def _renew(self) -> int:
        """Renew the leases (in the thread of its own); returns until when, 0 = they are lost."""
        expires = int(self._now()) + int(self._lease)
        with self._store.begin() as tx:
            return expires if tx.renew_lease(self._owner, self._token, expires) else 0

    def _beaten(self, expires: int) -> None:
        self._failure = ""
        if self._stopped:
            return
        if expires:
            self._renewed(expires)
        else:
            self._lost()

    def _failed(self, failure: Failure) -> None:
        if failure.getErrorMessage() != self._failure and not self._stopped:
            self._failure = failure.getErrorMessage()
            _log.error("cannot renew the leases now, trying again: %s", self._failure)
