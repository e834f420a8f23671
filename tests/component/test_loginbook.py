"""Rows of logins that no set will come of go, whatever went wrong in between."""

from typing import Any

import pytest
from same_thread import ByHand
from twisted.internet.task import Clock

from lcc_scrapy import loginbook
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.loginbook import LoginBook
from lcc_scrapy.storage.memory import MemoryStore
from lcc_scrapy.storage.records import OpenLogin, Uns


class House:
    """A book over a store, with the logins that this UNS knows of."""

    def __init__(self) -> None:
        self.store, self.thread, self.clock = MemoryStore(), ByHand(), Clock()
        self.known: set[tuple[int, int]] = set()
        self.forgotten = 0
        self.away = False
        self.time = 1000
        thread: Any = self.thread
        self.book = LoginBook(
            self, thread, self.clock, uns="me", note="host", beat=10.0,
            knows=self.known.__contains__, forgotten=self.note, now=lambda: self.time,
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
                tx.insert_login(OpenLogin(pid, seq, uns, 1))
        if known:
            self.known.update(logins)

    def rows(self, uns: str = "me") -> list[tuple[int, int]]:
        with self.store.read() as tx:
            return [(login.pid, login.connseq) for login in tx.logins_of(uns, (0, 0), 100)]

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
    monkeypatch.setattr(loginbook, "PAGE", 2)
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
