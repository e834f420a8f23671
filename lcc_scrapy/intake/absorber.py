"""Brings accepted sets from the spool into the queue: in turns, in small steps, whenever there is room."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.absorption import Line, View, WaitRule
from lcc_scrapy.domain.failure_detector import FailureDetector
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.intake import login_rows
from lcc_scrapy.intake.absorbing import Step
from lcc_scrapy.intake.login_rows import Head
from lcc_scrapy.intake.open_sets import OpenSets, Spool
from lcc_scrapy.uns.spool import ReadySet

_log = logging.getLogger(__name__)

LOOK = 200
"""Providers among whose sets the next ones are chosen at a time."""


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms sets are absorbed at the UNS with the id ``uns``; times in seconds.

    ``queue_max`` is the number of URLs that may wait (0 = no limit), ``poll`` how often one looks again
    whether a set that has to wait may go on, ``patience`` how long sets wait for a UNS that
    sends no heartbeat, ``bound`` how long a complete set waits for those of earlier logins that are not.
    """

    uns: str
    queue_max: int = 0
    poll: float = 2.0
    patience: float = 3600.0
    bound: float = 60.0


@dataclass(frozen=True, slots=True)
class _Work:
    """What came of a job: sets with their place among those looked at, and their steps (None = put away)."""

    looked_at: int
    full: bool = False
    steps: Sequence[tuple[int, ReadySet, Step | None]] = ()


class Absorber:
    """Absorbs the sets of one spool; every job has a bound, so that settling goes on between them.

    ``absorbed`` is called after every step, ``put_away`` with the login (pid, seq) of a set that left the
    spool without being absorbed. ``sending_before`` tells whether a login of a provider before the one
    given is bringing a set here. While ``short`` says so, nothing is absorbed.
    """

    def __init__(
        self,
        spool: Spool,
        store: Store,
        thread: StoreThread,
        clock: Clock,
        *,
        policy: QueuePolicy,
        terms: Terms,
        absorbed: Callable[[Step], None],
        put_away: Callable[[int, int], None],
        sending_before: Callable[[int, int], bool] = lambda _pid, _seq: False,
        short: Callable[[], bool] = lambda: False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._sets = OpenSets(spool, store, policy)
        self._store = store
        self._thread = thread
        self._clock = clock
        self._terms = terms
        self._absorbed = absorbed
        self._put_away = put_away
        self._sending_before = sending_before
        self._short = short
        self._now = now
        self._line: Line[ReadySet] = Line()
        self._complete_since: dict[ReadySet, float] = {}
        self._failure_detector = FailureDetector(terms.patience)
        self._running = False
        self._fruitless = 0
        self._failure = ""
        self._timer: Any = None
        self._stopping = False
        self._ended: Deferred[None] | None = None

    def __contains__(self, login: tuple[int, int]) -> bool:
        """Tell whether the set of a login (pid, seq) waits or is being absorbed."""
        return login in self._line

    def add(self, waiting: ReadySet) -> None:
        """Take note of a set in the spool; ``look`` begins with it."""
        self._line.add(waiting)
        self._complete_since[waiting] = self._clock.seconds()

    def look(self) -> None:
        """Begin, if anything waits."""
        if not self._running and not self._stopping and self._line:
            self._running = True
            self._fruitless = 0
            self._next()

    def apply(self, policy: QueuePolicy, terms: Terms) -> None:
        """Go on with another policy, for sets that are opened from now on, and on other terms.

        For how long a silent UNS is waited for stays as it is.
        """
        self._sets.policy = policy
        self._terms = terms
        self.look()

    def stop(self) -> Deferred[None]:
        """End after the step that is running."""
        self._stopping = True
        self._ended = Deferred()
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        if not self._running:
            self._rest()
        return self._ended

    # --- whose turn it is ------------------------------------------------------------------------

    def _next(self) -> None:
        if self._stopping or not self._line or self._short():
            self._rest()
            self._look_later()
            return
        sets = self._line.heads(LOOK)
        heads = {one.pid: self._head(one) for one in sets}
        working = self._thread.run(self._work, sets, heads)
        working.addCallbacks(self._worked, self._failed)

    def _head(self, waiting: ReadySet) -> Head:
        waited = self._clock.seconds() - self._complete_since[waiting]
        return Head(waited, self._sending_before(waiting.pid, waiting.seq))

    # --- in the store's thread ---------------------------------------------------------------------

    def _work(self, sets: Sequence[ReadySet], heads: Mapping[int, Head]) -> _Work:
        """Look at the first sets, and take those forward that may go on, as far as time allows."""
        view, earlier = self._look_at(sets, heads)
        elsewhere = [
            (one, uns)
            for one in sets
            for uns in sorted({login.uns for login in earlier.get(one.pid, ())} - {self._terms.uns})
        ]
        if elsewhere and self._pass_over_the_dead(elsewhere):
            view, earlier = self._look_at(sets, heads)
        admitted = {one: number for number, one in enumerate(sets) if view.admits(one.pid)}
        if not admitted:
            return _Work(len(sets), view.full)
        steps = self._sets.take(list(admitted), view, earlier, int(self._now()))
        return _Work(len(sets), steps=[(admitted[one], one, step) for one, step in steps])

    def _look_at(
        self, sets: Sequence[ReadySet], heads: Mapping[int, Head]
    ) -> tuple[View, login_rows.Earlier]:
        patience = WaitRule(self._terms.uns, self._terms.bound)
        return login_rows.look_at(self._store, sets, heads, self._terms.queue_max, patience)

    def _pass_over_the_dead(self, elsewhere: Sequence[tuple[ReadySet, str]]) -> bool:
        """Stop waiting for logins at a UNS that has sent no heartbeat for too long."""
        signs, now = login_rows.signs_of_life(self._store), self._clock.seconds()
        unses = {uns for _, uns in elsewhere}
        dead = {uns for uns in unses if self._failure_detector.is_dead(uns, signs.get(uns, 0), now)}
        passed = [(head, uns) for head, uns in elsewhere if uns in dead]
        for head, uns in passed:
            count = login_rows.pass_over(self._store, head.pid, head.seq, uns)
            what = {"pid": head.pid, "seq": head.seq, "count": count, "uns": uns}
            _log.warning(
                "provider %(pid)d: no longer waiting for %(count)d earlier logins,"
                " UNS %(uns)s sends no heartbeat",
                what,
            )
        return bool(passed)

    # --- what came of it -----------------------------------------------------------------------------

    def _worked(self, work: _Work) -> None:
        if self._failure:
            _log.info("sets are absorbed again")
            self._failure = ""
        if not work.steps:
            self._nobody_may(work)
            return
        self._fruitless = 0
        behind = 0
        for number, waiting, step in work.steps:
            self._line.pass_by(number - behind)
            behind = number + 1
            self._stepped(waiting, step, last=waiting is work.steps[-1][1])
        self._next()

    def _nobody_may(self, work: _Work) -> None:
        self._fruitless += len(self._line) if work.full else work.looked_at
        self._line.pass_by(work.looked_at)
        if self._fruitless < len(self._line):
            self._next()
        else:
            self._rest()
            self._look_later()

    def _stepped(self, waiting: ReadySet, step: Step | None, *, last: bool) -> None:
        if step is None or step.finished:
            self._line.remove(waiting)
            del self._complete_since[waiting]
        elif last:
            self._line.stepped()
        else:
            self._line.pass_by(1)
        if step is None:
            self._put_away(waiting.pid, waiting.seq)
        else:
            self._absorbed(step)

    def _failed(self, failure: Failure) -> None:
        if failure.getErrorMessage() != self._failure:
            self._failure = failure.getErrorMessage()
            _log.error("cannot absorb a set now, trying again: %s", self._failure)
        self._line.pass_by(1)
        self._rest()
        self._look_later()

    def _look_later(self) -> None:
        if not self._stopping and (self._timer is None or not self._timer.active()):
            self._timer = self._clock.callLater(self._terms.poll, self.look)

    def _rest(self) -> None:
        self._running = False
        if self._ended is not None and not self._ended.called:
            closing = self._thread.run(self._sets.close)
            closing.addErrback(lambda failure: _log.debug("not closed: %s", failure.getErrorMessage()))
            closing.chainDeferred(self._ended)
