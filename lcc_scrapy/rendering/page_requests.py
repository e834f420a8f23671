"""What one page asks for while a browser renders it: asked by the crawl, in the turn of its page.

Such a request passes the downloader middlewares as all others do. So robots.txt holds for it, and the address
guard, and the provider's bandwidth, proxy and passwords. There is one at a time, as of the provider's URLs.
"""

import asyncio
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.http_status import MOVED
from lcc_scrapy.domain.references import redirect
from lcc_scrapy.domain.rendering import REPEATED, NotPermitted, RequestBudget
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.fetch.download_handler import (
    BODY,
    IN_MEMORY,
    OF_A_PAGE,
    PRIVATE_HOSTS,
    TURN,
    fields_of,
    header_of,
    location_of,
)
from lcc_scrapy.rendering.cache import ScriptCache
from lcc_scrapy.rendering.page import Fetched

_log = logging.getLogger(__name__)

MOST_REDIRECTS = 5
_KEPT = (TURN, PRIVATE_HOSTS, "download_timeout")
_NO_ROBOTS = "dont_obey_robotstxt"
_SENT = ("accept", "origin", "x-requested-with")
_SHOWN = frozenset({"content-type", "content-security-policy", "x-content-type-options", "referrer-policy"})
_SHOWN_TOO = ("access-control-", "cross-origin-")


def shown_headers(response: Response) -> dict[str, str]:
    """Return the headers of an answer that a browser is to see: no cookies, no length of what was coded."""
    pairs = ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in fields_of(response))
    return {name: value for name, value in pairs if name in _SHOWN or name.startswith(_SHOWN_TOO)}


class PageRequests:
    """Asks for what one page wants; nothing of it is under way any more when its block has ended."""

    def __init__(
        self,
        crawler: Crawler,
        cause: Request,
        budget: RequestBudget,
        headers: Mapping[str, str],
        cache: ScriptCache,
    ) -> None:
        self._crawler = crawler
        self._meta = {key: cause.meta[key] for key in _KEPT if key in cause.meta}
        self._pid = cause.meta[TURN].pid
        self._obeys = not cause.meta.get(_NO_ROBOTS)
        self._budget = budget
        self._cache = cache
        self._headers = headers
        self._one = asyncio.Lock()
        self._under_way: set[asyncio.Task[Fetched | None]] = set()
        self._ended = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True
        for task in self._under_way:
            task.cancel()
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def answer(self, method: str, kind: str, url: str, headers: Mapping[str, str]) -> Fetched | None:
        """Return the answer to a request of the page, None where it may not be asked or there is none."""
        if self._ended or len(self._under_way) > self._budget.rules.requests:
            return None
        task = asyncio.ensure_future(self._fetch(method, kind, url, headers))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        await asyncio.wait({task})
        return None if task.cancelled() else task.result()

    async def _fetch(self, method: str, kind: str, url: str, headers: Mapping[str, str]) -> Fetched | None:
        said = {name: headers[name] for name in _SENT if name in headers}
        async with self._one:
            try:
                return await self._asked(method, kind, url, said)
            except (NotPermitted, UrlRefused, ValueError) as error:
                _log.debug(
                    "a page may not ask for %(url)s: %(error)s", {"url": url[:500], "error": str(error)}
                )
            except Exception as error:  # noqa: BLE001 - it fails in the page, which may go on without it
                _log.debug("a page does not get %(url)s: %(error)r", {"url": url[:500], "error": error})
        return None

    async def _asked(self, method: str, kind: str, url: str, headers: Mapping[str, str]) -> Fetched | None:
        for _ in range(MOST_REDIRECTS + 1):
            target = HttpUrl.as_written(url)
            self._budget.ask(method, kind, target)
            known = self._cache.get(self._pid, str(target)) if kind in REPEATED else None
            if known is not None:
                return known
            request = self._request(target, headers)
            response = await self._crawler.engine.download_async(request)
            body = request.meta.get(BODY)
            self._budget.take(body.length if body else 0)
            if response.status not in MOVED:
                fetched = Fetched(response.status, shown_headers(response), response.body)
                if kind in REPEATED and header_of(response, "Vary").strip() != "*":
                    said = header_of(response, "Cache-Control")
                    self._cache.put(self._pid, str(target), fetched, said, self._budget.rules.cache)
                return fetched
            url = str(redirect(location_of(response), target))
        return None

    def _request(self, url: HttpUrl, headers: Mapping[str, str]) -> Request:
        exempt = not self._obeys and self._budget.is_own(url)  # its owner cannot exempt others
        return Request(
            str(url),
            callback=NO_CALLBACK,
            headers={**self._headers, **headers},
            meta={
                **self._meta,
                IN_MEMORY: self._budget.room,
                OF_A_PAGE: True,
                _NO_ROBOTS: exempt,
                "verbatim_url": True,
            },
            dont_filter=True,
        )
