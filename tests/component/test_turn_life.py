"""The life of turns, in any order of events: several workers take them, read, fetch, settle, leave, lose them.

Workers freeze, lose their database, are killed and start again. ``LCC_TURN_LIVES`` sets how many lives are
tried (20); a number of one's own also makes them other ones each time.
"""

import os
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from same_thread import ByHand, SameThread
from test_queue_manager import House
from twisted.internet.defer import fail
from twisted.internet.task import Clock

from lcc_scrapy.domain.errors import LeaseLost, StoreUnavailable
from lcc_scrapy.domain.queue import FETCH, Delayed, Ticket
from lcc_scrapy.domain.turn_limits import TurnLimits
from lcc_scrapy.domain.turn_states import State
from lcc_scrapy.queue.group_commit import GroupCommit
from lcc_scrapy.queue.held_turn import TurnPass
from lcc_scrapy.queue.queue_manager import QueueManager
from lcc_scrapy.queue.turn_leases import Identity

LIVES = int(os.environ.get("LCC_TURN_LIVES", "20"))
OWNERS = ("1/0", "1/1", "2/0")
PIDS = (1, 2, 3, 4, 5)
"""The last two are a group: one turn."""

PERMITTED = {"3": 3, "farm": 2}
"""How many fetches some turns may have at a time; in the group, one member permits 4."""

NAMES = [f"n{number:02d}" for number in range(12)]
some_names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True)


class Unreliable(SameThread):
    """A thread whose database may be away."""

    away = False

    def run(self, job: Any, *args: Any) -> Any:
        return fail(StoreUnavailable("away")) if self.away else super().run(job, *args)


class LateUnreliable(ByHand):
    """The same, where jobs are done when it pleases them."""

    away = False

    def run(self, job: Any, *args: Any) -> Any:
        return super().run(self._unless_away, job, *args)

    def _unless_away(self, job: Any, *args: Any) -> Any:
        if self.away:
            raise StoreUnavailable("away")
        return job(*args)


class Process:
    """A worker with timers of its own, which stand still while it is frozen."""

    def __init__(self, house: House, owner: str, dead: set[str], *, late: bool) -> None:
        self.owner = owner
        self.clock = Clock()
        self.clock.rightNow = house.clock.seconds()
        self.thread: Any = Unreliable()
        self.reads: Any = LateUnreliable() if late else Unreliable()
        self.commits: Any = ByHand()
        self.frozen = False
        self.flying: list[Ticket] = []
        self.unsettled: set[tuple[int, bytes]] = set()
        self.manager = QueueManager(
            house.store,
            self.thread,
            GroupCommit(self.commits, self.clock, lambda outcomes: house.commit(owner, outcomes)),
            self.clock,
            identity=Identity(owner),
            dead_owners=lambda: dead,
            zone=ZoneInfo("UTC"),
            limits=TurnLimits(window=3, poll=10.0),
            wake=lambda: None,
            now=house.clock.seconds,
            steady=house.clock.seconds,
            readers=self.reads,
        )
        self.manager.start()

    def catch_up(self, now: float) -> None:
        """Let its timers fire up to now, and cut off what may not go on."""
        self.clock.advance(now - self.clock.seconds())
        for ticket in list(self.flying):
            if not self.may_go_on(ticket):
                self.end(ticket)
                self.manager.put_back(ticket)
                self.manager.fetch_ended(ticket)

    def may_go_on(self, ticket: Ticket) -> bool:
        try:
            self.manager.charge(TurnPass.of(ticket), 1)
        except LeaseLost:
            return False
        return True

    def end(self, ticket: Ticket) -> None:
        self.flying.remove(ticket)
        self.unsettled.discard((ticket.token, ticket.row.urlkey))

    def set_away(self, *, away: bool) -> None:
        self.thread.away = self.reads.away = away

    def work_off(self) -> None:
        """Do what waits in its threads."""
        while self.commits.work_off() or (isinstance(self.reads, ByHand) and self.reads.work_off()):
            pass


class Life(RuleBasedStateMachine):
    """Windows are read at once: what is handed out is the first of its provider that may be fetched."""

    late = False

    @initialize()
    def begin(self) -> None:
        self.house = House()
        self.house.manager.leases.stop()  # it has workers of its own here
        self.dead: set[str] = set()
        self.pushed: set[tuple[int, str]] = set()
        self.failed: set[tuple[int, str]] = set()
        self.workers: dict[str, Process] = {}
        for pid in PIDS:
            self.house.provider(
                pid, turngroup="farm" if pid in PIDS[-2:] else "", atonce={3: 3, 4: 4, 5: 2}.get(pid, 1)
            )
        self.start(OWNERS[0])

    def start(self, owner: str) -> None:
        self.dead.discard(owner)
        self.workers[owner] = Process(self.house, owner, self.dead, late=self.late)

    def awake(self) -> list[Process]:
        return [worker for worker in self.workers.values() if not worker.frozen]

    def one_of(self, workers: list[Process], data: st.DataObject) -> Process:
        return data.draw(st.sampled_from(sorted(workers, key=lambda one: one.owner)), label="worker")

    def a_fetch(self, data: st.DataObject) -> tuple[Process, Ticket]:
        fetches = [(worker, ticket) for worker in self.awake() for ticket in worker.flying]
        return fetches[data.draw(st.integers(0, len(fetches) - 1), label="fetch")]

    def is_kept_out(self, worker: Process, ticket: Ticket) -> bool:
        """Tell whether URLs of its turn wait for their hosts, or for it to be durable that those answered."""
        turn = worker.manager.turns.get(ticket.turnkey)
        assert turn is not None
        return bool(turn.failing() or turn.judged or turn.out - {key for _, key in worker.unsettled})

    def fly(self, worker: Process) -> bool:
        """Let a worker begin a fetch, if there is one; nobody else may be at the same provider."""
        ticket = worker.manager.next_ticket()
        if ticket is None:
            return False
        for other in self.awake():
            others = [one for one in other.flying if one.turnkey == ticket.turnkey and other.may_go_on(one)]
            most = PERMITTED.get(ticket.turnkey, 1) - 1 if other is worker else 0
            assert len(others) <= most, "too many fetches at a time"
        known = (ticket.token, ticket.row.urlkey)
        assert known not in worker.unsettled, "handed out twice"
        first = self.first_of(ticket, worker)
        if not self.late and first is not None and not self.is_kept_out(worker, ticket):
            assert (ticket.row.psetid, ticket.row.position) <= first, "out of order"
        worker.flying.append(ticket)
        worker.unsettled.add(known)
        return True

    def first_of(self, ticket: Ticket, worker: Process) -> tuple[int, int] | None:
        """Return the place of the first URL of a ticket's provider that may be fetched."""
        out = {key for token, key in worker.unsettled if token == ticket.token}
        with self.house.store.read() as tx:
            rows = tx.queued_of(ticket.row.pid, 0, 1000)
        now = self.house.clock.seconds()
        ready = (row for row in rows if row.operation == FETCH and row.not_before <= now)
        return min(((row.psetid, row.position) for row in ready if row.urlkey not in out), default=None)

    # --- what happens ----------------------------------------------------------------------------

    @rule(pid=st.sampled_from(PIDS), found=some_names)
    def a_set_arrives(self, pid: int, found: list[str]) -> None:
        self.house.push(pid, *found, elsewhere=True)
        self.pushed |= {(pid, name) for name in found}
        for worker in self.awake():
            worker.manager.touched(pid)

    @rule(data=st.data())
    def a_url_is_handed_out(self, data: st.DataObject) -> None:
        if awake := self.awake():
            self.fly(self.one_of(awake, data))

    @precondition(lambda self: any(worker.flying for worker in self.awake()))
    @rule(data=st.data())
    def its_host_answers_and_all_that_may_are_handed_out(self, data: st.DataObject) -> None:
        """Where several are permitted, that is when they begin."""
        worker, ticket = self.a_fetch(data)
        worker.flying.remove(ticket)
        self.fetched(worker, ticket)
        while self.fly(worker):
            pass

    @precondition(lambda self: any(worker.flying for worker in self.awake()))
    @rule(data=st.data(), code=st.sampled_from([0, 0, 0, 500]))
    def a_fetch_ends(self, data: st.DataObject, code: int) -> None:
        worker, ticket = self.a_fetch(data)
        worker.flying.remove(ticket)
        if code:
            self.failed.add((ticket.row.pid, ticket.row.furl.rsplit("/", 1)[1]))
        self.fetched(worker, ticket, code)

    def fetched(self, worker: Process, ticket: Ticket, code: int = 0) -> None:
        real, self.house.manager = self.house.manager, worker.manager
        worker.manager.host_answered(ticket)
        self.house.finish(ticket, code=code)
        self.house.manager = real

    @precondition(lambda self: any(worker.flying for worker in self.awake()))
    @rule(data=st.data(), host_fails=st.booleans())
    def a_ticket_is_not_used(self, data: st.DataObject, host_fails: bool) -> None:
        worker, ticket = self.a_fetch(data)
        worker.end(ticket)
        if host_fails:
            worker.manager.host_failed(ticket)
            worker.manager.delay(Delayed(ticket, 503, "", int(self.house.clock.seconds())))
        else:
            worker.manager.put_back(ticket)
        worker.manager.fetch_ended(ticket)

    @rule(data=st.data())
    def outcomes_become_durable(self, data: st.DataObject) -> None:
        if awake := self.awake():
            worker = self.one_of(awake, data)
            worker.commits.work_off()
            worker.unsettled = {(one.token, one.row.urlkey) for one in worker.flying}

    @rule(seconds=st.sampled_from([1, 10, 60, 120]))
    def time_passes(self, seconds: int) -> None:
        for _ in range(max(1, seconds // 10)):
            self.house.clock.advance(min(seconds, 10))
            for worker in self.awake():
                worker.catch_up(self.house.clock.seconds())

    @precondition(lambda self: len(self.workers) < len(OWNERS))
    @rule()
    def a_worker_comes(self) -> None:
        """Others have to leave turns to it. It may be one that was killed."""
        self.start(next(owner for owner in OWNERS if owner not in self.workers))

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def a_worker_is_killed(self, data: st.DataObject) -> None:
        worker = self.one_of(list(self.workers.values()), data)
        del self.workers[worker.owner]
        self.dead.add(worker.owner)

    @precondition(lambda self: self.awake())
    @rule(data=st.data())
    def a_worker_stops(self, data: st.DataObject) -> None:
        worker = self.one_of(self.awake(), data)
        for ticket in list(worker.flying):
            worker.end(ticket)
            worker.manager.put_back(ticket)
            worker.manager.fetch_ended(ticket)
        worker.set_away(away=False)
        worker.manager.stop()
        worker.work_off()
        worker.clock.advance(1000)
        assert not worker.clock.getDelayedCalls(), "nor does it begin anything again"
        with self.house.store.read() as tx:
            assert worker.owner not in {row.owner for row in tx.workers()}
        del self.workers[worker.owner]

    @precondition(lambda self: self.awake())
    @rule(data=st.data())
    def a_worker_freezes(self, data: st.DataObject) -> None:
        self.one_of(self.awake(), data).frozen = True

    @precondition(lambda self: len(self.awake()) < len(self.workers))
    @rule(data=st.data())
    def a_worker_goes_on(self, data: st.DataObject) -> None:
        """What was to be heard of the queue meanwhile, its own intake tells it now."""
        worker = self.one_of([one for one in self.workers.values() if one.frozen], data)
        worker.frozen = False
        worker.catch_up(self.house.clock.seconds())
        for pid in PIDS:
            worker.manager.touched(pid)

    # --- what always holds -----------------------------------------------------------------------

    @invariant()
    def every_turn_stands_where_its_tables_say(self) -> None:
        for worker in self.workers.values() if hasattr(self, "workers") else ():
            for turn in worker.manager.turns:
                assert (turn.state.fetches is State.FETCHING) is bool(turn.fetching)
                assert turn.is_idle() is not bool(turn.fetching or turn.out or turn.judged)
                assert not (turn.is_leaving() and turn.is_idle()), "it has left nothing under way, and stays"
                assert not (turn.is_leaving() and turn.window), "it would hand out more"

    def teardown(self) -> None:
        """Nothing is lost: a worker that is left alone fetches all that was pushed."""
        if not hasattr(self, "house"):
            return
        for worker in list(self.workers.values()):
            worker.frozen = False
            worker.set_away(away=False)
        if not self.workers:
            self.start(OWNERS[0])
        for _ in range(400):
            self.house.clock.advance(10)
            for worker in self.awake():
                worker.catch_up(self.house.clock.seconds())
                worker.work_off()
                worker.unsettled = {(one.token, one.row.urlkey) for one in worker.flying}
                while worker.flying or self.fly(worker):
                    self.finish(worker, worker.flying.pop())
                worker.work_off()
            if self.is_all_done():
                return
        raise AssertionError(f"left behind: {self.left()}")

    def finish(self, worker: Process, ticket: Ticket) -> None:
        self.fetched(worker, ticket)
        worker.work_off()
        worker.unsettled.clear()

    def left(self) -> list[str]:
        with self.house.store.read() as tx:
            return [row.furl for pid in PIDS for row in tx.queued_of(pid, 0, 1000)]

    def is_all_done(self) -> bool:
        if self.left():
            return False
        with self.house.store.read() as tx:
            stored = {
                (row.pid, row.furl.rsplit("/", 1)[1]) for pid in PIDS for row in tx.cached_of(pid, b"", 1000)
            }
        assert self.pushed - self.failed <= stored
        return True


class LateLife(Life):
    """Windows are read late, and a database may be away: nothing is lost, and nothing in flight twice."""

    late = True

    @rule(data=st.data(), count=st.integers(1, 2))
    def windows_are_read(self, data: st.DataObject, count: int) -> None:
        if awake := self.awake():
            self.one_of(awake, data).reads.work_off(count)

    @rule(data=st.data())
    def windows_cannot_be_read(self, data: st.DataObject) -> None:
        if awake := self.awake():
            worker = self.one_of(awake, data)
            worker.set_away(away=True)
            worker.reads.work_off()
            worker.set_away(away=False)

    @precondition(lambda self: len(self.awake()) > 1)
    @rule(data=st.data())
    def a_worker_cannot_renew_its_leases(self, data: st.DataObject) -> None:
        """Others take its turns over, and fetch."""
        worker = self.one_of(self.awake(), data)
        worker.set_away(away=True)
        for _ in range(12):
            self.time_passes(10)
            for other in self.awake():
                if other is not worker:
                    other.work_off()
                    self.fly(other)
        worker.set_away(away=False)

    @rule(data=st.data(), away=st.booleans())
    def a_database_goes_or_comes(self, data: st.DataObject, away: bool) -> None:
        if awake := self.awake():
            self.one_of(awake, data).set_away(away=away)


def live(life: type[Life]) -> None:
    run_state_machine_as_test(
        life,
        settings=settings(
            max_examples=LIVES,
            stateful_step_count=50,
            deadline=None,
            derandomize="LCC_TURN_LIVES" not in os.environ,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_turns_keep_the_order_one_fetch_at_a_time_and_every_url_in_any_order_of_events() -> None:
    live(Life)


def test_the_same_holds_however_late_windows_are_read_and_while_a_database_is_away() -> None:
    live(LateLife)
