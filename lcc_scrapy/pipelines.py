"""The pipeline that puts documents into the cache: content file, then row, then queue row."""

from asyncio import CancelledError
from typing import Any

from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem
from scrapy.pipelines import ItemPipelineManager

from lcc_scrapy import signals
from lcc_scrapy.app.wiring import required_worker
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.queue import Served
from lcc_scrapy.domain.rendering import rendition_of
from lcc_scrapy.engine.scrapy_internals import error_of, forget_tree
from lcc_scrapy.engine.statistics import tally_of
from lcc_scrapy.fetch import component_faults
from lcc_scrapy.items import LccDocument


class LccItemPipelines(ItemPipelineManager):
    """Scrapy's manager of pipelines; where the LCC's is the only one, it gets items at once."""

    def __init__(self, *pipelines: Any, **options: Any) -> None:
        super().__init__(*pipelines, **options)
        only = pipelines[0] if len(pipelines) == 1 else None
        self._only = only.process_item if isinstance(only, LccPipeline) else super().process_item_async

    async def process_item_async(self, item: Any) -> Any:
        """Send an item through the pipelines; a cancelled wait of one of them is an error like others."""
        try:
            return await self._only(item)
        except CancelledError as error:
            raise error_of(error) from None


class LccPipeline:
    """Stores ``LccDocument`` items and passes everything else on. Runs after the pipelines of a team."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._count = tally_of(crawler).count
        self._worker = required_worker(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "LccPipeline":
        """Build it for one of the LCC's spiders."""
        return cls(crawler)

    async def process_item(self, item: Any) -> Any:
        """Make a document durable; returns when its file and its row are on disk."""
        if not isinstance(item, LccDocument):
            return item
        component_faults.passed(self._worker)
        if item.withheld:
            await self._send_on(item)
        forget_tree(item.response)
        try:
            settled = await self._worker.settle(_served(item))
        except StoreUnavailable as error:  # the process stops: the URL stays in its place
            raise DropItem(str(error)) from error
        signals.announce(self._crawler, self._count, settled, item)
        return item

    async def _send_on(self, document: LccDocument) -> None:
        """Send the items of a document through all pipelines; one that fails does not concern the document.

        That comes before the document is durable: a kill in between repeats items, and loses none.
        """
        withheld, document.withheld = document.withheld, []
        for item in withheld:
            await self._crawler.engine.scraper.start_itemproc_async(item, response=document.response)


def _served(item: LccDocument) -> Served:
    made = item.rendition
    rendition = None if made is None else rendition_of(item.ticket, item.answer, made)
    return Served(item.ticket, item.answer, item.content, rendition=rendition)
