"""Changes of the feed for all who look at them: one reader, however many viewers there are.

Each viewer has a buffer. Who does not read it away is cut off: nobody takes memory without bound.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from anyio import to_thread

from lcc_scrapy.apps.dashboard.changes import event_text
from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.users import User
from lcc_scrapy.web.problems import Busy

_log = logging.getLogger(__name__)

HEARTBEAT = 15.0
"""Seconds without a change after which a line is sent that says nothing: proxies cut silent connections."""

CHECK = 15.0
"""Seconds after which it is looked whether viewers may still see what they see."""

ROWS = 100
"""Changes that are read at a time, and those that are kept for who comes later."""

BUFFER = 2 * ROWS
"""Events that wait for one viewer; one with more is cut off."""

SKIP = 1000
"""Changes behind which the reader goes on with the newest ones: nobody reads so many."""

RETRY = b"retry: 3000\n\n"
SKIPPED = b"event: skipped\ndata: 1\n\n"
_NOTHING = b": nothing new\n\n"


class Event(NamedTuple):
    """What is told of a change."""

    seq: int
    pid: int
    text: bytes


@dataclass(eq=False)
class Viewer:
    """Who looks: a user with the digest of the session, "" = a proxy brings the user."""

    user: User
    digest: str
    waiting: asyncio.Queue[bytes] = field(default_factory=lambda: asyncio.Queue(BUFFER))
    is_cut: bool = False

    def offer(self, text: bytes) -> None:
        """Let something wait to be sent; who has too much waiting is cut off."""
        try:
            self.waiting.put_nowait(text)
        except asyncio.QueueFull:
            self.is_cut = True


Look = Callable[[int, int], tuple[Sequence[CachedUrl | Tombstone], int]]
Check = Callable[[Sequence[Viewer]], Sequence[bool]]
"""Tells of viewers whether they may still look. Blocking."""


class Live:
    """Reads the feed every ``poll`` seconds while somebody looks, at most ``most`` viewers.

    ``look`` returns changes behind a seq with the seq of the newest change, and ``check`` tells who may still
    look; both block.
    """

    def __init__(self, look: Look, check: Check, poll: float, most: int) -> None:
        self._look = look
        self._check = check
        self._poll = poll
        self._most = most
        self._viewers: set[Viewer] = set()
        self._recent: deque[Event] = deque(maxlen=ROWS)
        self._after = 0
        self._checked = 0.0
        self._reading: asyncio.Task[None] | None = None
        self._closed = False

    def check_room(self) -> None:
        """Raise ``Busy`` when nobody else may look."""
        if self._is_full():
            raise Busy(f"{self._most} look at changes already: reload the page instead")

    def _is_full(self) -> bool:
        return self._closed or len(self._viewers) >= self._most

    def close(self) -> None:
        """End all looking for good."""
        self._closed = True
        for viewer in self._viewers:
            self._cut(viewer)

    async def told(self, viewer: Viewer, after: int) -> AsyncIterator[bytes]:
        """Yield what a viewer is told of changes behind a seq, until it is cut off."""
        if self._is_full():
            return  # others came since there was room
        self._viewers.add(viewer)
        try:
            self._begin(viewer, after)
            yield RETRY
            while not viewer.is_cut:
                yield await self._next(viewer)
        finally:
            self._viewers.discard(viewer)

    @staticmethod
    async def _next(viewer: Viewer) -> bytes:
        """Return all that waits for a viewer, so that it is sent at once."""
        try:
            async with asyncio.timeout(HEARTBEAT):
                first = await viewer.waiting.get()
        except TimeoutError:
            return _NOTHING
        return b"".join((first, *(viewer.waiting.get_nowait() for _ in range(viewer.waiting.qsize()))))

    def _begin(self, viewer: Viewer, after: int) -> None:
        if self._reading is None or self._reading.done():
            self._recent.clear()
            self._after = after
            self._checked = asyncio.get_running_loop().time()
            self._reading = asyncio.create_task(self._read())
        for event in self._recent:
            if event.seq > after and viewer.user.sees(event.pid):
                viewer.offer(event.text)

    async def _read(self) -> None:
        while self._viewers and not self._closed:
            try:
                self._tell(*await to_thread.run_sync(self._look, self._after, ROWS))
                await self._check_viewers()
            except LccError as error:
                _log.warning("cannot read the feed now, trying again: %s", error)
            await asyncio.sleep(self._poll)

    def _tell(self, rows: Sequence[CachedUrl | Tombstone], head: int) -> None:
        for row in rows:
            event = Event(row.seq, row.pid, event_text(row))
            self._recent.append(event)
            for viewer in self._viewers:
                if viewer.user.sees(event.pid):
                    viewer.offer(event.text)
        reached = rows[-1].seq if len(rows) == ROWS else head
        if head - reached > SKIP:
            reached = head
            for viewer in self._viewers:
                viewer.offer(SKIPPED)
        self._after = reached

    async def _check_viewers(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._checked < CHECK:
            return
        self._checked, viewers = now, list(self._viewers)
        for viewer, may_look in zip(viewers, await to_thread.run_sync(self._check, viewers), strict=True):
            if not may_look:
                self._cut(viewer)

    @staticmethod
    def _cut(viewer: Viewer) -> None:
        viewer.is_cut = True
        viewer.offer(_NOTHING)  # it may be waiting
