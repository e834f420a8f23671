"""The extension that ties a worker to the life of its spider."""

from functools import partial
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, DropItem, UsageError
from scrapy.extensions.corestats import CoreStats
from scrapy.http import Response
from twisted.python.failure import Failure

from lcc_scrapy.app.wiring import BY_HAND, Worker, worker_of
from lcc_scrapy.domain.queue import Failed, Ticket
from lcc_scrapy.engine.scrapy_internals import HeardSignals
from lcc_scrapy.engine.statistics import counter, tally_of
from lcc_scrapy.fetch import component_faults
from lcc_scrapy.fetch.outcomes import NOT_STORED
from lcc_scrapy.items import LccDocument
from lcc_scrapy.scheduler import TICKET


class LccCoreStats(CoreStats):
    """Scrapy's own statistics, which listen to no single page: that would cost as much as its row does."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "LccCoreStats":
        """Build it; what it does not listen to is counted where it is sent."""
        if not isinstance(crawler.signals, HeardSignals):
            return super().from_crawler(crawler)
        extension, tally = cls(crawler.stats), tally_of(crawler)
        for name in ("spider_opened", "spider_closed", "item_dropped"):
            crawler.signals.connect(getattr(extension, name), getattr(signals, name))
        for name in ("item_scraped", "response_received"):
            crawler.signals.counts[getattr(signals, name)] = partial(tally.count, f"{name}_count")
        return extension


class LccLifecycle:
    """Settles what a team's own components dropped or broke, and ends the process with the right status."""

    def __init__(self, crawler: Crawler, worker: Worker) -> None:
        self._crawler = crawler
        self._worker = worker

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "LccLifecycle":
        """Build it for one of the LCC's spiders; refuses `scrapy shell`, which has none by then."""
        worker = worker_of(crawler)
        if worker is None:
            raise UsageError(f"spider {crawler.spidercls.name} {BY_HAND}", print_help=False)
        extension = cls(crawler, worker)
        connect = crawler.signals.connect
        connect(extension.item_dropped, signals.item_dropped)
        connect(extension.item_error, signals.item_error)
        connect(extension.spider_error, signals.spider_error)
        connect(extension.spider_opened, signals.spider_opened)
        connect(extension.spider_closed, signals.spider_closed)
        return extension

    def item_dropped(self, item: Any, exception: DropItem) -> None:
        """Settle a document that a pipeline dropped: it is not stored, and that is final."""
        if isinstance(item, LccDocument):
            self._count_withheld(item)
            self._fail(item.ticket, f"dropped: {exception}", final=True)

    def item_error(self, item: Any, failure: Failure) -> None:
        """Settle a document on which a pipeline failed: it is tried again later."""
        if isinstance(item, LccDocument):
            self._count_withheld(item)
            self._broken(item.ticket, failure, "pipeline")

    def spider_error(self, failure: Failure, response: Response | Failure) -> None:
        """Settle an answer on which a spider middleware failed."""
        request = getattr(response, "request", None)
        ticket = request.meta.get(TICKET) if request is not None else None
        if ticket is not None:
            self._broken(ticket, failure, "spider")

    def _broken(self, ticket: Ticket, failure: Failure, where: str) -> None:
        error = failure.value
        fault = component_faults.fault_of(error) if error is not None else None
        if not component_faults.keeps_place(self._worker, ticket, fault):
            whose = f" in {fault.component}" if fault is not None else ""
            self._fail(ticket, f"{where} failed{whose}: {failure.getErrorMessage()}")

    def _count_withheld(self, document: LccDocument) -> None:
        if document.withheld:
            counter(self._crawler.stats)("lcc/items_withheld", len(document.withheld))

    def _fail(self, ticket: Ticket, detail: str, *, final: bool = False) -> None:
        failed = Failed(ticket, NOT_STORED, detail[:200], self._worker.now(), final)
        self._worker.manager.settle(failed)

    def spider_opened(self) -> None:
        """Close the spider at once when the worker could not start; it has said why."""
        if self._worker.refused:
            raise CloseSpider("lcc_refused")

    def spider_closed(self) -> None:
        """Let ``scrapy crawl`` end with status 1 when the worker could not start."""
        if self._worker.refused:
            self._crawler.spider = None
