"""Stand in for the store's thread where a test wants none, or wants to wait for it."""

from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed

from lcc_scrapy.db.thread import StoreThread
from lcc_scrapy.domain.errors import StoreUnavailable


class SameThread:
    """Runs jobs at once, in this thread."""

    def run(self, job: Callable[..., Any], *args: Any) -> Deferred[Any]:
        try:
            return succeed(job(*args))
        except Exception:
            return fail()


class LosesAnswers(SameThread):
    """Does the job with the name ``unheard`` once, and tells that the database went away meanwhile."""

    unheard = ""

    def run(self, job: Callable[..., Any], *args: Any) -> Deferred[Any]:
        done = super().run(job, *args)
        if getattr(job, "__name__", "") != self.unheard:
            return done
        self.unheard = ""
        return fail(StoreUnavailable("the connection was lost during the commit"))


class ByHand:
    """Runs jobs when the test says so, one after the other, in the order they were given."""

    def __init__(self) -> None:
        self.jobs: deque[tuple[Deferred[Any], Callable[..., Any], tuple[Any, ...]]] = deque()

    def run(self, job: Callable[..., Any], *args: Any) -> Deferred[Any]:
        done: Deferred[Any] = Deferred()
        self.jobs.append((done, job, args))
        return done

    def work_off(self, most: int = 100_000) -> int:
        """Run up to ``most`` jobs, and those that come of them; returns how many there were."""
        for number in range(most):
            if not self.jobs:
                return number
            done, job, args = self.jobs.popleft()
            SameThread().run(job, *args).chainDeferred(done)
        return most


class RealThread:
    """Runs jobs in a thread, and waits for each."""

    def __init__(self) -> None:
        self._ended: SimpleQueue[Any] = SimpleQueue()
        self._thread = StoreThread(self)

    def callFromThread(self, function: Callable[..., Any], *args: Any) -> None:
        self._ended.put((function, args))

    def run(self, job: Callable[..., Any], *args: Any) -> Deferred[Any]:
        done = self._thread.run(job, *args)
        function, args = self._ended.get(timeout=300)
        function(*args)
        return done

    def close(self) -> None:
        self._thread.close()
