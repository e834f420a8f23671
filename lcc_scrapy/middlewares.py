"""Downloader middlewares of the LCC's spiders."""

from functools import partial

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http.request import NO_CALLBACK

from lcc_scrapy.app.wiring import worker_of
from lcc_scrapy.domain.roots import HttpUrl, parsed_again
from lcc_scrapy.fetch.client import ACCEPT_ENCODING
from lcc_scrapy.fetch.download_handler import (
    IN_MEMORY,
    OF_A_PAGE,
    PRIVATE_HOSTS,
    TURN,
    location_of,
    may_be_private,
)
from lcc_scrapy.fetch.robots import MOST_READ, Asker, RobotsAnswer, RobotsTxt
from lcc_scrapy.queue.held_turn import TurnPass
from lcc_scrapy.settings import headers_to_give

SITEMAPS = "lcc_sitemaps"
"""Key of ``request.meta``: the sitemaps that robots.txt of its host names, as written; () = none."""


class LccRobotsMiddleware:
    """Asks robots.txt before every fetch, unless the provider is exempted.

    Scrapy's own middleware lets further requests through while the first look-up of a host runs, and takes
    an unreachable robots.txt for permission.
    """

    def __init__(self, crawler: Crawler) -> None:
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        self._crawler = crawler
        self._worker = worker_of(crawler)
        self._robots = RobotsTxt(crawler)
        self._headers = {**headers_to_give(crawler.settings), "Accept-Encoding": ACCEPT_ENCODING}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "LccRobotsMiddleware":
        """Build it; off when ROBOTSTXT_OBEY is."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Let a request pass, or raise ``RobotsForbidden`` or what kept robots.txt from being read."""
        if request.meta.get("dont_obey_robotstxt"):
            return
        url = parsed_again(request.url)
        asker = Asker(may_be_private(url, request), self._viewer(url, request))
        permission = self._robots.known(url, asker)
        if permission is None:
            permission = await self._robots.permission(url, partial(self._ask, request), asker)
        request.meta[SITEMAPS] = permission.sitemaps
        if self._worker is not None and OF_A_PAGE not in request.meta:
            self._worker.space(request.meta.get(TURN), permission.crawl_delay)

    def _viewer(self, url: HttpUrl, request: Request) -> int:
        turn: TurnPass | None = request.meta.get(TURN)
        return 0 if self._worker is None or turn is None else self._worker.credentials.viewer(turn.pid, url)

    async def _ask(self, cause: Request, target: HttpUrl) -> RobotsAnswer:
        response = await self._crawler.engine.download_async(self._request(target, cause))
        return RobotsAnswer(response.status, response.body, location_of(response))

    def _request(self, target: HttpUrl, cause: Request) -> Request:
        kept = {key: cause.meta[key] for key in (TURN, PRIVATE_HOSTS) if key in cause.meta}
        return Request(
            str(target),
            callback=NO_CALLBACK,
            headers=self._headers,
            meta={**kept, "dont_obey_robotstxt": True, IN_MEMORY: MOST_READ},
            dont_filter=True,
        )
