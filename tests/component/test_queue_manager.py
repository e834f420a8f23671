"""The Queue Manager with a clock that the test moves and a store in memory: no threads, no sockets."""

import gc
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from same_thread import ByHand, LosesAnswers, RealThread
from twisted.internet.task import Clock

from lcc_scrapy.db.records import WorkerRow
from lcc_scrapy.domain.bandwidth import CREDIT
from lcc_scrapy.domain.cache import Answer, Body
from lcc_scrapy.domain.entries import UrlEntry, urlkey
from lcc_scrapy.domain.errors import LccError, LeaseLost
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.queue import Delayed, Failed, Place, Served, Ticket
from lcc_scrapy.domain.timeslots import parse_mask
from lcc_scrapy.domain.turn_limits import TurnLimits
from lcc_scrapy.engine.statistics import counter
from lcc_scrapy.fetch.pacing import FetchAborted
from lcc_scrapy.fetch.turn import TurnKeeper
from lcc_scrapy.providers import registration
from lcc_scrapy.providers.groups import pause_everything, regroup, resume_everything
from lcc_scrapy.queue import turn_leases, windows
from lcc_scrapy.queue.group_commit import GroupCommit
from lcc_scrapy.queue.held_turn import TurnPass
from lcc_scrapy.queue.leases import Member
from lcc_scrapy.queue.queue_manager import QueueManager
from lcc_scrapy.queue.settlement import Settlement
from lcc_scrapy.queue.turn_leases import Identity
from lcc_scrapy.queue.unit_of_work import UnitOfWork
from lcc_scrapy.queue.window_rows import RowsDue
from tests.memory_store import MemoryStore

MONDAY_NOON = 1_700_481_600.0  # 2023-11-20 12:00 UTC
POLICY = QueuePolicy(retry_delays=(60.0,))


class House:
    """A worker on a memory store; ``clock`` is its only time, ``moved`` what the wall's clock shows beyond."""

    moved = 0.0
    idle = ""

    def __init__(self, **limits: Any) -> None:
        self.clock = Clock()
        self.clock.rightNow = MONDAY_NOON
        self.store = MemoryStore()
        self.thread: Any = LosesAnswers()
        self.rings = 0
        self.sets = 0
        self.manager = self.worker("1/0", **limits)

    def worker(self, owner: str, dead: set[str] | None = None, **limits: Any) -> QueueManager:
        thread = self.thread
        return QueueManager(
            self.store,
            thread,
            GroupCommit(thread, self.clock, lambda outcomes: self.commit(owner, outcomes)),
            self.clock,
            identity=Identity(owner),
            dead_owners=lambda: dead or set(),
            zone=ZoneInfo("UTC"),
            limits=TurnLimits(**{"window": 32, "places": 16, **limits}),
            wake=self.ring,
            now=lambda: self.clock.seconds() + self.moved,
            steady=self.clock.seconds,
            idle=lambda: self.idle,
        )

    def ring(self) -> None:
        self.rings += 1

    def commit(self, owner: str, outcomes: Any) -> Any:
        with self.store.begin() as tx:
            return Settlement(
                tx,
                outcomes,
                owner=owner,
                machineid=1,
                now=int(self.clock.seconds()),
                policy=POLICY,
                keep=lambda _: None,
            ).run()

    def provider(self, pid: int, **values: Any) -> None:
        registration.add(self.store, Provider(pid, "", **values), [f"http://h{pid}/"])

    def change(self, pid: int, **values: Any) -> None:
        registration.change(self.store, pid, values)

    def push(self, pid: int, *names: str, timeofday: str = "", elsewhere: bool = False) -> None:
        self.sets += 1
        keys = [urlkey(pid, f"http://h{pid}/{name}", "text/html") for name in names]
        with self.store.begin() as tx:
            batch = UnitOfWork(tx, [pid], keys, int(self.clock.seconds()), POLICY)
            for number, name in enumerate(names, 1):
                url = f"http://h{pid}/{name}"
                batch.arrive(
                    pid, UrlEntry(url, "text/html", furl=url, timeofday=timeofday), Place(self.sets, number)
                )
            batch.flush()
        if not elsewhere:
            self.manager.touched(pid)

    def next(self) -> str | None:
        self.ticket = self.manager.next_ticket()
        return self.ticket.row.furl.rsplit("/", 1)[1] if self.ticket else None

    def finish(self, ticket: Ticket | None = None, size: int = 100, code: int = 0) -> None:
        ticket = ticket or self.ticket
        assert ticket is not None
        with suppress(LeaseLost):
            self.manager.charge(TurnPass.of(ticket), size)
        self.manager.fetch_ended(ticket)
        now = int(self.clock.seconds())
        if code:
            self.manager.settle(Failed(ticket, code, "", now))
        else:
            answer = Answer(200, ticket.row.furl, "text/html", "", "", "", "[]", "", "", now)
            body = Body(size, "0" * 32, f"{ticket.row.curl:0>64}"[-64:], b"")
            self.manager.settle(Served(ticket, answer, body))

    def fetch_all(self) -> list[str]:
        names = []
        while (name := self.next()) is not None:
            names.append(name)
            self.finish()
        return names


@pytest.fixture
def house() -> House:
    return House()


def test_urls_are_handed_out_in_the_order_of_their_submission(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, *"abc")
    house.push(1, *"de")
    assert house.fetch_all() == [*"abcde"]


def test_a_provider_never_has_two_fetches_in_flight(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, *"ab")
    assert house.next() == "a"
    first = house.ticket
    assert house.next() is None
    house.finish(first)
    assert house.next() == "b"


def test_higher_priority_takes_the_next_free_place(house: House) -> None:
    for pid, priority in ((1, 0), (2, 1), (3, 2)):
        house.provider(pid, priority=priority)
    house.manager.start()
    for pid in (1, 2, 3):
        house.push(pid, f"p{pid}")
    assert house.fetch_all() == ["p3", "p2", "p1"]


def test_a_window_smaller_than_the_queue_is_refilled_without_gap_or_repetition() -> None:
    house = House(window=4)
    house.provider(1)
    house.manager.start()
    names = [f"{number:03d}" for number in range(50)]
    house.push(1, *names)
    assert house.fetch_all() == names


def test_the_bandwidth_delays_the_next_fetch(house: House) -> None:
    house.provider(1, bandwidth=1000)
    house.manager.start()
    house.push(1, *"ab")
    assert house.next() == "a"
    house.finish(size=5000)
    assert house.next() is None
    house.clock.advance(5 - CREDIT - 0.1)
    assert house.next() is None
    house.clock.advance(0.2)
    assert house.next() == "b"


def test_what_a_site_asks_for_delays_the_next_fetch_of_its_turn_only(house: House) -> None:
    for pid in (1, 2):
        house.provider(pid)
    house.manager.start()
    house.push(1, *"abc")
    house.push(2, "x")
    assert house.next() == "a"
    ticket = house.ticket
    assert ticket is not None
    house.manager.space(TurnPass.of(ticket), 20)
    house.manager.space(replace(TurnPass.of(ticket), token=ticket.token + 1), 500)  # a turn that was lost
    house.clock.advance(3)
    house.finish()
    assert house.next() == "x"
    house.finish()
    house.clock.advance(19.9)
    assert house.next() is None
    house.clock.advance(0.2)
    assert house.fetch_all() == ["b", "c"]  # said for one fetch only


def test_the_longer_of_bandwidth_and_crawl_delay_counts(house: House) -> None:
    house.provider(1, bandwidth=1000)
    house.manager.start()
    house.push(1, *"abc")
    for seconds, waited in ((2, 5 - CREDIT), (9, 9)):
        assert house.next() is not None
        ticket = house.ticket
        assert ticket is not None
        house.manager.space(TurnPass.of(ticket), seconds)
        house.finish(size=5000)
        house.clock.advance(waited - 0.1)
        assert house.next() is None
        house.clock.advance(1)


def test_what_a_site_asked_for_outlasts_a_turn_that_was_given_back(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, "a")
    assert house.next() == "a"
    ticket = house.ticket
    assert ticket is not None
    house.manager.space(TurnPass.of(ticket), 40)
    house.finish()
    house.push(1, "b")
    assert house.next() is None
    house.clock.advance(39)
    assert house.next() is None
    house.clock.advance(2)
    assert house.next() == "b"


def test_the_global_bandwidth_delays_everybody() -> None:
    house = House(bandwidth=1000)
    house.provider(1)
    house.provider(2)
    house.manager.start()
    house.push(1, "a")
    house.push(2, "b")
    assert house.next() == "a"
    house.finish(size=2000)
    assert house.next() is None
    house.clock.advance(2)
    assert house.next() == "b"


def test_a_common_limit_that_is_taken_away_holds_nobody_up_any_more() -> None:
    house = House(bandwidth=10)
    house.provider(1)
    house.manager.start()
    house.push(1, "a", "b")
    assert house.next() == "a"
    house.finish(size=2000)
    assert house.next() is None
    house.manager.apply(TurnLimits())
    assert house.next() == "b"
    assert house.manager.limit(None) == 0


def test_other_limits_leave_the_lease_and_the_places_as_they_were(house: House) -> None:
    house.provider(1)
    house.manager.apply(TurnLimits(lease=1, places=1, backoff=7))
    house.manager.start()
    house.push(1, "a")
    assert house.next() == "a"
    assert house.manager.leases._myself().expires == int(house.clock.seconds()) + 60
    assert house.manager.leases._myself().places == 16
    house.manager.host_failed(house.ticket)
    turn = house.manager.turns.get(house.ticket.turnkey)
    assert turn.hosts[house.ticket.host].not_before == house.clock.seconds() + 7


def test_nothing_is_fetched_outside_the_hours_of_a_provider(house: House) -> None:
    house.provider(1, timeofday=parse_mask("mon 20-22"))
    house.manager.start()
    house.push(1, *"ab")
    assert house.next() is None
    house.clock.advance(8 * 3600 - 1)
    assert house.next() is None
    rings = house.rings
    house.clock.advance(2)
    assert house.rings > rings
    assert house.next() == "a"
    house.finish()
    house.clock.advance(2 * 3600)
    assert house.next() is None


def test_hours_of_a_url_let_others_of_its_set_go_first(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, "night", timeofday=parse_mask("22-23"))
    house.push(1, "now")
    assert house.fetch_all() == ["now"]
    house.clock.advance(10 * 3600 + 1)
    assert house.fetch_all() == ["night"]


def test_a_url_whose_hour_begins_goes_before_later_ones_that_were_read_ahead(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, "early", timeofday=parse_mask("13-14"))
    house.push(1, *"abc")
    assert house.next() == "a"
    house.clock.advance(3600)
    house.finish()
    rings = house.rings
    assert house.next() is None  # the store is asked first
    assert house.rings > rings
    assert house.fetch_all() == ["early", "b", "c"]


def test_a_url_that_is_due_is_fetched_though_others_always_take_the_free_place(house: House) -> None:
    for pid in (1, 2, 3):
        house.provider(pid)
    house.manager.start()
    house.push(1, "again", "late")
    assert house.next() == "again"
    house.finish(code=500)
    house.push(2, *map(str, range(50)))
    house.push(3, *map(str, range(50)))
    house.clock.advance(40)
    names = []
    for _ in range(50):
        names.append(house.next())  # never asked for more than one: all other places are taken
        house.clock.advance(1)
        house.finish()
    assert "again" in names


def test_an_update_during_the_fetch_is_fetched_again(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, "a")
    assert house.next() == "a"
    house.push(1, "a")
    house.finish()
    assert house.fetch_all() == ["a"]
    assert house.next() is None


def test_a_host_failure_keeps_the_url_in_its_place_and_delays_the_turn(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, *"abc")
    assert house.next() == "a"
    ticket = house.ticket
    assert ticket is not None
    house.manager.host_failed(ticket)
    house.manager.put_back(ticket)
    house.manager.fetch_ended(ticket)
    assert house.next() is None
    house.clock.advance(61)
    assert house.fetch_all() == [*"abc"]


def test_a_retried_url_comes_at_the_end_of_its_set_when_it_is_due(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, *"abc")
    assert house.next() == "a"
    house.finish(code=500)
    assert house.fetch_all() == [*"bc"]
    house.clock.advance(61)
    assert house.fetch_all() == ["a"]


def test_rows_that_are_due_leave_nothing_for_the_garbage_collector(house: House) -> None:
    readers: Any = RealThread()
    house.manager.windows.readers = readers
    house.provider(1)
    house.manager.start()
    house.push(1, "a")
    house.next()
    house.finish(code=500)
    gc.collect()
    gc.disable()
    try:
        house.clock.advance(61)
        assert house.fetch_all() == ["a"]
        assert [one for one in gc.get_objects() if isinstance(one, RowsDue)] == []
    finally:
        gc.enable()
        readers.close()


def test_a_pause_holds_a_running_provider_at_the_next_look_and_resuming_lets_it_go(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, *"ab")
    assert house.next() == "a"
    house.change(1, state=State.PAUSED)
    house.clock.advance(2.1)
    house.finish()
    assert house.next() is None
    house.change(1, state=State.ACTIVE)
    house.clock.advance(2.1)
    assert house.next() == "b"


def test_a_removed_provider_is_not_fetched_from(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, *"ab")
    assert house.next() == "a"
    house.finish()
    registration.remove(house.store, 1, int(house.clock.seconds()), POLICY)
    house.clock.advance(2.1)
    assert house.next() is None


def test_a_second_worker_gets_no_turn_that_the_first_one_holds(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, *"ab")
    other = house.worker("1/1")
    other.start()
    assert house.next() == "a"
    assert other.next_ticket() is None


def test_the_turns_of_a_dead_worker_are_taken_over_at_once_and_its_late_result_changes_nothing(
    house: House,
) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, *"ab")
    assert house.next() == "a"
    late = house.ticket
    other = house.worker("1/1", dead={"1/0"})
    other.start()
    taken = other.next_ticket()
    assert taken is not None
    assert taken.row.furl.endswith("/a")
    house.finish(late)
    with house.store.read() as tx:
        assert len(tx.queued([taken.row.urlkey])) == 1


def test_a_turn_with_nothing_left_is_given_back(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, "a")
    house.fetch_all()
    with house.store.read() as tx:
        assert (tx.turn("1"), tx.workers()[0].owner) == (None, "1/0")


def test_limits_outlast_a_turn_that_was_given_back(house: House) -> None:
    house.provider(1, bandwidth=100)
    house.manager.start()
    house.push(1, "a")
    assert house.next() == "a"
    house.finish(size=1000)
    house.push(1, "b")
    assert house.next() is None
    house.clock.advance(10)
    assert house.next() == "b"


def test_a_worker_that_cannot_renew_starts_nothing_once_its_lease_has_ended() -> None:
    house = House()
    house.provider(1)
    house.manager.start()
    house.push(1, *"abc")
    assert house.next() == "a"
    house.manager.leases._poll_timer.cancel()  # its database does not answer any more
    house.clock.rightNow += 61
    other = house.worker("2/0")
    other.start()
    assert other.next_ticket() is None, "it has to see for itself that the first one gives no sign of life"
    for _ in range(30):
        house.clock.advance(2)
    assert other.next_ticket() is not None
    house.manager.fetch_ended(house.ticket)
    assert house.next() is None


@pytest.mark.parametrize("step", [3600, -3600])
def test_a_clock_that_is_moved_neither_holds_up_a_turn_nor_lets_it_go_on_too_early(step: int) -> None:
    house = House()
    house.provider(1, bandwidth=100)
    house.provider(2)
    house.manager.start()
    house.push(1, *"ab")
    house.push(2, "c")
    assert house.next() == "a"
    house.finish(size=1000)  # which takes 10 s, less the credit
    assert house.next() == "c"
    house.moved += step
    house.clock.advance(2)
    house.manager.charge(TurnPass.of(house.ticket), 10)  # its lease holds
    house.clock.advance(6)
    assert house.next() is None
    house.clock.advance(2)
    assert house.next() == "b"


@pytest.mark.parametrize("step", [3600, -3600])
def test_workers_do_not_take_each_other_for_dead_when_the_clock_is_moved(step: int) -> None:
    house = House()
    house.provider(1)
    house.push(1, *"ab", elsewhere=True)
    house.manager.start()
    other = house.worker("2/0")
    other.start()
    assert house.next() == "a"
    house.moved += step
    for _ in range(40):
        house.clock.advance(2)
        assert other.next_ticket() is None
    house.finish()
    assert house.next() == "b"


def test_a_worker_that_can_renew_again_goes_on_at_once() -> None:
    house = House()
    house.provider(1)
    house.manager.start()
    house.push(1, *"ab")
    assert house.next() == "a"
    house.finish()
    house.manager.leases._poll_timer.cancel()  # its database does not answer any more
    house.clock.rightNow += 61
    assert house.next() is None
    rings = house.rings
    house.manager.look()  # now it does
    assert house.rings > rings
    assert house.next() == "b"


def test_a_worker_that_is_stopping_keeps_its_leases_while_fetches_end() -> None:
    house = House()
    house.provider(1)
    house.manager.start()
    house.push(1, *"abc")
    assert house.next() == "a"
    house.manager.begin_to_stop()  # as when the process was asked to stop
    for _ in range(70):
        house.clock.advance(1)
    other = house.worker("2/0")
    other.start()
    assert other.next_ticket() is None


def test_a_body_is_cut_off_when_its_turn_was_taken_over(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, *"ab")
    assert house.next() == "a"
    ticket = house.ticket
    assert ticket is not None
    house.worker("1/1", dead={"1/0"}).start()
    house.clock.advance(2.1)
    with pytest.raises(LeaseLost):
        house.manager.charge(TurnPass.of(ticket), 1000)


# --- groups, several workers, a pause of everything ---------------------------------------------------


def test_a_group_shares_one_turn_and_its_smallest_limit(house: House) -> None:
    house.provider(1, turngroup="farm")
    house.provider(2, turngroup="farm", bandwidth=100)
    house.manager.start()
    house.push(1, *"ab")
    house.push(2, *"cd")
    assert house.next() == "a"
    first = house.ticket
    assert house.next() is None
    house.finish(first, size=200)
    assert house.next() is None
    house.clock.advance(2)
    assert house.next() == "c"
    house.finish(size=1)
    house.clock.advance(1)
    assert house.next() == "b"


def test_a_paused_member_does_not_hold_its_group_up(house: House) -> None:
    house.provider(1, turngroup="farm")
    house.provider(2, turngroup="farm")
    house.manager.start()
    house.push(1, *"ab")
    house.push(2, *"cd")
    house.change(1, state=State.PAUSED)
    house.clock.advance(2)
    assert house.fetch_all() == ["c", "d"]
    house.change(1, state=State.ACTIVE)
    house.clock.advance(2)
    assert house.fetch_all() == ["a", "b"]


def test_a_provider_changes_its_group_only_while_nobody_fetches_from_it(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, *"ab")
    assert house.next() == "a"
    with pytest.raises(LccError, match="lcc provider pause` 1, and try again"):
        regroup(house.store, 1, "farm", house.clock.seconds())
    house.change(1, state=State.PAUSED)
    house.finish()
    house.clock.advance(2)
    regroup(house.store, 1, "farm", house.clock.seconds())
    house.change(1, state=State.ACTIVE)
    house.clock.advance(2)
    assert (house.next(), house.ticket and house.ticket.turnkey) == ("b", "farm")


def test_turns_are_shared_when_a_second_worker_comes_and_go_back_when_it_ends() -> None:
    house = House()
    house.manager.start()
    for pid in range(1, 7):
        house.provider(pid)
        house.push(pid, *"ab")
    second = house.worker("1/1")
    second.start()
    house.clock.advance(2)
    house.clock.advance(2)
    assert (len(house.manager.turns), len(second.turns)) == (3, 3)
    second.stop()
    house.clock.advance(2)
    assert len(house.manager.turns) == 6


def test_turns_that_are_never_idle_go_to_a_second_worker_as_soon_as_their_fetches_have_ended() -> None:
    house = House()
    house.manager.start()
    for pid in range(1, 5):
        house.provider(pid)
        house.push(pid, *"abcdef")
    fetching = [house.manager.next_ticket() for _ in range(4)]
    second = house.worker("1/1")
    second.start()
    for _ in range(3):
        house.clock.advance(2)
    assert (len(house.manager.turns), len(second.turns)) == (4, 0), (
        "one fetch per provider, whoever holds its turn"
    )
    for ticket in fetching:
        house.finish(ticket)
    assert house.next() == "b"
    house.finish()
    assert len(house.manager.turns) == 2
    house.clock.advance(2)
    assert (len(house.manager.turns), len(second.turns)) == (2, 2)
    taken = second.next_ticket()
    assert taken is not None
    assert taken.row.furl.endswith("/b"), "where the first one ended"


def test_a_turn_leaves_at_once_when_it_only_waits_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns in which URLs arrived, one of them being read and the others next, when a second worker comes."""
    monkeypatch.setattr(windows, "AT_ONCE", 1)
    house = House()
    house.manager.start()
    for pid in range(1, 5):
        house.provider(pid)
        house.push(pid, "a")
    thread: Any = ByHand()
    house.manager.leases.thread = house.manager.windows.readers = thread
    second = house.worker("1/1")
    tickets = [house.manager.next_ticket() for _ in range(4)]
    house.manager.windows.read_anew(house.manager.turns.those(["1", "2", "3", "4"]))
    for ticket in tickets:
        house.finish(ticket)
    for pid in range(1, 5):
        house.push(pid, "b", elsewhere=True)
    second.start()
    house.clock.advance(2)
    thread.work_off()
    for _ in range(2):
        house.clock.advance(2)
        thread.work_off()
    assert (len(house.manager.turns), len(second.turns)) == (2, 2)
    fetched = [worker.next_ticket() for worker in (house.manager, second) for _ in range(2)]
    assert sorted(ticket.row.pid for ticket in fetched if ticket) == [1, 2, 3, 4]


def test_a_turn_that_leaves_gives_up_a_ticket_that_was_not_used() -> None:
    house = House()
    house.manager.start()
    for pid in (1, 2):
        house.provider(pid)
        house.push(pid, "a")
    tickets = [house.manager.next_ticket() for _ in range(2)]
    second = house.worker("1/1")
    second.start()
    house.clock.advance(2)
    for ticket in tickets:
        assert ticket is not None
        house.manager.put_back(ticket)
        house.manager.fetch_ended(ticket)
    house.clock.advance(4)
    assert (len(house.manager.turns), len(second.turns)) == (1, 1)
    assert house.next() == "a"
    assert second.next_ticket() is not None


def test_workers_share_the_common_limit() -> None:
    house = House(bandwidth=1000)
    second = house.worker("1/1", bandwidth=1000)
    house.manager.start()
    second.start()
    for _ in range(5):
        for manager in (house.manager, second):
            manager.charge(None, 10_000)
        house.clock.advance(2)
    assert (house.manager.turns.everything.limit, second.turns.everything.limit) == (500, 500)
    for _ in range(5):
        house.manager.charge(None, 10_000)
        house.clock.advance(2)
    assert (house.manager.turns.everything.limit, second.turns.everything.limit) == (990, 10)


def test_a_pause_of_everything_lets_nothing_begin_and_changes_no_provider(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, *"ab")
    assert house.next() == "a"
    pause_everything(house.store, int(house.clock.seconds()))
    house.clock.advance(2)
    house.finish()
    assert house.next() is None
    resume_everything(house.store)
    house.clock.advance(2)
    assert house.next() == "b"


def test_what_a_failing_host_has_earned_outlasts_the_worker(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, *"ab")
    assert house.next() == "a"
    assert house.ticket is not None
    house.manager.host_failed(house.ticket)
    house.manager.delay(Delayed(house.ticket, 503, "", 0))
    house.manager.fetch_ended(house.ticket)
    with house.store.read() as tx:
        turn, hosts = tx.turn("1"), tx.hosts_of(["1"])["1"]
    assert turn is not None
    assert (turn.owner, turn.not_before) == ("", MONDAY_NOON + 60)
    assert [(one.failures, one.not_before) for one in hosts.values()] == [(1, MONDAY_NOON + 60)]
    other = house.worker("1/1")
    other.start()
    house.clock.advance(59)
    assert other.next_ticket() is None
    house.manager.stop()
    house.clock.advance(4)
    ticket = other.next_ticket()
    assert ticket is not None
    assert other.host_failed(ticket) == pytest.approx(62, abs=2)


def test_many_turns_share_the_tickets_that_may_be_read_ahead() -> None:
    house = House(window=32, tickets=40)
    house.manager.start()
    for pid in range(1, 11):
        house.provider(pid)
        house.push(pid, *map(str, range(50)))
    house.clock.advance(2)
    for pid in range(1, 11):
        house.push(pid, "x")
    assert sum(len(turn.window) for turn in house.manager.turns) <= 40
    names = []
    for _ in range(1000):
        if (name := house.next()) is None:
            break
        names.append((house.ticket.row.pid if house.ticket else 0, name))
        house.finish()
    assert [name for pid, name in names if pid == 3] == [*map(str, range(50)), "x"]
    assert len(names) == 510


def test_what_another_process_absorbs_into_a_drained_turn_is_heard_of_within_a_poll(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, "a", timeofday=parse_mask("12-13"))
    house.push(1, "b", timeofday=parse_mask("13-14"))
    house.clock.advance(3590)
    house.manager.windows.read_anew(house.manager.turns.those(["1"]))
    assert house.fetch_all() == ["a"]
    assert len(house.manager.turns) == 1
    house.push(1, "c", timeofday=parse_mask("12-13"), elsewhere=True)
    assert house.next() is None
    house.clock.advance(2)
    assert house.fetch_all() == ["c"]


def test_a_worker_whose_lease_had_ended_loses_the_turn_of_a_provider_that_was_regrouped(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, *"ab")
    assert house.next() == "a"
    house.finish()
    house.manager.leases._poll_timer.cancel()  # its database does not answer any more
    house.clock.rightNow += 61
    regroup(house.store, 1, "farm", house.clock.seconds())
    house.manager.look()  # now it does
    assert (house.next(), house.ticket and house.ticket.turnkey) == ("b", "farm")


def test_a_turn_whose_provider_went_just_before_the_fetch_began_is_given_back(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, "a")
    assert house.next() == "a"
    registration.remove(house.store, 1, int(house.clock.seconds()), POLICY)
    house.clock.advance(2)
    worker: Any = SimpleNamespace(manager=house.manager)
    turns = TurnKeeper(worker, counter(None))

    async def never(_ticket: Ticket, _member: Member) -> Any:
        raise AssertionError

    with pytest.raises(FetchAborted):
        turns.keep(house.ticket, never).send(None)
    assert len(house.manager.turns) == 0


# --- answers of the database that did not arrive ------------------------------------------------------


def test_a_turn_that_was_given_back_unheard_and_taken_again_is_not_forgotten(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, "a")
    house.thread.unheard = "_give_back_now"
    assert house.fetch_all() == ["a"]
    house.push(1, *"bc")
    assert house.next() == "b"
    house.clock.advance(2)
    house.finish()
    assert house.fetch_all() == ["c"]


def test_turns_that_were_leased_unheard_are_not_held_for_ever(house: House) -> None:
    house.provider(1)
    house.provider(2)
    house.manager.start()
    house.push(1, *"ab")
    assert house.next() == "a"
    ticket = house.ticket
    house.thread.unheard = "_look"
    house.push(2, "x")
    house.clock.advance(2)
    assert house.next() == "x"
    house.finish()
    house.finish(ticket)
    assert house.fetch_all() == ["b"]


def test_a_turn_that_is_lost_and_taken_again_during_a_read_is_read_again(house: House) -> None:
    house.thread = ByHand()
    house.manager = house.worker("1/0")
    house.provider(1)
    house.push(1, "a")
    house.manager.start()
    house.thread.work_off()
    with house.store.begin() as tx:
        tx.free_turns_of("1/0")
        tx.drop_worker("1/0")
    house.clock.advance(2)
    house.manager.windows.read_anew(house.manager.turns.those(["1"]))
    house.thread.work_off()
    assert house.next() == "a"


def test_windows_are_read_portion_by_portion_so_that_outcomes_are_settled_in_between(
    house: House, monkeypatch
) -> None:
    monkeypatch.setattr(windows, "AT_ONCE", 2)
    house.thread = by_hand = ByHand()
    house.manager = house.worker("1/0")
    for pid in range(1, 8):
        house.provider(pid)
        house.push(pid, *"ab")
    house.manager.start()
    while (first := house.manager.next_ticket()) is None:
        by_hand.work_off(1)
    house.manager.fetch_ended(first)
    settled: list[object] = []
    house.manager.settle(Failed(first, 404, "", int(MONDAY_NOON), final=True), settled.append)
    waiting = [job.__name__ for _, job, _ in by_hand.jobs]
    assert waiting.count("_read") == 1
    by_hand.work_off(waiting.index("_try") + 1)
    assert settled
    assert len(house.manager.turns) == 7, "the others are not read yet"
    by_hand.work_off()
    found = {ticket.row.pid for ticket in iter(house.manager.next_ticket, None)}
    assert found == set(range(1, 8))


# --- the common limit --------------------------------------------------------------------------------


def test_looks_in_quick_succession_do_not_mistake_a_busy_worker_for_an_idle_one() -> None:
    house = House(bandwidth=1000)
    second = house.worker("1/1", bandwidth=1000)
    house.manager.start()
    second.start()
    for _ in range(5):
        for manager in (house.manager, second):
            manager.charge(None, 10_000)
        house.clock.advance(2)
    for _ in range(10):
        house.manager.look()  # as every step of intake does
        house.manager.charge(None, 20)
        second.look()
        house.clock.advance(0.05)
    assert (house.manager.turns.everything.limit, second.turns.everything.limit) == (500, 500)


def test_a_worker_that_was_idle_does_not_work_off_a_debt_at_the_rate_of_an_idle_one() -> None:
    house = House(bandwidth=100_000)
    busy = house.worker("1/1", bandwidth=100_000)
    house.manager.start()
    busy.start()
    for _ in range(5):
        busy.charge(None, 200_000)
        house.clock.advance(2)
    assert house.manager.turns.everything.limit == 1000
    assert house.manager.charge(None, 64_000) > 60
    house.clock.advance(2)
    assert house.manager.turns.everything.limit == 50_000
    assert house.manager.charge(None, 0) < 2


def test_nothing_is_handed_out_while_room_is_short(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, "a")
    house.manager.dispatcher.short = lambda: True
    assert house.next() is None
    house.manager.dispatcher.short = lambda: False
    rings = house.rings
    house.clock.advance(2)
    assert house.rings > rings, "it goes on by itself"
    assert house.next() == "a"


def test_an_hour_that_a_moved_clock_opens_is_open_also_for_turns_that_were_given_back() -> None:
    house = House()
    house.provider(1, timeofday=parse_mask("11-12"))
    house.manager.start()
    house.push(1, "a")
    assert house.next() is None
    for _ in range(5):
        house.clock.advance(2)
    assert not len(house.manager.turns), "it waits for tomorrow"
    house.moved = -3600 + 60
    house.clock.advance(2)
    assert house.next() == "a"


def test_nothing_is_handed_out_while_one_commit_s_worth_is_not_durable(house: House) -> None:
    house.manager.dispatcher.group_commit.most = 3
    house.provider(1)
    house.manager.start()
    house.push(1, *"abcdef")
    by_hand = house.manager.dispatcher.group_commit._thread = ByHand()
    assert [house.next(), house.finish(), house.next(), house.finish()] == ["a", None, "b", None]
    assert (house.next(), house.finish()) == ("c", None)
    rings = house.rings
    assert house.next() is None
    by_hand.work_off(1)
    assert house.rings == rings + 1, "the engine is told when there is room again"
    assert house.next() == "d"


# --- places --------------------------------------------------------------------------------------


def charged(house: House, size: int, ticket: Ticket | None = None) -> float:
    ticket = ticket or house.ticket
    assert ticket is not None
    return house.manager.charge(TurnPass.of(ticket), size)


def crowd(house: House, count: int, **values: Any) -> None:
    """Let providers with a limit of 300 B/s push a page each, whose name is their number."""
    for pid in range(1, count + 1):
        house.provider(pid, bandwidth=300, **values)
        house.push(pid, f"p{pid}")


def pace(house: House, size: int = 9000) -> list[str]:
    """Begin what may begin; each has its first bytes at once, and has to pause then."""
    begun = []
    while (name := house.next()) is not None:
        begun.append(name)
        assert charged(house, size) > 0
    return begun


def row_of(house: House) -> WorkerRow:
    with house.store.read() as tx:
        return tx.workers()[0]


def test_each_look_says_why_no_url_may_be_handed_out() -> None:
    house = House()
    house.idle = "no room " + "x" * 300
    house.manager.start()
    assert row_of(house).idle == house.idle[:255]
    house.idle = ""
    house.manager.look()
    assert row_of(house).idle == ""


def test_no_more_fetches_run_than_there_are_places() -> None:
    house = House(places=2)
    house.manager.start()
    for pid in (1, 2, 3):
        house.provider(pid)
        house.push(pid, f"p{pid}")
    assert house.next() == "p1"
    first = house.ticket
    assert house.next() == "p2"
    assert house.next() is None
    house.finish(first)
    assert house.next() == "p3"


def test_bodies_that_are_paced_hold_no_place_and_wake_who_waits_for_one() -> None:
    house = House(places=2)
    house.manager.start()
    crowd(house, 3)
    assert [house.next(), house.next()] == ["p1", "p2"]
    second = house.ticket
    assert house.next() is None
    rings = house.rings
    assert charged(house, 9000, second) > 0
    assert house.rings == rings + 1
    assert house.next() == "p3"
    assert house.manager.in_flight() == 3


def test_who_has_to_pause_again_gives_no_second_place_on() -> None:
    house = House(places=1)
    house.manager.start()
    crowd(house, 3)
    assert house.next() == "p1"
    first, rings = house.ticket, house.rings
    for _ in range(3):
        assert charged(house, 9000) > 0
    assert house.rings == rings + 1
    assert house.next() == "p2"
    assert house.next() is None
    house.finish(first)
    assert house.next() is None  # its place was given on long ago
    assert house.manager.in_flight() == 1


def test_an_urgent_provider_takes_the_next_place_before_all_that_are_paced_or_wait() -> None:
    house = House(places=2)
    house.manager.start()
    crowd(house, 65)
    assert len(pace(house)) == 65
    house.provider(100, priority=2)
    house.push(100, "urgent")
    assert house.next() == "urgent"


def test_higher_priority_goes_first_at_every_place_that_is_given_on() -> None:
    house = House(places=1)
    house.manager.start()
    crowd(house, 3)
    assert house.next() == "p1"
    first = house.ticket
    house.provider(100, priority=2)
    house.push(100, "urgent")
    assert house.next() is None
    charged(house, 9000, first)
    assert house.next() == "urgent"
    assert house.next() is None


def test_at_the_bound_of_paced_ones_providers_with_a_limit_wait_and_others_go_on() -> None:
    house = House(places=4, paced=3)
    house.manager.start()
    crowd(house, 5, priority=1)
    for pid in (100, 101):
        house.provider(pid)
        house.push(pid, f"free{pid}")
    assert [(house.next(), charged(house, 9000) > 0) for _ in range(3)] == [
        ("p1", True),
        ("p2", True),
        ("p3", True),
    ]
    third = house.ticket
    assert [house.next(), house.next(), house.next()] == ["free100", "free101", None]
    house.finish(third)
    assert house.next() == "p4"


def test_bodies_behind_the_common_limit_hold_their_places_against_all_but_higher_priorities() -> None:
    house = House(places=2, bandwidth=1000)
    house.manager.start()
    for pid in (1, 2, 3):
        house.provider(pid)
        house.push(pid, f"p{pid}")
    house.provider(100, priority=2)
    assert [house.next(), house.next()] == ["p1", "p2"]
    assert charged(house, 9000) > 0
    house.clock.advance(9)
    assert house.next() is None
    house.push(100, "urgent")
    assert house.next() == "urgent"


def test_who_waits_for_a_place_is_not_woken_again_and_again() -> None:
    """The moment at which the common limit lets a fetch begin has passed, but there is no place."""
    house = House(places=2, bandwidth=1000)
    house.manager.start()
    for pid, limit in ((1, 0), (2, 0), (3, 500)):
        house.provider(pid, bandwidth=limit)
    house.push(1, "p1")
    assert house.next() == "p1"
    house.manager.charge(None, 5000)
    house.push(2, "p2")
    assert house.next() is None
    house.push(3, "p3")
    assert house.next() == "p3"
    woken = 0
    for _ in range(700):
        rings = house.rings
        house.clock.advance(0.01)
        if house.rings > rings:
            woken += 1
            assert house.next() is None
    assert woken < 10  # by polls, and once by the alarm


def test_what_is_paced_keeps_its_turn_and_its_lease_for_as_long_as_it_takes() -> None:
    house = House(lease=60.0, poll=2.0)
    house.manager.start()
    crowd(house, 1)
    assert house.next() == "p1"
    for _ in range(600):
        assert charged(house, 3000) >= 0
        house.clock.advance(10)
    assert house.manager.member(house.ticket) is not None
    assert house.next() is None


def test_a_worker_tells_how_many_fetches_it_has_in_places_and_at_the_pace_of_limits() -> None:
    house = House(places=4)
    house.manager.start()
    crowd(house, 3)
    pace(house)
    house.provider(100)
    house.push(100, "free")
    assert house.next() == "free"
    house.clock.advance(2)
    assert (row_of(house).places, row_of(house).in_use, row_of(house).paced) == (4, 1, 3)


def test_a_fetch_that_takes_long_is_told_of_until_it_has_ended() -> None:
    house = House()
    house.manager.start()
    crowd(house, 1)
    assert house.next() == "p1"
    ticket = house.ticket
    assert ticket is not None
    assert house.manager.expect(TurnPass.of(ticket), 30_000) == 100.0
    charged(house, 9000)
    with house.store.read() as tx:
        assert tx.long_fetch("1") is None
    house.clock.advance(6)
    with house.store.read() as tx:
        told = tx.long_fetch("1")
    assert told is not None
    assert (told.owner, told.token, told.urlkey) == ("1/0", ticket.token, ticket.row.urlkey)
    assert (told.transferred, told.size, told.paced) == (9000, 30_000, int(MONDAY_NOON))
    house.finish()
    house.clock.advance(2)
    with house.store.read() as tx:
        assert tx.long_fetch("1") is None


def test_what_is_told_of_fetches_goes_with_the_worker() -> None:
    house = House()
    house.manager.start()
    crowd(house, 1)
    assert house.next() == "p1"
    house.clock.advance(6)
    with house.store.begin() as tx:
        assert tx.long_fetch("1") is not None
        tx.free_turns_of("1/0")
        assert tx.long_fetch("1") is None


def test_a_length_says_nothing_where_there_is_no_limit(house: House) -> None:
    house.provider(1)
    house.manager.start()
    house.push(1, "a")
    assert house.next() == "a"
    assert house.ticket is not None
    assert house.manager.expect(TurnPass("1", house.ticket.token, b"k", 1), 10**9) == 0.0
    assert house.manager.expect(None, 10**9) == 0.0


def a_crowd_before_the_start(monkeypatch: Any) -> House:
    monkeypatch.setattr(turn_leases, "LEASES_PER_LOOK", 2)
    house = House()
    for pid in range(1, 6):
        house.provider(pid)
        house.push(pid, "a", "b", elsewhere=True)
    house.thread = house.manager.leases.thread = house.manager.windows.readers = ByHand()
    house.manager.start()
    return house


def test_a_worker_that_begins_hands_nothing_out_before_it_has_all_turns(monkeypatch: Any) -> None:
    house = a_crowd_before_the_start(monkeypatch)
    handed_out = []
    while house.thread.work_off(1):
        handed_out.append((len(house.manager.turns), house.next() is not None))
    assert {held for held, out in handed_out if out} == {5}
    assert {held for held, _ in handed_out} >= {2, 4, 5}


def test_a_worker_that_begins_takes_turns_for_some_seconds_only(monkeypatch: Any) -> None:
    house = a_crowd_before_the_start(monkeypatch)
    house.thread.work_off(3)
    assert (len(house.manager.turns), house.next()) == (4, None)
    house.clock.advance(turn_leases.GATHER)
    assert house.next() is not None
