"""When a component fails on every document, fetching pauses, and tries again with one at a time."""

import pytest

from lcc_scrapy.domain.breaker import LAST, Breaker, Fault, Verdict

BROKEN = Fault("shop.parts.Title", "KeyError")
OTHER = Fault("shop.parts.Title", "TypeError")
PAUSE = 60.0


@pytest.fixture
def breaker() -> Breaker:
    return Breaker(PAUSE)


def fail(breaker: Breaker, times: int, fault: Fault = BROKEN, now: float = 0.0) -> list[Verdict]:
    return [breaker.failed(fault, now) for _ in range(times)]


@pytest.fixture
def paused(breaker: Breaker) -> Breaker:
    fail(breaker, LAST)
    return breaker


def test_the_fault_that_began_a_pause_is_named(breaker: Breaker) -> None:
    assert breaker.why == ""
    fail(breaker, LAST)
    assert breaker.why == f"{BROKEN.component} fails on every document ({BROKEN.error})"


def test_fifty_documents_in_a_row_begin_a_pause_and_the_fiftieth_keeps_its_place(breaker: Breaker) -> None:
    assert fail(breaker, LAST - 1) == [Verdict.FAILED] * (LAST - 1)
    assert breaker.may_fetch(0)
    assert breaker.failed(BROKEN, 0) is Verdict.PAUSED
    assert not breaker.may_fetch(PAUSE - 1)


def test_one_document_that_passes_begins_the_count_anew(breaker: Breaker) -> None:
    fail(breaker, LAST - 1)
    assert not breaker.passed()
    assert set(fail(breaker, LAST - 1)) == {Verdict.FAILED}
    assert breaker.may_fetch(0)


@pytest.mark.parametrize("other", [OTHER, Fault("shop.parts.Price", "KeyError")])
def test_another_error_or_another_component_begins_the_count_anew(breaker: Breaker, other: Fault) -> None:
    fail(breaker, LAST - 1)
    assert breaker.failed(other, 0) is Verdict.FAILED
    assert set(fail(breaker, LAST - 1)) == {Verdict.FAILED}


def test_what_was_under_way_keeps_its_place_and_does_not_prolong_the_pause(paused: Breaker) -> None:
    assert fail(paused, 10, now=PAUSE / 2) == [Verdict.WAITS] * 10
    assert paused.may_fetch(PAUSE)


def test_a_single_document_is_tried_after_the_pause(paused: Breaker) -> None:
    assert paused.may_fetch(PAUSE)
    paused.fetch_begins(PAUSE)
    assert not paused.may_fetch(PAUSE)
    assert not paused.may_fetch(2 * PAUSE - 1)


@pytest.mark.parametrize("fault", [BROKEN, OTHER])
def test_a_probe_that_fails_keeps_its_place_and_begins_the_next_pause(paused: Breaker, fault: Fault) -> None:
    paused.fetch_begins(PAUSE)
    assert paused.failed(fault, PAUSE + 5) is Verdict.PAUSED
    assert not paused.may_fetch(2 * PAUSE + 4)
    assert paused.may_fetch(2 * PAUSE + 5)


def test_a_probe_that_passes_ends_the_pause_and_the_count(paused: Breaker) -> None:
    paused.fetch_begins(PAUSE)
    assert paused.passed()
    assert paused.may_fetch(PAUSE)
    assert fail(paused, 1) == [Verdict.FAILED]


def test_a_probe_that_brought_no_document_is_followed_by_another_at_once(paused: Breaker) -> None:
    paused.fetch_begins(PAUSE)
    paused.untested()
    assert paused.may_fetch(PAUSE)
    paused.fetch_begins(PAUSE)
    assert not paused.may_fetch(PAUSE)


def test_a_fetch_without_a_document_changes_nothing_otherwise(breaker: Breaker, paused: Breaker) -> None:
    paused.untested()
    assert not paused.may_fetch(PAUSE - 1)


def test_a_probe_of_which_nothing_is_heard_is_followed_by_another_after_a_pause(paused: Breaker) -> None:
    paused.fetch_begins(PAUSE)
    assert paused.may_fetch(2 * PAUSE)


def test_without_a_pause_nothing_is_held() -> None:
    never = Breaker(0)
    assert set(fail(never, 3 * LAST)) == {Verdict.FAILED}
    assert never.may_fetch(0)


def test_a_pause_ends_when_the_setting_is_taken_away(paused: Breaker) -> None:
    paused.pause = 0
    assert paused.may_fetch(1)
    assert paused.failed(BROKEN, 1) is Verdict.FAILED


def test_a_pause_of_one_second_is_one() -> None:
    breaker = Breaker(1)
    fail(breaker, LAST)
    assert breaker.is_open
    assert not breaker.may_fetch(0.5)
    assert breaker.may_fetch(1)


def test_a_fetch_without_document_before_any_pause_changes_nothing(breaker: Breaker) -> None:
    breaker.untested()
    assert breaker.may_fetch(0)
