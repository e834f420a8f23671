"""The base of the LCC's spiders; subclass it and define ``parse_document`` to see every document."""

import asyncio
import inspect
import json
import logging
import time
from collections.abc import AsyncIterator
from typing import Any, ClassVar

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.python.failure import Failure

from lcc_scrapy import logs, signals
from lcc_scrapy.config import load, unknown_settings
from lcc_scrapy.domain import retries
from lcc_scrapy.domain.cache import Answer
from lcc_scrapy.domain.entries import plain_mimetype
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.queue import Failed, NotModified, Outcome, Ticket
from lcc_scrapy.downloader import TurnDelayed, code_of
from lcc_scrapy.fetching import BODY, FetchAborted
from lcc_scrapy.items import LccDocument
from lcc_scrapy.providers.secrecy import hide_passwords_of_urls
from lcc_scrapy.scheduler import TICKET
from lcc_scrapy.settings import ASYNCIO_REACTOR, apply_to, foreign_component
from lcc_scrapy.storage.home import Home
from lcc_scrapy.wiring import Worker, attach_worker

_log = logging.getLogger(__name__)

OK = frozenset({200, 203})
NOT_MODIFIED = 304
NO_DOCUMENT = 614
NOT_STORED = 616
UNUSABLE_3XX = 613


class LccSpider(Spider):
    """A spider whose URLs come from the LCC's queue.

    Define ``parse_document(response)`` to work on documents as they are fetched (a plain or an async
    generator, as with any Scrapy callback). It sees each new or changed document once it was fetched and
    before it is stored. An error in it is logged and does not keep the document out of the cache. A body
    larger than ``LCC_MEMORY_BODY`` is in the file ``response.meta["lcc_body"].path``.
    """

    custom_settings: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]
    worker: Worker

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Carry the LCC's own settings; refuses to go on where a foreign component stands in the way."""
        super().update_settings(settings)
        try:
            config = load(settings)
            Home.find(config.data_dir)
            apply_to(settings, config)
        except ConfigurationError as error:
            raise UsageError(str(error), print_help=False) from None
        if settings["TWISTED_REACTOR"] != ASYNCIO_REACTOR:
            raise UsageError(f"spider {cls.name} needs TWISTED_REACTOR = {ASYNCIO_REACTOR}", print_help=False)
        if config.uns_endpoints and str(settings["ASYNCIO_EVENT_LOOP"]).startswith("uvloop"):
            raise UsageError(
                f"spider {cls.name} cannot listen for providers on uvloop, which loses connections that are"
                " reset: remove ASYNCIO_EVENT_LOOP, or run `lcc uns` and empty LCC_UNS_ENDPOINTS here",
                print_help=False,
            )
        foreign = foreign_component(settings)
        if foreign:
            raise UsageError(f"spider {cls.name} needs {foreign}; remove that setting", print_help=False)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> "LccSpider":
        """Build the spider and the worker behind it."""
        config = load(crawler.settings)
        logs.install(config.log_format)
        hide_passwords_of_urls()
        spider = super().from_crawler(crawler, *args, **kwargs)
        for name in unknown_settings(crawler.settings):
            _log.warning("unknown setting %s", name)
        spider.worker = attach_worker(crawler, config, **spider.worker_options())
        return spider

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

    async def document_served(self, response: Response) -> AsyncIterator[Any]:
        """Handle every answer: 200 is a document, 304 a confirmation, the rest failures."""
        ticket: Ticket = response.meta[TICKET]
        if BODY not in response.meta:
            await self._fail(ticket, NOT_STORED, "a middleware answered instead of the site")
        elif response.status in OK:
            async for item in self._look_at(response):
                yield item
            yield LccDocument(ticket, answer_of(response), response.meta[BODY], response)
        elif response.status == NOT_MODIFIED and (ticket.etag or ticket.last_modified):
            await self._settle(NotModified(ticket, _now()))
        else:
            await self._fail(ticket, _code_of_status(response.status), "")

    async def fetch_failed(self, failure: Failure) -> None:
        """Settle a fetch that brought no answer."""
        ticket = failure.request.meta[TICKET]  # type: ignore[attr-defined]
        error: BaseException = failure.value or Exception("unknown")
        if isinstance(error, (TurnDelayed, FetchAborted, asyncio.CancelledError)):
            return
        code = code_of(error)
        await self._fail(ticket, code, repr(error) if code == NOT_STORED else str(error))

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
        except Exception:  # noqa: BLE001 - a team's code may raise anything; the document is stored all the same
            _log.exception(
                "parse_document failed for %(url)s; the document is stored all the same",
                {"url": response.url, **_whose(response.meta[TICKET])},
            )
            if self.crawler.stats is not None:
                self.crawler.stats.inc_value("lcc/parse_document_errors")

    async def _fail(self, ticket: Ticket, code: int, detail: str) -> None:
        if code == NOT_STORED:
            what = {"url": ticket.row.furl, "detail": detail, "code": code, **_whose(ticket)}
            _log.error("not stored, because this program failed: %(url)s (%(detail)s)", what)
        final = retries.is_host_level(code)
        await self._settle(Failed(ticket, code, _short(detail), _now(), final))

    async def _settle(self, outcome: Outcome) -> None:
        settled = await maybe_deferred_to_future(self.worker.manager.settle(outcome))
        signals.announce(self.crawler, settled)


def _whose(ticket: Ticket) -> dict[str, int]:
    return {"pid": ticket.row.pid, "psetid": ticket.row.psetid}


def _now() -> int:
    return int(time.time())


def _short(detail: str) -> str:
    return detail[:200].encode("ascii", "backslashreplace").decode()


def _code_of_status(status: int) -> int:
    if status >= 400:  # noqa: PLR2004
        return status
    return UNUSABLE_3XX if status >= 300 else NO_DOCUMENT  # noqa: PLR2004


def answer_of(response: Response) -> Answer:
    """Return what is kept of a response beside its body."""

    def header(name: str, width: int) -> str:
        return (response.headers.get(name) or b"").decode("latin-1")[:width]

    content_type = header("Content-Type", 255)
    pairs = [
        [k.decode("latin-1"), v.decode("latin-1")] for k, values in response.headers.items() for v in values
    ]
    charset = content_type.lower().partition("charset=")[2].partition(";")[0].strip(" \"'")
    return Answer(
        response.status,
        response.url,
        plain_mimetype(content_type)[:127],
        charset[:64],
        header("ETag", 255),
        header("Last-Modified", 64),
        json.dumps(pairs),
        f"{response.protocol or 'HTTP/1.1'} {response.status}",
        str(response.ip_address or ""),
        _now(),
    )
