"""Group commit of questions: what waits when the store's thread is free shares one transaction."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from lcc_scrapy.db.thread import StoreThread
from lcc_scrapy.domain.errors import DiskFailed, NotDurable, StoreUnavailable

MOST = 100
"""Questions answered in one transaction: so many logins take some 20 ms."""

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")

_OF_ALL = (StoreUnavailable, NotDurable, DiskFailed)
"""Errors that a question by itself would end in too."""


@dataclass(slots=True, eq=False)
class _Waiting(Generic[Ask, Answer]):
    ask: Ask
    done: "Deferred[Answer]" = field(default_factory=Deferred)


class Grouped(Generic[Ask, Answer]):
    """Has ``answer`` deal with many questions in one job; an answer that is an exception fails its question.

    A group that fails is taken apart, so that one bad question spoils no other. Who cancels before the job
    begins is not asked for any more.
    """

    def __init__(
        self, thread: StoreThread, answer: Callable[[Sequence[Ask]], Sequence[Answer | Exception]]
    ) -> None:
        self._thread = thread
        self._answer = answer
        self._waiting: deque[_Waiting[Ask, Answer]] = deque()
        self._running = False

    def ask(self, ask: Ask) -> "Deferred[Answer]":
        """Ask; the Deferred fires when the answer is durable."""
        waiting: _Waiting[Ask, Answer] = _Waiting(ask)
        self._waiting.append(waiting)
        if not self._running:
            self._next()
        return waiting.done

    def _next(self) -> None:
        self._running = bool(self._waiting)
        if self._running:
            group: list[_Waiting[Ask, Answer]] = []
            working = self._thread.run(self._work, group)
            working.addCallbacks(self._answered, self._failed, callbackArgs=(group,), errbackArgs=(group,))

    def _work(self, group: list[_Waiting[Ask, Answer]]) -> Sequence[Answer | Exception]:
        """Take what waits by now (in the store's thread)."""
        while self._waiting and len(group) < MOST:
            waiting = self._waiting.popleft()
            if not waiting.done.called:
                group.append(waiting)
        asks = [waiting.ask for waiting in group]
        try:
            return self._answer(asks)
        except _OF_ALL:
            raise
        except Exception as error:  # noqa: BLE001 - it goes to the one who asked
            return [error] if len(asks) == 1 else [self._alone(ask) for ask in asks]

    def _alone(self, ask: Ask) -> Answer | Exception:
        try:
            return self._answer([ask])[0]
        except _OF_ALL:
            raise
        except Exception as error:  # noqa: BLE001 - it goes to the one who asked
            return error

    def _answered(self, answers: Sequence[Any], group: list[_Waiting[Ask, Answer]]) -> None:
        for waiting, answer in zip(group, answers, strict=True):
            if not waiting.done.called:
                give = waiting.done.errback if isinstance(answer, Exception) else waiting.done.callback
                give(answer)
        self._next()

    def _failed(self, failure: Failure, group: list[_Waiting[Ask, Answer]]) -> None:
        for waiting in group:
            if not waiting.done.called:
                waiting.done.errback(failure)
        self._next()
