"""Windows of tickets: who gets one when, how large, and that reading on keeps the order of submission."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from same_thread import ByHand
from test_queue_manager import POLICY, House

from lcc_scrapy.domain import timeslots
from lcc_scrapy.domain.entries import Operation, UrlEntry, urlkey
from lcc_scrapy.domain.queue import FETCH, Place
from lcc_scrapy.domain.timeslots import parse_mask
from lcc_scrapy.queue import window_rows, windows
from lcc_scrapy.queue.unit_of_work import UnitOfWork
from lcc_scrapy.queue.window_rows import Wanted, windows_of
from tests.memory_store import MemoryTx


@pytest.fixture
def heads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is asked of the store, in order."""
    asked: list[Any] = []
    real = MemoryTx.heads

    def spy(self: MemoryTx, wanted: Any, *, retries: bool = False) -> Any:
        asked.extend(wanted)
        return real(self, wanted, retries=retries)

    monkeypatch.setattr(MemoryTx, "heads", spy)
    return asked


def read_by_hand(house: House) -> Any:
    by_hand: Any = ByHand()
    house.manager.windows.readers = by_hand
    return by_hand


def names(count: int) -> list[str]:
    return [f"{number:04d}" for number in range(count)]


# --- who, and how much --------------------------------------------------------------------------------


def test_every_turn_gets_its_first_window_before_any_gets_its_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "AT_ONCE", 1)
    house = House(window=2)
    for pid in range(1, 6):
        house.provider(pid)
    house.manager.start()
    for pid in (1, 2, 3):
        house.push(pid, *names(9))
    by_hand = read_by_hand(house)
    assert len(house.fetch_all()) == 6, "the first three wait for their second windows now"
    for pid in (4, 5):
        house.push(pid, *names(9))
    by_hand.work_off(3)  # one of them was being read
    assert {turn.key for turn in house.manager.turns if turn.window} == {"1", "4", "5"}


def test_of_turns_that_wait_to_be_read_those_of_higher_priority_come_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(windows, "AT_ONCE", 1)
    house = House()
    by_hand = read_by_hand(house)
    for pid, priority in ((1, 0), (2, 0), (3, 2), (4, 1)):
        house.provider(pid, priority=priority)
        house.push(pid, "a")
    house.manager.start()
    order = []
    while by_hand.work_off(1):
        order += [int(turn.key) for turn in house.manager.turns if turn.window and int(turn.key) not in order]
    assert order.index(4) < max(order.index(1), order.index(2))
    assert order.index(3) < max(order.index(1), order.index(2))


def test_equal_turns_end_together_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "AT_ONCE", 5)
    house = House(window=100, tickets=60)
    pids = range(1, 31)
    for pid in pids:
        house.provider(pid)
        house.push(pid, *names(10))
    house.manager.start()
    ended: dict[int, int] = {}
    for moment in range(300):
        assert house.next() is not None
        assert house.ticket is not None
        ended[house.ticket.row.pid] = moment
        house.finish()
    assert set(ended) == set(pids)
    assert max(ended.values()) <= 2 * min(ended.values())


def test_a_window_grows_while_it_drains_quickly_and_shrinks_when_it_lasts(heads: list[Any]) -> None:
    house = House(window=300)
    house.provider(1)
    house.manager.start()
    house.push(1, *names(2000))
    for _ in range(1000):
        assert house.next() is not None
        house.finish()
    assert house.manager.turns.get("1").size == 300
    for _ in range(700):
        house.clock.advance(1)
        assert house.next() is not None
        house.finish()
    assert house.manager.turns.get("1").size < 300
    assert max(head.limit for head in heads) <= 302, "never more than the window and what is out"


@pytest.mark.parametrize(("bound", "together"), [(64, [2, 2, 1]), (63, [1] * 5), (10, [1] * 5)])
def test_one_transaction_reads_windows_of_so_many_tickets_and_one_at_least(
    monkeypatch: pytest.MonkeyPatch, bound: int, together: list[int]
) -> None:
    monkeypatch.setattr(windows, "ROWS_AT_ONCE", bound)
    house = House()
    by_hand = read_by_hand(house)
    for pid in range(1, 6):
        house.provider(pid)
        house.push(pid, *names(40), elsewhere=True)
    house.manager.start()
    read = []
    while by_hand.jobs:
        _, _, (wanted,) = by_hand.jobs[0]
        assert {one.limit for one in wanted} == {windows.FIRST}
        read.append(len(wanted))
        by_hand.work_off(1)
    assert read == together


def test_windows_that_are_read_together_share_what_room_there_is() -> None:
    house = House(tickets=40)
    by_hand = read_by_hand(house)
    for pid in range(1, 4):
        house.provider(pid)
        house.push(pid, *names(40), elsewhere=True)
    house.manager.start()
    house.manager.windows.room = windows.Room(32, 20)
    [(_, _, (wanted,))] = by_hand.jobs
    house.manager.windows.read_anew(list(house.manager.turns))
    by_hand.work_off()
    assert sum(one.limit for one in wanted) <= 40
    assert sum(len(turn.window) for turn in house.manager.turns) <= 20


def test_a_window_that_is_read_again_from_the_head_keeps_its_size() -> None:
    house = House(window=64)
    house.provider(1)
    house.manager.start()
    house.push(1, *names(100))
    turn = house.manager.turns.get("1")
    assert turn is not None
    for _ in range(3):
        house.manager.touched(1)
        assert (turn.size, len(turn.window)) == (windows.FIRST, windows.FIRST)


def test_one_turn_alone_takes_half_of_the_room_at_most() -> None:
    house = House(window=1000, tickets=100)
    house.provider(1)
    house.manager.start()
    house.push(1, "a")
    turn = house.manager.turns.get("1")
    assert turn is not None
    house.manager.windows.expected = 10
    turn.size, turn.reach = 1000, None
    assert house.manager.windows._size(turn, 100) == 50


def test_a_window_is_sized_for_some_seconds_at_the_rate_at_which_the_last_one_drained() -> None:
    house = House(window=1000)
    house.provider(1)
    house.manager.start()
    house.push(1, *names(2000))
    turn = house.manager.turns.get("1")
    assert turn is not None
    sizes = [turn.size]
    for seconds in (0.01, 0.02, 1.0):
        size = turn.size
        while turn.size == size:
            house.clock.advance(seconds)
            assert house.next() is not None
            house.finish()
        sizes.append(turn.size)
    assert sizes[0] == windows.FIRST
    assert sizes[1] == pytest.approx(100 * windows.LASTS, rel=0.1)
    assert sizes[2] == pytest.approx(50 * windows.LASTS, rel=0.1)
    assert sizes[3] == sizes[2] // 2, "not much smaller at once: it may have had to wait"


def test_slow_turns_leave_room_to_a_fast_one() -> None:
    house = House(window=1000, tickets=400)
    for pid in range(1, 21):
        house.provider(pid)
        house.push(pid, *names(2 if pid > 1 else 600))
    house.manager.start()
    for _ in range(500):
        assert house.next() is not None
        house.finish()
    assert house.manager.turns.get("1").size > 400 // 20
    assert sum(len(turn.window) for turn in house.manager.turns) <= 400


def test_more_turns_than_tickets_are_all_served_in_the_end() -> None:
    house = House(window=9, tickets=2)
    pids = range(1, 6)
    for pid in pids:
        house.provider(pid)
        house.push(pid, *names(3))
    house.manager.start()
    assert len(house.fetch_all()) == 15
    assert all(len(turn.window) == 0 for turn in house.manager.turns)


def test_a_read_that_fails_is_told_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    house = House(poll=20.0, window=1)
    house.provider(1)
    house.push(1, "a", "b")
    house.manager.start()
    house.thread.unheard = "_read"
    assert house.next() == "a"
    assert [one for one in caplog.messages if one.startswith("cannot read the queue now, trying again")]
    house.clock.advance(windows.RETRY)
    house.finish()
    assert house.next() == "b"


def test_of_many_hours_a_few_rows_of_each_are_read(heads: list[Any]) -> None:
    house = House(window=100)
    house.provider(1)
    house.manager.start()
    for hour in range(12):  # it is noon
        house.push(1, *names(40), timeofday=parse_mask(f"{hour}-14"))
        house.push(1, f"{hour}", timeofday=parse_mask(f"{hour}-14"))
    del heads[:]
    house.manager.windows.read_anew(house.manager.turns.those(["1"]))
    assert {head.limit for head in heads} == {window_rows.PART}


# --- reading on ---------------------------------------------------------------------------------------


def test_what_is_left_of_a_window_is_not_read_twice(heads: list[Any]) -> None:
    house = House(window=16)
    house.provider(1)
    house.manager.start()
    house.push(1, *names(400))
    del heads[:]
    assert house.fetch_all() == names(400)
    assert all(head.behind > (-1, -1) for head in heads), "read from the head again"
    places = [head.behind for head in heads]
    assert places == sorted(set(places)), "the same place was read twice"


def test_no_more_rows_are_read_than_tickets_are_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many outcomes are not durable yet: what is out lies before the place where reading goes on."""
    house = House(window=100)
    house.provider(1)
    house.push(1, *names(1000), elsewhere=True)
    rows: list[Any] = []
    real = MemoryTx.heads

    def counted(self: MemoryTx, wanted: Any, *, retries: bool = False) -> Any:
        found = real(self, wanted, retries=retries)
        rows.extend(row for part in found.values() for row in part)
        return found

    monkeypatch.setattr(MemoryTx, "heads", counted)
    house.manager.dispatcher.group_commit._thread = ByHand()
    house.manager.dispatcher.group_commit.most = 2000
    house.manager.start()
    assert house.fetch_all() == names(1000)
    assert len(rows) == 1000


def test_a_window_is_read_on_before_it_runs_dry() -> None:
    house = House(window=16)
    by_hand = read_by_hand(house)
    house.provider(1)
    house.push(1, *names(100))
    house.manager.start()
    by_hand.work_off()
    left = None
    while not by_hand.jobs:
        assert house.next() is not None
        house.finish()
        left = len(house.manager.turns.get("1").window)
    assert left == 7


def test_reading_does_not_wait_behind_a_commit() -> None:
    house = House(window=4)
    house.provider(1)
    house.push(1, *names(40))
    house.manager.start()
    commits = house.manager.dispatcher.group_commit._thread = ByHand()
    assert house.fetch_all() == names(40)
    assert commits.jobs, "nothing is durable yet"


def test_what_is_handed_out_while_its_window_is_read_does_not_come_again() -> None:
    house = House(window=4)
    house.provider(1)
    house.push(1, *"abc")
    house.manager.start()
    by_hand = read_by_hand(house)
    house.manager.dispatcher.group_commit._thread = ByHand()
    house.manager.windows.read_anew(house.manager.turns.those(["1"]))
    assert house.next() == "a"
    house.finish()
    by_hand.work_off()
    assert house.fetch_all() == [*"bc"]


def test_what_other_processes_absorbed_under_other_hours_is_found_when_a_window_is_read_on() -> None:
    house = House(window=4)
    house.provider(1)
    house.manager.start()
    house.push(1, *names(10))
    house.push(1, "x", timeofday=parse_mask("12-13"), elsewhere=True)
    house.push(1, "y", elsewhere=True)
    assert house.fetch_all() == [*names(10), "x", "y"]


def test_a_group_goes_on_in_its_ring_where_it_was() -> None:
    house = House(window=3)
    for pid in (1, 2):
        house.provider(pid, turngroup="farm")
        house.push(pid, *names(10))
    house.manager.start()
    pids = []
    while house.next() is not None:
        assert house.ticket is not None
        pids.append(house.ticket.row.pid)
        house.finish()
    assert pids == [1, 2] * 10


def test_a_url_that_fails_while_its_window_is_read_is_tried_again_when_it_is_due() -> None:
    house = House(window=4)
    house.provider(1)
    house.push(1, *"abc")
    house.manager.start()
    by_hand = read_by_hand(house)
    assert house.next() == "a"
    house.manager.windows.read_anew(house.manager.turns.those(["1"]))
    (done, job, arguments), *_ = by_hand.jobs
    by_hand.jobs.clear()
    result = job(*arguments)  # it has been read, and nobody has heard of it yet
    house.finish(code=500)
    done.callback(result)
    assert house.fetch_all() == [*"bc"]
    house.clock.advance(61)
    for _ in range(3):  # it may have to be leased again, or looked for first
        by_hand.work_off()
        house.clock.advance(2)
    assert house.next() == "a"


def test_a_url_that_is_out_behind_the_window_does_not_hold_its_reading_up() -> None:
    """It lies there when URLs before it became due while it was fetched."""
    house = House()
    house.provider(1)
    house.push(1, *"abcd")
    house.manager.start()
    turn = house.manager.turns.get("1")
    assert turn is not None
    found: list[str] = []
    more, reach = True, None
    with house.store.read() as tx:
        out = {row.urlkey for row in tx.queued_of(1, 0, 10) if row.furl.endswith("/b")}
        for _ in range(6):
            lacking = Wanted(turn.lease, tuple(turn.members.values()), 1, out if reach else (), reach)
            (window,) = windows_of(tx, [lacking], house.clock.seconds(), zone=house.manager.dispatcher.zone)
            found += [one.row.furl.rsplit("/", 1)[1] for one in window.tickets]
            more, reach = window.more, window.reach
            if not more:
                break
    assert found == [*"acd"]
    assert not more


# --- the order, whatever happens ----------------------------------------------------------------------

NAMES = [f"n{number:02d}" for number in range(30)]
HOURS = ["", parse_mask("12-13"), parse_mask("13-15"), parse_mask("0-24")]
some_names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=15, unique=True)


class Order(RuleBasedStateMachine):
    """What is handed out next is the first row in the store that may be fetched and is not out.

    It is the first retry that is due where no other row is there, or three others were handed out since.
    """

    window = 3

    @initialize()
    def begin(self) -> None:
        self.house = House(window=self.window, poll=20.0)
        self.house.provider(1)
        self.house.manager.start()
        self.since = 0
        self.commits: Any = ByHand()
        self.house.manager.dispatcher.group_commit._thread = self.commits
        self.ticket: Any = None

    def expected(self) -> str | None:
        fresh, retries = self.first(retries=False), self.first(retries=True)
        return retries if fresh is None or (retries is not None and self.since >= 3) else fresh

    def first(self, *, retries: bool) -> str | None:
        house, now = self.house, self.house.clock.seconds()
        held = house.manager.turns.get("1")
        out = held.out if held is not None else set()
        with house.store.read() as tx:
            rows = tx.queued_of(1, 0, 1000)
        ready = (
            (row.psetid, row.position, row.furl.rsplit("/", 1)[1])
            for row in rows
            if row.not_before <= now
            and (row.not_before > 0) == retries
            and row.operation == FETCH
            and row.urlkey not in out
            and timeslots.permits(row.timeofday, now, house.manager.dispatcher.zone)
        )
        return min(ready, default=(0, 0, None))[2]

    @rule(found=some_names, hours=st.sampled_from(HOURS))
    def a_set_arrives(self, found: list[str], hours: str) -> None:
        self.house.push(1, *found, timeofday=hours)

    @rule(found=some_names)
    def some_are_removed(self, found: list[str]) -> None:
        house = self.house
        house.sets += 1
        urls = [f"http://h1/{name}" for name in found]
        with house.store.begin() as tx:
            keys = [urlkey(1, url, "text/html") for url in urls]
            batch = UnitOfWork(tx, [1], keys, int(house.clock.seconds()), POLICY)
            for number, url in enumerate(urls, 1):
                batch.arrive(1, UrlEntry(url, "text/html", Operation.REMOVE), Place(house.sets, number))
            batch.flush()
        house.manager.touched(1)

    @precondition(lambda self: self.ticket is None)
    @rule()
    def the_next_one_is_handed_out(self) -> None:
        for _ in range(4):  # what was given back, or is due, is seen at one of the next looks
            expected = self.expected()
            name = self.house.next()
            if name is not None or expected is None:
                break
            self.commits.work_off()
            self.house.clock.advance(20)
        assert name == expected
        self.ticket = self.house.ticket
        if self.ticket is not None:
            self.since = 0 if self.ticket.row.not_before else self.since + 1

    @precondition(lambda self: self.ticket is not None)
    @rule(code=st.sampled_from([0, 0, 0, 404, 500]))
    def its_fetch_ends(self, code: int) -> None:
        ticket, self.ticket = self.ticket, None
        self.house.finish(ticket, code=code)

    @precondition(lambda self: self.ticket is not None)
    @rule()
    def it_is_put_back(self) -> None:
        ticket, self.ticket = self.ticket, None
        self.house.manager.put_back(ticket)
        self.house.manager.fetch_ended(ticket)

    @rule()
    def outcomes_become_durable(self) -> None:
        self.commits.work_off()

    @rule(seconds=st.sampled_from([1, 20, 61, 1800]))
    def time_passes(self, seconds: int) -> None:
        self.house.clock.pump([20.0] * (seconds // 20) + [float(seconds % 20)])


class OrderOfLateReads(Order):
    """Windows are read when it pleases them: nothing is handed out twice, and nothing is left behind."""

    @initialize()
    def begin(self) -> None:
        super().begin()
        self.reads = read_by_hand(self.house)

    @rule(count=st.integers(1, 2))
    def windows_are_read(self, count: int) -> None:
        self.reads.work_off(count)

    @rule()
    def a_window_is_read_and_heard_of_later(self) -> None:
        """Whatever comes next, comes between the read and what is made of it."""
        if self.reads.jobs:
            done, job, arguments = self.reads.jobs.popleft()
            result = job(*arguments)
            self.reads.jobs.appendleft((done, lambda: result, ()))

    @precondition(lambda self: self.ticket is None)
    @rule()
    def the_next_one_is_handed_out(self) -> None:
        held = self.house.manager.turns.get("1")
        before = set(held.out) if held is not None else set()
        if self.house.next() is not None:
            self.ticket = self.house.ticket
            assert self.ticket.row.urlkey not in before, "handed out twice"

    def teardown(self) -> None:
        if not hasattr(self, "house"):
            return
        if self.ticket is not None:
            self.house.finish(self.ticket)
        for _ in range(1000):
            if self.house.next() is not None:
                self.house.finish()
            elif self.expected() is None and not self.commits.jobs:
                return
            else:
                self.reads.work_off()
                self.commits.work_off()
                self.house.clock.advance(20)
        raise AssertionError(f"{self.expected()} is left behind")


def live(life: type[Order], window: int, examples: int) -> None:
    run_state_machine_as_test(
        type("Life", (life,), {"window": window}),
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize("window", [1, 3, 1000])
def test_the_order_of_submission_holds_however_large_windows_are(window: int) -> None:
    live(Order, window, 60)


@pytest.mark.slow
@pytest.mark.parametrize("window", [3, 1000])
def test_nothing_is_left_behind_or_handed_out_twice_however_late_windows_are_read(window: int) -> None:
    live(OrderOfLateReads, window, 60)


def test_the_order_of_submission_holds_in_some_lives() -> None:
    live(Order, 3, 8)
    live(OrderOfLateReads, 3, 8)
