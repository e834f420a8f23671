"""Waiting for changes of the feed: one poll for all requests that wait."""

import asyncio
import logging
from collections.abc import Callable

from anyio import to_thread

from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.web.problems import Busy
from lcc_scrapy.web.working import current

_log = logging.getLogger(__name__)


class Watcher:
    """Polls the feed every ``poll`` seconds while requests wait, at most ``most`` of them."""

    def __init__(self, head: Callable[[], Position], poll: float, most: int) -> None:
        self._head = head
        self._poll = poll
        self._most = most
        self._waiting = 0
        self._seen: Position | None = None
        self._news = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    async def wait(self, position: Position, seconds: float) -> bool:
        """Wait until the feed is beyond a position; tells whether it is. Raises ``Busy``."""
        if self._waiting >= self._most:
            raise Busy(f"{self._most} requests wait for changes already: ask again without `wait`, later")
        if (slot := current.get()) is not None:
            slot.leave()
        self._waiting += 1
        self._seen = None if self._waiting == 1 else self._seen
        try:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            async with asyncio.timeout(seconds):
                while not self._closed and not self._is_beyond(position):
                    await self._news.wait()
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1
        return not self._closed

    @property
    def closed(self) -> bool:
        """Tell whether waiting has ended for good."""
        return self._closed

    def close(self) -> None:
        """End all waiting for good."""
        self._closed = True
        self._news.set()

    def _is_beyond(self, position: Position) -> bool:
        seen = self._seen
        if seen is None or position.is_ahead_of(seen):
            return False
        return seen.generation != position.generation or seen.seq > position.seq

    async def _look(self) -> None:
        while self._waiting and not self._closed:
            try:
                head = await to_thread.run_sync(self._head)
            except LccError as error:
                _log.warning("cannot read the feed now, trying again: %s", error)
            else:
                self._tell(head)
            await asyncio.sleep(self._poll)

    def _tell(self, head: Position) -> None:
        if head == self._seen or self._closed:
            return
        self._seen = head
        self._news.set()
        self._news = asyncio.Event()
