"""Housekeeping: once a day, what time does to documents, and what an interrupted command left undone.

Providers with something to do are found by queries; nobody looks at the others. One process at a time
sweeps (``Sweeps``). Should two do so, nothing is lost: every transaction looks again at what it changes.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, Protocol, TypeVar

from twisted.python.failure import Failure

from lcc_scrapy.cache import irrelevant
from lcc_scrapy.cache.misses import judge, needs_judging
from lcc_scrapy.cache.tombstones import forget_tombstones
from lcc_scrapy.cache.versions import trim
from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.audit import KEPT as AUDIT_KEPT
from lcc_scrapy.domain.fetch_counts import DAY, since
from lcc_scrapy.domain.misses import first_day
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.intake.absorbing import Step
from lcc_scrapy.providers.narrowing import Narrowing
from lcc_scrapy.providers.registration import NoSuchProvider
from lcc_scrapy.queue.expiry import Expiry
from lcc_scrapy.spidering.withdrawing import carry_out

SWEPT = "swept"
"""The fact (``lccinfo``) when the last sweep ended, in epoch seconds."""

SWEEPING = "sweeping"
"""The fact until when a process has the sweep to itself, and its name: ``1800000000 1/0``."""

CLAIM = 1200
"""Seconds for which a process has the sweep to itself; it says so again when half of them are over."""

_DECIDING = "sweeps"
"""The counter that a process locks to decide."""

BUDGET = 0.05
"""Seconds after which a job takes no further transaction."""

MOST = 50
"""Transactions in one job."""

SHARE = 0.25
"""Of the store's thread, at most: settling and intake go on in the pauses."""

PAUSE = 0.05
"""Seconds between two jobs at least."""

LOOK = 600.0
"""Seconds until it is looked again whether there is anything to do, also after a failure."""

PAGE = 100
"""Providers that a query finds at a time."""

ROWS = 500
"""Rows of the books that go in one transaction."""

NOBODY = 0
"""The pid of a step that is about no provider."""

Found = TypeVar("Found", int, Provider)

UNNAMED_KEPT = 86_400
"""Seconds for which an absorbed set without an id is remembered: its spool file is gone by then."""

_log = logging.getLogger(__name__)


class Further(Protocol):
    """Work of an app at the end of a sweep."""

    def __call__(self, store: Store, now: int, /) -> Iterator[object]:
        """Do it at a time (epoch seconds); each step is a short transaction."""


class Sweeps:
    """One process's part in the sweeps of all (blocking), as facts in the store say (decision 94).

    ``owner`` is its name; times in epoch seconds.
    """

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self._owner = owner
        self._until = 0

    def claim(self, now: int) -> bool:
        """Tell whether this process has to sweep now: a day is over, and no other process sweeps."""
        with self._store.begin() as tx:
            tx.take(_DECIDING, 0)
            if _is_of_today(tx, now) or self._is_of_others(tx, now):
                return False
            self._claim(tx, now)
        return True

    def keep(self, now: int) -> bool:
        """Go on; tells whether the sweep still belongs to this process."""
        if CLAIM // 2 < self._until - now <= CLAIM:
            return True
        with self._store.begin() as tx:
            tx.take(_DECIDING, 0)
            if self._is_of_others(tx, now) or _is_of_today(tx, now):
                return False
            self._claim(tx, now)
        return True

    def end(self, now: int) -> None:
        """Note that the sweep has ended: there is none for a day."""
        with self._store.begin() as tx:
            tx.take(_DECIDING, 0)
            tx.set_info(SWEPT, str(now))
            tx.set_info(SWEEPING, "")

    def _claim(self, tx: Tx, now: int) -> None:
        self._until = now + CLAIM
        tx.set_info(SWEEPING, f"{self._until} {self._owner}")

    def _is_of_others(self, tx: Tx, now: int) -> bool:
        until, _, owner = (tx.info(SWEEPING) or "0 ").partition(" ")
        return owner != self._owner and now < int(until) <= now + CLAIM  # beyond that a clock was wrong


def _is_of_today(tx: Tx, now: int) -> bool:
    return 0 <= now - int(tx.info(SWEPT) or 0) < DAY


def sweep(store: Store, policy: QueuePolicy, now: int) -> Iterator[Step]:
    """Look after every provider and the feed; yields after every transaction, which is short.

    ``now`` in epoch seconds. Begun anew after a failure or a kill, it does what is left.
    """
    yield from narrow(store, policy, now)
    yield from _expire(store, policy, now)
    yield from _trim(store, policy, now)
    yield from _judge_samples(store, policy, now)
    yield from _forget(store, policy, now)
    for _ in carry_out(store, lambda: now):
        yield _nothing(NOBODY)
    for _ in irrelevant.sweep(store, ROWS):
        yield _nothing(NOBODY)


def narrow(store: Store, policy: QueuePolicy, now: int) -> Iterator[Step]:
    """Finish what interrupted changes of roots left; the same in small."""
    for pid in _pages(store, lambda tx, after: tx.narrowing_pids(after, PAGE)):
        with suppress(NoSuchProvider):
            for done in Narrowing(store, pid, now, policy, patient=False).run():
                yield Step(pid, finished=False, removed=done.removed)


def _expire(store: Store, policy: QueuePolicy, now: int) -> Iterator[Step]:
    """Look at documents that nobody has confirmed for long (``stale_after``, ``expire_after``)."""
    bounds = [int(bound) for bound in (policy.stale_after, policy.expire_after) if bound]
    if not bounds:
        return
    for provider in _pages(store, lambda tx, after: tx.unconfirmed(now - min(bounds), after, PAGE)):
        for removed in Expiry(store, provider, now, policy).run():
            yield Step(provider.pid, finished=False, removed=removed)
        yield _nothing(provider.pid)


def _trim(store: Store, policy: QueuePolicy, now: int) -> Iterator[Step]:
    pid: int | None = NOBODY
    while pid is not None:
        with store.read() as tx:
            pid = tx.next_versioned(pid)
        yield _nothing(pid or NOBODY)
        for _ in trim(store, pid, now, policy) if pid is not None else ():
            yield _nothing(pid or NOBODY)


def _judge_samples(store: Store, policy: QueuePolicy, now: int) -> Iterator[Step]:
    """Judge what samples found, wherever no spider does."""
    ripe = now - int(policy.push_grace)
    for pid in _pages(store, lambda tx, after: tx.suspected_pids(ripe, after, PAGE)):
        yield from _judge_samples_of(store, policy, pid, now)
    for pid in _pages(store, lambda tx, after: tx.falling_pids(after, PAGE)):
        yield from _judge_samples_of(store, policy, pid, now)


def _judge_samples_of(store: Store, policy: QueuePolicy, pid: int, now: int) -> Iterator[Step]:
    while _needs_judging(store, policy, pid, now):
        with store.begin() as tx:
            judge(tx, pid, now, policy.push_grace)
        yield _nothing(pid)
    yield _nothing(pid)


def _needs_judging(store: Store, policy: QueuePolicy, pid: int, now: int) -> bool:
    with store.read() as tx:
        provider = tx.provider(pid)
        return provider is not None and needs_judging(tx, provider, now, policy.push_grace)


def _forget(store: Store, policy: QueuePolicy, now: int) -> Iterator[Step]:
    """Forget what is too old: tombstones, absorbed sets, days of missed changes."""
    if policy.tombstones_keep:
        for _ in forget_tombstones(store, now - int(policy.tombstones_keep)):
            yield _nothing(NOBODY)
    after = -1
    while after:
        with store.begin() as tx:
            after = tx.forget_psets(now - UNNAMED_KEPT, now - int(policy.resend_period), max(after, 0), ROWS)
        yield _nothing(NOBODY)
    yield from emptied(store, lambda tx: tx.forget_missed(first_day(now), ROWS))
    yield from emptied(store, lambda tx: tx.forget_fetch_counts(since(now, DAY), ROWS))
    yield from emptied(store, lambda tx: tx.forget_audits(now - AUDIT_KEPT, ROWS))


def emptied(store: Store, forget: Callable[[Tx], int]) -> Iterator[Step]:
    """Forget some rows at a time until none is left."""
    gone = ROWS
    while gone:
        with store.begin() as tx:
            gone = forget(tx)
        yield _nothing(NOBODY)


def _pages(store: Store, read: Callable[[Tx, int], list[Found]]) -> Iterator[Found]:
    """Yield what a query finds behind a pid, page by page."""
    after = -1
    while True:
        with store.read() as tx:
            page = read(tx, after)
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1] if isinstance(page[-1], int) else page[-1].pid


def _nothing(pid: int) -> Step:
    return Step(pid, finished=False)


class Housekeeper:
    """Sweeps when a day is over since the last sweep of any process. ``swept`` is told what a step removed.

    Changes of roots that a command left half done are finished whenever it looks. ``policy`` may be
    replaced; the next sweep goes by it. ``further`` gives work for the end of each sweep, and is not asked
    before: a process that sweeps nothing imports none of it.
    """

    def __init__(
        self,
        store: Store,
        thread: StoreThread,
        clock: Clock,
        policy: QueuePolicy,
        *,
        owner: str,
        swept: Callable[[Step], None],
        further: Callable[[], Iterable[Further]] = tuple,
        now: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._thread = thread
        self._clock = clock
        self.policy = policy
        self._sweeps = Sweeps(store, owner)
        self._swept = swept
        self._further = further
        self._now = now
        self._seconds = timer
        self._done: deque[Step] = deque()
        self._timer: Any = None
        self._stopped = False

    def start(self) -> None:
        """Look whether there is anything to do."""
        beginning = self._thread.run(self._begin)
        beginning.addCallbacks(self._slice_later, self._failed)

    def stop(self) -> None:
        """Begin no further job."""
        self._stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    # --- in the store's thread -------------------------------------------------------------------

    def _begin(self) -> Iterator[Step]:
        now = int(self._now())
        if not self._sweeps.claim(now):
            return narrow(self._store, self.policy, now)
        return self._daily(now)

    def _daily(self, now: int) -> Iterator[Step]:
        for step in chain(sweep(self._store, self.policy, now), self._of_others(now)):
            yield step
            if not self._sweeps.keep(int(self._now())):
                return  # another process goes on: this one was silent for too long
        self._sweeps.end(int(self._now()))

    def _of_others(self, now: int) -> Iterator[Step]:
        for work in self._further():
            for _ in work(self._store, now):
                yield _nothing(NOBODY)

    def _slice(self, steps: Iterator[Step]) -> float | None:
        """Go on for as long as a job may take; returns the seconds it took, None = nothing is left."""
        began = self._seconds()
        for number, step in enumerate(steps, 1):
            if step.removed:
                self._done.append(step)
            took = self._seconds() - began
            if took >= BUDGET or number >= MOST:
                return took
        return None

    # --- on the event loop -----------------------------------------------------------------------

    def _slice_later(self, steps: Iterator[Step], after: float = 0.0) -> None:
        self._later(after, self._next_slice, steps)

    def _next_slice(self, steps: Iterator[Step]) -> None:
        slicing = self._thread.run(self._slice, steps)
        slicing.addBoth(self._announce)
        slicing.addCallbacks(self._sliced, self._failed, callbackArgs=(steps,))

    def _announce(self, result: Any) -> Any:
        while self._done:
            self._swept(self._done.popleft())
        return result

    def _sliced(self, took: float | None, steps: Iterator[Step]) -> None:
        if took is None:
            self._later(LOOK, self.start)
        else:
            self._slice_later(steps, max(PAUSE, took * (1 / SHARE - 1)))

    def _failed(self, failure: Failure) -> None:
        _log.error("cannot look after the providers now, trying again: %s", failure.getErrorMessage())
        self._later(LOOK, self.start)

    def _later(self, seconds: float, call: Callable[..., None], *args: Iterator[Step]) -> None:
        if not self._stopped:
            self._timer = self._clock.callLater(seconds, call, *args)
