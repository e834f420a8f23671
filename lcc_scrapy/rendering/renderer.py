"""Renders the pages of a crawl: the seam between a fetch in its turn and the browser."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from lcc_scrapy.app.wiring import Worker
from lcc_scrapy.content.sink import Sink, TooLarge
from lcc_scrapy.domain.cache import Body
from lcc_scrapy.domain.compression import NONE, coding_for
from lcc_scrapy.domain.content_types import type_of
from lcc_scrapy.domain.errors import MissingExtra
from lcc_scrapy.domain.render_rules import RenderRules
from lcc_scrapy.domain.rendering import RequestBudget, is_rendered
from lcc_scrapy.engine.statistics import Count
from lcc_scrapy.fetch.client import ACCEPT_ENCODING, DOCUMENT
from lcc_scrapy.fetch.download_handler import BODY, fields_of, looks_like
from lcc_scrapy.fetch.pacing import FetchAborted
from lcc_scrapy.queue.leases import Member
from lcc_scrapy.rendering.cache import ScriptCache
from lcc_scrapy.rendering.page import NoBrowser, NotRendered, ServedPage
from lcc_scrapy.rendering.page_requests import PageRequests, shown_headers
from lcc_scrapy.settings import headers_to_give

if TYPE_CHECKING:
    from lcc_scrapy.rendering.browser import Browser

_log = logging.getLogger(__name__)


def browser(rules: Callable[[], RenderRules], longest: Callable[[], int]) -> "Browser":
    """Return a browser that has not started; raises ``NoBrowser`` where Playwright is missing."""
    try:
        from lcc_scrapy.rendering.browser import Browser  # noqa: PLC0415 - most LCCs need none
    except ImportError:
        raise NoBrowser(str(MissingExtra("render", "playwright"))) from None
    return Browser(rules, longest)


class PageRenderer:
    """Renders pages for one worker; its browser starts with the first one."""

    def __init__(self, crawler: Crawler, worker: Worker, count: Count) -> None:
        self._crawler = crawler
        self._worker = worker
        self._count = count
        self._headers = {**headers_to_give(crawler.settings), "Accept-Encoding": ACCEPT_ENCODING}
        self._browser: Browser | None = None
        self._scripts = ScriptCache()
        self._under_way: set[asyncio.Task[str]] = set()
        worker.on_abort.append(self._cut_off)

    async def rendition(self, request: Request, response: Response, member: Member) -> Body | None:
        """Return what a browser makes of an answer, None where that is no page, or nothing comes of it.

        Raises ``NoBrowser`` where there is none, and ``FetchAborted`` when the process stops.
        """
        body: Body | None = request.meta.get(BODY)
        if body is None or body.data is None or response.status not in DOCUMENT:
            return None
        if not is_rendered(type_of(fields_of(response)).mimetype or looks_like(request.meta)):
            return None
        try:
            html = await self._until_abort(self._html(request, response, body.data, member))
            return await asyncio.get_running_loop().run_in_executor(None, self._body, html)
        except (NotRendered, TooLarge) as error:
            self._count("lcc/not_rendered")
            what = {"url": response.url, "pid": member.provider.pid, "error": str(error)}
            _log.warning("not rendered, stored as served: %(url)s (%(error)s)", what)
            return None

    async def _html(self, request: Request, response: Response, body: bytes, member: Member) -> str:
        budget = RequestBudget(self._worker.config.render, member.roots)
        page = ServedPage(response.url, shown_headers(response), body)
        async with PageRequests(self._crawler, request, budget, self._headers, self._scripts) as requests:
            html = await self._started().render(page, requests.answer)
        self._count("lcc/rendered")
        self._count("lcc/render_requests", budget.requests)
        return html

    def _started(self) -> "Browser":
        if self._browser is None:
            worker = self._worker
            self._browser = browser(lambda: worker.config.render, lambda: worker.config.memory_body)
        return self._browser

    async def _until_abort(self, rendering: Coroutine[Any, Any, str]) -> str:
        task = asyncio.ensure_future(rendering)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        try:
            return await task
        except asyncio.CancelledError:
            if not self._worker.aborting:
                task.cancel()
                raise
            raise FetchAborted("the process stops") from None

    def _body(self, html: str) -> Body:
        """Make a body of HTML, compressed as served ones are; blocks for as long as that takes."""
        config = self._worker.config
        coding = config.content_compression
        coding = "" if coding == NONE else coding_for(coding, "text/html")
        sink = Sink(self._worker.content, config.memory_body * 4, config.memory_body, coding)
        sink.write(html.encode("utf-8", "replace"))
        return sink.finish()

    def _cut_off(self) -> None:
        for rendering in self._under_way:
            rendering.cancel()

    async def close(self) -> None:
        """End the browser."""
        if self._browser is not None:
            await self._browser.close()
