"""What one scan has cost so far, and what it may cost. All adapters count here."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from lcc_scrapy.apps.tracker.entries import Unlisted
from lcc_scrapy.apps.tracker.settings import ScanLimits
from lcc_scrapy.domain.bandwidth import Pace

T = TypeVar("T")


class CannotScan(Unlisted):
    """A server cannot be scanned; the text says why. What is known of it stays as it was.

    ``retry_after``: seconds that the server asks for, 0 = none.
    """

    def __init__(self, text: str, retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after = retry_after


@dataclass(slots=True)
class Effort:
    """Counts of one scan; what goes beyond ``limits`` raises ``CannotScan``.

    ``bandwidth``: bytes per second, 0 = no limit. ``transferred`` bytes came, ``requests`` were asked.
    """

    limits: ScanLimits
    bandwidth: int = 0
    now: Callable[[], float] = time.monotonic
    transferred: int = 0
    requests: int = 0
    entries: int = 0
    _pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        self._pace = Pace(self.bandwidth)

    def ask(self) -> None:
        """Count a question."""
        self.requests += 1
        if self.requests > self.limits.requests:
            raise CannotScan(f"more than {self.limits.requests} questions (LCC_TRACKER_REQUESTS)")

    def enter(self, entries: int, depth: int) -> None:
        """Count the entries of a directory that lies ``depth`` directories down."""
        self.entries += entries
        if self.entries > self.limits.most_entries:
            raise CannotScan(f"more than {self.limits.most_entries} entries (LCC_TRACKER_ENTRIES)")
        if depth > self.limits.depth:
            raise CannotScan(f"directories more than {self.limits.depth} deep (LCC_TRACKER_DEPTH)")

    async def take(self, size: int) -> None:
        """Count bytes that came, and wait as long as the bandwidth asks for."""
        self.transferred += size
        if self.transferred > self.limits.most_bytes:
            raise CannotScan(f"more than {self.limits.most_bytes} bytes (LCC_TRACKER_BYTES)")
        self._pace.charge(self.now(), size)
        if (pause := self._pace.pause(self.now())) > 0:
            await asyncio.sleep(pause)

    async def patiently(self, coming: Awaitable[T]) -> T:
        """Wait for something no longer than a silence may be; raises ``CannotScan``."""
        try:
            async with asyncio.timeout(self.limits.patience):
                return await coming
        except TimeoutError:
            raise CannotScan(f"nothing came for {self.limits.patience:g} s") from None
