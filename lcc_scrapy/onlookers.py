"""Who looks at requests, answers and documents on their way: a team's components, or nobody.

Where nobody does, documents take the short way. Whatever a team configures keeps them on the long one,
through Scrapy's engine: middlewares, pipelines, callbacks, handlers of signals, a log of every page.
"""

from collections.abc import Iterator
from typing import Final

from scrapy import Spider, signals
from scrapy.crawler import Crawler

from lcc_scrapy import logs
from lcc_scrapy import signals as lcc_signals
from lcc_scrapy.components import is_stock, name_of
from lcc_scrapy.settings import foreign_components, needs_scrapys_middlewares

_LISTENERS_THAT_COUNT: Final = ("lcc_scrapy.", "scrapy.extensions.corestats.")
"""What they count of signals, the short way counts, too."""


_EVENTS: Final = (
    "request_scheduled",
    "request_dropped",
    "request_reached_downloader",
    "request_left_downloader",
    "bytes_received",
    "headers_received",
    "response_downloaded",
    "response_received",
    "item_scraped",
    "item_dropped",
    "item_error",
    "spider_error",
    "lcc_document_stored",
    "lcc_document_confirmed",
)
"""Signals that are sent of single pages on the long way only."""


def onlooker(crawler: Crawler, spider: Spider) -> str:
    """Return what keeps documents on the long way, in a few words; empty = nothing does."""
    return next(_onlookers(crawler, spider), "")


def _onlookers(crawler: Crawler, spider: Spider) -> Iterator[str]:
    if not is_stock(type(spider)):
        yield f"spider {spider.name} is {type(spider).__qualname__}"
    for setting in ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "ITEM_PIPELINES"):
        for component in foreign_components(crawler.settings, setting):
            yield f"{setting} has {component}"
    if needs_scrapys_middlewares(crawler.settings):
        yield "Scrapy's middlewares for proxies or HTTPAUTH_* are in use"
    if logs.tells_of_pages():
        yield "the log tells of every page (LOG_LEVEL = DEBUG)"
    for event in _EVENTS:
        for listener in _listeners(crawler, event):
            yield f"{listener} listens to {event}"


def _listeners(crawler: Crawler, event: str) -> Iterator[str]:
    signal = getattr(signals, event, None) or getattr(lcc_signals, event)
    for receiver in lcc_signals.listeners(crawler, signal):
        name = name_of(receiver)
        if not name.startswith(_LISTENERS_THAT_COUNT):
            yield name
