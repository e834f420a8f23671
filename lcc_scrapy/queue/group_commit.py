"""Group commit: outcomes that arrive while a commit runs share the next one."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.domain.errors import NotDurable, StoreUnavailable
from lcc_scrapy.domain.queue import Outcome, Served
from lcc_scrapy.queue.settlement import Settled

COMMIT_PAGES = 250
"""Outcomes in one transaction at most, unless the settings say otherwise."""

BATCH_BYTES = 32_000_000
"""Bytes of bodies in memory from which on no further outcome joins a batch, so that no commit takes long."""

RETRY = 1.0
_log = logging.getLogger(__name__)

Commit = Callable[[Sequence[Outcome]], list[Settled]]
Number = Callable[[Sequence[Outcome]], list[Outcome]]


Done = Callable[[Settled | Failure], object]
"""Hears what became of an outcome: when it is durable, or that it cannot be settled."""


@dataclass(slots=True, eq=False)
class _Waiting:
    outcome: Outcome
    done: Done

    def tell(self, result: Settled | Failure) -> None:
        """Tell whoever waits; an error of his does not concern the others."""
        try:
            self.done(result)
        except Exception:  # noqa: BLE001 - they go on
            _log.exception("after an outcome was settled")


def _bytes_in_memory(outcome: Outcome) -> int:
    return len(outcome.body.to_store) if isinstance(outcome, Served) else 0


class GroupCommit:
    """Hands outcomes to ``commit`` in batches, in the order they came.

    A database or disk that does not answer is tried again every second, for ever: nothing is forgotten.
    A batch that fails for another reason is split until the one outcome that cannot be settled is alone.
    ``number`` gives outcomes their file ids before the first try; they are the same at every further one.
    ``most`` are the outcomes of a commit, and those that may wait to be durable; it may be changed.
    """

    def __init__(
        self,
        thread: StoreThread,
        clock: Clock,
        commit: Commit,
        number: Number = list,
        most: int = COMMIT_PAGES,
    ) -> None:
        self.most = most
        self._thread = thread
        self._clock = clock
        self._commit = commit
        self._number = number
        self._waiting: deque[_Waiting] = deque()
        self._under_way = 0
        self._running = False
        self._given_up = False
        self._idle: list[Deferred[None]] = []

    @property
    def backlog(self) -> int:
        """Return how many outcomes are not durable yet."""
        return len(self._waiting) + self._under_way

    def is_full(self) -> bool:
        """Tell whether one commit's worth is not durable yet: nothing more should be begun."""
        return self.backlog >= self.most

    def settle(self, outcome: Outcome, done: Done = lambda _: None) -> None:
        """Settle one outcome; ``done`` is called when it is durable, or with a ``Failure``."""
        waiting = _Waiting(outcome, done)
        if self._given_up:
            waiting.tell(Failure(StoreUnavailable("the process stops")))  # type: ignore[no-untyped-call]
            return
        self._waiting.append(waiting)
        self._next()

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
            waiting.tell(failure)
        self._next()

    def _next(self) -> None:
        if self._running:
            return
        if not self._waiting:
            idle, self._idle = self._idle, []
            for done in idle:
                done.callback(None)
            return
        self._run(self._next_batch())

    def _next_batch(self) -> list[_Waiting]:
        """Take everything that waits, up to the bounds."""
        batch: list[_Waiting] = []
        size = 0
        while self._waiting and len(batch) < self.most and size < BATCH_BYTES:
            batch.append(self._waiting.popleft())
            size += _bytes_in_memory(batch[-1].outcome)
        return batch

    def _run(self, batch: list[_Waiting]) -> None:
        self._running = True
        self._under_way = len(batch)
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
        self._under_way = 0
        for waiting, result in zip(batch, settled, strict=True):
            waiting.tell(result)
        self._next()

    def _failed(self, failure: Failure, batch: list[_Waiting]) -> None:
        if isinstance(failure.value, (StoreUnavailable, NotDurable)):
            _log.error("cannot store results now, trying again: %s", failure.getErrorMessage())
            if not self._given_up:
                self._clock.callLater(RETRY, self._run, batch)
                return
        self._running = False
        self._under_way = 0
        if self._given_up:
            self._let_go(failure, batch)
            return
        if len(batch) == 1:
            batch[0].tell(failure)
            self._next()
            return
        middle = len(batch) // 2
        self._waiting.extendleft(reversed(batch[middle:]))
        self._run(batch[:middle])
