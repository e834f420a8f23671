"""Rows of logins that no set will come of go, whatever went wrong in between."""

from typing import Any

import pytest
from same_thread import ByHand
from twisted.internet.task import Clock

from lcc_scrapy.db.records import OpenLogin, Overtaking, Uns
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.intake import open_logins
from lcc_scrapy.intake.open_logins import OpenLogins
from tests.memory_store import MemoryStore


class House:
    """A book over a store, with the logins that this UNS knows of."""

    def __init__(self) -> None:
        self.store, self.thread, self.clock = MemoryStore(), ByHand(), Clock()
        self.known: set[tuple[int, int]] = set()
        self.talking: dict[tuple[int, int], bool] = {}
        self.forgotten = 0
        self.away = False
        self.time = 1000
        thread: Any = self.thread
        self.book = OpenLogins(
            self, thread, self.clock, uns="me", note="host", beat=10.0,
            poll=2.0, knows=self.known.__contains__, logged_in=lambda: self.talking, forgotten=self.note,
            now=lambda: self.time,
        )  # fmt: skip

    def note(self) -> None:
        self.forgotten += 1

    def begin(self) -> Any:
        if self.away:
            raise StoreUnavailable("gone away")
        return self.store.begin()

    def read(self) -> Any:
        if self.away:
            raise StoreUnavailable("gone away")
        return self.store.read()

    def close(self) -> None:
        self.store.close()

    def log_in(self, *logins: tuple[int, int], uns: str = "me", known: bool = False) -> None:
        with self.store.begin() as tx:
            for pid, seq in logins:
                tx.insert_logins([OpenLogin(pid, seq, uns, 1)])
        if known:
            self.known.update(logins)

    def rows(self, uns: str = "me") -> list[tuple[int, int]]:
        with self.store.read() as tx:
            return [(login.pid, login.connseq) for login in tx.logins_of(uns, (0, 0), 100)]

    def stages(self) -> dict[tuple[int, int], str]:
        with self.store.read() as tx:
            return {(login.pid, login.connseq): login.stage for login in tx.logins_of("me", (0, 0), 100)}

    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.thread.work_off()
            self.clock.advance(1)
        self.thread.work_off()


@pytest.fixture
def house() -> House:
    return House()


def test_a_login_that_brought_no_set_is_forgotten_and_those_who_wait_are_told(house: House) -> None:
    house.log_in((1, 1), (1, 2), known=True)
    house.book.forget(1, 1)
    house.thread.work_off()
    assert house.rows() == [(1, 2)]
    assert house.forgotten == 1


def test_many_that_end_at_once_are_forgotten_together(house: House) -> None:
    house.log_in(*((1, seq) for seq in range(50)))
    for seq in range(50):
        house.book.forget(1, seq)
    assert house.thread.work_off() == 2
    assert house.rows() == []


def test_a_roll_call_forgets_what_nobody_here_knows_and_nothing_of_another_uns(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_logins, "PAGE", 2)
    house.log_in((1, 2), (2, 5), (3, 1), known=True)
    house.log_in((1, 1), (1, 3), (2, 4), (3, 9))
    house.log_in((1, 7), (4, 1), uns="other")
    house.book.start()
    house.thread.work_off()
    assert house.rows() == [(1, 2), (2, 5), (3, 1)]
    assert house.rows("other") == [(1, 7), (4, 1)]
    assert house.forgotten > 0


def test_every_roll_call_is_a_sign_of_life(house: House) -> None:
    house.book.start()
    for _ in range(3):
        house.pass_time(10)
        house.time += 10
    with house.store.read() as tx:
        assert tx.unses() == [Uns("me", "host", 1020)]
    house.book.stop()
    assert house.clock.getDelayedCalls() == []


def test_a_login_that_comes_back_while_the_roll_is_called_is_not_forgotten(house: House) -> None:
    """Its row is read only after its own job, so its conversation has begun when rows are compared."""
    house.book.start()
    admitting = house.thread.run(house.log_in, (1, 1))
    admitting.addCallback(lambda _: house.known.add((1, 1)))
    house.thread.work_off()
    house.pass_time(30)
    assert house.rows() == [(1, 1)]


def test_what_could_not_be_forgotten_while_the_database_was_away_goes_when_it_is_back(house: House) -> None:
    house.book.start()
    house.thread.work_off()
    house.log_in((1, 1), (1, 2), known=True)
    house.away = True
    house.book.forget(1, 1)
    house.pass_time(25)
    assert house.rows() == [(1, 1), (1, 2)]
    house.away = False
    house.pass_time(10)
    assert house.rows() == [(1, 2)]


# --- stages ------------------------------------------------------------------------------------------


def test_a_login_without_a_set_is_noted_as_idle_when_that_lasts_and_as_open_when_one_begins(
    house: House,
) -> None:
    house.log_in((1, 1), (1, 2), known=True)
    house.talking = {(1, 1): False, (1, 2): True}
    house.book.start()
    house.pass_time(2)
    assert house.stages() == {(1, 1): "open", (1, 2): "open"}
    house.pass_time(2)
    assert house.stages() == {(1, 1): "idle", (1, 2): "open"}
    house.talking = {(1, 1): True, (1, 2): True}
    house.pass_time(2)
    assert house.stages() == {(1, 1): "open", (1, 2): "open"}


def test_a_set_is_noted_as_complete_when_it_waits_for_longer_than_a_look(house: House) -> None:
    house.log_in((1, 1), (1, 2), known=True)
    house.book.start()
    house.book.complete(1, 1)
    house.book.complete(1, 2)
    house.pass_time(2)
    assert set(house.stages().values()) == {"open"}
    house.known.remove((1, 2))
    house.pass_time(2)
    assert house.stages() == {(1, 1): "complete", (1, 2): "open"}


def test_conversations_and_sets_that_do_not_last_cost_no_note_at_all(house: House) -> None:
    house.book.start()
    house.thread.work_off()
    house.talking = {(1, 1): False}
    house.book.complete(1, 2)
    house.clock.advance(2)
    house.talking = {(1, 3): False}
    house.clock.advance(2)
    assert house.thread.work_off() == 0


def test_a_stage_that_could_not_be_noted_is_noted_when_the_database_is_back(house: House) -> None:
    house.log_in((1, 1), (1, 2), known=True)
    house.talking = {(1, 1): False}
    house.book.start()
    house.thread.work_off()
    house.book.complete(1, 2)
    house.away = True
    house.pass_time(5)
    house.away = False
    assert set(house.stages().values()) == {"open"}
    house.pass_time(3)
    assert house.stages() == {(1, 1): "idle", (1, 2): "complete"}
    house.away = True
    house.talking = {(1, 1): True}
    house.pass_time(2)
    house.away = False
    house.pass_time(3)
    assert house.stages()[1, 1] == "open"


def test_what_overtaking_sets_named_is_forgotten_at_the_roll_call_in_pages(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_logins, "PAGE", 2)
    keys = [bytes([number]) * 16 for number in range(5)]
    house.log_in((2, 1), known=True)
    with house.store.begin() as tx:
        tx.overtake(2, 9)
        tx.put_overtaking([Overtaking(key, 1, 5) for key in keys[:4]])
        tx.put_overtaking([Overtaking(keys[4], 2, 5)])
    house.book.start()
    house.thread.work_off()
    with house.store.read() as tx:
        assert tx.overtaking(1, 0, b"", 9) == []
        assert tx.overtaking(2, 0, b"", 9) == [keys[4]]
