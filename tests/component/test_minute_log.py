"""While fetches fail, a line a minute says how many, with which codes and whose."""

import logging

import pytest
from twisted.internet.task import Clock

from lcc_scrapy.domain.queue import FETCH, Failed, QueuedUrl, Ticket
from lcc_scrapy.fetchlog.minute import MINUTE, MinuteLog
from lcc_scrapy.queue.settlement import DELAYED, FAILED, LOST, STORED, Settled


def settled(pid: int, result: str, code: int = 0) -> Settled:
    row = QueuedUrl(b"k" * 16, pid, "u", "", "", "", "u", None, None, None, "", 1, 1, FETCH, 1, 0, 0)
    return Settled(Failed(Ticket(row, str(pid), 1), code, "", 0), result, code=code)


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.INFO)
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_minute_in_which_fetches_fail_is_told_of_with_codes_and_providers(told):
    clock = Clock()
    minute = MinuteLog(clock)
    minute.start()
    minute.note([settled(1, STORED), settled(2, FAILED, 404), settled(3, DELAYED, 602), settled(9, LOST)])
    minute.note([settled(2, FAILED, 404), settled(4, FAILED, 603), settled(5, FAILED, 603)])
    clock.advance(MINUTE - 1)
    assert told() == []
    clock.advance(1)
    (line,) = told()
    counts, _, whose = line.partition("; ")
    assert counts == (
        "fetches of the last minute: 1 stored, 1 waiting for their host (602: 1), 4 failed (404: 2, 603: 2)"
    )
    assert whose == "failing: provider 2 (2), provider 3 (1), provider 4 (1) and 1 more"


def test_nothing_is_said_of_minutes_in_which_nothing_fails(told):
    clock = Clock()
    minute = MinuteLog(clock)
    minute.start()
    minute.note([settled(2, FAILED, 404)])
    clock.advance(MINUTE)
    minute.note([settled(1, STORED), settled(9, LOST)])
    clock.advance(MINUTE)
    clock.advance(MINUTE)
    assert len(told()) == 1


def test_the_minute_that_is_not_over_is_told_of_at_the_end(told):
    clock = Clock()
    minute = MinuteLog(clock)
    minute.start()
    minute.note([settled(2, FAILED, 404)])
    minute.stop()
    assert told() == ["fetches of the last minute: 1 failed (404: 1); failing: provider 2 (1)"]
    assert not clock.getDelayedCalls()
