"""Statistics of the short way: told to Scrapy now and then, and all of them in the end."""

import asyncio

from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler

from lcc_scrapy.counting import HANDED_OVER, Tally


def told(tally: Tally) -> dict[str, int]:
    return tally._tell.__self__.get_stats()  # type: ignore[attr-defined]


def made() -> Tally:
    return Tally(MemoryStatsCollector(get_crawler()))


def test_what_was_counted_is_told_after_a_while_and_once() -> None:
    async def counting() -> None:
        tally = made()
        for _ in range(3):
            tally.count("pages")
        tally.count("bytes", 700)
        assert told(tally) == {}
        await asyncio.sleep(HANDED_OVER * 1.2)
        assert told(tally) == {"pages": 3, "bytes": 700}
        tally.close()
        assert told(tally) == {"pages": 3, "bytes": 700}

    asyncio.run(counting())


def test_nothing_is_missing_in_the_end() -> None:
    async def counting() -> None:
        tally = made()
        tally.count("pages")
        tally.close()
        assert told(tally) == {"pages": 1}
        tally.count("pages")
        assert told(tally) == {"pages": 2}

    asyncio.run(counting())
