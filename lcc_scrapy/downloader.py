"""The downloader of Scrapy's engine: a request with a ticket is fetched in its turn, redirects included."""

from typing import Any

from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from lcc_scrapy import logs
from lcc_scrapy.counting import Downloads, counter
from lcc_scrapy.domain.queue import Ticket
from lcc_scrapy.fetching import BODY
from lcc_scrapy.scheduler import TICKET
from lcc_scrapy.settings import has_scrapys_middlewares
from lcc_scrapy.storage.turnstile import Member
from lcc_scrapy.turn import REDIRECTS, FetchFailed, TurnKeeper, first_target, redirect_target
from lcc_scrapy.wiring import required_worker


class LccDownloader(Downloader):
    """Scrapy's downloader, with turns. Requests without a ticket pass through unchanged."""

    def __init__(self, crawler: Crawler) -> None:
        self._worker = required_worker(crawler)
        logs.install(self._worker.config.log_format)  # Scrapy has just made its handler anew
        super().__init__(crawler)
        self._turns: TurnKeeper[Response] = TurnKeeper(self._worker, counter(crawler.stats), _header)
        self._downloads = Downloads(
            counter(None if has_scrapys_middlewares(crawler.settings) else crawler.stats)
        )

    def needs_backout(self) -> bool:
        """Never hold the engine up: where there is no place, the scheduler has no request."""
        return False

    def fetch(self, request: Request, spider: Any = None) -> Deferred[Response | Request]:  # noqa: ARG002
        """Fetch a request with its redirects; the turn has ended when the Deferred fires."""
        if TICKET not in request.meta:
            return super().fetch(request)
        return deferred_from_coro(self._fetch_turn(request))

    async def _fetch_turn(self, request: Request) -> Response | Request:
        async def follow(ticket: Ticket, member: Member) -> Response:
            first_target(ticket, member)
            return await self._follow(request, ticket, member)

        return await self._turns.keep(request.meta[TICKET], follow)

    async def _follow(self, request: Request, ticket: Ticket, member: Member) -> Response:
        for _ in range(self._worker.config.redirects + 1):
            response = await maybe_deferred_to_future(super().fetch(request))
            if isinstance(response, Request):
                raise FetchFailed(616, "a middleware replaced the request")
            if response.status not in REDIRECTS:
                return response
            request.meta.pop(BODY, None)
            location = (response.headers.get(b"Location") or b"").decode("utf-8", "replace").strip()
            target = redirect_target(ticket.trip, response.url, response.status, location, member)
            request = request.replace(url=str(target))
        raise FetchFailed(606, request.url)

    async def _enqueue_request(self, request: Request) -> Response:
        """Download at once: what Scrapy's slots do for a host, the turns do here."""
        send, spider = self.signals.send_catch_log, self.crawler.spider
        send(signals.request_reached_downloader, request=request, spider=spider)
        self._downloads.begun()
        try:
            response: Response = await self.handlers.download_request_async(request)
        except Exception as error:
            self._downloads.failed(error)
            raise
        else:
            self._downloads.answered(response.status, len(response.body))
            send(signals.response_downloaded, response=response, request=request, spider=spider)
            return response
        finally:
            send(signals.request_left_downloader, request=request, spider=spider)


def _header(response: Response, name: str) -> str:
    return (response.headers.get(name) or b"").decode("latin-1")
