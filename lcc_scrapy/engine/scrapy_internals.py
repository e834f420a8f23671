"""What is used of Scrapy beyond its documentation: all such names stand here.

Scrapy's engine spends most of its time on a page for what an LCC's page does not have: listeners to
signals, several items, spider middlewares. Four of its parts are replaced where nothing of that is there.
Each part names what it needs (``NAMES``). Where the Scrapy that is installed lacks a name, the part stays
as Scrapy made it, and the log says so: pages then take longer, and nothing else changes.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from inspect import isawaitable
from operator import attrgetter
from typing import Any, Final

from pydispatch import dispatcher
from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.core.scraper import Scraper
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.signalmanager import SignalManager
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.misc import arg_to_iter
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

_log = logging.getLogger(__name__)

SIGNALS, SCRAPER, MIDDLEWARES, HANDLERS = "signals", "scraper", "middlewares", "handlers"
NAMES: Final[dict[str, tuple[str, ...]]] = {
    SIGNALS: ("signals.sender", "signals.send_catch_log", "signals.send_catch_log_async"),
    SCRAPER: (
        "enqueue_scrape",
        "spidermw.middlewares",
        "slot.active.add",
        "slot.active_size",
        "slot.finish_response",
        "slot.MIN_RESPONSE_SIZE",
        "handle_spider_error",
        "start_itemproc_async",
        "_check_if_closing",
    ),
    MIDDLEWARES: ("middleware.middlewares", "middleware.download_async"),
    HANDLERS: ("handlers._get_handler",),
}
"""By part: what is read of the crawler, its scraper or its downloader."""

_TREE = "_cached_selector"
_told: set[str] = set()


def has(part: str, whole: object) -> bool:
    """Tell whether the Scrapy that is installed has all that a part needs; says once what it lacks."""
    for name in NAMES[part]:
        try:
            attrgetter(name)(whole)
        except AttributeError:
            if part not in _told:
                _told.add(part)
                _log.warning("this Scrapy has no %s: its own %s are used, which take longer", name, part)
            return False
    return True


# --- signals -------------------------------------------------------------------------------------


class HeardSignals(SignalManager):
    """Sends no signal that nobody hears; whoever connects, at any time and by any way, hears the next one.

    ``counts`` are called for their signals without arguments, whether anybody hears these or not.
    """

    def __init__(self, sender: Any) -> None:
        super().__init__(sender)
        self._senders = (id(sender), id(dispatcher.Any))
        self.counts: dict[Any, Callable[[], None]] = {}

    def is_heard(self, signal: Any) -> bool:
        """Tell whether anybody listens to a signal."""
        for sender in self._senders:
            heard = dispatcher.connections.get(sender)
            if heard and (signal in heard or dispatcher.Any in heard):
                return True
        return False

    def _is_sent(self, signal: Any, named: dict[str, Any]) -> bool:
        if signal in self.counts:
            self.counts[signal]()
        return self.is_heard(signal) or named.get("sender", self.sender) is not self.sender

    def send_catch_log(self, signal: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Send a signal, as Scrapy does it."""
        return super().send_catch_log(signal, **kwargs) if self._is_sent(signal, kwargs) else []

    async def send_catch_log_async(self, signal: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Send a signal, as Scrapy does it."""
        return await super().send_catch_log_async(signal, **kwargs) if self._is_sent(signal, kwargs) else []


def send_heard_signals_only(crawler: Crawler) -> None:
    """Let a crawler send what is heard only; to be called before it makes its components."""
    if type(crawler.signals) is SignalManager and has(SIGNALS, crawler):
        crawler.signals = HeardSignals(crawler.signals.sender)


# --- the downloader ------------------------------------------------------------------------------

Fetch = Callable[[Request], Awaitable[Any]]


def way_through_middlewares(downloader: Downloader, robots: type, download: Fetch, whole: Fetch) -> Fetch:
    """Return what fetches one request through all downloader middlewares, and ``download`` behind them.

    Without any but ``robots`` that needs no chain. ``whole`` is Scrapy's own way.
    """
    if not has(MIDDLEWARES, downloader):
        return whole
    manager = downloader.middleware
    if not manager.middlewares:
        return download
    if [type(one) for one in manager.middlewares] != [robots]:
        return lambda request: manager.download_async(download, request)  # type: ignore[arg-type]
    ask = manager.middlewares[0].process_request

    async def asked_first(request: Request) -> Any:
        await ask(request)
        return await download(request)

    return asked_first


def handler_of(downloader: Downloader, scheme: str) -> Fetch:
    """Return what downloads the requests of a scheme."""
    handler = downloader.handlers._get_handler(scheme) if has(HANDLERS, downloader) else None  # noqa: SLF001
    return downloader.handlers.download_request_async if handler is None else handler.download_request


class Relay:
    """Runs what the engine does with an answer in the task that fetched it: a task less for each page."""

    def __init__(self) -> None:
        self._is_open = False
        self._following: Coroutine[Any, Any, None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def follow(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the task that hands an answer over now, or in one of its own."""
        if self._is_open and self._following is None:
            self._following = work
        else:
            task = asyncio.get_running_loop().create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def hand_over(self, fetched: Deferred[Any], result: Any) -> None:
        """Give an answer to the engine, and do what follows."""
        self._is_open = True
        try:
            fetched.callback(result)
        finally:
            self._is_open = False
            following, self._following = self._following, None
        if following is not None:
            await following


# --- responses -----------------------------------------------------------------------------------


def forget_tree(response: Response) -> None:
    """Let go of the parsed page that ``response.selector`` keeps; who asks again gets it parsed again.

    Response and selector refer to each other: they would stay until Python looks for garbage, seldom.
    """
    if getattr(response, _TREE, None) is not None:
        setattr(response, _TREE, None)


# --- the scraper ---------------------------------------------------------------------------------

Withhold = Callable[[Response, AsyncIterator[Any]], AsyncIterator[Any]]


class SequentialScraper:
    """Calls the callback of a response and sends on what it yields, one thing after the other.

    Failures go Scrapy's own way. ``withhold``: what is between a callback that is an async generator and the
    pipelines.
    """

    def __init__(
        self, crawler: Crawler, withhold: Withhold | None, follow: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self._crawler = crawler
        self._scraper: Scraper = crawler.engine.scraper
        self._enqueue = self._scraper.enqueue_scrape
        self._withhold = withhold
        self._follow = follow

    def enqueue_scrape(self, result: Response | Failure, request: Request) -> Deferred[None]:
        """Scrape an answer; the Deferred fires when all that came of it has been dealt with."""
        slot = self._scraper.slot
        if not isinstance(result, Response) or slot is None:
            return self._enqueue(result, request)
        slot.active.add(request)
        slot.active_size += max(len(result.body), slot.MIN_RESPONSE_SIZE)
        done: Deferred[None] = Deferred()
        self._follow(self._scrape(result, request, done))
        return done

    async def _scrape(self, response: Response, request: Request, done: Deferred[None]) -> None:
        scraper, slot = self._scraper, self._scraper.slot
        assert slot is not None
        try:
            await self._call_back(response, request)
        except Exception:  # noqa: BLE001 - what Scrapy says of its own bugs
            _log.exception("a response was not dealt with: %s", request)
        finally:
            slot.finish_response(response, request)
            scraper._check_if_closing()  # noqa: SLF001
            done.callback(None)

    async def _call_back(self, response: Response, request: Request) -> None:
        try:
            if response.request is None:
                response.request = request
            callback = response.request.callback or self._crawler.spider._parse  # type: ignore[union-attr] # noqa: SLF001
            output = callback(response, **response.request.cb_kwargs)
            if isinstance(output, Deferred):
                output = maybe_deferred_to_future(output)
            if isawaitable(output):
                output = await output
            await self._send_on(response, output)
        except Exception:  # noqa: BLE001 - a callback may raise anything
            self._scraper.handle_spider_error(_failure(), request, response)

    async def _send_on(self, response: Response, output: Any) -> None:
        if isinstance(output, AsyncIterator):
            if self._withhold is not None:
                output = self._withhold(response, output)
            async for one in output:
                await self._send(one, response)
        elif output is not None:
            for one in arg_to_iter(output):
                await self._send(one, response)

    async def _send(self, one: Any, response: Response) -> None:
        if isinstance(one, Request):
            self._crawler.engine.crawl(one)
        elif one is not None:
            await self._scraper.start_itemproc_async(one, response=response)


def _failure() -> Failure:
    """Return the error that is being handled, as Scrapy hands it on."""
    return Failure()  # type: ignore[no-untyped-call]


def scrape_in_sequence(crawler: Crawler, withholding: type, relay: Relay) -> None:
    """Let a crawler scrape in sequence where no spider middleware is in use but ``withholding``.

    To be called when the spider has been opened.
    """
    scraper = crawler.engine.scraper
    if not has(SCRAPER, scraper):
        return
    middlewares = scraper.spidermw.middlewares
    if all(type(one) is withholding for one in middlewares):
        withhold = middlewares[0].process_spider_output if middlewares else None
        scraper.enqueue_scrape = SequentialScraper(crawler, withhold, relay.follow).enqueue_scrape  # type: ignore[method-assign]
