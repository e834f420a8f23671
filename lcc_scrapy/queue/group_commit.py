"""Group commit: outcomes that arrive while a commit runs share the next one."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.domain.errors import NotDurable, StoreUnavailable
from lcc_scrapy.domain.queue import Outcome, bodies_of
from lcc_scrapy.queue.settlement import Settled

COMMIT_PAGES = 500
"""Outcomes in one transaction at most, unless the settings say otherwise."""

BATCH_BYTES = 32_000_000
"""Bytes of bodies in memory from which on no further outcome joins a batch, so that no commit takes long."""

ASKED = 2
"""Commits that the store's thread is asked for at a time: one runs, one begins when it has ended."""

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
    return sum(len(one.body.to_store) for one in bodies_of((outcome,)))


class GroupCommit:
    """Hands outcomes to ``commit`` in batches, in the order they came.

    While a commit runs, the store's thread has already been asked for the next one. That one begins when the
    first has ended, with all that waits then: it does not wait for a busy event loop.

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
        self._backlog = 0
        self._asked = 0
        self._given_up = False
        self._idle: list[Deferred[None]] = []
        # The store's thread takes from these. After a failure it takes nothing until the loop has decided.
        self._waiting: deque[_Waiting] = deque()
        self._failed_before: deque[list[_Waiting]] = deque()
        self._under_way: list[_Waiting] = []
        self._halted = False

    @property
    def backlog(self) -> int:
        """Return how many outcomes are not durable yet."""
        return self._backlog

    def is_full(self) -> bool:
        """Tell whether one commit's worth is not durable yet: nothing more should be begun."""
        return self._backlog >= self.most

    def settle(self, outcome: Outcome, done: Done = lambda _: None) -> None:
        """Settle one outcome; ``done`` is called when it is durable, or with a ``Failure``."""
        waiting = _Waiting(outcome, done)
        if self._given_up:
            waiting.tell(Failure(StoreUnavailable("the process stops")))  # type: ignore[no-untyped-call]
            return
        self._backlog += 1
        self._waiting.append(waiting)
        self._ask()

    def when_idle(self) -> Deferred[None]:
        """Return a Deferred that fires when everything given so far is settled."""
        done: Deferred[None] = Deferred()
        self._idle.append(done)
        self._tell_idle()
        return done

    def give_up(self) -> None:
        """Try nothing again: what cannot be settled now stays in the queue and is fetched again some day."""
        self._given_up = True

    # --- in the store's thread -------------------------------------------------------------------

    def _try(self) -> tuple[list[_Waiting], list[Settled]]:
        """Commit a batch, or nothing where nothing waits any more."""
        if self._halted:
            return [], []
        batch = self._failed_before.popleft() if self._failed_before else self._next_batch()
        if not batch:
            return [], []
        self._under_way = batch
        try:
            numbered = self._number([waiting.outcome for waiting in batch])
            for waiting, outcome in zip(batch, numbered, strict=True):
                waiting.outcome = outcome
            return batch, self._commit(numbered)
        except BaseException:
            self._halted = True
            raise

    def _next_batch(self) -> list[_Waiting]:
        """Take everything that waits, up to the bounds."""
        batch: list[_Waiting] = []
        size = 0
        while self._waiting and len(batch) < self.most and size < BATCH_BYTES:
            batch.append(self._waiting.popleft())
            size += _bytes_in_memory(batch[-1].outcome)
        return batch

    # --- in the event loop -----------------------------------------------------------------------

    def _ask(self) -> None:
        """Ask the thread for a commit, where something waits and it has not been asked for enough."""
        if self._asked < ASKED and not self._halted and (self._waiting or self._failed_before):
            self._asked += 1
            self._thread.run(self._try).addCallbacks(self._succeeded, self._failed)

    def _succeeded(self, ended: tuple[list[_Waiting], list[Settled]]) -> None:
        self._asked -= 1
        self._ask()  # before anybody is told, which takes as long as a short commit
        self._tell(*ended)

    def _failed(self, failure: Failure) -> None:
        self._asked -= 1
        batch, self._under_way = self._under_way, []
        if isinstance(failure.value, (StoreUnavailable, NotDurable)):
            _log.error("cannot store results now, trying again: %s", failure.getErrorMessage())
            if not self._given_up:
                self._halted = True  # also when the thread did not even begin: it is asked again in a second
                if batch:
                    self._failed_before.appendleft(batch)
                self._clock.callLater(RETRY, self._go_on)
                return
        if self._given_up:
            self._let_go(failure, batch)
        elif len(batch) <= 1:
            self._tell(batch, [failure] * len(batch))
        else:
            middle = len(batch) // 2
            self._failed_before.extendleft([batch[middle:], batch[:middle]])
        self._go_on()

    def _go_on(self) -> None:
        self._halted = False
        self._ask()

    def _let_go(self, failure: Failure, batch: list[_Waiting]) -> None:
        batch = list(chain(batch, *self._failed_before, self._waiting))
        self._failed_before.clear()
        self._waiting.clear()
        self._tell(batch, [failure] * len(batch))

    def _tell(self, batch: list[_Waiting], results: Sequence[Settled | Failure]) -> None:
        self._backlog -= len(batch)
        for waiting, result in zip(batch, results, strict=True):
            waiting.tell(result)
        self._tell_idle()

    def _tell_idle(self) -> None:
        if not self._backlog:
            idle, self._idle = self._idle, []
            for done in idle:
                done.callback(None)
