"""What follows a failed fetch (design section 5 "Failures")."""

import pytest

from lcc_scrapy.domain.retries import (
    BROKEN_MAX,
    Backoff,
    GiveUp,
    Retry,
    after_failure,
    host_delay,
    is_host_level,
)

DELAYS = (60.0, 600.0, 3600.0)
NOW = 1_000_000


@pytest.mark.parametrize("code", [401, 403, 408, 425, 500, 502, 504, 599, 603, 614, 616])
def test_what_may_get_better_is_tried_after_each_delay_and_then_given_up(code):
    decisions = [after_failure(code, tries, 100.0, DELAYS) for tries in range(4)]
    assert decisions[:3] == [Retry(160.0), Retry(700.0), Retry(3700.0)]
    assert decisions[3] == GiveUp(removes_copy=code in {401, 403})


@pytest.mark.parametrize("code", [404, 410, 451])
def test_what_is_gone_goes_at_once_with_its_copy(code):
    assert after_failure(code, 0, 100.0, DELAYS) == GiveUp(removes_copy=True)


@pytest.mark.parametrize(
    "code", [400, 402, 405, 406, 407, 409, 415, 501, 505, *range(601, 603), *range(604, 614), 615]
)
def test_other_failures_are_final_and_keep_the_copy(code):
    assert after_failure(code, 0, 100.0, DELAYS) == GiveUp(removes_copy=False)


def test_without_delays_the_first_failure_is_final():
    assert after_failure(500, 0, 100.0, ()) == GiveUp(removes_copy=False)


def test_failures_of_the_host_are_told_from_those_of_the_url():
    assert [code for code in (404, 429, 500, 503, 601, 602, 603, 612) if is_host_level(code)] == [
        429,
        503,
        601,
        602,
        612,
    ]


def test_a_host_is_left_alone_longer_and_longer_up_to_an_hour():
    assert [host_delay(failures) for failures in range(1, 9)] == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert host_delay(10**6) == 3600


def test_retry_after_is_honoured_up_to_a_day_and_never_shortens():
    assert host_delay(1, 500) == 500
    assert host_delay(1, 5) == 60
    assert host_delay(1, 10**9) == 86_400


@pytest.mark.parametrize("step", [3600.0, -3600.0])
def test_a_wait_for_a_host_keeps_its_length_when_the_clock_is_moved(step):
    waiting = Backoff(5000.0, 3, 4000.0)
    assert waiting.moved(step) == Backoff(5000.0 + step, 3, 4000.0 + step)


def test_a_host_that_does_not_fail_waits_for_nothing_after_the_clock_was_moved():
    assert Backoff().moved(3600.0) == Backoff()


def failed_in(*sections):
    """Return how a host waits of which a URL failed in each section, one after the other."""
    backoff = Backoff()
    for now, section in enumerate(sections, NOW):
        backoff = backoff.failed_again(now, 0.0, 60.0).blames((b"%d" % now, 7, 0, section))
    return backoff


def test_sections_that_failed_while_another_answered_are_broken_until_they_answer():
    assert failed_in(1, 2, 3).answered(NOW + 600, 3).broken == (1, 2)
    assert failed_in(1, 2, 3).answered(NOW + 600, 4).mended(2).broken == (1, 3)


def test_so_many_broken_sections_are_remembered_the_latest_ones():
    assert failed_in(*range(20), 0).answered(NOW + 600, 99).broken == tuple(range(20))[-BROKEN_MAX:]


def test_only_the_first_failure_of_a_broken_section_is_followed_by_an_early_request():
    answered = failed_in(1).answered(NOW + 100, 2)
    first = answered.failed_again(NOW + 200, 0.0, 60.0, 1)
    assert (first.early, first.asked_from(), first.not_before) == (True, 0.0, NOW + 215)
    second = first.failed_again(NOW + 201, 0.0, 60.0, 1)
    assert (second.early, second.asked_from(), second.broken) == (False, NOW + 245, (1,))
    assert first.failed_again(NOW + 300, 0.0, 60.0, 1).not_before == NOW + 330, "asked when its wait was over"
    assert not answered.failed_again(NOW + 200, 0.0, 60.0, 3).early


def test_sections_are_no_longer_broken_an_hour_after_their_host_answered():
    answered = failed_in(1).answered(NOW + 100, 2)
    assert answered.failed_again(NOW + 3699, 0.0, 60.0, 1).early
    late = answered.failed_again(NOW + 3700, 0.0, 60.0, 1)
    assert (late.early, late.broken) == (False, ())
