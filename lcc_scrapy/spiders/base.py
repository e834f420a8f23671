"""The base of the LCC's spiders; subclass it and define ``parse_document`` to see every document."""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, ClassVar, Self

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.http import Response
from scrapy.settings import BaseSettings
from twisted.python.failure import Failure

from lcc_scrapy import signals
from lcc_scrapy.app.wiring import BY_HAND, Worker, attach_worker
from lcc_scrapy.config.config import load, unknown_settings
from lcc_scrapy.domain.cache import Answer
from lcc_scrapy.domain.errors import ConfigurationError, StoreUnavailable
from lcc_scrapy.domain.queue import Outcome, Ticket
from lcc_scrapy.engine.scrapy_internals import is_being_cancelled, send_heard_signals_only
from lcc_scrapy.engine.statistics import tally_of
from lcc_scrapy.fetch import component_faults
from lcc_scrapy.fetch.download_handler import (
    BODY,
    CONDITIONAL,
    REASON,
    RENDITION,
    fields_of,
    looks_like,
)
from lcc_scrapy.fetch.outcomes import NOT_STORED, answer_of, failed, not_answered, not_served, status_line
from lcc_scrapy.items import LccDocument
from lcc_scrapy.machine import logs
from lcc_scrapy.machine.data_directory import DataDirectory
from lcc_scrapy.push.password import hide_passwords_of_urls
from lcc_scrapy.scheduler import TICKET
from lcc_scrapy.settings import ASYNCIO_REACTOR, apply_to, foreign_component, notices
from lcc_scrapy.spiders.arguments import arguments_of, end_with_usage, refuse_unknown

_log = logging.getLogger(__name__)


class LccSpider(Spider):
    """A spider whose URLs come from the LCC's queue.

    Define ``parse_document(response)`` to work on documents as they are fetched (a plain or an async
    generator, as with any Scrapy callback). It sees each new or changed document once it was fetched and
    before it is stored. An error in it is logged and does not keep the document out of the cache. A body
    larger than ``LCC_MEMORY_BODY`` is in a file: ``lcc_scrapy.items.open_body(response.meta["lcc_body"])``.
    """

    custom_settings: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]
    serves_uns: ClassVar[bool] = False
    """Whether its process listens for providers where ``LCC_UNS_ENDPOINTS`` names endpoints."""
    arguments: ClassVar[Iterable[str]] = ()
    """Arguments (``-a NAME=VALUE``) beside those that ``__init__`` names; they become attributes."""
    worker: Worker

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Carry the LCC's own settings; refuses to go on where a foreign component stands in the way."""
        super().update_settings(settings)
        if cls.start.__module__.startswith("scrapy.commands."):
            raise UsageError(f"spider {cls.name} {BY_HAND}", print_help=False)
        try:
            config = load(settings)
            DataDirectory.find(config.data_dir)
            apply_to(settings, config, cls)
        except ConfigurationError as error:
            raise UsageError(str(error), print_help=False) from None
        if settings["TWISTED_REACTOR"] != ASYNCIO_REACTOR:
            raise UsageError(f"spider {cls.name} needs TWISTED_REACTOR = {ASYNCIO_REACTOR}", print_help=False)
        if config.uns_listen.endpoints and str(settings["ASYNCIO_EVENT_LOOP"]).startswith("uvloop"):
            raise UsageError(
                f"spider {cls.name} cannot listen for providers on uvloop, which loses connections that are"
                " reset: remove ASYNCIO_EVENT_LOOP, or run `lcc uns` and empty LCC_UNS_ENDPOINTS here",
                print_help=False,
            )
        foreign = foreign_component(settings)
        if foreign:
            raise UsageError(f"spider {cls.name} needs {foreign}; remove that setting", print_help=False)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Build the spider and the worker behind it; wrong arguments: one line, and status 2."""
        try:
            cls.check_arguments(kwargs)
        except ValueError as error:
            raise end_with_usage(cls.name, error) from None
        config = load(crawler.settings)
        send_heard_signals_only(crawler)
        logs.install(config.log_format)
        hide_passwords_of_urls()
        spider = super().from_crawler(crawler, *args, **kwargs)
        for name in unknown_settings(crawler.settings):
            _log.warning("unknown setting %s", name)
        for notice in notices(crawler.settings):
            _log.info("%s", notice)
        spider.worker = attach_worker(
            crawler, config, serves_uns=spider.serves_uns, **spider.worker_options()
        )
        return spider

    @classmethod
    def check_arguments(cls, given: Mapping[str, str]) -> None:
        """Raise ``ValueError`` with what is wrong with the arguments; override it to check values."""
        refuse_unknown(given, arguments_of(cls))

    def worker_options(self) -> dict[str, Any]:
        """Return what this spider wants of its worker beyond the defaults."""
        return {}

    async def start(self) -> AsyncIterator[Any]:
        """Wait: URLs come from the queue. Being cancelled here is the sign that a shutdown begins."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.worker.shutdown_begins()
        yield Request("lcc://never")

    def parse_document(self, response: Response) -> Any:
        """Work on a document; override it. Items go to the pipelines, requests are not fetched."""
        del response

    # --- called by Scrapy ------------------------------------------------------------------------

    def document_served(self, response: Response) -> Any:
        """Handle every answer: 200 is a document, 304 a confirmation, the rest failures."""
        meta = response.meta
        ticket: Ticket = meta[TICKET]
        if BODY not in meta:
            if component_faults.keeps_place(self.worker, ticket, component_faults.ANSWERED):
                return None
            return self._settle(failed(ticket, NOT_STORED, f"a middleware {component_faults.ANSWERED.error}"))
        refused = not_served(ticket, response.status, conditional=CONDITIONAL in meta)
        if refused is not None:
            self.worker.breaker.untested()
            return self._settle(refused)
        if getattr(self.parse_document, "__func__", None) is LccSpider.parse_document:
            return (_document(response),)
        return self._items_and_document(response)

    async def _items_and_document(self, response: Response) -> AsyncIterator[Any]:
        async for item in self._look_at(response):
            yield item
        yield _document(response)

    async def fetch_failed(self, failure: Failure) -> None:
        """Settle a fetch that brought no answer."""
        error: BaseException = failure.value or Exception("unknown")
        if isinstance(error, asyncio.CancelledError) and (is_being_cancelled() or self.worker.closing):
            return
        ticket: Ticket = failure.request.meta[TICKET]  # type: ignore[attr-defined]
        fault = component_faults.fault_of(error)
        if fault is None:
            self.worker.breaker.untested()
        elif component_faults.keeps_place(self.worker, ticket, fault):
            return
        outcome = not_answered(ticket, error)
        if outcome is not None:
            await self._settle(outcome)

    async def _look_at(self, response: Response) -> AsyncIterator[Any]:
        try:
            output = self.parse_document(response)
            if hasattr(output, "__aiter__"):
                async for item in output:
                    yield item
            else:
                if inspect.isawaitable(output):
                    output = await output
                for item in output or ():
                    yield item
        except (Exception, asyncio.CancelledError):
            if is_being_cancelled():
                raise
            _log.exception(
                "parse_document failed for %(url)s; the document is stored all the same",
                {"url": response.url, **_whose(response.meta[TICKET])},
            )
            if self.crawler.stats is not None:
                self.crawler.stats.inc_value("lcc/parse_document_errors")

    async def _settle(self, outcome: Outcome) -> None:
        try:
            settled = await self.worker.settle(outcome)
        except StoreUnavailable:  # the process stops: the URL stays in its place
            return
        signals.announce(self.crawler, tally_of(self.crawler).count, settled)


def _document(response: Response) -> LccDocument:
    meta = response.meta
    return LccDocument(meta[TICKET], kept_of(response, meta), meta[BODY], response, meta.get(RENDITION))


def _whose(ticket: Ticket) -> dict[str, int]:
    return {"pid": ticket.row.pid, "psetid": ticket.row.psetid}


def kept_of(response: Response, meta: Mapping[str, Any]) -> Answer:
    """Return what is kept of a response beside its body; ``meta`` is that of its request."""
    line = status_line(response.protocol or "", response.status, meta.get(REASON, ""))
    peer = str(response.ip_address or "")
    return answer_of(response.status, response.url, fields_of(response), line, peer, looks_like(meta))
