"""Group commit: outcomes that arrive while a commit runs share the next one."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from lcc_scrapy.domain.errors import NotDurable, StoreUnavailable
from lcc_scrapy.domain.queue import Outcome
from lcc_scrapy.storage.settling import Settled
from lcc_scrapy.storage.thread import Clock, StoreThread

BATCH = 200
RETRY = 1.0
_log = logging.getLogger(__name__)

Commit = Callable[[Sequence[Outcome]], list[Settled]]
Number = Callable[[Sequence[Outcome]], list[Outcome]]


@dataclass(slots=True, eq=False)
class _Waiting:
    outcome: Outcome
    done: Deferred[Settled] = field(default_factory=Deferred)


class Settler:
    """Hands outcomes to ``commit`` in batches, in the order they came.

    A database or disk that does not answer is tried again every second, for ever: nothing is forgotten.
    A batch that fails for another reason is split until the one outcome that cannot be settled is alone.
    ``number`` gives outcomes their file ids before the first try; they are the same at every further one.
    """

    def __init__(self, thread: StoreThread, clock: Clock, commit: Commit, number: Number = list) -> None:
        self._thread = thread
        self._clock = clock
        self._commit = commit
        self._number = number
        self._waiting: deque[_Waiting] = deque()
        self._running = False
        self._given_up = False
        self._idle: list[Deferred[None]] = []

    def settle(self, outcome: Outcome) -> Deferred[Settled]:
        """Settle one outcome; the Deferred fires when it is durable."""
        if self._given_up:
            return fail(StoreUnavailable("the process stops"))
        waiting = _Waiting(outcome)
        self._waiting.append(waiting)
        self._next()
        return waiting.done

    def when_idle(self) -> Deferred[None]:
        """Return a Deferred that fires when everything given so far is settled."""
        done: Deferred[None] = Deferred()
        self._idle.append(done)
        self._next()
        return done

    def give_up(self) -> None:
        """Try nothing again: what cannot be settled now stays in the queue and is fetched again some day."""
        self._given_up = True

    def _let_go(self, failure: Failure, batch: list[_Waiting]) -> None:
        batch.extend(self._waiting)
        self._waiting.clear()
        for waiting in batch:
            waiting.done.errback(failure)
        self._next()

    def _next(self) -> None:
        if self._running:
            return
        if not self._waiting:
            idle, self._idle = self._idle, []
            for done in idle:
                done.callback(None)
            return
        batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        self._run(batch)

    def _run(self, batch: list[_Waiting]) -> None:
        self._running = True
        running = self._thread.run(self._try, batch)
        running.addCallbacks(self._succeeded, self._failed, callbackArgs=(batch,), errbackArgs=(batch,))

    def _try(self, batch: list[_Waiting]) -> list[Settled]:
        """Commit a batch (in the store's thread)."""
        numbered = self._number([waiting.outcome for waiting in batch])
        for waiting, outcome in zip(batch, numbered, strict=True):
            waiting.outcome = outcome
        return self._commit(numbered)

    def _succeeded(self, settled: list[Settled], batch: list[_Waiting]) -> None:
        self._running = False
        for waiting, result in zip(batch, settled, strict=True):
            waiting.done.callback(result)
        self._next()

    def _failed(self, failure: Failure, batch: list[_Waiting]) -> None:
        if isinstance(failure.value, (StoreUnavailable, NotDurable)):
            _log.error("cannot store results now, trying again: %s", failure.getErrorMessage())
            if not self._given_up:
                self._clock.callLater(RETRY, self._run, batch)
                return
        self._running = False
        if self._given_up:
            self._let_go(failure, batch)
            return
        if len(batch) == 1:
            batch[0].done.errback(failure)
            self._next()
            return
        middle = len(batch) // 2
        self._waiting.extendleft(reversed(batch[middle:]))
        self._run(batch[:middle])
