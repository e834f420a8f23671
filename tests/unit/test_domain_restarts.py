"""When a supervisor starts a process again."""

import os
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.restarts import (
    BEGUN,
    LONGEST_WAIT,
    STEADY,
    CannotBegin,
    Finished,
    History,
    StartAgain,
    after_exit,
)


@given(lived=st.floats(0, 1e6), failures=st.integers(0, 1000))
def test_a_killed_process_is_back_within_a_second_however_often_it_was_killed_or_failed(
    lived: float, failures: int
) -> None:
    again = after_exit(-signal.SIGKILL, lived, History(failures))
    assert isinstance(again, StartAgain)
    assert again.wait < 1
    assert again.history == History(failures, has_begun=True)


def test_each_failure_in_a_row_doubles_the_wait_up_to_a_minute() -> None:
    history, waits = History(has_begun=True), []
    for _ in range(8):
        again = after_exit(1, BEGUN / 2, history)
        assert isinstance(again, StartAgain)
        history = again.history
        waits.append(again.wait)
    assert waits == [2, 4, 8, 16, 32, 60, 60, 60]


def test_a_crash_of_its_own_is_a_failure_though_a_signal_ends_it() -> None:
    again = after_exit(-signal.SIGSEGV, 1, History(3, has_begun=True))
    assert again == StartAgain(16, History(4, has_begun=True))


def test_failures_are_forgotten_after_a_steady_minute() -> None:
    assert after_exit(1, STEADY, History(9, has_begun=True)) == StartAgain(2, History(1, has_begun=True))


def test_what_failed_before_it_had_begun_is_not_started_again() -> None:
    assert after_exit(2, BEGUN - 1, History()) == CannotBegin(2)
    assert isinstance(after_exit(2, BEGUN, History()), StartAgain)
    assert isinstance(after_exit(2, 1, History(has_begun=True)), StartAgain)


def test_a_server_has_begun_when_it_listened_however_long_its_start_took():
    assert after_exit(1, STEADY - 1, History(), has_listened=False) == CannotBegin(1)
    assert isinstance(after_exit(1, STEADY, History(), has_listened=False), StartAgain)
    assert isinstance(after_exit(1, 0.1, History(), has_listened=True), StartAgain)


def test_a_kill_while_it_began_does_not_say_that_it_cannot_begin() -> None:
    again = after_exit(-signal.SIGKILL, 0.1, History())
    assert isinstance(again, StartAgain)
    assert isinstance(after_exit(1, 0.1, again.history), StartAgain)


@pytest.mark.parametrize("history", [History(), History(5, has_begun=True)])
def test_a_failed_disk_is_left_alone_for_a_minute(history: History) -> None:
    assert after_exit(os.EX_IOERR, 1, history) == StartAgain(LONGEST_WAIT, history)


def test_status_zero_is_the_end() -> None:
    assert after_exit(0, 0.1, History()) == Finished()
