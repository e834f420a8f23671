"""The Queue Manager (seed 003 section 6): leases, turns and tickets of one crawl process.

It keeps a bounded window of tickets per turn in memory, refills it in the background, and hands out
the next one in constant time. Everything durable is in the store; killing the process loses nothing.
"""

import logging
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from lcc_scrapy.domain.bandwidth import Pace, shared_limit
from lcc_scrapy.domain.errors import LeaseLost
from lcc_scrapy.domain.lifesigns import Lifesigns
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.queue import NOTHING, Cancelled, Delayed, Outcome, Ticket, is_among
from lcc_scrapy.domain.retries import NO_BACKOFF, Backoff
from lcc_scrapy.domain.steadyclock import SteadyClock
from lcc_scrapy.domain.turns import NEVER, Turn, Turns
from lcc_scrapy.storage import settling
from lcc_scrapy.storage.records import StoredTurn, WorkerRow
from lcc_scrapy.storage.settler import Settler
from lcc_scrapy.storage.settling import Settled
from lcc_scrapy.storage.thread import Clock, StoreThread
from lcc_scrapy.storage.turnstile import (
    Granted,
    Member,
    News,
    RowsDue,
    Window,
    look_around,
    window_of,
)
from lcc_scrapy.storage.tx import Store, Tx

_log = logging.getLogger(__name__)

LEASES_PER_LOOK = 500
READ_ON = 4
"""A window is read again when no more than this part of it is left: what is left is read twice."""

WINDOWS_PER_READ = 50
"""Windows read in one transaction, so that settling never waits long."""

UNSETTLED = 1000
"""Outcomes that may wait to be durable before nothing more is handed out: two commits."""

LEASE_MARGIN = 0.1
"""Share of a lease before its end from which on nothing is started and running fetches are cut off."""

POLLS_OF_A_LEASE = 3
"""Looks at other workers that it takes at least to tell that one is gone."""

REST = 30.0
"""Seconds of nothing to do after which a turn is given back: whoever is there then takes it."""

FOREVER = float(1 << 40)
"""A moment that never comes: a turn waits for news."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a worker; times in seconds, bandwidth in bytes per second (0 = no limit).

    ``window``: tickets read ahead per turn; ``tickets``: for all turns together; ``places``: fetches that
    may run at a time.
    """

    window: int = 32
    tickets: int = 20_000
    places: int = 16
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


@dataclass(slots=True)
class Held:
    """A turn this worker holds, with the providers whose URLs it fetches in it.

    ``out`` are keys handed out and not settled, ``arrivals`` what had arrived when it was last read,
    ``charged`` the bytes of the fetch under way or last. ``leaving``: it goes to another worker as soon as
    nothing is under way in it any more.
    """

    lease: StoredTurn
    turn: Turn
    members: dict[int, Member] = field(default_factory=dict)
    out: set[bytes] = field(default_factory=set)
    arrivals: int = 0
    charged: int = 0
    leaving: bool = False

    def is_idle(self) -> bool:
        """Tell whether nothing is under way in this turn."""
        return self.turn.fetching is None and not self.out

    def at_rest(self, look_at: float) -> StoredTurn:
        """Return the turn as it is to be given back, to be looked at again then."""
        wait, turn = self.turn.free_at(), self.turn
        backoff = replace(turn.backoff, not_before=wait)
        return replace(
            self.lease,
            look_at=min(look_at, FOREVER),
            not_before=backoff.not_before,
            failures=backoff.failures,
            failing_since=backoff.failing_since,
            arrivals=self.arrivals,
        )


Wanted = tuple[Held, frozenset[bytes]]
"""A turn whose window is to be read, and the keys that were out by then."""


class QueueManager:
    """Turns and tickets of one worker; all methods run on the event loop.

    ``wake`` is called whenever ``next_ticket`` may have something to give; while ``short`` says so, it
    has nothing. ``now`` gives epoch seconds, ``steady`` the seconds of a clock that nobody moves.
    """

    def __init__(
        self,
        store: Store,
        thread: StoreThread,
        settler: Settler,
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
    ) -> None:
        self._store = store
        self._thread = thread
        self._settler = settler
        self._clock = clock
        self._identity = identity
        self._dead_owners = dead_owners
        self._zone = zone
        self._limits = limits
        self._wake = wake
        self._time = SteadyClock(now, steady or now)
        self._now = self._time.now
        self._lifesigns = Lifesigns(max(limits.lease, POLLS_OF_A_LEASE * limits.poll))
        self._only = only
        self._short = short
        self._run = secrets.randbits(62)
        self._started = int(now())
        self.everything = Pace(limits.bandwidth)
        self.turns = Turns(self.everything, limits.backoff)
        self._held: dict[str, Held] = {}
        self._turn_of: dict[int, str] = {}
        self._in_flight = 0
        self._reading: defaultdict[str, set[bytes]] = defaultdict(set)
        self._again: set[str] = set()
        self._unread: dict[str, None] = {}
        self._beginning = False
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
        self._ended = False
        self.paused = False
        self.stopping = False
        self.failure: str = ""

    # --- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to take turns."""
        self._poll()

    def apply(self, limits: Limits) -> None:
        """Go on with other limits; the lease and the places stay as they are."""
        self._limits = replace(limits, lease=self._limits.lease, places=self._limits.places)
        self.turns.backoff = limits.backoff
        self.look()

    def stop(self) -> Deferred[None]:
        """Hand out nothing more; wait for what is being settled, then give the leases back."""
        self.stopping = self._ended = True
        self._unread.clear()
        for timer in (self._poll_timer, self._wake_timer):
            if timer is not None and timer.active():
                timer.cancel()
        idle = self._settler.when_idle()
        idle.addCallback(lambda _: self._thread.run(self._leave, self._to_remember()))
        idle.addErrback(
            lambda failure: _log.warning("leases were not given back: %s", failure.getErrorMessage())
        )
        return idle

    def _to_remember(self) -> list[StoredTurn]:
        """Return the turns whose limits outlast this worker."""
        now = self._now()
        return [held.at_rest(now) for held in self._held.values() if held.turn.free_at() > now]

    def _leave(self, resting: list[StoredTurn]) -> None:
        with self._store.begin() as tx:
            for lease in resting:
                tx.rest_turn(lease)
            tx.free_turns_of(self._identity.owner)
            tx.drop_worker(self._identity.owner)

    # --- tickets ---------------------------------------------------------------------------------

    def next_ticket(self) -> Ticket | None:
        """Return the next URL to fetch now, or None. Constant time."""
        now = self._now()
        if self.stopping or self.paused or now >= self._leased_until or self._short():
            return None
        if self._settler.backlog >= UNSETTLED:
            self._held_up = True
            return None
        ticket = self._next_usable(now)
        self.refill(self.turns.due())
        if ticket is None:
            self._set_alarm(now)
        return ticket

    def _next_usable(self, now: float) -> Ticket | None:
        while (ticket := self.turns.next(now)) is not None:
            held = self._held[ticket.turnkey]
            if not self._usable(ticket, held, now):
                self.turns.done(ticket, now)
                continue
            self._hand_out(ticket, held)
            if ticket.row.operation == NOTHING:
                self.turns.done(ticket, now)
                self.settle(Cancelled(ticket))
                continue
            self._in_flight += 1
            return ticket
        return None

    def _usable(self, ticket: Ticket, held: Held, now: float) -> bool:
        member = held.members.get(ticket.row.pid)
        if member is not None and member.permits(ticket.row.timeofday, now, self._zone):
            return True
        held.turn.more = True
        self.refill([ticket.turnkey])
        return False

    def _hand_out(self, ticket: Ticket, held: Held) -> None:
        held.charged = 0
        held.out.add(ticket.row.urlkey)
        if ticket.turnkey in self._reading:
            self._reading[ticket.turnkey].add(ticket.row.urlkey)
        if held.turn.more and len(held.turn.window) <= self._window_size() // READ_ON:
            self.refill([ticket.turnkey])

    def _window_size(self) -> int:
        """Return how many tickets may be read ahead for one turn now."""
        return max(1, min(self._limits.window, self._limits.tickets // max(1, len(self._held))))

    def _set_alarm(self, now: float) -> None:
        at = self.turns.wake_at()
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
        return self.turns.pause(held.turn, now)

    def space(self, turn: TurnPass | None, seconds: float) -> None:
        """Leave the site alone for so long after the fetch under way, as it asks (``Crawl-delay``)."""
        held = self._held.get(turn.turnkey) if turn is not None else None
        if held is not None and turn is not None and held.lease.token == turn.token:
            held.turn.spacing = seconds

    def fetch_ended(self, ticket: Ticket) -> int:
        """End a ticket's turn, whatever came of it; Scrapy's engine asks for the next one by itself.

        Returns the bytes that were charged for it.
        """
        self._in_flight -= 1
        held = self._holding(ticket)
        self.turns.done(ticket, self._now())
        self._rest_if_idle(ticket.turnkey)
        return held.charged if held is not None else 0

    def put_back(self, ticket: Ticket) -> None:
        """Return a ticket that was not used; its turn still has to end with ``fetch_ended``."""
        held = self._holding(ticket)
        if held is not None:
            held.out.discard(ticket.row.urlkey)
            if not held.leaving:
                self.turns.put_back(ticket, self._now())
            self.refill([ticket.turnkey])

    def delay(self, outcome: Delayed) -> None:
        """Put back the ticket of a fetch whose host failed, and note why and for how long."""
        self.put_back(outcome.ticket)
        held = self._holding(outcome.ticket)
        backoff = held.turn.backoff if held is not None else NO_BACKOFF
        self._settler.settle(replace(outcome, backoff=backoff)).addErrback(lambda _: None)

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

    def settle(self, outcome: Outcome) -> Deferred[Settled]:
        """Make an outcome durable."""
        return self._settler.settle(outcome).addBoth(self._settled, outcome)

    def _settled(self, result: Settled | Failure, outcome: Outcome) -> Settled | Failure:
        if self._held_up and self._settler.backlog < UNSETTLED:
            self._held_up = False
            self._wake()
        ticket = outcome.ticket
        held = self._holding(ticket)
        if held is None:
            return result
        held.out.discard(ticket.row.urlkey)
        if isinstance(result, Failure) or result.result != settling.STORED:
            held.turn.more = True
        if not held.turn.window:
            self.refill([ticket.turnkey])
        self._rest_if_idle(ticket.turnkey)
        return result

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
        looking = self._thread.run(self._look, self._myself(), self._drained(), known)
        looking.addCallbacks(self._looked, self._look_failed)
        looking.addBoth(lambda _: self._look_ended())

    def _myself(self) -> WorkerRow:
        """Return what others are to know of this worker."""
        now, me, rate = self._now(), self._identity, self._measure()
        return WorkerRow(
            me.owner,
            self._run,
            me.machineid,
            me.process,
            self._started,
            int(now) + int(self._limits.lease),
            self._limits.places,
            self._in_flight,
            len(self._held),
            int(rate),
            bool(self.everything.limit) and rate >= 0.9 * self.everything.limit,
            self._only or 0,
        )

    def _measure(self) -> float:
        """Return the bytes per second of late, over a poll at least: a body arrives in bursts."""
        now = self._now()
        if now - self._measured_at >= self._limits.poll:
            self._rate = self._transferred / (now - self._measured_at)
            self._transferred, self._measured_at = 0, now
        return self._rate

    def _drained(self) -> dict[str, int]:
        """Return what had arrived in the turns that are kept though they have no URLs left now."""
        return {key: held.arrivals for key, held in self._held.items() if not held.turn.window}

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
            self.turns.moved(step, self._now())
            self.refill(list(self._held))
            self._wake_all = True

    def _look(self, me: WorkerRow, drained: dict[str, int], known: dict[str, int] | None) -> News:
        with self._store.begin() as tx:
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
        return not self._lifesigns.is_dead(worker.owner, worker.expires, self._time.since_start())

    def _looked(self, news: News) -> None:
        self.failure, self._in_doubt, self._wake_all = "", False, False
        self._leased_until = news.leased_until - self._limits.lease * LEASE_MARGIN
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
        self.refill([*news.refilled, *(granted.lease.turnkey for granted in news.granted)])
        self._give_back(news.surplus)
        self._look_again |= len(news.granted) == LEASES_PER_LOOK
        self._wake()

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
            self.refill([held.lease.turnkey])

    def _removed(self, pids: Iterable[int]) -> None:
        for pid in pids:
            held = self._held[self._turn_of.pop(pid)]
            del held.members[pid]
            self.refill([held.lease.turnkey])

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
        self._unread.pop(turnkey, None)
        for pid in held.members if held is not None else ():
            self._turn_of.pop(pid, None)

    # --- giving back -----------------------------------------------------------------------------

    def _rest_if_idle(self, turnkey: str) -> None:
        """Give a turn back that has nothing to do for long."""
        held = self._held.get(turnkey)
        if held is None or not held.is_idle() or self._is_read(turnkey) or self.stopping:
            return
        now = self._now()
        if held.leaving:
            self._rest([held.at_rest(0.0)])
        elif held.turn.opens_at(now) - now >= REST:
            self._rest([held.at_rest(held.turn.look_at if not held.turn.window else 0.0)])

    def _is_read(self, turnkey: str) -> bool:
        return turnkey in self._reading or turnkey in self._unread

    def _give_back(self, surplus: int) -> None:
        """Leave turns to other workers: idle ones now, others when what is under way in them has ended."""
        surplus -= sum(held.leaving for held in self._held.values())
        idle = (held for key, held in self._held.items() if held.is_idle() and not self._is_read(key))
        resting = [held.at_rest(0.0) for held in islice(idle, max(0, surplus))]
        if resting:
            self._rest(resting)
        staying = [held for held in self._held.values() if not held.leaving]
        for held in staying[: max(0, surplus - len(resting))]:
            held.leaving = True
            self._unread.pop(held.lease.turnkey, None)
            self.turns.refill(held.lease.turnkey, (), self._now(), more=False)
            self._rest_if_idle(held.lease.turnkey)  # it may have waited for nothing but its window

    def _rest(self, leases: list[StoredTurn]) -> None:
        for lease in leases:
            self._forget(lease.turnkey)
        self._hand_back(leases)

    def _hand_back(self, leases: list[StoredTurn]) -> None:
        resting = self._thread.run(self._rest_now, leases)
        resting.addErrback(self._rest_failed, leases)

    def _rest_now(self, leases: list[StoredTurn]) -> None:
        now = self._now()
        with self._store.begin() as tx:
            for lease in leases:
                tx.rest_turn(lease if lease.not_before > now else replace(lease, not_before=0.0))

    def _rest_failed(self, failure: Failure, leases: list[StoredTurn]) -> None:
        self.failure = failure.getErrorMessage()
        _log.error("cannot give turns back now, trying again: %s", self.failure)
        if not self._ended:
            self._clock.callLater(self._limits.poll, self._hand_back, leases)

    # --- refilling windows -----------------------------------------------------------------------

    def touched(self, pid: int) -> None:
        """Note that rows of a provider's queue changed: read its window again, or take its turn."""
        turnkey = self._turn_of.get(pid)
        if turnkey is None:
            self.look()
        else:
            self._held[turnkey].turn.more = True
            self.refill([turnkey])

    def refill(self, turnkeys: Iterable[str]) -> None:
        """Read the windows of turns again, soon; each by one read at a time."""
        for turnkey in turnkeys:
            if turnkey in self._reading:
                self._again.add(turnkey)
            elif turnkey in self._held and self._held[turnkey].leaving:
                self._rest_if_idle(turnkey)
            elif turnkey in self._held and not self.stopping:
                self._unread[turnkey] = None
        self._read_on()

    def _read_on(self) -> None:
        """Read the next windows, when those before have been: other work of the thread comes in between."""
        while self._unread and not self._reading and not self._beginning:
            some = [(self._held[key], frozenset(self._held[key].out)) for key in self._next_unread()]
            reading = self._thread.run(self._read, some, self._window_size())
            reading.addCallback(self._filled)
            reading.addErrback(self._refill_failed, [held.lease.turnkey for held, _ in some])
            self._beginning = True  # in tests it may have ended by now
            reading.addBoth(lambda _: self._read_on())
            self._beginning = False

    def _next_unread(self) -> list[str]:
        turnkeys = list(islice(self._unread, WINDOWS_PER_READ))
        for turnkey in turnkeys:
            del self._unread[turnkey]
            self._reading[turnkey] = set()
        return turnkeys

    def _read(self, wanted: list[Wanted], limit: int) -> list[tuple[Held, Window]]:
        """Read windows, keeping nobody from writing unless rows that were set aside are due."""
        try:
            with self._store.read() as tx:
                return self._windows(tx, wanted, limit, bring_back=False)
        except RowsDue:
            with self._store.begin() as tx:
                return self._windows(tx, wanted, limit, bring_back=True)

    def _windows(
        self, tx: Tx, wanted: list[Wanted], limit: int, *, bring_back: bool
    ) -> list[tuple[Held, Window]]:
        read = partial(window_of, tx, now=self._now(), zone=self._zone, limit=limit, bring_back=bring_back)
        return [(held, read(held.lease, [*held.members.values()], out=out)) for held, out in wanted]

    def _filled(self, windows: list[tuple[Held, Window]]) -> None:
        now = self._now()
        for held, window in windows:
            turnkey = held.lease.turnkey
            taken = self._reading.pop(turnkey, set())
            if self._held.get(turnkey) is held and not held.leaving:
                held.arrivals = window.arrivals
                tickets = [one for one in window.tickets if not taken or not is_among(one.row, taken)]
                self.turns.refill(turnkey, tickets, now, more=window.more, look_at=window.look_at)
            if turnkey in self._again:
                self._again.discard(turnkey)
                self.refill([turnkey])
            self._rest_if_idle(turnkey)
        self._wake()

    def _refill_failed(self, failure: Failure, turnkeys: list[str]) -> None:
        self.failure = failure.getErrorMessage()
        _log.error("cannot read the queue now, trying again: %s", self.failure)
        for turnkey in turnkeys:
            self._reading.pop(turnkey, None)
        self._clock.callLater(1.0, self.refill, turnkeys)

    # --- what it is doing ------------------------------------------------------------------------

    def in_flight(self) -> int:
        """Return how many fetches are under way."""
        return self._in_flight
