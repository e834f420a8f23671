"""The Queue Manager (seed 003 section 6) of one crawl process.

Its *leases* take turns and give them back, its *window reader* keeps a bounded window of tickets of each in
memory, and its *dispatcher* hands out the next one in constant time. Everything durable is in the store;
killing the process loses nothing.
"""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from twisted.internet.defer import Deferred

from lcc_scrapy.db.job_watch import NO_JOB, Job
from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.bandwidth import Meter, Pace
from lcc_scrapy.domain.slots import Slots
from lcc_scrapy.domain.steady_clock import SteadyClock
from lcc_scrapy.domain.turn_limits import TurnLimits
from lcc_scrapy.domain.turns import Turns
from lcc_scrapy.queue.dispatcher import Dispatcher
from lcc_scrapy.queue.group_commit import GroupCommit
from lcc_scrapy.queue.heartbeat import Heartbeat
from lcc_scrapy.queue.held_turn import HeldTurn
from lcc_scrapy.queue.turn_leases import Identity, TurnLeases
from lcc_scrapy.queue.windows import Room, WindowReader

_log = logging.getLogger(__name__)


class QueueManager:
    """Turns and tickets of one worker; all methods run on the event loop.

    ``wake`` is called whenever ``next_ticket`` may have something to give; while ``short`` says so, it
    has nothing. ``now`` gives epoch seconds, ``steady`` the seconds of a clock that nobody moves. Without a
    ``heartbeat`` only looks renew the leases. ``longest`` tells the longest job of the thread of late,
    ``idle`` why no URL may be handed out now ("" = it may).
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
        limits: TurnLimits,
        wake: Callable[[], None],
        now: Callable[[], float] = time.time,
        steady: Callable[[], float] | None = None,
        only: int | None = None,
        short: Callable[[], bool] = lambda: False,
        heartbeat: Heartbeat | None = None,
        longest: Callable[[], Job] = lambda: NO_JOB,
        idle: Callable[[], str] = lambda: "",
        readers: StoreThread | None = None,
    ) -> None:
        steady_clock = SteadyClock(now, steady or now)
        slots, meter = Slots(limits.places, limits.paced), Meter(limits.poll, now())
        self.turns = Turns[HeldTurn](Pace(limits.bandwidth), limits.backoff)
        self.windows = WindowReader(
            store=store,
            thread=thread,
            readers=readers or thread,
            clock=clock,
            turns=self.turns,
            room=Room(limits.window, limits.tickets),
            zone=zone,
            now=steady_clock.now,
            filled=self._filled,
        )
        self.leases = TurnLeases(
            store=store,
            thread=thread,
            clock=clock,
            turns=self.turns,
            slots=slots,
            meter=meter,
            windows=self.windows,
            identity=identity,
            limits=limits,
            time=steady_clock,
            dead_owners=dead_owners,
            only=only,
            heartbeat=heartbeat,
            longest=longest,
            idle=idle,
            wake=wake,
        )
        self.dispatcher = dispatcher = Dispatcher(
            turns=self.turns,
            slots=slots,
            meter=meter,
            windows=self.windows,
            leases=self.leases,
            group_commit=group_commit,
            clock=clock,
            zone=zone,
            now=steady_clock.now,
            short=short,
            wake=wake,
        )
        self.start, self.look, self.touched = self.leases.start, self.leases.look, self.leases.touched
        self.next_ticket, self.in_flight = dispatcher.next_ticket, dispatcher.in_flight
        self.member, self.limit, self.charge = dispatcher.member, dispatcher.limit, dispatcher.charge
        self.charged, self.expect, self.space = dispatcher.charged, dispatcher.expect, dispatcher.space
        self.host_failed, self.host_answered = dispatcher.host_failed, dispatcher.host_answered
        self.is_failing = dispatcher.is_failing
        self.put_back, self.delay, self.host_noted = (
            dispatcher.put_back,
            dispatcher.delay,
            dispatcher.host_noted,
        )
        self.fetch_ended, self.settle = dispatcher.fetch_ended, dispatcher.settle

    def apply(self, limits: TurnLimits) -> None:
        """Go on with other limits; the lease and the slots stay as they are."""
        fixed = self.leases.limits
        self.leases.limits = replace(limits, lease=fixed.lease, places=fixed.places, paced=fixed.paced)
        self.turns.backoff = limits.backoff
        self.windows.room = Room(limits.window, limits.tickets)
        self.look()

    def begin_to_stop(self) -> None:
        """Hand out nothing more, and take no further turns."""
        self.leases.stopping = True

    def stop(self) -> Deferred[None]:
        """Hand out nothing more; wait for what is being settled, then give the leases back."""
        self.leases.stop()
        self.windows.stop()
        self.dispatcher.stop()
        idle = self.dispatcher.group_commit.when_idle()
        idle.addCallback(lambda _: self.leases.give_all_back())
        idle.addErrback(
            lambda failure: _log.warning("leases were not given back: %s", failure.getErrorMessage())
        )
        return idle

    def _filled(self, turns: Sequence[HeldTurn]) -> None:
        for turn in turns:
            self.leases.give_back_if_idle(turn)
        self.dispatcher.wake()
