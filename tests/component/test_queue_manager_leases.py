"""Leases of the Queue Manager: what a worker keeps, gives back, loses, and tells when it does."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from same_thread import ByHand
from test_queue_manager import MONDAY_NOON, POLICY, House, charged

from lcc_scrapy.db.records import WorkerRow
from lcc_scrapy.domain.entries import Operation, UrlEntry, urlkey
from lcc_scrapy.domain.errors import LeaseLost, StoreUnavailable
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.queue import Delayed, Failed, Place
from lcc_scrapy.domain.slots import Pacing
from lcc_scrapy.domain.timeslots import parse_mask
from lcc_scrapy.domain.turn_limits import TurnLimits
from lcc_scrapy.domain.turn_states import Event
from lcc_scrapy.providers import registration
from lcc_scrapy.providers.groups import regroup
from lcc_scrapy.queue import turn_leases
from lcc_scrapy.queue.group_commit import GroupCommit
from lcc_scrapy.queue.held_turn import TurnPass
from lcc_scrapy.queue.queue_manager import QueueManager
from lcc_scrapy.queue.turn_leases import LEASE_MARGIN, Identity
from lcc_scrapy.queue.unit_of_work import UnitOfWork


@pytest.fixture
def house() -> House:
    return House()


def fetching(house: House, *names: str, **values: Any) -> TurnPass:
    """Let one provider push some URLs, and begin the fetch of the first."""
    house.provider(1, **values)
    house.manager.start()
    house.push(1, *names)
    assert house.next() == names[0]
    assert house.ticket is not None
    return TurnPass.of(house.ticket)


# --- which leases hold ---------------------------------------------------------------------------------


def test_no_byte_is_charged_once_the_lease_has_all_but_ended(house: House) -> None:
    turn = fetching(house, *"ab")
    house.manager.leases._poll_timer.cancel()  # its database does not answer any more
    house.clock.advance(60 * (1 - LEASE_MARGIN) - 0.1)
    assert house.manager.charge(turn, 10) == 0
    house.clock.advance(0.1)
    with pytest.raises(LeaseLost):
        house.manager.charge(turn, 10)


def test_nothing_is_handed_out_once_the_lease_has_all_but_ended(house: House) -> None:
    fetching(house, *"abc")
    house.finish()
    house.manager.leases._poll_timer.cancel()
    house.clock.advance(60 * (1 - LEASE_MARGIN) - 0.1)
    assert house.next() == "b"
    house.finish()
    house.clock.advance(0.1)
    assert house.next() is None


@pytest.mark.parametrize("other", [{"token": 99}, {"turnkey": "unknown"}])
def test_no_byte_is_charged_to_a_turn_that_is_not_ours(house: House, other: dict[str, Any]) -> None:
    turn = fetching(house, *"ab")
    with pytest.raises(LeaseLost):
        house.manager.charge(replace(turn, **other), 10)
    assert house.manager.charged(house.ticket) == 0


def test_a_lease_is_given_back_when_the_worker_stops_and_nothing_runs_any_more(house: House) -> None:
    fetching(house, *"ab")
    beating = SimpleNamespace(stopped=False, begin=lambda *_: None)
    beating.stop = lambda: setattr(beating, "stopped", True)
    house.manager.leases.heartbeat = beating
    house.finish()
    house.push(1, "c")
    house.manager.stop()
    assert beating.stopped
    assert house.next() is None
    with house.store.read() as tx:
        assert (tx.workers(), tx.turn("1").owner) == ([], "")
    assert not house.clock.getDelayedCalls()
    house.manager.look()
    house.clock.advance(10)
    with house.store.read() as tx:
        assert tx.workers() == [], "it does not register again"


def test_a_worker_that_is_not_registered_any_more_begins_nothing_until_it_is(house: House) -> None:
    fetching(house, *"ab")
    house.finish()
    house.thread = house.manager.leases.thread = house.manager.windows.readers = ByHand()
    house.manager.leases._unregistered()
    assert house.next() is None
    assert len(house.thread.jobs) == 1, "it looks at once"
    house.thread.work_off()
    assert house.next() == "b"


def test_a_worker_that_is_stopping_takes_no_further_turns(house: House) -> None:
    fetching(house, *"ab")
    house.manager.begin_to_stop()  # as when the process was asked to stop
    house.provider(2)
    house.push(2, "x")
    house.clock.advance(4)
    assert [turn.key for turn in house.manager.turns] == ["1"]


def test_a_clock_that_is_moved_forwards_ends_no_lease(house: House) -> None:
    turn = fetching(house, *"ab")
    by_hand = house.manager.leases.thread = ByHand()
    house.moved = 3600
    house.clock.advance(2)
    assert by_hand.jobs, "the look that renews it has not been done yet"
    assert house.manager.charge(turn, 10) == 0


def test_a_clock_that_is_moved_leaves_the_rate_as_it_was(house: House) -> None:
    house.manager.start()
    house.manager.charge(None, 4000)
    house.moved = 3600
    house.clock.advance(2)
    with house.store.read() as tx:
        assert tx.workers()[0].rate == 2000


def test_hours_are_read_again_when_the_clock_is_moved(house: House) -> None:
    fetching(house, "a")
    house.push(1, "night", timeofday=parse_mask("22-23"))
    house.push(1, "late", timeofday=parse_mask("13-14"))
    house.moved = 10 * 3600
    house.clock.advance(2)
    house.finish()
    assert house.fetch_all() == ["night"]


# --- what is lost -----------------------------------------------------------------------------------------


def test_what_is_asked_of_a_turn_that_was_lost_changes_nothing(house: House) -> None:
    turn = fetching(house, *"ab")
    lost = house.ticket
    house.worker("1/1", dead={"1/0"}).start()
    house.clock.advance(2.1)
    manager = house.manager
    assert manager.member(lost) is None
    assert (manager.charged(lost), manager.host_failed(lost), manager.limit(turn)) == (0, 0.0, 0)
    manager.host_answered(lost)
    manager.put_back(lost)
    manager.space(turn, 10)
    manager.space(None, 10)
    assert manager.expect(turn, 1000) == 0.0
    assert manager.fetch_ended(lost) == 0
    assert len(manager.turns) == 0


def test_a_turn_that_was_taken_again_is_not_touched_by_tickets_of_its_earlier_lease(house: House) -> None:
    fetching(house, *"ab")
    late = house.ticket
    with house.store.begin() as tx:
        tx.free_turns_of("1/0")
        tx.drop_worker("1/0")
    house.clock.advance(2)
    house.clock.advance(2)
    assert house.next() == "a"
    assert (house.ticket.turnkey, house.ticket.token > late.token) == ("1", True)
    charged(house, 500)
    assert (house.manager.charged(late), house.manager.charged(house.ticket)) == (0, 500)
    assert house.manager.host_failed(late) == 0.0
    assert house.manager.member(late) is None
    house.manager.put_back(late)
    house.finish()
    assert house.fetch_all() == ["b"]


# --- what is charged, and to whom -------------------------------------------------------------------------


def test_every_fetch_is_told_its_own_bytes_only(house: House) -> None:
    fetching(house, *"ab")
    charged(house, 100)
    charged(house, 20)
    assert house.manager.charged(house.ticket) == 120
    assert house.manager.fetch_ended(house.ticket) == 120
    house.manager.settle(Failed(house.ticket, 404, "", int(MONDAY_NOON), final=True))
    assert house.next() == "b"
    assert house.manager.charged(house.ticket) == 0


def test_the_limit_of_a_fetch_is_the_smaller_one_of_its_turn_and_of_all() -> None:
    house = House(bandwidth=1000)
    turn = fetching(house, "a", bandwidth=300)
    assert (house.manager.limit(turn), house.manager.limit(None)) == (300, 1000)


def test_who_has_not_to_pause_keeps_its_place() -> None:
    house = House(places=1)
    turn = fetching(house, "a", bandwidth=300)
    house.provider(2)
    house.push(2, "b")
    rings = house.rings
    assert house.manager.charge(turn, 0) == 0
    assert house.rings == rings
    assert house.next() is None


# --- hosts that fail, and answer again --------------------------------------------------------------------


def test_a_host_that_answered_has_its_failures_forgotten(house: House) -> None:
    fetching(house, *"ab")
    assert house.manager.host_failed(house.ticket) == 0
    house.clock.advance(5)
    assert house.manager.host_failed(house.ticket) == 5
    house.clock.advance(55)
    house.manager.host_answered(house.ticket)
    house.clock.advance(5)
    assert house.manager.host_failed(house.ticket) == 0


def test_a_delay_is_settled_with_what_the_turn_has_to_wait_for(house: House) -> None:
    fetching(house, *"ab")
    house.manager.host_failed(house.ticket)
    settled: list[Any] = []
    house.manager.dispatcher.group_commit = SimpleNamespace(settle=lambda one, _: settled.append(one))
    house.manager.delay(Delayed(house.ticket, 503, "", 0))
    assert [one.backoff.not_before for one in settled] == [MONDAY_NOON + 60]
    assert [one.backoff.blamed[0][0] for one in settled] == [house.ticket.row.urlkey]


# --- windows and limits -----------------------------------------------------------------------------------


def test_other_limits_bound_the_windows_that_are_read_from_then_on(house: House) -> None:
    house.provider(1)
    house.manager.apply(TurnLimits(window=3))
    house.manager.start()
    house.push(1, *"abcdefgh")
    assert len(house.manager.turns.get("1").window) == 3


def test_nothing_more_is_read_once_the_worker_stops(house: House) -> None:
    fetching(house, *"ab")
    house.manager.windows.readers = by_hand = ByHand()
    house.manager.stop()
    house.manager.windows.read_anew(house.manager.turns.those(["1"]))
    assert not by_hand.jobs


def test_a_ticket_that_may_not_be_used_now_leaves_its_turn_free(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, "a")
    by_hand = house.manager.windows.readers = ByHand()
    member = house.manager.turns.get("1").members.pop(1)
    assert house.next() is None
    assert house.manager.turns.get("1").fetching == {}
    assert len(by_hand.jobs) == 1, "what may be used is looked for"
    house.manager.turns.get("1").members[1] = member
    house.manager.windows.read_anew(house.manager.turns.those(["1"]))
    by_hand.work_off()
    assert house.next() == "a"


def test_a_url_that_was_removed_before_its_fetch_leaves_the_queue(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, *"ab")
    key = urlkey(1, "http://h1/a", "text/html")
    with house.store.begin() as tx:
        batch = UnitOfWork(tx, [1], [key], int(MONDAY_NOON), POLICY)
        batch.arrive(1, UrlEntry("http://h1/a", "text/html", Operation.REMOVE), Place(2, 1))
        batch.flush()
    house.manager.touched(1)
    assert house.fetch_all() == ["b"]
    with house.store.read() as tx:
        assert tx.queued([key]) == {}


def test_no_alarm_is_set_while_there_is_something_to_fetch_or_nothing_to_wait_for(house: House) -> None:
    house.provider(1, bandwidth=100)
    house.provider(2)
    house.manager.start()
    house.push(1, *"ab")
    house.push(2, "x")
    assert house.next() == "a"
    house.finish(size=20_000)
    assert house.next() == "x"
    assert house.manager.dispatcher._wake_timer is None
    idle = House()
    idle.manager.start()
    assert idle.next() is None
    assert idle.manager.dispatcher._wake_timer is None


def test_the_shortest_pause_gives_the_slot_on() -> None:
    house = House(places=1)
    turn = fetching(house, "a", bandwidth=300)
    house.provider(2)
    house.push(2, "x")
    assert 0 < house.manager.charge(turn, 450) < 1
    assert house.next() == "x"


def test_a_ticket_that_was_not_used_is_handed_out_again_without_waiting_for_a_read(house: House) -> None:
    fetching(house, *"ab")
    house.manager.windows.readers = ByHand()
    house.manager.put_back(house.ticket)
    house.manager.fetch_ended(house.ticket)
    assert house.next() == "a"


def test_a_url_whose_outcome_cannot_be_settled_is_fetched_again(house: House, monkeypatch: Any) -> None:
    fetching(house, *"ab")
    commit = house.commit

    def fails_once(*_: Any) -> Any:
        monkeypatch.setattr(house, "commit", commit)
        raise ValueError("a defect")

    monkeypatch.setattr(house, "commit", fails_once)
    heard: list[Any] = []
    house.manager.fetch_ended(house.ticket)
    house.manager.settle(Failed(house.ticket, 404, "", int(MONDAY_NOON), final=True), heard.append)
    assert heard[0].check(ValueError)
    assert house.fetch_all() == ["a", "b"]


def test_the_alarm_rings_once_for_the_earliest_turn(house: House) -> None:
    house.provider(1, bandwidth=100)
    house.provider(2, bandwidth=100)
    house.manager.start()
    house.push(1, *"ab")
    assert house.next() == "a"
    house.finish(size=20_000)
    assert house.next() is None
    late = house.manager.dispatcher._wake_timer
    assert house.next() is None
    assert house.manager.dispatcher._wake_timer is late, "the same moment needs no other alarm"
    house.push(2, *"xy")
    assert house.next() == "x"
    house.finish(size=5_000)
    assert house.next() is None
    assert not late.active()
    assert house.manager.dispatcher._wake_timer.getTime() < late.getTime()


def test_the_engine_is_told_only_once_that_there_is_room_again(house: House) -> None:
    house.manager.dispatcher.group_commit.most = 2
    fetching(house, *"abcd")
    by_hand = house.manager.dispatcher.group_commit._thread = ByHand()
    house.finish()
    assert house.next() == "b"
    house.finish()
    assert house.next() is None
    rings = house.rings
    by_hand.work_off()
    assert house.rings == rings + 1


# --- giving back ------------------------------------------------------------------------------------------


def test_turns_that_cannot_be_given_back_now_are_given_back_later(
    house: House, monkeypatch: Any, caplog: Any
) -> None:
    fetching(house, "a")
    rest, failures = house.manager.leases._write_back, [StoreUnavailable("away"), StoreUnavailable("away")]

    def rest_all(tx: Any, leases: Any) -> None:
        if failures:
            raise failures.pop()
        rest(tx, leases)

    monkeypatch.setattr(house.manager.leases, "_write_back", rest_all)
    house.finish()
    assert "cannot give turns back now, trying again: away" in caplog.text
    with house.store.read() as tx:
        assert tx.turn("1").owner == "1/0"
    house.clock.advance(2)
    house.clock.advance(2)
    with house.store.read() as tx:
        assert tx.turn("1") is None
    assert house.manager.leases._returning == []


def test_what_arrives_in_a_turn_that_waits_to_be_given_back_is_taken_again(
    house: House, monkeypatch: Any
) -> None:
    monkeypatch.setattr(turn_leases, "RETURNS_AT_ONCE", 1)
    for pid in (1, 2):
        house.provider(pid)
        house.push(pid, "a")
    house.manager.start()
    tickets = [house.manager.next_ticket() for _ in range(2)]
    by_hand = house.manager.leases.thread = ByHand()
    for ticket in tickets:
        house.finish(ticket)
    assert [one.lease.turnkey for one in house.manager.leases._returning] == ["2"]
    house.push(2, "b")
    by_hand.work_off()
    assert house.next() == "b"


def test_after_what_was_wanted_back_was_looked_for_further_turns_are_given_back_without_a_look(
    house: House,
) -> None:
    for pid in (1, 2):
        house.provider(pid)
        house.push(pid, "a")
    house.manager.start()
    tickets = [house.manager.next_ticket() for _ in range(2)]
    by_hand = house.manager.leases.thread = ByHand()
    house.manager.leases._wanted_back = True
    house.finish(tickets[0])
    assert by_hand.work_off() == 2, "it is given back, and looked for"
    house.finish(tickets[1])
    assert by_hand.work_off() == 1


def test_only_turns_that_have_no_urls_left_are_asked_for_new_ones(house: House) -> None:
    for pid, names in ((1, "ab"), (2, "c"), (3, "d")):
        house.provider(pid)
        house.push(pid, *names)
    house.manager.start()
    assert [house.next(), house.next(), house.next()] == ["a", "c", "d"]
    house.manager.windows.readers = ByHand()
    house.manager.windows.read_anew(house.manager.turns.those(["3"]))
    assert house.manager.leases._drained().keys() == {"2"}


def test_turns_are_given_back_in_one_job_at_a_time(house: House) -> None:
    for pid in (1, 2, 3):
        house.provider(pid)
        house.push(pid, "a")
    house.manager.start()
    tickets = [house.manager.next_ticket() for _ in range(3)]
    by_hand = house.manager.leases.thread = ByHand()
    for ticket in tickets:
        house.finish(ticket)
    assert [job.__name__ for _, job, _ in by_hand.jobs].count("_give_back_now") == 1
    by_hand.work_off()
    with house.store.read() as tx:
        assert [tx.turn(str(pid)) for pid in (1, 2, 3)] == [None] * 3


def test_what_arrives_in_a_turn_that_is_being_given_back_is_fetched_at_once(house: House) -> None:
    fetching(house, "a")
    by_hand = house.manager.leases.thread = ByHand()
    house.finish()
    house.push(1, "b", elsewhere=True)
    house.manager.touched(1)
    by_hand.work_off()
    assert house.next() == "b"


def test_a_turn_that_leaves_fetches_nothing_more_and_goes_when_its_fetch_has_ended(house: House) -> None:
    for pid in (1, 2):
        house.provider(pid)
        house.push(pid, *"abc")
    house.manager.start()
    tickets = [house.manager.next_ticket() for _ in range(2)]
    second = house.worker("1/1")
    second.start()
    house.clock.advance(2)
    leaving = [held for held in house.manager.turns if held.is_leaving()]
    assert [(len(held.window), held.more) for held in leaving] == [(0, False)]
    house.clock.advance(2)
    assert sum(held.is_leaving() for held in house.manager.turns) == 1, "one is enough"
    for ticket in tickets:
        house.finish(ticket)
    house.clock.advance(2)
    assert (len(house.manager.turns), len(second.turns)) == (1, 1)


def test_idle_turns_leave_before_those_that_are_fetched_from(house: House) -> None:
    for pid in (1, 2):
        house.provider(pid)
        house.push(pid, *"abc")
    house.manager.start()
    assert house.next() == "a"
    busy = house.ticket.turnkey
    house.manager.leases._give_up(1)
    assert [turn.key for turn in house.manager.turns] == [busy]
    assert not house.manager.turns.get(busy).is_leaving()


def test_a_turn_that_leaves_refuses_to_hand_out_what_it_still_has(house: House) -> None:
    fetching(house, *"ab")
    turn = house.manager.turns.get("1")
    ticket = turn.window[0]
    assert turn.state.happens(Event.LEAVE)
    house.finish()
    assert not turn.hand_out(ticket)


def test_the_rows_of_a_removed_provider_leave_the_turn_of_its_group(house: House) -> None:
    for pid in (1, 2):
        house.provider(pid, turngroup="farm")
    house.manager.start()
    house.push(1, *"ab")
    house.push(2, *"cd")
    registration.remove(house.store, 1, int(house.clock.seconds()), POLICY)
    house.clock.advance(2)
    assert house.fetch_all() == ["c", "d"]


# --- what others see --------------------------------------------------------------------------------------


def test_that_a_fetch_ended_is_told_once(house: House) -> None:
    fetching(house, "a", "b")
    house.clock.advance(6)
    house.finish()
    assert house.manager.leases.slots.ended() == {"1"}
    house.clock.advance(2)
    assert house.manager.leases.slots.ended() == frozenset()


def test_a_clock_that_is_moved_makes_no_fetch_long(house: House) -> None:
    fetching(house, "a")
    house.moved = 3600
    house.clock.advance(2)
    with house.store.read() as tx:
        assert tx.long_fetch("1") is None


def test_every_look_tells_the_heartbeat_whom_to_renew_and_windows_how_many_turns_to_expect(
    house: House,
) -> None:
    begun: list[Any] = []
    house.manager.leases.heartbeat = SimpleNamespace(begin=lambda *told: begun.append(told))
    for pid in (1, 2, 3):
        house.provider(pid)
        house.push(pid, "a", elsewhere=True)
    house.manager.start()
    assert begun[0][:2] == ("1/0", house.manager.leases._run)
    assert house.manager.windows.expected == 3
    begun[0][2](int(MONDAY_NOON) + 1000)
    assert house.manager.leases._leased_until == MONDAY_NOON + 994


def test_looks_that_are_asked_for_while_one_runs_become_one_more(house: House) -> None:
    by_hand = house.manager.leases.thread = ByHand()
    for _ in range(3):
        house.manager.look()
    assert len(by_hand.jobs) == 1
    assert by_hand.work_off() == 2


def test_a_worker_that_has_all_its_turns_waits_for_no_more(house: House) -> None:
    house.manager.start()
    assert house.manager.leases._gathering_until == 0.0


def test_what_arrives_unheard_in_a_turn_that_is_being_given_back_is_looked_for(house: House) -> None:
    fetching(house, "a")
    by_hand = house.manager.leases.thread = ByHand()
    house.finish()
    house.push(1, "b", elsewhere=True)
    by_hand.work_off()
    assert house.next() == "b"


@pytest.mark.parametrize("heard", [False, True], ids=["unheard", "heard meanwhile"])
def test_a_provider_that_is_resumed_while_its_turn_is_given_back_is_fetched_from(
    house: House, heard: bool
) -> None:
    house.provider(1, state=State.PAUSED)
    house.manager.start()
    by_hand = ByHand()
    give_back, jobs = house.manager.leases._give_back_now, house.manager.leases.thread
    house.manager.leases.thread = SimpleNamespace(
        run=lambda job, *args: (by_hand if job == give_back else jobs).run(job, *args)
    )
    house.push(1, "a")
    assert house.next() is None
    assert [job for _, job, _ in by_hand.jobs] == [give_back]
    registration.change(house.store, 1, {"state": State.ACTIVE})
    if heard:
        house.manager.leases.look()
    by_hand.work_off()
    assert house.next() == "a"


def test_a_provider_that_was_regrouped_is_fetched_from_in_its_new_turn(house: House) -> None:
    house.provider(1)
    house.manager.start()
    regroup(house.store, 1, "farm", house.clock.seconds())
    house.clock.advance(2)
    house.push(1, "a")
    assert house.next() == "a"
    assert house.ticket.turnkey == "farm"


# --- what comes late, and what goes ----------------------------------------------------------------------


def test_a_worker_that_has_stopped_leaves_no_timer_behind(house: House) -> None:
    fetching(house, "a", "b", bandwidth=100)
    charged(house, 100_000)
    house.finish()
    assert house.next() is None
    assert len(house.clock.getDelayedCalls()) > 1, "one for the next look, one for the end of the wait"
    house.manager.stop()
    assert house.clock.getDelayedCalls() == []


def test_bytes_that_come_after_the_end_of_a_fetch_are_the_turn_s_and_no_fetch_s(house: House) -> None:
    turn = fetching(house, *"ab", bandwidth=1000)
    ended = house.ticket
    assert house.manager.fetch_ended(ended) == 0
    assert house.manager.expect(turn, 5000) == 5.0
    assert house.manager.charge(turn, 1_000_000) > 0
    assert house.manager.charged(ended) == 0
    assert house.next() is None, "it waits until these have been made up for"


def test_a_fetch_that_ends_twice_leaves_the_next_one_of_its_turn_alone(house: House) -> None:
    fetching(house, *"ab")
    first = house.ticket
    house.finish()
    assert house.next() == "b"
    turn = house.manager.turns.get(first.turnkey)
    before = turn.state.fetches
    house.manager.fetch_ended(first)
    assert (turn.state.fetches, turn.fetching) == (before, {house.ticket.row.urlkey: house.ticket})


def test_an_outcome_of_a_turn_that_was_lost_is_settled_and_its_fetch_is_told(house: House) -> None:
    fetching(house, *"ab")
    lost, told = house.ticket, []
    house.worker("1/1", dead={"1/0"}).start()
    house.clock.advance(2.1)
    assert len(house.manager.turns) == 0
    house.manager.dispatcher.settle(Failed(lost, 404, "", int(house.clock.seconds())), told.append)
    house.clock.advance(2.1)
    assert len(told) == 1
    house.manager.delay(Delayed(lost, 503, "", int(house.clock.seconds())))
    house.clock.advance(2.1)
    assert house.manager.dispatcher.group_commit.when_idle().called


def test_a_changed_priority_counts_from_the_next_look_on(house: House) -> None:
    for pid in (1, 2):
        house.provider(pid)
    house.manager.start()
    house.push(1, *"ab")
    house.push(2, *"cd")
    house.change(2, priority=2)
    house.clock.advance(2)
    house.clock.advance(2)
    assert house.manager.turns.get("2").priority == 2
    assert house.fetch_all() == ["c", "d", "a", "b"]


def test_a_changed_provider_whose_turn_another_worker_holds_disturbs_no_look(house: House) -> None:
    fetching(house, *"ab")
    house.provider(2)
    house.clock.advance(2)
    rings = house.rings
    house.change(2, priority=2)
    house.clock.advance(2)
    assert house.rings == rings + 1
    assert [turn.key for turn in house.manager.turns] == ["1"]


def test_a_worker_is_dead_after_a_lease_without_a_sign_and_not_after_some_looks(house: House) -> None:
    lives, worker = house.manager.leases._lives, WorkerRow("1/1", 1, 1, 1, 0, 100)
    for _ in range(60):
        assert lives(worker)
        house.clock.advance(1)
    assert not lives(worker)


def test_a_worker_that_was_never_started_can_be_stopped(house: House) -> None:
    assert house.manager.stop().called


def test_nothing_is_written_when_all_was_given_back_before_it_is_tried_again(
    house: House, monkeypatch: Any
) -> None:
    for pid in (1, 2):
        house.provider(pid)
        house.push(pid, "a")
    house.manager.start()
    tickets = [house.manager.next_ticket() for _ in range(2)]
    written, rest = list[int](), house.manager.leases._write_back

    def fails_at_first(tx: Any, leases: Any) -> None:
        written.append(len(leases))
        if len(written) == 1:
            raise StoreUnavailable("away")
        rest(tx, leases)

    monkeypatch.setattr(house.manager.leases, "_write_back", fails_at_first)
    for ticket in tickets:
        house.finish(ticket)
    assert written == [1, 2], "the second one takes the first one along"
    house.clock.advance(2)
    assert written == [1, 2]


def test_a_fetch_behind_its_own_limit_and_the_common_one_alike_waits_for_its_own() -> None:
    house = House(bandwidth=1000)
    turn = fetching(house, "a", bandwidth=1000)
    house.provider(2, bandwidth=1000)
    house.push(2, "x")
    house.clock.advance(2)
    assert house.manager.charge(turn, 5000) > 0
    assert house.manager.leases.slots.count(Pacing.OWN) == 1
    assert house.manager.leases.slots.count(Pacing.COMMON) == 0


# --- how it is put together ------------------------------------------------------------------------------


def built(house: House, **values: Any) -> QueueManager:
    """Build a worker as ``House`` does, but with other parts."""
    return QueueManager(
        house.store,
        house.thread,
        GroupCommit(house.thread, house.clock, lambda outcomes: house.commit("1/0", outcomes)),
        house.clock,
        identity=Identity("1/0"),
        dead_owners=set,
        zone=ZoneInfo("UTC"),
        limits=TurnLimits(),
        wake=house.ring,
        now=house.clock.seconds,
        **values,
    )


def test_windows_are_read_in_the_readers_thread_and_without_one_in_the_store_s(house: House) -> None:
    readers: Any = ByHand()
    house.provider(1)
    house.push(1, *"ab", elsewhere=True)
    house.manager = built(house, readers=readers)
    house.manager.start()
    assert house.next() is None
    assert readers.work_off() == 1
    assert house.next() == "a"
    assert built(house).windows.readers is house.thread


def test_a_worker_without_a_steady_clock_goes_by_the_wall_s(house: House) -> None:
    house.provider(1)
    house.push(1, "a", elsewhere=True)
    house.manager = built(house)
    house.manager.start()
    assert house.next() == "a"


def test_a_worker_stops_though_its_leases_cannot_be_given_back_and_says_so(house: House, caplog: Any) -> None:
    fetching(house, "a")
    house.finish()
    house.thread.unheard = "_leave"
    stopped = house.manager.stop()
    assert (stopped.called, stopped.result) == (True, None)
    assert "leases were not given back: the connection was lost" in caplog.text
