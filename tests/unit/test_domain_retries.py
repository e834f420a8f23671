"""What follows a failed fetch (design section 5 "Failures")."""

import pytest

from lcc_scrapy.domain.retries import Backoff, GiveUp, Retry, after_failure, host_delay, is_host_level

DELAYS = (60.0, 600.0, 3600.0)


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
