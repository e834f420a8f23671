"""Housekeeping: once a day, what time does to documents, and what an interrupted command left undone.

Any number of processes may do it at the same time: every transaction looks again at what it changes.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from twisted.python.failure import Failure

from lcc_scrapy.domain.misses import first_day
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.removal_guard import DAY
from lcc_scrapy.storage.expiry import Expiry
from lcc_scrapy.storage.forgetting import forget_tombstones
from lcc_scrapy.storage.intake import Step
from lcc_scrapy.storage.misses import judge
from lcc_scrapy.storage.narrowing import Narrowing
from lcc_scrapy.storage.providers import NoSuchProvider, all_providers
from lcc_scrapy.storage.thread import Clock, StoreThread
from lcc_scrapy.storage.tx import Store
from lcc_scrapy.storage.versions import trim

PAUSE = 0.05
"""Seconds between two transactions, so that settling and intake go on between them."""

RETRY = 600.0
NOBODY = 0
"""The pid of a step that is about no provider."""

_log = logging.getLogger(__name__)


def sweep(store: Store, policy: QueuePolicy, now: int) -> Iterator[Step]:
    """Look after every provider and the feed; yields after every transaction, which is short.

    ``now`` in epoch seconds. Begun anew after a failure or a kill, it does what is left.
    """
    for provider in all_providers(store):
        pid = provider.pid
        with suppress(NoSuchProvider):
            for done in Narrowing(store, pid, now, policy, patient=False).run():
                yield Step(pid, finished=False, removed=done.removed)
        for removed in Expiry(store, provider, now, policy).run():
            yield Step(pid, finished=False, removed=removed)
        for _ in trim(store, pid, now, policy):
            yield Step(pid, finished=False)
    yield from _judge_samples(store, policy, now)
    if policy.tombstones_keep:
        for _ in forget_tombstones(store, now - int(policy.tombstones_keep)):
            yield Step(NOBODY, finished=False)


def _judge_samples(store: Store, policy: QueuePolicy, now: int) -> Iterator[Step]:
    """Judge what samples found, wherever no spider does; what is older than the days that count goes."""
    with store.read() as tx:
        sampled = tx.sampled_providers(0)
    for pid in sampled:
        with store.begin() as tx:
            judge(tx, pid, now, policy.push_grace)
        yield Step(pid, finished=False)
    with store.begin() as tx:
        tx.forget_missed(first_day(now))


class Housekeeper:
    """Sweeps when it starts and every day. ``swept`` is told what a step removed.

    ``policy`` may be replaced; the next sweep goes by it.
    """

    def __init__(
        self,
        store: Store,
        thread: StoreThread,
        clock: Clock,
        policy: QueuePolicy,
        *,
        swept: Callable[[Step], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._thread = thread
        self._clock = clock
        self.policy = policy
        self._swept = swept
        self._now = now
        self._timer: Any = None
        self._stopped = False

    def start(self) -> None:
        """Begin a sweep."""
        self._step(sweep(self._store, self.policy, int(self._now())))

    def stop(self) -> None:
        """Begin no further step."""
        self._stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _step(self, steps: Iterator[Step]) -> None:
        stepping = self._thread.run(next, steps, None)
        stepping.addCallbacks(self._stepped, self._failed, callbackArgs=(steps,))

    def _stepped(self, step: Step | None, steps: Iterator[Step]) -> None:
        if step is None:
            self._later(DAY, self.start)
            return
        if step.removed:
            self._swept(step)
        self._later(PAUSE, self._step, steps)

    def _failed(self, failure: Failure) -> None:
        _log.error("cannot look after the providers now, trying again: %s", failure.getErrorMessage())
        self._later(RETRY, self.start)

    def _later(self, seconds: float, call: Callable[..., None], *args: Iterator[Step]) -> None:
        if not self._stopped:
            self._timer = self._clock.callLater(seconds, call, *args)
