"""What is used of Scrapy beyond its documentation: all such names stand here.

Scrapy's engine spends most of its time on a page for what an LCC's page does not have: listeners to
signals, several items, spider middlewares. Parts of it are replaced where nothing of that is there.
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
from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.core.scraper import Scraper
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.signalmanager import SignalManager
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.log import logformatter_adapter
from scrapy.utils.misc import arg_to_iter
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

_log = logging.getLogger(__name__)
_engine_log = logging.getLogger("scrapy.core.engine")

SIGNALS, SCRAPER, MIDDLEWARES, HANDLERS, ENGINE = "signals", "scraper", "middlewares", "handlers", "engine"
CANCELLED_WAITS = "handling of cancelled waits"
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
    CANCELLED_WAITS: ("handle_spider_output_async",),
    MIDDLEWARES: ("middleware.middlewares", "middleware.download_async"),
    HANDLERS: ("handlers._get_handler",),
    ENGINE: (
        "_start_scheduled_request",
        "_slot.scheduler.next_request",
        "_slot.add_request",
        "_slot.remove_request",
        "_slot.nextcall.schedule",
        "logformatter.crawled",
        "signals.send_catch_log",
    ),
}
"""By part: what is read of the crawler, its scraper, its downloader or its engine."""

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


# --- responses -----------------------------------------------------------------------------------


def forget_tree(response: object) -> None:
    """Let go of the parsed page that ``response.selector`` keeps; who asks again gets it parsed again.

    Response and selector refer to each other: they would stay until Python looks for garbage, seldom.
    """
    if getattr(response, _TREE, None) is not None:
        setattr(response, _TREE, None)


# --- tasks ---------------------------------------------------------------------------------------


def is_being_cancelled() -> bool:
    """Tell whether this task itself is cancelled, and not only something of a team's that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class WaitCancelled(Exception):
    """What a component waited for was cancelled, and its page was not. Scrapy sees ``Exception`` only."""


def error_of(cancelled: asyncio.CancelledError) -> BaseException:
    """Return what a component fails with that let a ``CancelledError`` through."""
    if is_being_cancelled():
        return cancelled
    return WaitCancelled("what it waited for was cancelled").with_traceback(cancelled.__traceback__)


# --- the scraper ---------------------------------------------------------------------------------

Withhold = Callable[[Response, AsyncIterator[Any]], AsyncIterator[Any]]
Scrape = Callable[[Response | Failure, Request], Awaitable[None]]


class SequentialScraper:
    """Calls the callback of a response and sends on what it yields, one thing after the other.

    Failures go Scrapy's own way. ``withhold``: what is between a callback that is an async generator and the
    pipelines.
    """

    def __init__(self, crawler: Crawler, withhold: Withhold | None) -> None:
        self._crawler = crawler
        self._scraper: Scraper = crawler.engine.scraper
        self._enqueue = self._scraper.enqueue_scrape
        self._withhold = withhold

    def enqueue_scrape(self, result: Response | Failure, request: Request) -> Deferred[None]:
        """Scrape an answer; the Deferred fires when all that came of it has been dealt with."""
        return deferred_from_coro(self.scrape(result, request))

    async def scrape(self, result: Response | Failure, request: Request) -> None:
        """Scrape an answer; returns when all that came of it has been dealt with."""
        scraper, slot = self._scraper, self._scraper.slot
        if not isinstance(result, Response) or slot is None:
            await maybe_deferred_to_future(self._enqueue(result, request))
            return
        slot.active.add(request)
        slot.active_size += max(len(result.body), slot.MIN_RESPONSE_SIZE)
        try:
            await self._call_back(result, request)
        except Exception:  # noqa: BLE001 - what Scrapy says of its own bugs
            _log.exception("a response was not dealt with: %s", request)
        finally:
            slot.finish_response(result, request)
            scraper._check_if_closing()  # noqa: SLF001

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
        except (Exception, asyncio.CancelledError):
            if is_being_cancelled():
                raise
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


def scrape_in_sequence(crawler: Crawler, withholding: type) -> Scrape:
    """Let a crawler scrape in sequence where no spider middleware is in use but ``withholding``.

    To be called when the spider has been opened. Returns what scrapes one answer, in either case.
    """
    scraper = crawler.engine.scraper
    if has(SCRAPER, scraper):
        middlewares = scraper.spidermw.middlewares
        if all(type(one) is withholding for one in middlewares):
            withhold = middlewares[0].process_spider_output if middlewares else None
            sequential = SequentialScraper(crawler, withhold)
            scraper.enqueue_scrape = sequential.enqueue_scrape  # type: ignore[method-assign]
            return sequential.scrape

    if has(CANCELLED_WAITS, scraper):
        scraper.handle_spider_output_async = _that_ends(scraper)  # type: ignore[method-assign]

    async def scrape(result: Response | Failure, request: Request) -> None:
        await maybe_deferred_to_future(scraper.enqueue_scrape(result, request))

    return scrape


def _that_ends(scraper: Scraper) -> Callable[..., Coroutine[Any, Any, None]]:
    """Return ``handle_spider_output_async`` that ends also when a wait of a spider middleware is cancelled.

    Scrapy's own waits for ever then: its queue of outputs is filled by a task that has ended.
    """
    theirs = scraper.handle_spider_output_async

    async def handle(result: Any, request: Request, response: Response | Failure) -> None:
        output = _with_errors(result) if isinstance(result, AsyncIterator) else result
        await theirs(output, request, response)

    return handle


async def _with_errors(result: AsyncIterator[Any]) -> AsyncIterator[Any]:
    try:
        async for one in result:
            yield one
    except asyncio.CancelledError as error:
        raise error_of(error) from None


# --- the engine ----------------------------------------------------------------------------------


class OneTaskEach:
    """Starts the scheduler's requests as Scrapy's engine does, in one task instead of a chain of Deferreds.

    ``fetch`` gives the answer to a request, ``scrape`` deals with what it is, or with its failure.
    """

    def __init__(self, crawler: Crawler, fetch: Fetch, scrape: Scrape) -> None:
        self._spider: Any = crawler.spider
        self._engine: Any = crawler.engine
        self._fetch = fetch
        self._scrape = scrape
        self._tasks: set[asyncio.Task[None]] = set()

    def start_scheduled_request(self) -> bool:
        """Start the next request; tells whether there was one."""
        slot = self._engine._slot  # noqa: SLF001
        request: Request | None = slot.scheduler.next_request()
        if request is None:
            self._engine.signals.send_catch_log(signals.scheduler_empty)
            return False
        slot.add_request(request)
        task = asyncio.get_running_loop().create_task(self._deal_with(request, slot))
        self._tasks.add(task)  # the loop itself does not keep it
        task.add_done_callback(self._tasks.discard)
        return True

    async def _deal_with(self, request: Request, slot: Any) -> None:
        try:
            result = await self._fetched(request)
            slot.nextcall.schedule()
            await self._scrape(result, request)
            forget_tree(result)  # a document that was dropped did not get as far as that
        except Exception:  # noqa: BLE001 - what Scrapy says of its own bugs
            _engine_log.exception("a request was not dealt with: %s", request, extra={"spider": self._spider})
        finally:
            try:
                slot.remove_request(request)
            finally:
                slot.nextcall.schedule()

    async def _fetched(self, request: Request) -> Response | Failure:
        try:
            response: Response = await self._fetch(request)
            if response.request is None:
                response.request = request
            self._tell(response, response.request)
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - the errback is told
            return _failure()
        return response

    def _tell(self, response: Response, request: Request) -> None:
        line = self._engine.logformatter.crawled(request, response, self._spider)
        if line is not None:
            _engine_log.log(*logformatter_adapter(line), extra={"spider": self._spider})
        self._engine.signals.send_catch_log(
            signals.response_received, response=response, request=request, spider=self._spider
        )


def start_in_one_task(crawler: Crawler, fetch: Fetch, scrape: Scrape) -> None:
    """Let the engine of a crawler start each request in one task.

    To be called when the spider has been opened.
    """
    engine = crawler.engine
    if has(ENGINE, engine):
        start = OneTaskEach(crawler, fetch, scrape).start_scheduled_request
        engine._start_scheduled_request = start  # type: ignore[method-assign] # noqa: SLF001
