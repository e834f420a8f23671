"""What is used of Scrapy beyond its documentation: that the Scrapy installed has it, and what is done if not."""

import asyncio
import gc
import logging
import weakref
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import pytest
from pydispatch import dispatcher
from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.core.engine import ExecutionEngine
from scrapy.core.engine import _Slot as EngineSlot
from scrapy.core.scheduler import BaseScheduler
from scrapy.core.scraper import Scraper, Slot
from scrapy.http import HtmlResponse, Response
from scrapy.signalmanager import SignalManager
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.reactor import CallLaterOnce
from scrapy.utils.test import get_crawler
from scrapy.utils.trackref import live_refs
from twisted.python.failure import Failure

from lcc_scrapy.engine import scrapy_internals
from lcc_scrapy.engine.scrapy_internals import (
    CANCELLED_WAITS,
    ENGINE,
    NAMES,
    SCRAPER,
    SIGNALS,
    HeardSignals,
    OneTaskEach,
    forget_tree,
    has,
    send_heard_signals_only,
    way_through_middlewares,
)
from lcc_scrapy.fetch.download_handler import LazyHeaders, TicketRequest, fields_of, header_of, location_of

PINS = [(part, name) for part, names in NAMES.items() for name in names]


def part_of_scrapy(part: str) -> Any:
    """Return what a part's names are read of, as the installed Scrapy makes it."""
    crawler = get_crawler()
    if part == SIGNALS:
        return crawler
    if part in {SCRAPER, CANCELLED_WAITS}:
        scraper = Scraper(crawler)
        scraper.slot = Slot()
        return scraper
    if part == ENGINE:
        engine = ExecutionEngine(crawler, lambda _: None)
        engine._slot = EngineSlot(False, CallLaterOnce(lambda: None), BaseScheduler.from_crawler(crawler))
        return engine
    return Downloader(crawler)


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrapy_internals, "_told", set())


@pytest.mark.parametrize(("part", "name"), PINS)
def test_the_scrapy_that_is_installed_has_each_name(part: str, name: str) -> None:
    attrgetter(name)(part_of_scrapy(part))


def test_a_parsed_page_goes_without_looking_for_garbage() -> None:
    page = HtmlResponse("http://x/", body=b"<title>hello</title>", encoding="utf-8")
    tree = weakref.ref(page.selector)
    gc.disable()
    try:
        forget_tree(page)
        assert tree() is None
    finally:
        gc.enable()
    assert page.css("title::text").get() == "hello"
    forget_tree(Response("http://x/"))


@pytest.mark.parametrize(("part", "name"), PINS)
def test_a_part_that_lacks_a_name_is_not_replaced_and_the_log_says_so_once(
    part: str, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    names = tuple(f"{one}_renamed" if one == name else one for one in NAMES[part])
    monkeypatch.setitem(NAMES, part, names)  # type: ignore[misc]
    whole = part_of_scrapy(part)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert not has(part, whole)
        assert not has(part, whole)
    assert [one.getMessage() for one in caplog.records] == [
        f"this Scrapy has no {name}_renamed: its own {part} are used, which take longer"
    ]


@pytest.mark.parametrize("part", list(NAMES))
def test_a_part_with_all_names_is_replaced(part: str, caplog: pytest.LogCaptureFixture) -> None:
    assert has(part, part_of_scrapy(part))
    assert "this Scrapy has no" not in caplog.text


# --- signals -------------------------------------------------------------------------------------


class Hearing:
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def hear(self, signal: Any) -> None:
        self.heard.append(signal)


@pytest.fixture
def sending() -> HeardSignals:
    return HeardSignals(object())


def test_a_signal_that_nobody_hears_is_not_sent_but_counted(
    sending: HeardSignals, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise AssertionError

    counted: list[int] = []
    sending.counts[signals.item_scraped] = lambda: counted.append(1)
    monkeypatch.setattr(SignalManager, "send_catch_log", fails)
    assert sending.send_catch_log(signals.item_scraped, item=1) == []
    assert counted == [1]


@pytest.mark.parametrize(
    "connect",
    [
        lambda sending, hear: sending.connect(hear, signals.item_scraped),
        lambda sending, hear: SignalManager(sending.sender).connect(hear, signals.item_scraped),
        lambda sending, hear: sending.connect(hear, dispatcher.Any),
        lambda sending, hear: dispatcher.connect(hear, signals.item_scraped),
        lambda sending, hear: dispatcher.connect(hear),
    ],
)
def test_whoever_connects_hears_the_next_one_and_no_more_when_he_left(
    sending: HeardSignals, connect: Any
) -> None:
    hearing = Hearing()
    sending.send_catch_log(signals.item_scraped)
    connect(sending, hearing.hear)
    assert sending.is_heard(signals.item_scraped)
    sending.send_catch_log(signals.item_scraped)
    assert hearing.heard == [signals.item_scraped]
    del hearing
    assert not sending.is_heard(signals.item_scraped)


async def test_a_signal_for_coroutines_is_sent_to_them(sending: HeardSignals) -> None:
    hearing = Hearing()
    assert await sending.send_catch_log_async(signals.item_scraped) == []
    sending.connect(hearing.hear, signals.item_scraped)
    sent = await deferred_from_coro(sending.send_catch_log_async(signals.item_scraped))
    assert [what for _, what in sent] == [None]


def test_what_was_connected_before_the_signals_were_replaced_is_heard() -> None:
    crawler, hearing = get_crawler(), Hearing()
    crawler.signals.connect(hearing.hear, signals.item_scraped)
    send_heard_signals_only(crawler)
    assert isinstance(crawler.signals, HeardSignals)
    crawler.signals.send_catch_log(signals.item_scraped)
    assert hearing.heard == [signals.item_scraped]


def test_signals_of_a_team_s_own_are_left_as_they_are() -> None:
    class Own(SignalManager):
        pass

    crawler = get_crawler()
    crawler.signals = own = Own(crawler)
    send_heard_signals_only(crawler)
    assert crawler.signals is own


# --- the way through middlewares -----------------------------------------------------------------


class Robots:
    async def process_request(self, request: Any) -> None:
        if request == "forbidden":
            raise ValueError(request)


class Another(Robots):
    pass


async def _downloads(request: Any) -> Any:
    return f"got {request}"


async def _chain(download: Any, request: Any) -> Any:
    return f"chained {await download(request)}"


@pytest.mark.parametrize(
    ("middlewares", "expected"),
    [
        ([], "got it"),
        ([Robots()], "got it"),
        ([Another()], "chained got it"),
        ([Robots()] * 2, "chained got it"),
    ],
)
async def test_a_chain_is_gone_through_where_there_is_more_than_robots(
    middlewares: list[Any], expected: str
) -> None:
    manager = SimpleNamespace(middlewares=tuple(middlewares), download_async=_chain)
    downloader: Any = SimpleNamespace(middleware=manager)
    request: Any = "it"
    assert await way_through_middlewares(downloader, Robots, _downloads, _downloads)(request) == expected


async def test_robots_are_asked_first_without_a_chain() -> None:
    manager = SimpleNamespace(middlewares=(Robots(),), download_async=_chain)
    downloader: Any = SimpleNamespace(middleware=manager)
    request: Any = "forbidden"
    with pytest.raises(ValueError):
        await way_through_middlewares(downloader, Robots, _downloads, _downloads)(request)


# --- headers when asked for ----------------------------------------------------------------------


def served() -> Any:
    kind = type("HtmlResponse", (LazyHeaders, HtmlResponse), {})
    response = kind("http://www.example.org/", body=b"<title>a title</title>")
    response.fields = [(b"content-type", b"text/html; charset=latin-1"), (b"x-a", b"1"), (b"X-A", b"2")]
    return response


def test_headers_are_scrapy_s_when_somebody_asks_for_them() -> None:
    response = served()
    assert response.headers.getlist("X-A") == [b"1", b"2"]
    assert response.fields is None
    assert response.encoding == "cp1252"
    assert (b"X-A", b"2") in fields_of(response)


def test_headers_that_were_changed_are_what_counts() -> None:
    response = served()
    response.headers["X-A"] = "3"
    assert [value for name, value in fields_of(response) if name == b"X-A"] == [b"3"]
    response.headers = {"X-A": "4"}
    assert fields_of(response) == [(b"X-A", b"4")]


def test_a_copy_has_the_headers() -> None:
    for one in (served(), served().replace(cls=HtmlResponse), served().replace(body=b"other")):
        assert header_of(one, "x-a") == "1"
    request = TicketRequest("http://www.example.org/")
    request.fields = [(b"Accept", b"*/*")]
    copy = request.replace(url="http://www.example.org/other")
    assert isinstance(copy, TicketRequest)
    assert copy.headers == {b"Accept": [b"*/*"]}
    assert header_of(copy, "accept") == "*/*"


def test_the_first_of_several_headers_is_taken_and_none_is_empty() -> None:
    assert header_of(served(), "X-a") == "1"
    assert header_of(served(), "location") == ""
    assert header_of(Request("http://www.example.org/"), "location") == ""
    redirect = Response("http://www.example.org/", headers={"Location": " é"})
    assert (location_of(redirect), location_of(served())) == ("é".encode(), b"")


def test_what_is_made_for_each_page_is_not_tracked() -> None:
    made = served(), TicketRequest("http://www.example.org/")
    assert not {type(one) for one in made} & set(live_refs)


# --- one task for each page ----------------------------------------------------------------------


class Page:
    """One request of an engine, and what happens with it."""

    def __init__(self, answer: Response | BaseException, line: Any = None) -> None:
        self.request: Request | None = Request("http://www.example.org/")
        self.answer = answer
        self.events: list[Any] = []
        note = self.events.append
        slot = SimpleNamespace(
            scheduler=SimpleNamespace(next_request=lambda: self.request),
            add_request=lambda _: note("added"),
            remove_request=lambda _: note("removed"),
            nextcall=SimpleNamespace(schedule=lambda: note("next")),
        )
        engine = SimpleNamespace(
            _slot=slot,
            signals=SimpleNamespace(send_catch_log=lambda signal, **named: note((signal, named))),
            logformatter=SimpleNamespace(crawled=lambda *_: line),
        )
        crawler: Any = SimpleNamespace(spider="the spider", engine=engine)
        self.engine = OneTaskEach(crawler, self.fetch, self.scrape)

    async def fetch(self, _: Request) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def scrape(self, result: Response | Failure, _: Request) -> None:
        self.events.append(result)
        if isinstance(result, Response) and result.status == 500:
            raise ValueError

    async def ends(self) -> None:
        assert self.engine.start_scheduled_request()
        await deferred_from_coro(asyncio.gather(*self.engine._tasks, return_exceptions=True))


async def test_a_page_is_told_of_and_scraped_before_its_request_is_removed() -> None:
    page = Page(response := Response("http://www.example.org/"))
    await page.ends()
    named = {"response": response, "request": page.request, "spider": "the spider"}
    assert page.events == ["added", (signals.response_received, named), "next", response, "removed", "next"]
    assert response.request is page.request
    assert not page.engine._tasks


async def test_a_request_that_a_handler_gave_its_response_stays() -> None:
    other = Request("http://www.example.org/redirected")
    await Page(response := Response("http://www.example.org/", request=other)).ends()
    assert response.request is other


@pytest.mark.parametrize("error", [OSError("gone"), asyncio.CancelledError()])
async def test_a_failed_fetch_is_scraped_as_its_failure(error: BaseException) -> None:
    page = Page(error)
    await page.ends()
    *others, failure, removed, again = page.events
    assert (others, removed, again) == (["added", "next"], "removed", "next")
    assert failure.value is error


async def test_a_request_is_removed_also_where_scraping_fails(caplog: pytest.LogCaptureFixture) -> None:
    page = Page(Response("http://www.example.org/", status=500))
    with caplog.at_level(logging.ERROR):
        await page.ends()
    assert page.events[-2:] == ["removed", "next"]
    assert "a request was not dealt with: <GET http://www.example.org/>" in caplog.text


async def test_a_parsed_page_that_no_pipeline_stored_goes_without_looking_for_garbage() -> None:
    response = HtmlResponse("http://www.example.org/", body=b"<title>hello</title>", encoding="utf-8")
    tree = weakref.ref(response.selector)
    gc.disable()
    try:
        await Page(response).ends()
        assert tree() is None
    finally:
        gc.enable()


def test_without_a_request_the_scheduler_is_told_to_be_empty() -> None:
    page = Page(Response("http://www.example.org/"))
    page.request = None
    assert not page.engine.start_scheduled_request()
    assert page.events == [(signals.scheduler_empty, {})]


async def test_a_crawled_page_is_logged_as_scrapy_s_engine_does(caplog: pytest.LogCaptureFixture) -> None:
    line = {"level": logging.INFO, "msg": "Crawled %(what)s", "args": {"what": "it"}}
    with caplog.at_level(logging.INFO):
        await Page(Response("http://www.example.org/"), line).ends()
    (record,) = caplog.records
    assert (record.name, record.getMessage()) == ("scrapy.core.engine", "Crawled it")
    assert record.spider == "the spider"  # type: ignore[attr-defined]
