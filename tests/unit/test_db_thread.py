"""Work beside a transaction has ended when that does, whichever way."""

import time

import pytest

from lcc_scrapy.domain.errors import NotDurable
from lcc_scrapy.queue.committing import Beside


def test_it_has_ended_when_the_block_has() -> None:
    done: list[int] = []

    def slow(number: int) -> None:
        time.sleep(0.05)
        done.append(number)

    with Beside(slow) as work:
        work.begin(7)
        assert not done
    assert done == [7]


def test_what_it_raises_is_raised_at_the_end_of_the_block() -> None:
    def fails() -> None:
        raise NotDurable("no space")

    reached = []

    def block() -> None:
        with Beside(fails) as work:
            work.begin()
            reached.append("the end of the block")

    with pytest.raises(NotDurable, match="no space"):
        block()
    assert reached


def test_a_block_that_fails_waits_for_it_and_tells_of_its_own_failure() -> None:
    done: list[bool] = []

    def fails_late() -> None:
        time.sleep(0.05)
        done.append(True)
        raise NotDurable("no space")

    def block() -> None:
        with Beside(fails_late) as work:
            work.begin()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block()
    assert done


def test_without_work_there_is_nothing_to_wait_for() -> None:
    with Beside(lambda: None):
        pass
