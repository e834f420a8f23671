"""Questions that wait for the store's thread share a transaction, and none of them spoils another."""

from collections.abc import Sequence
from typing import Any

import pytest
from same_thread import ByHand
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from lcc_scrapy.domain.errors import Refusal, StoreUnavailable
from lcc_scrapy.login import grouping
from lcc_scrapy.login.grouping import Grouped


class Answering:
    """Answers numbers with their doubles; keeps the groups in which they were asked."""

    def __init__(self) -> None:
        self.thread = ByHand()
        self.groups: list[list[int]] = []
        self.away = False
        thread: Any = self.thread
        self.grouped: Grouped[int, int] = Grouped(thread, self._answer)
        self.told: list[tuple[int, object]] = []

    def _answer(self, asks: Sequence[int]) -> list[int | Exception]:
        self.groups.append(list(asks))
        if self.away:
            raise StoreUnavailable("gone away")
        if 13 in asks:
            raise ValueError(13)
        return [Refusal(101) if ask < 0 else 2 * ask for ask in asks]

    def ask(self, *numbers: int) -> list["Deferred[int]"]:
        return [self._ask(number) for number in numbers]

    def _ask(self, number: int) -> "Deferred[int]":
        done = self.grouped.ask(number)
        done.addCallbacks(lambda said: self.told.append((number, said)), lambda f: self._failed(number, f))
        return done

    def _failed(self, number: int, failure: Failure) -> None:
        self.told.append((number, type(failure.value)))


@pytest.fixture
def answering() -> Answering:
    return Answering()


def test_what_waits_when_the_thread_is_free_is_answered_together(answering: Answering) -> None:
    answering.ask(1, 2, 3)
    assert answering.thread.work_off(1) == 1
    answering.ask(4)
    answering.thread.work_off()
    assert answering.groups == [[1, 2, 3], [4]]
    assert answering.told == [(1, 2), (2, 4), (3, 6), (4, 8)]


def test_a_group_has_a_bound_and_the_rest_comes_next(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "MOST", 2)
    answering.ask(*range(5))
    answering.thread.work_off()
    assert answering.groups == [[0, 1], [2, 3], [4]]


def test_nobody_is_answered_before_the_work_of_the_group_is_done(answering: Answering) -> None:
    answering.ask(1, 2)
    assert answering.told == []


def test_a_question_that_is_refused_concerns_nobody_else(answering: Answering) -> None:
    answering.ask(1, -1, 2)
    answering.thread.work_off()
    assert answering.told == [(1, 2), (-1, Refusal), (2, 4)]
    assert answering.groups == [[1, -1, 2]]


def test_a_question_that_breaks_its_group_is_alone_in_failing(answering: Answering) -> None:
    answering.ask(1, 13, 2)
    answering.thread.work_off()
    assert answering.told == [(1, 2), (13, ValueError), (2, 4)]
    assert answering.groups == [[1, 13, 2], [1], [13], [2]]


def test_a_database_that_is_away_is_asked_once_for_all(answering: Answering) -> None:
    answering.away = True
    answering.ask(1, 2, 3)
    answering.thread.work_off()
    assert answering.told == [(number, StoreUnavailable) for number in (1, 2, 3)]
    assert answering.groups == [[1, 2, 3]]
    answering.away = False
    answering.ask(4)
    answering.thread.work_off()
    assert answering.told[-1] == (4, 8)


def test_whoever_gives_up_before_the_job_begins_is_not_asked_for(answering: Answering) -> None:
    _, second, _ = answering.ask(1, 2, 3)
    second.cancel()
    answering.thread.work_off()
    assert answering.groups == [[1, 3]]
    assert answering.told == [(2, CancelledError), (1, 2), (3, 6)]


def test_when_all_have_given_up_the_next_is_answered_all_the_same(answering: Answering) -> None:
    (only,) = answering.ask(1)
    only.cancel()
    answering.thread.work_off()
    answering.ask(2)
    answering.thread.work_off()
    assert answering.told == [(1, CancelledError), (2, 4)]
