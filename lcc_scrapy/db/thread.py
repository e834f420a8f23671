"""The one thread that does all database and content-file work of a process.

Jobs run in the order they were given; the event loop never waits for a disk or a database.
"""

import time
import traceback
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any, Protocol, TypeVar

from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.python.threadpool import ThreadPool

from lcc_scrapy.db.job_watch import JobWatch
from lcc_scrapy.domain.errors import LccError, StoreUnavailable
from lcc_scrapy.domain.steady_clock import SteadyClock

Result = TypeVar("Result")


class Clock(Protocol):
    """What is needed of a reactor: its timers."""

    def callLater(self, delay: float, callable: Callable[..., Any], *args: Any) -> Any:  # noqa: A002, N802
        """Call something later."""

    def seconds(self) -> float:
        """Return the time of the timers."""


def keep_timers_steady(reactor: Any) -> None:
    """Let a reactor's timers go on when the system's clock is moved; Twisted's own wait for it.

    They go on from the present moment, so that timers which are set already stay in their place.
    """
    if not isinstance(getattr(reactor.seconds, "__self__", None), SteadyClock):
        reactor.seconds = SteadyClock(reactor.seconds, time.monotonic).now


class DaemonPool(ThreadPool):
    """Threads that do not keep a process alive which was told twice to stop."""

    threadFactory = staticmethod(partial(Thread, daemon=True))  # type: ignore[assignment]  # noqa: N815


class StoreThread:
    """Runs blocking jobs one after the other; results come back to the event loop as Deferreds.

    ``notice`` hears, in the thread, of every ``LccError`` that a job ends with, before anybody else.
    ``watch`` tells how long jobs take.
    """

    def __init__(
        self,
        reactor: Any,
        notice: Callable[[LccError], object] = lambda _: None,
        watch: JobWatch | None = None,
        name: str = "lcc-store",
    ) -> None:
        self.watch = watch or JobWatch(warn=0)
        self._reactor = reactor
        self._notice = notice
        self._under_way: set[Deferred[Any]] = set()
        self._abandoned = False
        self._pool = DaemonPool(minthreads=1, maxthreads=1, name=name)
        self._pool.start()

    def run(self, job: Callable[..., Result], *args: Any) -> Deferred[Result]:
        """Run ``job`` in the thread; the Deferred has its result or its exception.

        Cancelling the Deferred withdraws a job that has not begun; one that has begun goes on unheard.
        """
        if self._abandoned:
            return fail(_stops())
        done: Deferred[Result] = Deferred()
        self._under_way.add(done)
        ended = partial(self._reactor.callFromThread, self._ended, done)
        self._pool.callInThreadWithCallback(ended, self._do, done, job, args)
        return done

    def _do(self, done: Deferred[Result], job: Callable[..., Result], args: tuple[Any, ...]) -> Result:
        if done.called:
            raise CancelledError
        try:
            return self.watch.run(job, *args)
        except LccError as error:
            self._notice(error)
            if isinstance(error, StoreUnavailable):
                _forget_traces(error)
            raise

    def _ended(self, done: Deferred[Any], success: bool, result: Any) -> None:
        self._under_way.discard(done)
        if not done.called:
            (done.callback if success else done.errback)(result)

    def abandon(self) -> None:
        """Wait no longer for a job that hangs: it and all others fail with ``StoreUnavailable``."""
        self._abandoned = True
        while self._under_way:
            done = self._under_way.pop()
            if not done.called:
                done.errback(_stops())

    def close(self) -> None:
        """Finish the jobs that were given and end the thread; one that was abandoned is left behind."""
        if not self._abandoned:
            self._pool.stop()


def _forget_traces(error: BaseException) -> None:
    """Take apart what an error was raised from; nobody logs that, and its frames refer to each other.

    A database that is away would leave 0.8 MB of each job behind until Python looks for garbage.
    """
    cause: BaseException | None = error
    while cause is not None:
        traceback.clear_frames(cause.__traceback__)
        before, cause = cause, cause.__cause__ or cause.__context__
        before.__cause__ = before.__context__ = None


def _stops() -> StoreUnavailable:
    return StoreUnavailable("the database hangs, and the process stops")
