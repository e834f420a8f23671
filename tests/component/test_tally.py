"""Statistics: told to Scrapy now and then, and all of them in the end."""

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler

from lcc_scrapy.engine.statistics import HANDED_OVER, Tally


class Loop:
    """A loop in which time goes by when it is told to."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, Any]] = []

    def call_later(self, delay: float, callback: Any) -> Any:
        self.timers.append((delay, callback))
        return SimpleNamespace(cancel=self.timers.clear)

    def go_on(self) -> None:
        """Let every timer fire."""
        timers, self.timers = self.timers, []
        for _, callback in timers:
            callback()


@pytest.fixture
def stats() -> MemoryStatsCollector:
    return MemoryStatsCollector(get_crawler())


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def tally(stats: MemoryStatsCollector, loop: Loop) -> Tally:
    return Tally(stats, loop)  # type: ignore[arg-type]


def test_what_was_counted_is_told_after_a_while_and_once(
    tally: Tally, stats: MemoryStatsCollector, loop: Loop
) -> None:
    for _ in range(3):
        tally.count("pages")
    tally.count("bytes", 700)
    assert stats.get_stats() == {}
    assert [delay for delay, _ in loop.timers] == [HANDED_OVER]
    loop.go_on()
    assert stats.get_stats() == {"pages": 3, "bytes": 700}
    tally.count("pages")
    loop.go_on()
    assert stats.get_stats() == {"pages": 4, "bytes": 700}


def test_nothing_is_missing_in_the_end(tally: Tally, stats: MemoryStatsCollector) -> None:
    tally.count("pages")
    tally.close()
    assert stats.get_stats() == {"pages": 1}
    tally.count("pages")
    assert stats.get_stats() == {"pages": 2}
