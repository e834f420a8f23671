"""The leases of one worker: turns are taken from the store, renewed, and given back.

What one transaction does is in ``leases.py``; here is when.
"""

import logging
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from twisted.python.failure import Failure

from lcc_scrapy.db.job_watch import Job
from lcc_scrapy.db.records import IDLE_MAX, JOB_MAX, PROVIDERS_CHANGED, LongFetch, StoredTurn, WorkerRow
from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.bandwidth import Meter, shared_limit
from lcc_scrapy.domain.failure_detector import FailureDetector
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.queue import Ticket
from lcc_scrapy.domain.retries import Backoff
from lcc_scrapy.domain.slots import Fetch, Pacing, Slots
from lcc_scrapy.domain.steady_clock import SteadyClock
from lcc_scrapy.domain.turn import NEVER
from lcc_scrapy.domain.turn_limits import TurnLimits
from lcc_scrapy.domain.turn_states import Event
from lcc_scrapy.domain.turns import Turns
from lcc_scrapy.queue.heartbeat import Heartbeat
from lcc_scrapy.queue.held_turn import HeldTurn, TurnPass
from lcc_scrapy.queue.leases import (
    CHANGES_PER_LOOK,
    Granted,
    Member,
    News,
    look_around,
    tell_of_fetches,
)
from lcc_scrapy.queue.windows import WindowReader

_log = logging.getLogger(__name__)

LEASES_PER_LOOK = 200
FETCHES_PER_LOOK = 100
"""Fetches that take long and are told of at one look."""

RETURNS_AT_ONCE = 100
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
class Identity:
    """Who a worker is: the name under which it leases, the number of its machine, its process."""

    owner: str
    machineid: int = 0
    process: int = 0


class _Returned(NamedTuple):
    """A lease as it is given back, and the revision of providers that was known by then."""

    lease: StoredTurn
    seen: int


@dataclass(eq=False, kw_only=True)
class TurnLeases:
    """The turns that one worker holds; all methods run on the event loop.

    Every ``poll`` seconds, and whenever there is news, it *looks*: one transaction renews the leases, takes
    free turns and learns what changed. ``wake`` is called after each look.
    """

    store: Store
    thread: StoreThread
    clock: Clock
    turns: Turns[HeldTurn]
    slots: Slots
    meter: Meter
    windows: WindowReader
    identity: Identity
    limits: TurnLimits
    time: SteadyClock
    dead_owners: Callable[[], Collection[str]]
    only: int | None
    heartbeat: Heartbeat | None
    longest: Callable[[], Job]
    idle: Callable[[], str]
    wake: Callable[[], None]
    paused: bool = False
    stopping: bool = False

    _giving_back = _wanted_back = False
    _looking = _look_again = _in_doubt = _wake_all = _ended = False
    _revision = -1
    _leased_until = 0.0
    _gathering_until = NEVER
    _poll_timer: Any = None

    def __post_init__(self) -> None:
        """Begin with no turn."""
        limits = self.limits
        self._failure_detector = FailureDetector(max(limits.lease, POLLS_OF_A_LEASE * limits.poll))
        self._run = secrets.randbits(62)
        self._started = int(self.time.now())
        self._turn_of: dict[int, HeldTurn] = {}
        self._returning: list[_Returned] = []

    def start(self) -> None:
        """Begin to take turns; URLs are handed out when there are no more, or after ``GATHER`` seconds."""
        self._gathering_until = self.time.now() + GATHER
        self._poll()

    def stop(self) -> None:
        """Take and renew nothing more; ``give_all_back`` follows."""
        self.stopping = self._ended = True
        if self.heartbeat is not None:
            self.heartbeat.stop()
        if self._poll_timer is not None and self._poll_timer.active():
            self._poll_timer.cancel()

    def hold(self, now: float) -> bool:
        """Tell whether nobody else can have the turns of this worker."""
        return now < self._leased_until

    def may_fetch(self, now: float) -> bool:
        """Tell whether URLs may be handed out now."""
        return not self.stopping and not self.paused and self._gathering_until <= now < self._leased_until

    def of(self, turn: TurnPass | Ticket | None) -> HeldTurn | None:
        """Return the turn that a pass or ticket is for, None when its lease was lost."""
        held = self.turns.get(turn.turnkey) if turn is not None else None
        return held if held is not None and turn is not None and held.token == turn.token else None

    def touched(self, pid: int) -> None:
        """Note that rows of a provider's queue changed: read its window again, or take its turn."""
        turn = self._turn_of.get(pid)
        if turn is None:
            self._wanted_back = bool(self._returning)  # it may be one that is not given back yet
            self.look()
        else:
            self.windows.read_anew([turn])

    # --- looking into the store ------------------------------------------------------------------

    def look(self) -> None:
        """Look for turns to take, soon; several calls make one look."""
        if self._looking:
            self._look_again = True
            return
        if self._ended:
            return
        self._looking = True
        known = {turn.key: turn.token for turn in self.turns} if self._in_doubt else None
        told = self._tell_of_fetches()
        looking = self.thread.run(self._look, self._myself(), self._drained(), known, told)
        looking.addCallbacks(self._looked, self._look_failed, callbackArgs=(told[1],))
        looking.addBoth(lambda _: self._look_ended())

    def _myself(self) -> WorkerRow:
        """Return what others are to know of this worker."""
        now, me, limits, job = self.time.now(), self.identity, self.limits, self.longest()
        rate, common = self.meter.measure(now), self.turns.everything.limit
        return WorkerRow(
            me.owner,
            self._run,
            me.machineid,
            me.process,
            self._started,
            int(now) + int(limits.lease),
            limits.places,
            self.slots.count(Pacing.NONE, Pacing.COMMON),
            len(self.turns),
            int(rate),
            bool(common) and rate >= 0.9 * common,
            self.only or 0,
            self.slots.count(Pacing.OWN),
            int(job.seconds * 1000),
            job.name[:JOB_MAX],
            self.idle()[:IDLE_MAX],
        )

    def _tell_of_fetches(self) -> tuple[list[LongFetch], frozenset[str]]:
        """Return what ``lcc explain`` is to know: fetches that take long, and turns whose fetches ended."""
        now = self.time.now()
        telling = self.slots.to_tell(now, FETCHES_PER_LOOK)
        for fetch in telling:
            fetch.told = now
        return [_long(fetch, self.identity.owner) for fetch in telling], self.slots.ended()

    def _drained(self) -> dict[str, int]:
        """Return what had arrived in the turns that are kept though they have no URLs left now."""
        return {
            turn.key: turn.arrivals for turn in self.turns if not turn.window and not turn.is_to_be_read()
        }

    def _look_ended(self) -> None:
        self._looking = False
        if self._look_again:
            self._look_again = False
            self.look()

    def _poll(self) -> None:
        self._follow_the_clock()
        self.look()
        self._poll_timer = self.clock.callLater(self.limits.poll, self._poll)

    def _follow_the_clock(self) -> None:
        """Let hours be those of the clock, however it was moved, and everything else go on as it was."""
        step = self.time.follow()
        if step:
            _log.warning("the clock was moved by %+.0f s", step)
            self._leased_until += step
            self.meter.since += step
            self.slots.moved(step)
            self.turns.moved(step, self.time.now())
            self.windows.read_anew(list(self.turns))
            self._wake_all = True

    def _look(
        self,
        me: WorkerRow,
        drained: dict[str, int],
        known: dict[str, int] | None,
        told: tuple[list[LongFetch], frozenset[str]],
    ) -> News:
        me = replace(me, expires=int(self.time.now()) + int(self.limits.lease))  # it may have waited for long
        with self.store.begin() as tx:
            tell_of_fetches(tx, me.owner, *told)
            if self._wake_all:
                tx.wake_turns()  # those that wait for an hour have been told another moment
            return look_around(
                tx,
                me,
                self.time.now(),
                dead=self.dead_owners(),
                limit=0 if self.stopping else LEASES_PER_LOOK,
                only=self.only,
                seen=self._revision,
                drained=drained,
                bandwidth=self.limits.bandwidth,
                known=known,
                lives=self._lives,
            )

    def _lives(self, worker: WorkerRow) -> bool:
        """Tell whether another worker gives signs of life; its clock may show another time than ours."""
        return not self._failure_detector.is_dead(worker.owner, worker.expires, self.time.since_start())

    def _looked(self, news: News, ended: frozenset[str]) -> None:
        self.slots.forget(ended)
        self._in_doubt = self._wake_all = False
        self._renewed(news.leased_until)
        if self.heartbeat is not None:
            self.heartbeat.begin(self.identity.owner, self._run, self._renewed, self._unregistered)
        if news.lost and len(self.turns):
            _log.warning("%d turns were taken over by other workers", len(self.turns))
            for turn in list(self.turns):
                self._forget(turn, Event.LOSE)
        self.turns.everything.change(self.time.now(), news.bandwidth)
        self.paused = news.paused
        granted = [self._take(one) for one in news.granted]
        for member in news.changed:
            self._changed(member, news.hosts.get(member.provider.turnkey, {}))
        if news.existing is not None:
            self._removed(self._turn_of.keys() - news.existing)
        self.turns.weigh()
        self._revision = news.revision
        self.windows.expected = news.share
        self.windows.read_anew([*self.turns.those(news.refilled), *granted])
        self._give_up(news.surplus)
        self._look_again |= len(granted) == LEASES_PER_LOOK or len(news.changed) == CHANGES_PER_LOOK
        if not self._look_again or self.time.now() >= self._gathering_until:
            self._gathering_until = 0.0
        self.wake()

    def _renewed(self, expires: int) -> None:
        self._leased_until = expires - self.limits.lease * LEASE_MARGIN

    def _unregistered(self) -> None:
        """Go on with nothing that was leased: other workers may have it. The next look registers again."""
        self._leased_until = 0.0
        self.look()

    def _look_failed(self, failure: Failure) -> None:
        """Try again; what was leased may have been committed, though nobody heard of it."""
        self._in_doubt = True
        _log.error("cannot look into the queue now, trying again: %s", failure.getErrorMessage())

    # --- turns and their members -----------------------------------------------------------------

    def _take(self, granted: Granted) -> HeldTurn:
        turn = HeldTurn.of(granted.lease, granted.hosts)
        self.turns.add(turn)
        for member in granted.members:
            self._join(turn, member)
        self._agree(turn)
        return turn

    def _changed(self, member: Member, hosts: Mapping[str, Backoff]) -> None:
        """Take note of a provider's new limits, roots or state, and of hosts that are to be asked now."""
        turn = self.turns.get(member.provider.turnkey)
        if turn is not None and self.only in {None, member.provider.pid}:
            self._join(turn, member)
            turn.hurry({host: backoff.not_before for host, backoff in hosts.items()})
            self._agree(turn)
            self.windows.read_anew([turn])

    def _removed(self, pids: Iterable[int]) -> None:
        for pid in pids:
            turn = self._turn_of.pop(pid)
            del turn.members[pid]
            self.windows.read_anew([turn])

    def _join(self, turn: HeldTurn, member: Member) -> None:
        turn.members[member.provider.pid] = member
        self._turn_of[member.provider.pid] = turn

    def _agree(self, turn: HeldTurn) -> None:
        """Give a turn the limits and the priority that its active members have together."""
        active = [one.provider for one in turn.members.values() if one.provider.state == State.ACTIVE]
        turn.priority = max((one.priority for one in active), default=0)
        turn.pace.change(self.time.now(), shared_limit(one.bandwidth for one in active))
        turn.at_once = min((one.atonce for one in active), default=1)
        hosts = (one.roothosts for one in turn.members.values() if one.provider.state == State.ACTIVE)
        turn.roothosts = frozenset().union(*hosts)
        turn.weigh_hosts()
        self.turns.requeue(turn, self.time.now())

    def _forget(self, turn: HeldTurn, event: Event) -> bool:
        """Let a turn go; False if it has to stay."""
        if not turn.state.happens(event):
            return False
        self.turns.drop(turn.key)
        self.windows.forget(turn)
        for pid in turn.members:
            self._turn_of.pop(pid, None)
        return True

    # --- giving back -----------------------------------------------------------------------------

    def give_back_if_idle(self, turn: HeldTurn) -> None:
        """Give a turn back that is to leave, or has nothing to do for long, if nothing is under way in it."""
        now = self.time.now()
        if turn.is_leaving() or (not self.stopping and turn.opens_at(now) - now >= REST):
            look_at = 0.0 if turn.is_leaving() or turn.window else turn.look_at
            returned = turn.given_back(look_at)
            if self._forget(turn, Event.GIVE_BACK):
                self._returning.append(_Returned(returned, self._revision))
                self._give_back()

    def _give_up(self, surplus: int) -> None:
        """Leave turns to other workers: idle ones now, others when what is under way in them has ended."""
        surplus -= sum(turn.is_leaving() for turn in self.turns)
        staying = [turn for turn in self.turns if not turn.is_leaving()]
        for turn in sorted(staying, key=lambda turn: not turn.is_idle())[: max(0, surplus)]:
            turn.state.happens(Event.LEAVE)
            self.windows.forget(turn)
            self.turns.refill(turn.key, (), self.time.now(), more=False)
            self.give_back_if_idle(turn)

    def _give_back(self) -> None:
        """Give turns back, one portion after the other; those that come meanwhile go together."""
        if self._giving_back or not self._returning or self._ended:
            return
        self._giving_back = True
        returned, self._returning = self._returning[:RETURNS_AT_ONCE], self._returning[RETURNS_AT_ONCE:]
        giving = self.thread.run(self._give_back_now, returned)
        giving.addCallbacks(self._given_back, self._giving_back_failed, errbackArgs=(returned,))

    def _given_back(self, any_has_news: bool) -> None:
        self._giving_back = False
        self._wanted_back |= any_has_news
        if self._returning:
            self._give_back()
        elif self._wanted_back:
            self._wanted_back = False
            self.look()

    def _give_back_now(self, returned: list[_Returned]) -> bool:
        with self.store.begin() as tx:
            return self._write_back(tx, returned)

    def _write_back(self, tx: Tx, returned: list[_Returned]) -> bool:
        """Rest turns; tells whether any has news of which this worker did not hear, and waits no more."""
        now = self.time.now()
        leases = [one.lease for one in returned]
        tx.rest_turns([one if one.not_before > now else replace(one, not_before=0.0) for one in leases])
        arrived = tx.arrivals(one.turnkey for one in leases)
        changed = set[str]()
        seen = min((one.seen for one in returned), default=0)
        if tx.peek(PROVIDERS_CHANGED) > seen:  # only now, when nobody else can reach these turns
            members = tx.members(one.turnkey for one in leases)
            changed = {one.turnkey for one in members if one.revision > seen}
            for turnkey in sorted(changed):
                tx.change_turn(turnkey, {"look_at": 0.0})
        return bool(changed) or any(arrived.get(one.turnkey, one.arrivals) != one.arrivals for one in leases)

    def _giving_back_failed(self, failure: Failure, returned: list[_Returned]) -> None:
        _log.error("cannot give turns back now, trying again: %s", failure.getErrorMessage())
        self._giving_back = False
        self._returning += returned
        self.clock.callLater(self.limits.poll, self._give_back)

    def give_all_back(self) -> Any:
        """Give all leases back, and tell what outlasts this worker; returns a Deferred."""
        now = self.time.now()
        delayed = [
            _Returned(turn.given_back(now), self._revision) for turn in self.turns if turn.free_at() > now
        ]
        return self.thread.run(self._leave, [*self._returning, *delayed])

    def _leave(self, returned: list[_Returned]) -> None:
        with self.store.begin() as tx:
            self._write_back(tx, returned)
            tx.free_turns_of(self.identity.owner)
            tx.drop_worker(self.identity.owner)


def _long(fetch: Fetch, owner: str) -> LongFetch:
    turnkey, token, urlkey = fetch.key
    begun, since = int(fetch.begun), int(fetch.paced_since)
    return LongFetch(turnkey, owner, token, urlkey, begun, since, fetch.transferred, fetch.size)
