"""Work that is done in rounds, one at a time, with a pause after each, until it is stopped."""

import logging
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, succeed

from lcc_scrapy.db.thread import Clock
from lcc_scrapy.domain.errors import LccError

_log = logging.getLogger(__name__)


class Rounds:
    """Does ``work`` again ``pause()`` seconds after its end, whatever that was.

    A round that fails is logged: once when database or disk are away, which passes, and every time with its
    traceback otherwise. ``what`` says in the log what cannot be done.
    """

    def __init__(
        self, clock: Clock, work: Callable[[], Deferred[Any]], pause: Callable[[], float], what: str
    ) -> None:
        self._clock = clock
        self._work = work
        self._pause = pause
        self._what = what
        self._timer: Any = None
        self._running: Deferred[Any] | None = None
        self._failure = ""
        self.stopping = False

    def begin_in(self, seconds: float) -> None:
        """Begin the next round so soon, unless one is running."""
        if self._running is None and not self.stopping:
            self._cancel()
            self._timer = self._clock.callLater(seconds, self._run)

    def stop(self) -> Deferred[None]:
        """Begin no other round; the Deferred fires when none is running."""
        self.stopping = True
        self._cancel()
        if self._running is None:
            return succeed(None)
        ended: Deferred[None] = Deferred()
        self._running.addBoth(lambda _: ended.callback(None))
        return ended

    def _cancel(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _run(self) -> None:
        self._running = self._work()
        self._running.addCallbacks(self._succeeded, self._failed)
        self._running.addBoth(self._rest)

    def _succeeded(self, _: object) -> None:
        self._failure = ""

    def _failed(self, failure: Any) -> None:
        if not failure.check(LccError, OSError):
            _log.error("failed to %s: %s", self._what, failure.getTraceback())
        elif failure.getErrorMessage() != self._failure:
            _log.error("cannot %s now, trying again: %s", self._what, failure.getErrorMessage())
        self._failure = failure.getErrorMessage()

    def _rest(self, _: object) -> None:
        self._running = None
        self.begin_in(self._pause())
