"""Brings accepted sets from the spool into the queue: in turns, in small steps, whenever there is room."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from lcc_scrapy.domain.absorption import Line
from lcc_scrapy.domain.errors import DiskFailed, NotDurable, StoreUnavailable
from lcc_scrapy.domain.lifesigns import Lifesigns
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.storage import logins
from lcc_scrapy.storage.intake import Intake, SpooledSet, Step
from lcc_scrapy.storage.thread import Clock, StoreThread
from lcc_scrapy.storage.tx import Store
from lcc_scrapy.uns.spool import ReadySet

_log = logging.getLogger(__name__)

LOOK = 20
"""Providers among whose sets the next one is chosen at a time."""

STEP = 0.1
"""Seconds after which a step takes no further chunk: the crawl shares its thread."""

OPEN_SETS = 16
"""Sets kept open; those beyond are opened again when their turn comes."""


class Spool(Protocol):
    """The spool folder, as far as intake needs it."""

    def open(self, waiting: ReadySet) -> SpooledSet | None:
        """Open a set for reading; None when it had to be set aside."""

    def set_aside(self, waiting: ReadySet, reason: str) -> None:
        """Put a set away that cannot be absorbed, and ask its provider for everything."""

    def remove(self, waiting: ReadySet) -> None:
        """Remove an absorbed set durably."""


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms sets are absorbed at the UNS with the id ``uns``; times in seconds.

    ``queue_max`` is the number of URLs that may wait (0 = no limit), ``poll`` how often one looks again
    whether a set that has to wait may go on, ``patience`` how long a UNS that gives no sign of life is
    waited for.
    """

    uns: str
    queue_max: int = 0
    poll: float = 2.0
    patience: float = 3600.0


class Absorber:
    """Absorbs the sets of one spool; every step is a job of its own, so that settling goes on between them.

    ``absorbed`` is called after every step, ``put_away`` with the login (pid, seq) of a set that left the
    spool without being absorbed. While ``short`` says so, nothing is absorbed.
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
        short: Callable[[], bool] = lambda: False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._sets = _OpenSets(spool, store, policy)
        self._store = store
        self._thread = thread
        self._clock = clock
        self._terms = terms
        self._absorbed = absorbed
        self._put_away = put_away
        self._short = short
        self._now = now
        self._line: Line[ReadySet] = Line()
        self._lifesigns = Lifesigns(terms.patience)
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
        heads = self._line.heads(LOOK)
        choosing = self._thread.run(self._choose, heads)
        choosing.addCallbacks(self._chosen, self._failed, callbackArgs=(heads,))

    def _choose(self, heads: Sequence[ReadySet]) -> tuple[int, int] | None:
        """Return how many of the first sets have to wait, and the room for the next one.

        None = all have to wait (in the store's thread).
        """
        view, earlier = logins.look_at(self._store, heads, self._terms.queue_max)
        held_up = [(head, earlier[head.pid].uns) for head in heads if head.pid in earlier]
        elsewhere = [(head, uns) for head, uns in held_up if uns != self._terms.uns]
        if elsewhere and self._pass_over_the_dead(elsewhere):
            view, _ = logins.look_at(self._store, heads, self._terms.queue_max)
        admitted = (number for number, head in enumerate(heads) if view.admits(head.pid))
        return next(((number, view.room(heads[number].pid)) for number in admitted), None)

    def _pass_over_the_dead(self, held_up: Sequence[tuple[ReadySet, str]]) -> bool:
        """Wait no more for logins at a UNS that has given no sign of life for too long."""
        signs, now = logins.signs_of_life(self._store), self._clock.seconds()
        unses = {uns for _, uns in held_up}
        dead = {uns for uns in unses if self._lifesigns.is_dead(uns, signs.get(uns, 0), now)}
        passed = [(head, uns) for head, uns in held_up if uns in dead]
        for head, uns in passed:
            count = logins.pass_over(self._store, head.pid, head.seq, uns)
            what = {"pid": head.pid, "seq": head.seq, "count": count, "uns": uns}
            _log.warning(
                "provider %(pid)d: %(count)d earlier logins are not waited for any more,"
                " UNS %(uns)s gives no sign of life",
                what,
            )
        return bool(passed)

    def _chosen(self, chosen: tuple[int, int] | None, heads: Sequence[ReadySet]) -> None:
        if self._stopping:
            self._rest()
        elif chosen is None:
            self._nobody_may(len(heads))
        else:
            number, room = chosen
            self._fruitless = 0
            self._line.pass_by(number)
            self._step(heads[number], room)

    def _nobody_may(self, looked_at: int) -> None:
        self._fruitless += looked_at
        self._line.pass_by(looked_at)
        if self._fruitless < len(self._line):
            self._next()
        else:
            self._rest()
            self._look_later()

    # --- one step --------------------------------------------------------------------------------

    def _step(self, waiting: ReadySet, room: int) -> None:
        stepping = self._thread.run(self._sets.step, waiting, int(self._now()), room)
        stepping.addErrback(self._step_failed, waiting)
        stepping.addCallbacks(self._stepped, self._failed, callbackArgs=(waiting,))

    def _step_failed(self, failure: Failure, waiting: ReadySet) -> Failure | Deferred[None]:
        """Put away a set that can never be absorbed, so that those behind it go on; try others again."""
        if isinstance(failure.value, (StoreUnavailable, NotDurable, DiskFailed, OSError)):
            return failure
        return self._thread.run(self._sets.put_away, waiting, failure.getErrorMessage())

    def _stepped(self, step: Step | None, waiting: ReadySet) -> None:
        if self._failure:
            _log.info("sets are absorbed again")
            self._failure = ""
        if step is None or step.finished:
            self._line.remove(waiting)
        else:
            self._line.stepped()
        if step is None:
            self._put_away(waiting.pid, waiting.seq)
        else:
            self._absorbed(step)
        self._next()

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


class _OpenSets:
    """The sets that were worked on last, kept open; all methods run in the store's thread."""

    def __init__(self, spool: Spool, store: Store, policy: QueuePolicy) -> None:
        self._spool = spool
        self._store = store
        self.policy = policy
        self._open: OrderedDict[ReadySet, Intake] = OrderedDict()

    def step(self, waiting: ReadySet, now: int, room: int) -> Step | None:
        """Take a set forward by one step; None when it had to be set aside.

        Further chunks are added to it until ``STEP`` is over or as many URLs as there is room for were taken.
        """
        intake = self._open.pop(waiting, None) or self._begin(waiting)
        if intake is None:
            return None
        try:
            until = time.monotonic() + STEP
            step = intake.step(now, lambda taken: taken < room and time.monotonic() < until)
        except BaseException:
            intake.close()
            raise
        if step.finished:
            intake.close()
            self._spool.remove(waiting)
        else:
            self._keep(waiting, intake)
        return step

    def put_away(self, waiting: ReadySet, reason: str) -> None:
        """Set aside a set that cannot be absorbed."""
        what = {"pid": waiting.pid, "seq": waiting.seq, "reason": reason}
        _log.error("a set of provider %(pid)d (login %(seq)d) cannot be absorbed: %(reason)s", what)
        self._spool.set_aside(waiting, reason)

    def close(self) -> None:
        """Close all."""
        while self._open:
            self._open.popitem()[1].close()

    def _begin(self, waiting: ReadySet) -> Intake | None:
        spooled = self._spool.open(waiting)
        return None if spooled is None else Intake(self._store, spooled, self.policy)

    def _keep(self, waiting: ReadySet, intake: Intake) -> None:
        self._open[waiting] = intake
        if len(self._open) > OPEN_SETS:
            self._open.popitem(last=False)[1].close()
