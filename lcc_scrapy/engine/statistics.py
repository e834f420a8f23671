"""Counts for Scrapy's statistics."""

import asyncio
from collections import Counter
from collections.abc import Callable
from weakref import WeakKeyDictionary

from scrapy.crawler import Crawler
from scrapy.statscollectors import StatsCollector

Count = Callable[..., None]
"""Adds to a statistic: its name, and how much (1)."""

HANDED_OVER = 0.5
"""Seconds after which Scrapy is told what was counted meanwhile."""


def counter(stats: StatsCollector | None) -> Count:
    """Return what adds to a statistic at once."""
    return (lambda _name, _count=1: None) if stats is None else stats.inc_value


class Tally:
    """Counts for Scrapy's statistics, which take as long for each of the eight counts of a page as it takes
    to parse its URL: they are told twice a second. Must be used in ``loop``, or in the one that runs.
    """

    def __init__(self, stats: StatsCollector | None, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._tell = counter(stats)
        self._counts: Counter[str] = Counter()
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def count(self, name: str, count: int = 1) -> None:
        """Add to a statistic."""
        self._counts[name] += count
        if self._timer is None:
            if self._closed:
                self._hand_over()
            else:
                loop = self._loop or asyncio.get_running_loop()
                self._timer = loop.call_later(HANDED_OVER, self._hand_over)

    def _hand_over(self) -> None:
        self._timer = None
        for name, count in self._counts.items():
            self._tell(name, count)
        self._counts.clear()

    def close(self) -> None:
        """Hand over what was counted; from now on it is done at once."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._hand_over()


_tallies: WeakKeyDictionary[Crawler, Tally] = WeakKeyDictionary()


def tally_of(crawler: Crawler) -> Tally:
    """Return what counts for the statistics of a crawler, which has them by now."""
    if crawler not in _tallies:
        _tallies[crawler] = Tally(crawler.stats)
    return _tallies[crawler]
