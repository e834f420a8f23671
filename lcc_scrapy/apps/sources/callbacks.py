"""Callbacks: what hubs of WebSub say to this LCC, and what follows."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO

from lcc_scrapy.apps.sources.reading import Unreadable
from lcc_scrapy.apps.sources.registry import RunElsewhere
from lcc_scrapy.apps.sources.rules import Report, Source
from lcc_scrapy.apps.sources.runner import Runner
from lcc_scrapy.apps.sources.running import Run
from lcc_scrapy.apps.sources.websub import is_signed
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.kit.fetching import CannotFetch, Fetched
from lcc_scrapy.web.body_room import BodyRoom

CONTENT_MAX = 5_000_000
"""Bytes of one content distribution."""

BODIES = 8 * CONTENT_MAX
"""Bytes of large bodies in memory at a time, of all hubs; ``CONTENT_MAX`` of one source twice."""

AT_A_TIME = 4
WAITING, WAITING_EACH = 32, 8
"""Content distributions under way, of all sources and of each; of more, hubs are told to come again."""

PAUSE = 5.0
"""Seconds between two looks at one topic, however often its hub asks for them."""

TRIES = 20
"""Looks that are tried while another process runs the source."""

_log = logging.getLogger(__name__)


class Busy(LccError):
    """Too much is being taken in: the hub is to send it again."""


@dataclass(slots=True)
class CallbackService:
    """Answers hubs. ``runner`` takes in what they send, in this process."""

    runner: Runner
    now: Callable[[], float] = time.time
    bodies: BodyRoom = field(default_factory=lambda: BodyRoom(BODIES, 2 * CONTENT_MAX))
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_A_TIME))
    _waiting: Counter[int] = field(default_factory=Counter)
    _wanted: set[int] = field(default_factory=set)
    _looking: dict[int, "asyncio.Task[None]"] = field(default_factory=dict)
    pause: float = PAUSE

    async def verify(self, callback: str, said: Mapping[str, str]) -> str | None:
        """Return what a hub that verifies an intent is answered; None = there is no such intent (404)."""
        registry = self.runner.registry
        return await self.runner.work(registry.verified, callback, dict(said), int(self.now())) or None

    async def source(self, callback: str) -> Source | None:
        """Return the source of a callback; None = there is none (404)."""
        return await self.runner.work(self.runner.registry.called_back, callback)

    async def content(self, source: Source, signature: str, body: bytes) -> bool:
        """Take in what a hub sent of a source's topic; False = it is not signed as it should be.

        When it returns, what is new of it is queued. Raises ``Busy`` or ``StoreUnavailable``.
        """
        if not is_signed(source.secret, signature, body):
            _log.warning("source %d: content that is not signed by its hub was ignored", source.sourceid)
            return False
        of_source = source.sourceid
        if self._waiting[of_source] >= WAITING_EACH or self._waiting.total() >= WAITING:
            raise Busy("too much to take in")
        self._waiting[of_source] += 1
        try:
            async with self._places:
                await self._take(source, body)
        finally:
            self._waiting -= Counter([of_source])
        return True

    async def _take(self, source: Source, body: bytes) -> None:
        """Take the content of the topic in, or look at the topic where there is nothing that can be read."""
        run = self.runner.made(source)
        try:
            with Fetched(200, HttpUrl.parse(source.url), BytesIO(body), {}) as content:
                report = await run.take(content)
        except Unreadable:
            await self._look_soon(source)
        except CannotFetch as error:  # its hub cannot mend that: it need not send it again
            _log.warning("source %d: content of its hub was ignored: %s", source.sourceid, error)
        else:
            await self._told(run, report)

    async def _told(self, run: Run, report: Report) -> None:
        await self.runner.work(self.runner.registry.pinged, run.source.sourceid, report, int(self.now()))

    async def _look_soon(self, source: Source) -> None:
        """Fetch the topic; where that is under way, fetch it again: it may have changed meanwhile."""
        sourceid = source.sourceid
        if sourceid not in self._wanted:
            await self.runner.work(self.runner.registry.expect, sourceid, int(self.now()))
        self._wanted.add(sourceid)
        if sourceid not in self._looking:
            self._looking[sourceid] = asyncio.ensure_future(self._look(sourceid))
            self._looking[sourceid].add_done_callback(lambda _: self._looking.pop(sourceid, None))

    async def _look(self, sourceid: int) -> None:
        in_vain = 0
        while sourceid in self._wanted and in_vain < TRIES:
            self._wanted.discard(sourceid)
            if await self._has_looked(sourceid):
                in_vain = 0
            else:
                in_vain += 1
                self._wanted.add(sourceid)
            await asyncio.sleep(self.pause)
        self._wanted.discard(sourceid)

    async def _has_looked(self, sourceid: int) -> bool:
        """Look at the topic; False = another process does, which may have read it before it changed."""
        try:
            claimed = await self.runner.work(self.runner.registry.claim, sourceid, int(self.now()))
            await self.runner.run(claimed)
        except RunElsewhere:
            return False
        except LccError as error:
            _log.warning("source %d: %s", sourceid, error)
        return True

    async def close(self) -> None:
        """End what is under way."""
        looking = list(self._looking.values())
        for task in looking:
            task.cancel()
        await asyncio.gather(*looking, return_exceptions=True)
        await self.runner.fetcher.close()
