"""The spider of a trial: it fetches what its queue holds as all of the LCC's spiders do, and takes notes."""

import time
from dataclasses import dataclass
from typing import Any, ClassVar

from scrapy import Request
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.exceptions import IgnoreRequest, UsageError
from scrapy.http import Response
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, Settings

from lcc_scrapy.domain.cache import Answer, Body
from lcc_scrapy.domain.errors import ConfigurationError, NotDurable
from lcc_scrapy.fetch.download_handler import BODY
from lcc_scrapy.scheduler import TICKET
from lcc_scrapy.spiders.base import LccSpider, kept_of

_BEGAN = "lcc_hop_began"
_CLOSEST_TO_THE_DOWNLOADER = 1000

_OURS_ONLY: dict[str, Any] = {
    "ITEM_PIPELINES": {"lcc_scrapy.pipelines.LccPipeline": 900},
    "EXTENSIONS": {"lcc_scrapy.extensions.LccLifecycle": 100},
    "SPIDER_MIDDLEWARES": {},
    "FEEDS": {},
    "STATS_DUMP": False,
}
"""A team's downloader middlewares have their say; whatever else it does with documents is not for a trial."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One request: what was answered, or the ``error`` instead. ``document``: not a robots.txt."""

    url: str
    document: bool
    seconds: float
    answer: Answer | None = None
    body: Body | None = None
    error: str = ""


class TrialSpider(LccSpider):
    """Ends when its queue is empty. ``hops`` is the list that it fills."""

    arguments: ClassVar[frozenset[str]] = frozenset({"name", "hops"})
    hops: list[Hop]

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Carry the LCC's own settings, and nothing of a project but what takes part in fetching."""
        super().update_settings(settings)
        middlewares = settings.getdict("DOWNLOADER_MIDDLEWARES")
        middlewares[HopRecorder] = _CLOSEST_TO_THE_DOWNLOADER
        for name, value in {**_OURS_ONLY, "DOWNLOADER_MIDDLEWARES": middlewares}.items():
            settings.set(name, value, SETTINGS_PRIORITIES["cmdline"] + 2)

    def worker_options(self) -> dict[str, Any]:
        """Return what this spider wants of its worker beyond the defaults."""
        return {"stop_when_done": True}


class HopRecorder:
    """The downloader middleware that notes every request that really goes out."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "HopRecorder":
        """Build it for a trial's spider."""
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Begin to measure."""
        request.meta[_BEGAN] = time.monotonic()

    def process_response(self, request: Request, response: Response) -> Response:
        """Note an answer."""
        self._note(request, answer=kept_of(response, request.meta), body=request.meta.get(BODY))
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Note that there was none. A disk that takes nothing ends a trial, where a crawl would wait."""
        self._note(request, error=f"{type(exception).__name__}: {exception}")
        if isinstance(exception, NotDurable):
            raise IgnoreRequest(str(exception)) from exception

    def _note(self, request: Request, **what: Any) -> None:
        assert isinstance(self._crawler.spider, TrialSpider)
        began = request.meta.pop(_BEGAN, None)
        if began is not None:  # otherwise a middleware before this one kept it from going out
            hop = Hop(request.url, TICKET in request.meta, time.monotonic() - began, **what)
            self._crawler.spider.hops.append(hop)


def run(settings: Settings) -> list[Hop]:
    """Fetch what waits in a trial's queue, and return all requests; a process can do so once."""
    hops: list[Hop] = []
    try:
        process = AsyncCrawlerProcess(settings)
        process.crawl(TrialSpider, name="lcc_fetch", hops=hops)
    except UsageError as error:
        raise ConfigurationError(str(error)) from None
    process.start()
    return hops
