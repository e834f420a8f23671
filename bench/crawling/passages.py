"""Counts the documents that go through ``LccPipeline``, which is behind all that a team may add."""

from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler

from crawling import counts
from lcc_scrapy.items import LccDocument
from lcc_scrapy.pipelines import LccPipeline


class Passages:
    """An extension. It handles no signal of single pages: those that nobody hears are not even sent."""

    def __init__(self) -> None:
        self._count = 0
        process_item = LccPipeline.process_item

        async def counting(pipeline: LccPipeline, item: Any) -> Any:
            self._count += isinstance(item, LccDocument)
            return await process_item(pipeline, item)

        LccPipeline.process_item = counting  # type: ignore[method-assign]

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "Passages":
        made = cls()
        crawler.signals.connect(made.write, signals.spider_closed)
        return made

    def write(self) -> None:
        counts.write(counts.PASSAGES, self._count)
