"""robots.txt (RFC 9309), looked up once per host inside the turn that needs it first.

Scrapy's own middleware lets further requests through while the first look-up of a host runs, and takes
an unreachable robots.txt for permission. Here everybody waits for the one look-up, its bytes are
charged to the turn that caused it, and a host that fails to answer it counts as a host that fails.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from dataclasses import dataclass

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    DownloadConnectionRefusedError,
    DownloadTimeoutError,
    IgnoreRequest,
    NotConfigured,
    ResponseDataLossError,
)
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.robotstxt import RobotParser
from scrapy.utils.misc import build_from_crawler, load_object

from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.fetching import IN_MEMORY, PRIVATE_HOSTS, TURN, may_be_private

_log = logging.getLogger(__name__)

KEEP = 86400.0
"""Seconds for which an answer is used (RFC 9309 section 2.4)."""

KEPT_BYTES = 8_000_000
"""Of answers that are remembered; the one not used for longest goes first. Parsed, they take 30 times it."""

LEAST_BYTES = 500
"""What an answer counts at least, so that no more than 16,000 hosts are remembered."""

MAX_BYTES = 512_000
MAX_REDIRECTS = 5


class RobotsForbidden(IgnoreRequest):
    """robots.txt does not permit the URL (611)."""


class RobotsUnavailable(DownloadConnectionRefusedError):
    """robots.txt cannot be had from its host now, so nothing may be fetched from there (602)."""


_Host = tuple[str, str, bool]
"""Scheme, host with port, and whether private addresses are permitted: not everybody may ask everywhere."""


@dataclass(slots=True)
class _Known:
    parser: RobotParser | None
    until: float
    size: int


class LccRobotsMiddleware:
    """Asks robots.txt before every fetch, unless the provider is exempted."""

    def __init__(self, crawler: Crawler) -> None:
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        self._crawler = crawler
        self._agent = crawler.settings["ROBOTSTXT_USER_AGENT"] or crawler.settings["USER_AGENT"]
        self._parser = load_object(crawler.settings["ROBOTSTXT_PARSER"])
        self._known: OrderedDict[_Host, _Known] = OrderedDict()
        self._kept = 0
        self._looking: dict[_Host, asyncio.Task[RobotParser | None]] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "LccRobotsMiddleware":
        """Build it; off when ROBOTSTXT_OBEY is."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Let a request pass, or raise ``RobotsForbidden`` or what kept robots.txt from being read."""
        if request.meta.get("dont_obey_robotstxt"):
            return
        parser = await self._parser_for(request)
        if parser is not None and not parser.allowed(request.url, self._agent):
            raise RobotsForbidden(request.url)

    async def _parser_for(self, request: Request) -> RobotParser | None:
        url = HttpUrl.parse(request.url)
        host = (url.scheme, url.netloc, may_be_private(url, request))
        known = self._known.get(host)
        if known is not None and known.until > time.monotonic():
            self._known.move_to_end(host)
            return known.parser
        looking = self._looking.get(host)
        if looking is None:
            looking = asyncio.ensure_future(self._look_up(host, url, request))
            self._looking[host] = looking
            looking.add_done_callback(lambda _: self._looking.pop(host, None))
        return await asyncio.shield(looking)

    async def _look_up(self, host: _Host, url: HttpUrl, cause: Request) -> RobotParser | None:
        response = await self._fetch(url, cause)
        rules, parser = b"", None
        if response is not None:
            rules = response.body[:MAX_BYTES]
            parser = build_from_crawler(self._parser, self._crawler, rules)
        self._remember(host, _Known(parser, time.monotonic() + KEEP, max(len(rules), LEAST_BYTES)))
        return parser

    def _remember(self, host: _Host, answer: _Known) -> None:
        before = self._known.pop(host, None)
        self._known[host] = answer
        self._kept += answer.size - (before.size if before else 0)
        while self._kept > KEPT_BYTES:
            self._kept -= self._known.popitem(last=False)[1].size

    async def _fetch(self, url: HttpUrl, cause: Request) -> Response | None:
        """Return the answer with rules, or None when there are none (4xx, endless redirects)."""
        target = HttpUrl(url.scheme, url.host, url.port, "/robots.txt", "")
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._ask(_request(target, cause))
            if response.status >= 500:  # noqa: PLR2004
                raise RobotsUnavailable(f"{target} answers {response.status}")
            if response.status < 300:  # noqa: PLR2004
                return response
            location = (response.headers.get(b"Location") or b"").decode("utf-8", "replace")
            if not location:
                return None
            try:
                target = HttpUrl.parse(response.urljoin(location))
            except (UrlRefused, ValueError):
                return None
        return None

    async def _ask(self, request: Request) -> Response:
        try:
            return await self._crawler.engine.download_async(request)
        except (DownloadTimeoutError, ResponseDataLossError) as error:
            raise RobotsUnavailable(str(error)) from error


def _request(target: HttpUrl, cause: Request) -> Request:
    kept = {key: cause.meta[key] for key in (TURN, PRIVATE_HOSTS) if key in cause.meta}
    return Request(
        str(target),
        callback=NO_CALLBACK,
        meta={**kept, "dont_obey_robotstxt": True, IN_MEMORY: 8 * MAX_BYTES},
        dont_filter=True,
    )
