"""The real download handler with no crawl around it: what it refuses, it refuses by itself."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import uvloop
from scrapy import Request
from scrapy.settings import Settings

from lcc_scrapy.domain.turn_limits import TurnLimits
from lcc_scrapy.fetch import download_handler
from lcc_scrapy.fetch.download_handler import PRIVATE_HOSTS, LccDownloadHandler
from lcc_scrapy.fetch.turn import code_of
from lcc_scrapy.http.credentials import Credentials
from lcc_scrapy.settings import apply_to
from lcc_scrapy.spiders import LccSpider

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
PATIENCE = 120.0


class Handling:
    """Makes handlers whose worker has nothing but a configuration, and runs what is done with them."""

    def __init__(self, folder: Path, credentials: Credentials | None = None, **config: Any) -> None:
        defaults = {
            "agent": "lcc",
            "contact": "",
            "project_components": (),
            "items_follow_document": True,
            "turns": TurnLimits(),
            "connections_out": 128,
            "pace_deadline": 0.0,
            "fetch_deadline": 600.0,
            "fetch_timeout": PATIENCE,
            "memory_body": 1_000_000,
            "fetch_max_bytes": 100_000_000,
            "content_compression": "none",
        }
        self.charged = 0
        self.config = SimpleNamespace(**defaults | config)
        self._worker = SimpleNamespace(
            aborting=False,
            on_abort=[],
            config=self.config,
            credentials=credentials or Credentials(),
            content=SimpleNamespace(unfinished_path=lambda name: folder / name),
            manager=SimpleNamespace(limit=lambda _: 0, charge=self._charge, expect=lambda *_: 0.0),
        )

    def _charge(self, _: object, size: int) -> float:
        self.charged += size
        return 0.0

    def handler(self, **settings: Any) -> LccDownloadHandler:
        carried = Settings(settings)
        apply_to(carried, self.config, LccSpider)  # type: ignore[arg-type]
        crawler: Any = SimpleNamespace(settings=carried)
        known, download_handler.worker_of = download_handler.worker_of, lambda _: self._worker  # type: ignore[assignment]
        try:
            return LccDownloadHandler(crawler)
        finally:
            download_handler.worker_of = known


def run(scenario: Callable[[], Coroutine[Any, Any, Any]], loop: str = "uvloop") -> Any:
    """Run a scenario to its end, in a thread beside that of the reactor."""

    def whole() -> Any:
        with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            return runner.run(scenario())

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(whole).result()


async def outcome(handler: LccDownloadHandler, url: str, *approved: str) -> int:
    """Fetch; return the status, or the code of the failure, 705 for what is no URL to begin with."""
    try:
        meta = {PRIVATE_HOSTS: frozenset(approved), "verbatim_url": True}
        request = Request(url, meta=meta)
    except ValueError:
        return 705
    try:
        return (await handler.download_request(request)).status
    except Exception as error:
        return code_of(error)


async def outcomes(handler: LccDownloadHandler, urls: Iterable[str], *approved: str) -> list[int]:
    """Fetch all, forty at a time."""
    places = asyncio.Semaphore(40)

    async def one(url: str) -> int:
        async with places:
            return await outcome(handler, url, *approved)

    return await asyncio.gather(*map(one, urls))


class Stopwatch:
    """Measures a stretch of time."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began
