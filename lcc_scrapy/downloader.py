"""The downloader of Scrapy's engine: a request with a ticket is fetched in its turn, redirects included."""

import logging
from functools import partial
from typing import Any

from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.python import global_object_name
from twisted.internet.defer import Deferred

from lcc_scrapy.app.wiring import required_worker
from lcc_scrapy.domain.http_status import MOVED
from lcc_scrapy.domain.queue import Ticket
from lcc_scrapy.engine.scrapy_internals import (
    handler_of,
    scrape_in_sequence,
    start_in_one_task,
    way_through_middlewares,
)
from lcc_scrapy.engine.statistics import counter, tally_of
from lcc_scrapy.fetch.download_handler import RENDITION
from lcc_scrapy.fetch.redirects import Chain, renders
from lcc_scrapy.fetch.turn import FetchFailed, TurnKeeper
from lcc_scrapy.machine import logs
from lcc_scrapy.middlewares import LccRobotsMiddleware
from lcc_scrapy.queue.leases import Member
from lcc_scrapy.rendering.page import NoBrowser
from lcc_scrapy.rendering.renderer import PageRenderer
from lcc_scrapy.scheduler import TICKET
from lcc_scrapy.settings import has_scrapys_middlewares
from lcc_scrapy.spider_middlewares import WithholdItems

_log = logging.getLogger(__name__)


class LccDownloader(Downloader):
    """Scrapy's downloader, with turns. Requests without a ticket pass through unchanged."""

    def __init__(self, crawler: Crawler) -> None:
        self._worker = required_worker(crawler)
        logs.install(self._worker.config.log_format)  # Scrapy has just made its handler anew
        super().__init__(crawler)
        count = tally_of(crawler).count
        self._turns = TurnKeeper(self._worker, count)
        self._count = counter(None) if has_scrapys_middlewares(crawler.settings) else count
        self._handlers = {scheme: handler_of(self, scheme) for scheme in ("http", "https")}
        self._pass_middlewares = way_through_middlewares(
            self, LccRobotsMiddleware, self._enqueue_request, self._pass_all
        )
        self._renderer = PageRenderer(crawler, self._worker, count)
        crawler.signals.connect(self._spider_opened, signals.spider_opened)
        crawler.signals.connect(self._renderer.close, signals.spider_closed)

    def _spider_opened(self) -> None:
        scrape = scrape_in_sequence(self.crawler, WithholdItems)
        start_in_one_task(self.crawler, self.fetch_in_turn, scrape)

    def needs_backout(self) -> bool:
        """Never hold the engine up: where there is no place, the scheduler has no request."""
        return False

    def fetch(self, request: Request, spider: Any = None) -> Deferred[Response | Request]:  # noqa: ARG002
        """Fetch a request as Scrapy's engine asks for it."""
        if TICKET not in request.meta:
            return super().fetch(request)
        return deferred_from_coro(self.fetch_in_turn(request))

    async def fetch_in_turn(self, request: Request) -> Response:
        """Fetch a ticket's request with its redirects; the turn has ended when this returns or raises."""
        self.active.add(request)
        try:
            return await self._turns.keep(request.meta[TICKET], partial(self._follow, request))
        finally:
            self.active.discard(request)

    async def _follow(self, request: Request, ticket: Ticket, member: Member) -> Response:
        chain = Chain(request, ticket, member)
        for _ in range(self._worker.config.redirects + 1):
            response = await self._pass_middlewares(chain.request)
            if isinstance(response, Request):
                raise FetchFailed(616, "a middleware replaced the request")
            if response.status not in MOVED:
                await self._render(chain.request, response, ticket, member)
                return response  # type: ignore[no-any-return]
            chain.follow(response)
        raise FetchFailed(606, chain.request.url)

    async def _render(self, request: Request, response: Response, ticket: Ticket, member: Member) -> None:
        """Let a browser make something of a page, where its provider wants that."""
        if not renders(ticket, member):
            return
        try:
            request.meta[RENDITION] = await self._renderer.rendition(request, response, member)
        except NoBrowser as error:
            _log.error("provider %(pid)d waits: %(error)s", {"pid": member.provider.pid, "error": str(error)})
            self._turns.wait(ticket, error)

    async def _pass_all(self, request: Request) -> Response | Request:
        return await maybe_deferred_to_future(super().fetch(request))

    async def _enqueue_request(self, request: Request) -> Response:
        """Download at once: what Scrapy's slots do for a host, the turns do here."""
        send, spider = self.signals.send_catch_log, self.crawler.spider
        send(signals.request_reached_downloader, request=request, spider=spider)
        self._count("downloader/request_count")
        try:
            response: Response = await self._handler_of(request)(request)
        except Exception as error:
            self._count("downloader/exception_count")
            self._count(f"downloader/exception_type_count/{global_object_name(type(error))}")
            raise
        else:
            self._count("downloader/response_count")
            self._count(f"downloader/response_status_count/{response.status}")
            self._count("downloader/response_bytes", len(response.body))
            send(signals.response_downloaded, response=response, request=request, spider=spider)
            return response
        finally:
            send(signals.request_left_downloader, request=request, spider=spider)

    def _handler_of(self, request: Request) -> Any:
        return self._handlers.get(request.url.partition(":")[0], self.handlers.download_request_async)
