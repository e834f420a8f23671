"""The Queue Manager (seed 003 section 6): leases, turns and tickets of one crawl process.

It keeps a bounded window of tickets per turn in memory, refills it in the background, and hands out
the next one in constant time. Everything durable is in the store; killing the process loses nothing.
"""

import logging
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from lcc_scrapy.db.job_watch import NO_JOB, Job
from lcc_scrapy.db.records import JOB_MAX, LongFetch, StoredTurn, WorkerRow
from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.bandwidth import Pace, shared_limit
from lcc_scrapy.domain.errors import LeaseLost
from lcc_scrapy.domain.failure_detector import FailureDetector
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.queue import NOTHING, Cancelled, Delayed, Outcome, Ticket
from lcc_scrapy.domain.retries import NO_BACKOFF, Backoff
from lcc_scrapy.domain.slots import Fetch, Pacing, Slots
from lcc_scrapy.domain.steady_clock import SteadyClock
from lcc_scrapy.domain.turns import NEVER, Turn, Turns
from lcc_scrapy.queue import settlement
from lcc_scrapy.queue.group_commit import Done, GroupCommit
from lcc_scrapy.queue.heartbeat import Heartbeat
from lcc_scrapy.queue.leases import (
    CHANGES_PER_LOOK,
    Granted,
    Member,
    News,
    look_around,
    tell_of_fetches,
)
from lcc_scrapy.queue.settlement import Settled
from lcc_scrapy.queue.windows import Held, Room, Windows

_log = logging.getLogger(__name__)

LEASES_PER_LOOK = 200
FETCHES_PER_LOOK = 100
"""Fetches that take long and are told of at one look."""

RESTS_AT_ONCE = 100
"""Turns given back in one transaction, so that nothing waits long for it."""


LEASE_MARGIN = 0.1
"""Share of a lease before its end from which on nothing is started and running fetches are cut off."""

POLLS_OF_A_LEASE = 3
"""Looks at other workers that it takes at least to tell that one is gone."""

GATHER = 5.0
"""Seconds for which a worker that begins only takes turns; else those taken first would be far ahead."""

REST = 30.0
"""Seconds of nothing to do after which a turn is given back: whoever is there then takes it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a worker; times in seconds, bandwidth in bytes per second (0 = no limit).

    ``window``: tickets read ahead per turn; ``tickets``: for all turns together; ``places``: fetches that
    may run at a time; ``paced``: those beside them that may be behind a limit of their own.
    """

    window: int = 32
    tickets: int = 20_000
    places: int = 16
    paced: int = 1000
    lease: float = 60.0
    poll: float = 2.0
    bandwidth: int = 0
    backoff: float = 60.0


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a worker is: the name under which it leases, the number of its machine, its process."""

    owner: str
    machineid: int = 0
    process: int = 0


@dataclass(frozen=True, slots=True)
class TurnPass:
    """What a request carries to show whose turn pays for its bytes."""

    turnkey: str
    token: int


class QueueManager:
    """Turns and tickets of one worker; all methods run on the event loop.

    ``wake`` is called whenever ``next_ticket`` may have something to give; while ``short`` says so, it
    has nothing. ``now`` gives epoch seconds, ``steady`` the seconds of a clock that nobody moves. Without a
    ``heartbeat`` only looks renew the leases. ``longest`` tells the longest job of the thread of late.
    ``readers`` is the thread in which windows are read; without one of their own it is the store's.
    """

    def __init__(
        self,
        store: Store,
        thread: StoreThread,
        group_commit: GroupCommit,
        clock: Clock,
        *,
        identity: Identity,
        dead_owners: Callable[[], Collection[str]],
        zone: ZoneInfo,
        limits: Limits,
        wake: Callable[[], None],
        now: Callable[[], float] = time.time,
        steady: Callable[[], float] | None = None,
        only: int | None = None,
        short: Callable[[], bool] = lambda: False,
        heartbeat: Heartbeat | None = None,
        longest: Callable[[], Job] = lambda: NO_JOB,
        readers: StoreThread | None = None,
    ) -> None:
        self._heartbeat = heartbeat
        self._longest = longest
        self._store = store
        self._thread = thread
        self._group_commit = group_commit
        self._clock = clock
        self._identity = identity
        self._dead_owners = dead_owners
        self._zone = zone
        self._limits = limits
        self._wake = wake
        self._time = SteadyClock(now, steady or now)
        self._now = self._time.now
        self._failure_detector = FailureDetector(max(limits.lease, POLLS_OF_A_LEASE * limits.poll))
        self._only = only
        self._short = short
        self._run = secrets.randbits(62)
        self._started = int(now())
        self.everything = Pace(limits.bandwidth)
        self.turns = Turns(self.everything, limits.backoff)
        self._held: dict[str, Held] = {}
        self._turn_of: dict[int, str] = {}
        self.places = Slots(limits.places, limits.paced)
        self.windows = Windows(
            store,
            thread,
            readers or thread,
            clock,
            held=self._held,
            turns=self.turns,
            room=Room(limits.window, limits.tickets),
            zone=zone,
            now=self._now,
            filled=self._filled,
        )
        self._resting: list[StoredTurn] = []
        self._giving_back = False
        self._wanted_back = False
        self._held_up = False
        self._transferred = 0
        self._rate = 0.0
        self._measured_at = now()
        self._revision = -1
        self._looking = False
        self._look_again = False
        self._in_doubt = False
        self._wake_all = False
        self._poll_timer: Any = None
        self._wake_timer: Any = None
        self._wake_at = NEVER
        self._leased_until = 0.0
        self._gathering_until = NEVER
        self._ended = False
        self.paused = False
        self.stopping = False
        self.failure: str = ""

    # --- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to take turns; URLs are handed out when there are no more, or after ``GATHER`` seconds."""
        self._gathering_until = self._now() + GATHER
        self._poll()

    def apply(self, limits: Limits) -> None:
        """Go on with other limits; the lease and the places stay as they are."""
        fixed = self._limits
        self._limits = replace(limits, lease=fixed.lease, places=fixed.places, paced=fixed.paced)
        self.turns.backoff = limits.backoff
        self.windows.room = Room(limits.window, limits.tickets)
        self.look()

    def stop(self) -> Deferred[None]:
        """Hand out nothing more; wait for what is being settled, then give the leases back."""
        self.stopping = self._ended = True
        self.windows.stop()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        for timer in (self._poll_timer, self._wake_timer):
            if timer is not None and timer.active():
                timer.cancel()
        idle = self._group_commit.when_idle()
        idle.addCallback(lambda _: self._thread.run(self._leave, self._to_remember()))
        idle.addErrback(
            lambda failure: _log.warning("leases were not given back: %s", failure.getErrorMessage())
        )
        return idle

    def _to_remember(self) -> list[StoredTurn]:
        """Return the turns whose limits outlast this worker."""
        now = self._now()
        held = (held.at_rest(now) for held in self._held.values() if held.turn.free_at() > now)
        return [*self._resting, *held]

    def _leave(self, resting: list[StoredTurn]) -> None:
        with self._store.begin() as tx:
            self._rest_all(tx, resting)
            tx.free_turns_of(self._identity.owner)
            tx.drop_worker(self._identity.owner)

    # --- tickets ---------------------------------------------------------------------------------

    def next_ticket(self) -> Ticket | None:
        """Return the next URL to fetch now, or None. Constant time."""
        now = self._now()
        if self.stopping or self.paused or now >= self._leased_until or self._short():
            return None
        if now < self._gathering_until:
            return None
        if self._group_commit.is_full():
            self._held_up = True
            return None
        ticket = self._next_usable(now)
        if due := self.turns.due():
            self.windows.read_anew(due)
        if ticket is None:
            self._set_alarm(now)
        return ticket

    def _next_usable(self, now: float) -> Ticket | None:
        while (ticket := self.turns.next(now, self.places.is_open)) is not None:
            held = self._held[ticket.turnkey]
            if not self._usable(ticket, held, now):
                self.turns.done(ticket, now)
                continue
            self._hand_out(ticket, held)
            if ticket.row.operation == NOTHING:
                self.turns.done(ticket, now)
                self.settle(Cancelled(ticket))
                continue
            self.places.begin(Fetch(_pass_of(ticket), ticket.row.urlkey, held.turn.priority, now))
            return ticket
        return None

    def _usable(self, ticket: Ticket, held: Held, now: float) -> bool:
        member = held.members.get(ticket.row.pid)
        if member is not None and member.permits(ticket.row.timeofday, now, self._zone):
            return True
        self.windows.read_anew([ticket.turnkey])
        return False

    def _hand_out(self, ticket: Ticket, held: Held) -> None:
        held.charged = 0
        held.out.add(ticket.row.urlkey)
        self.windows.handed_out(ticket)

    def _set_alarm(self, now: float) -> None:
        at = self.turns.wake_at()
        if at <= now:
            at = NEVER  # it has come already: there is no place, and who gives one on wakes by himself
        if self._wake_timer is not None and self._wake_timer.active():
            if at == self._wake_at:
                return
            self._wake_timer.cancel()
        self._wake_timer, self._wake_at = None, at
        if at < NEVER:
            self._wake_timer = self._clock.callLater(max(0.001, at - now), self._wake)

    def _holding(self, ticket: Ticket) -> Held | None:
        held = self._held.get(ticket.turnkey)
        return held if held is not None and held.lease.token == ticket.token else None

    def member(self, ticket: Ticket) -> Member | None:
        """Return whose URL a ticket is for, or None when its turn was lost."""
        held = self._holding(ticket)
        return held.members.get(ticket.row.pid) if held is not None else None

    def limit(self, turn: TurnPass | None) -> int:
        """Return the bytes per second that a fetch may take at most, 0 = no limit."""
        held = self._held.get(turn.turnkey) if turn is not None else None
        return shared_limit((self.everything.limit, held.turn.pace.limit if held is not None else 0))

    def charge(self, turn: TurnPass | None, size: int) -> float:
        """Account for bytes transferred in a turn; returns the seconds to pause before reading on.

        Raises ``LeaseLost`` when the turn is another worker's by now, or may be.
        """
        now = self._now()
        self._transferred += size
        self.everything.charge(now, size)
        if turn is None:
            return self.everything.pause(now)
        held = self._held.get(turn.turnkey)
        if held is None or held.lease.token != turn.token or now >= self._leased_until:
            raise LeaseLost(f"turn {turn.turnkey} is no longer ours")
        held.turn.pace.charge(now, size)
        held.charged += size
        return self._pause(turn, held, now, size)

    def _pause(self, turn: TurnPass, held: Held, now: float, size: int) -> float:
        """Return the seconds that a fetch has to pause for; if it has to, it gives its place on."""
        common, own = self.turns.pauses(held.turn, now)
        pause, fetch = max(common, own), self.places.get((turn.turnkey, turn.token))
        if fetch is not None:
            fetch.transferred += size
            if pause > 0 and self.places.give_on(fetch, Pacing.OWN if own >= common else Pacing.COMMON, now):
                self._wake()
        return pause

    def expect(self, turn: TurnPass | None, size: int) -> float:
        """Note the length of the answer under way in bytes (0 = not said).

        Returns the seconds that the limit of its turn makes of it, 0 where there is none.
        """
        if turn is None:
            return 0.0
        fetch, held = self.places.get((turn.turnkey, turn.token)), self._held.get(turn.turnkey)
        if fetch is not None:
            fetch.transferred, fetch.size = 0, size
        return size / held.turn.pace.limit if held is not None and held.turn.pace.limit else 0.0

    def space(self, turn: TurnPass | None, seconds: float) -> None:
        """Leave the site alone for so long after the fetch under way, as it asks (``Crawl-delay``)."""
        held = self._held.get(turn.turnkey) if turn is not None else None
        if held is not None and turn is not None and held.lease.token == turn.token:
            held.turn.spacing = seconds

    def fetch_ended(self, ticket: Ticket) -> int:
        """End a ticket's turn, whatever came of it; Scrapy's engine asks for the next one by itself.

        Returns the bytes that were charged for it.
        """
        self.places.end(_pass_of(ticket))
        charged = self.charged(ticket)
        self.turns.done(ticket, self._now())
        self._rest_if_idle(ticket.turnkey)
        return charged

    def charged(self, ticket: Ticket) -> int:
        """Return the bytes that were charged so far for the fetch under way."""
        held = self._holding(ticket)
        return held.charged if held is not None else 0

    def put_back(self, ticket: Ticket) -> None:
        """Return a ticket that was not used; its turn still has to end with ``fetch_ended``."""
        held = self._holding(ticket)
        if held is not None:
            held.out.discard(ticket.row.urlkey)
            if not held.leaving:
                self.turns.put_back(ticket, self._now())
            self.windows.read_anew([ticket.turnkey])

    def delay(self, outcome: Delayed) -> None:
        """Put back the ticket of a fetch whose host failed, and note why and for how long."""
        self.put_back(outcome.ticket)
        held = self._holding(outcome.ticket)
        backoff = held.turn.backoff if held is not None else NO_BACKOFF
        self._group_commit.settle(replace(outcome, backoff=backoff))

    def host_failed(self, ticket: Ticket, retry_after: float = 0.0) -> float:
        """Delay a whole turn; returns for how many seconds its host has been failing."""
        if self._holding(ticket) is None:
            return 0.0
        return self.turns.host_failed(ticket, self._now(), retry_after)

    def host_answered(self, ticket: Ticket) -> None:
        """Note that the host of a turn answered."""
        if self._holding(ticket) is not None:
            self.turns.host_answered(ticket)

    # --- outcomes --------------------------------------------------------------------------------

    def settle(self, outcome: Outcome, done: Done = lambda _: None) -> None:
        """Make an outcome durable; ``done`` is called when it is, or with the ``Failure``."""

        def settled(result: Settled | Failure) -> None:
            self._settled(result, outcome)
            done(result)

        self._group_commit.settle(outcome, settled)

    def _settled(self, result: Settled | Failure, outcome: Outcome) -> None:
        if self._held_up and not self._group_commit.is_full():
            self._held_up = False
            self._wake()
        ticket = outcome.ticket
        held = self._holding(ticket)
        if held is None:
            return
        held.out.discard(ticket.row.urlkey)
        if isinstance(result, Failure):
            held.turn.more, held.reach = True, None
        elif result.result != settlement.DELAYED:  # that one is in its place in the window already
            self._is_to_be_fetched(held, result.again)
        if held.is_low():
            self.windows.read_on([ticket.turnkey])
        self._rest_if_idle(ticket.turnkey)

    def _is_to_be_fetched(self, held: Held, again: float) -> None:
        """Take note of when a URL that was fetched is to be fetched again: its row lies behind the window."""
        if not again:
            self.windows.read_anew([held.lease.turnkey])
        elif again < NEVER:
            self.windows.look_by(held.lease.turnkey, again)

    # --- looking into the store ------------------------------------------------------------------

    def look(self) -> None:
        """Look for turns to take, soon; several calls make one look."""
        if self._looking:
            self._look_again = True
            return
        if self._ended:
            return
        self._looking = True
        known = {key: held.lease.token for key, held in self._held.items()} if self._in_doubt else None
        told = self._tell_of_fetches()
        looking = self._thread.run(self._look, self._myself(), self._drained(), known, told)
        looking.addCallbacks(self._looked, self._look_failed, callbackArgs=(told[1],))
        looking.addBoth(lambda _: self._look_ended())

    def _myself(self) -> WorkerRow:
        """Return what others are to know of this worker."""
        now, me, rate, job = self._now(), self._identity, self._measure(), self._longest()
        return WorkerRow(
            me.owner,
            self._run,
            me.machineid,
            me.process,
            self._started,
            int(now) + int(self._limits.lease),
            self._limits.places,
            self.places.count(Pacing.NONE, Pacing.COMMON),
            len(self._held),
            int(rate),
            bool(self.everything.limit) and rate >= 0.9 * self.everything.limit,
            self._only or 0,
            self.places.count(Pacing.OWN),
            int(job.seconds * 1000),
            job.name[:JOB_MAX],
        )

    def _tell_of_fetches(self) -> tuple[list[LongFetch], frozenset[str]]:
        """Return what ``lcc explain`` is to know: fetches that take long, and turns whose fetches ended."""
        now = self._now()
        telling = self.places.to_tell(now, FETCHES_PER_LOOK)
        for fetch in telling:
            fetch.told = now
        return [_long(fetch, self._identity.owner) for fetch in telling], self.places.ended()

    def _measure(self) -> float:
        """Return the bytes per second of late, over a poll at least: a body arrives in bursts."""
        now = self._now()
        if now - self._measured_at >= self._limits.poll:
            self._rate = self._transferred / (now - self._measured_at)
            self._transferred, self._measured_at = 0, now
        return self._rate

    def _drained(self) -> dict[str, int]:
        """Return what had arrived in the turns that are kept though they have no URLs left now."""
        return {
            key: held.arrivals
            for key, held in self._held.items()
            if not held.turn.window and not self.windows.is_read(key)
        }

    def _look_ended(self) -> None:
        self._looking = False
        if self._look_again:
            self._look_again = False
            self.look()

    def _poll(self) -> None:
        if not self._ended:
            self._follow_the_clock()
            self.look()
            self._poll_timer = self._clock.callLater(self._limits.poll, self._poll)

    def _follow_the_clock(self) -> None:
        """Let hours be those of the clock, however it was moved, and everything else go on as it was."""
        step = self._time.follow()
        if step:
            _log.warning("the clock was moved by %+.0f s", step)
            self._leased_until += step
            self._measured_at += step
            self.places.moved(step)
            self.turns.moved(step, self._now())
            self.windows.read_anew(list(self._held))
            self._wake_all = True

    def _look(
        self,
        me: WorkerRow,
        drained: dict[str, int],
        known: dict[str, int] | None,
        told: tuple[list[LongFetch], frozenset[str]],
    ) -> News:
        me = replace(me, expires=int(self._now()) + int(self._limits.lease))  # it may have waited for long
        with self._store.begin() as tx:
            tell_of_fetches(tx, me.owner, *told)
            if self._wake_all:
                tx.wake_turns()  # those that wait for an hour have been told another moment
            return look_around(
                tx,
                me,
                self._now(),
                dead=self._dead_owners(),
                limit=0 if self.stopping else LEASES_PER_LOOK,
                only=self._only,
                seen=self._revision,
                drained=drained,
                bandwidth=self._limits.bandwidth,
                known=known,
                lives=self._lives,
            )

    def _lives(self, worker: WorkerRow) -> bool:
        """Tell whether another worker gives signs of life; its clock may show another time than ours."""
        return not self._failure_detector.is_dead(worker.owner, worker.expires, self._time.since_start())

    def _looked(self, news: News, ended: frozenset[str]) -> None:
        self.places.forget(ended)
        self.failure = self.windows.failure = ""
        self._in_doubt = self._wake_all = False
        self._renewed(news.leased_until)
        if self._heartbeat is not None:
            self._heartbeat.begin(self._identity.owner, self._run, self._renewed, self._unregistered)
        if news.lost and self._held:
            _log.warning("%d turns were taken over by other workers", len(self._held))
            for turnkey in list(self._held):
                self._forget(turnkey)
        self.everything.change(self._now(), news.bandwidth)
        self.paused = news.paused
        for granted in news.granted:
            self._take(granted)
        for member in news.changed:
            self._changed(member)
        if news.existing is not None:
            self._removed(self._turn_of.keys() - news.existing)
        self.turns.weigh()
        self._revision = news.revision
        self.windows.expected = news.share
        self.windows.read_anew([*news.refilled, *(granted.lease.turnkey for granted in news.granted)])
        self._give_back(news.surplus)
        self._look_again |= len(news.granted) == LEASES_PER_LOOK or len(news.changed) == CHANGES_PER_LOOK
        if not self._look_again or self._now() >= self._gathering_until:
            self._gathering_until = 0.0
        self._wake()

    def _renewed(self, expires: int) -> None:
        self._leased_until = expires - self._limits.lease * LEASE_MARGIN

    def _unregistered(self) -> None:
        """Go on with nothing that was leased: other workers may have it. The next look registers again."""
        self._leased_until = 0.0
        self.look()

    def _look_failed(self, failure: Failure) -> None:
        """Try again; what was leased may have been committed, though nobody heard of it."""
        self.failure, self._in_doubt = failure.getErrorMessage(), True
        _log.error("cannot look into the queue now, trying again: %s", self.failure)

    def _take(self, granted: Granted) -> None:
        lease = granted.lease
        backoff = Backoff(lease.not_before, lease.failures, lease.failing_since)
        turn = Turn(lease.turnkey, lease.token, lease.priority, backoff=backoff)
        self.turns.add(turn)
        held = self._held[lease.turnkey] = Held(lease, turn)
        for member in granted.members:
            self._join(held, member)
        self._agree(held)

    def _changed(self, member: Member) -> None:
        """Take note of a provider's new limits, roots or state."""
        held = self._held.get(member.provider.turnkey)
        if held is not None and self._only in {None, member.provider.pid}:
            self._join(held, member)
            self._agree(held)
            self.windows.read_anew([held.lease.turnkey])

    def _removed(self, pids: Iterable[int]) -> None:
        for pid in pids:
            held = self._held[self._turn_of.pop(pid)]
            del held.members[pid]
            self.windows.read_anew([held.lease.turnkey])

    def _join(self, held: Held, member: Member) -> None:
        held.members[member.provider.pid] = member
        self._turn_of[member.provider.pid] = held.lease.turnkey

    def _agree(self, held: Held) -> None:
        """Give a turn the limit and the priority that its active members have together."""
        active = [one.provider for one in held.members.values() if one.provider.state == State.ACTIVE]
        held.turn.priority = max((one.priority for one in active), default=0)
        held.turn.pace.change(self._now(), shared_limit(one.bandwidth for one in active))
        self.turns.requeue(held.turn, self._now())

    def _forget(self, turnkey: str) -> None:
        held = self._held.pop(turnkey, None)
        self.turns.drop(turnkey)
        self.windows.forget(turnkey)
        for pid in held.members if held is not None else ():
            self._turn_of.pop(pid, None)

    # --- giving back -----------------------------------------------------------------------------

    def _rest_if_idle(self, turnkey: str) -> None:
        """Give a turn back that has nothing to do for long."""
        held = self._held.get(turnkey)
        if held is None or not held.is_idle() or self.windows.is_read(turnkey) or self.stopping:
            return
        now = self._now()
        if held.leaving:
            self._rest([held.at_rest(0.0)])
        elif held.turn.opens_at(now) - now >= REST:
            self._rest([held.at_rest(held.turn.look_at if not held.turn.window else 0.0)])

    def _give_back(self, surplus: int) -> None:
        """Leave turns to other workers: idle ones now, others when what is under way in them has ended."""
        surplus -= sum(held.leaving for held in self._held.values())
        idle = (held for key, held in self._held.items() if held.is_idle() and not self.windows.is_read(key))
        resting = [held.at_rest(0.0) for held in islice(idle, max(0, surplus))]
        if resting:
            self._rest(resting)
        staying = [held for held in self._held.values() if not held.leaving]
        for held in staying[: max(0, surplus - len(resting))]:
            held.leaving = True
            self.windows.forget(held.lease.turnkey)
            self.turns.refill(held.lease.turnkey, (), self._now(), more=False)
            self._rest_if_idle(held.lease.turnkey)  # it may have waited for nothing but its window

    def _rest(self, leases: list[StoredTurn]) -> None:
        for lease in leases:
            self._forget(lease.turnkey)
        self._resting += leases
        self._hand_back()

    def _hand_back(self) -> None:
        """Give turns back, one portion after the other; those that come to rest meanwhile go together."""
        if self._giving_back or not self._resting or self._ended:
            return
        self._giving_back = True
        leases, self._resting = self._resting[:RESTS_AT_ONCE], self._resting[RESTS_AT_ONCE:]
        resting = self._thread.run(self._rest_now, leases)
        resting.addErrback(self._rest_failed, leases)
        resting.addBoth(self._handed_back)

    def _handed_back(self, later: float | None) -> None:
        self._giving_back = False
        if later:
            self._clock.callLater(later, self._hand_back)
        elif self._resting:
            self._hand_back()
        elif self._wanted_back:
            self._wanted_back = False
            self.look()

    def _rest_now(self, leases: list[StoredTurn]) -> None:
        with self._store.begin() as tx:
            self._rest_all(tx, leases)

    def _rest_all(self, tx: Tx, leases: list[StoredTurn]) -> None:
        now = self._now()
        tx.rest_turns([one if one.not_before > now else replace(one, not_before=0.0) for one in leases])

    def _rest_failed(self, failure: Failure, leases: list[StoredTurn]) -> float:
        self.failure = failure.getErrorMessage()
        _log.error("cannot give turns back now, trying again: %s", self.failure)
        self._resting += leases
        return self._limits.poll

    # --- windows ---------------------------------------------------------------------------------

    def touched(self, pid: int) -> None:
        """Note that rows of a provider's queue changed: read its window again, or take its turn."""
        turnkey = self._turn_of.get(pid)
        if turnkey is None:
            self._wanted_back = bool(self._resting)  # it may be one that is not given back yet
            self.look()
        else:
            self.windows.read_anew([turnkey])

    def _filled(self, turnkeys: Sequence[str]) -> None:
        for turnkey in turnkeys:
            self._rest_if_idle(turnkey)
        self._wake()

    # --- what it is doing ------------------------------------------------------------------------

    def in_flight(self) -> int:
        """Return how many fetches are under way."""
        return len(self.places)


def _pass_of(ticket: Ticket) -> tuple[str, int]:
    return ticket.turnkey, ticket.token


def _long(fetch: Fetch, owner: str) -> LongFetch:
    turnkey, token = fetch.pass_
    begun, since = int(fetch.begun), int(fetch.paced_since)
    return LongFetch(turnkey, owner, token, fetch.urlkey, begun, since, fetch.transferred, fetch.size)
