"""The circuit breaker of components: when one of them fails on every document, fetching pauses.

Without it, a pipeline with one mistake in it would cost each document of the queue all of its tries.
Times are seconds of any steady clock, always given.
"""

from dataclasses import dataclass
from enum import Enum

LAST = 50
"""Documents in a row that have to fail alike before fetching pauses."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What a component did to a document: its import path, and the name of the error."""

    component: str
    error: str


class Verdict(Enum):
    """What becomes of a document on which a component failed."""

    FAILED = "it failed: it is tried again, as often as LCC_RETRY_DELAYS says"
    PAUSED = "it keeps its place and loses no try; nothing is fetched for a while from now on"
    WAITS = "it keeps its place and loses no try; it was under way when the pause began"


class Breaker:
    """Counts failures in a row. While it is open, one document per ``pause`` is let through, as a probe.

    ``pause`` may be changed at any time; 0 = never pause.
    """

    def __init__(self, pause: float, last: int = LAST) -> None:
        self.pause = pause
        self._last = last
        self._fault: Fault | None = None
        self._count = 0
        self._closed_until = 0.0
        self._is_open = False
        self._is_probing = False

    @property
    def is_open(self) -> bool:
        """Tell whether fetching pauses."""
        return self._is_open and self.pause > 0

    @property
    def why(self) -> str:
        """Return which component fails on every document, "" = none does."""
        return f"{self._fault.component} fails on every document ({self._fault.error})" if self._fault else ""

    def may_fetch(self, now: float) -> bool:
        """Tell whether a document may be fetched now."""
        return not self.is_open or now >= self._closed_until

    def fetch_begins(self, now: float) -> None:
        """Note that a document is fetched; in a pause it is the probe, and the next one waits for long."""
        if self.is_open:
            self._is_probing = True
            self._closed_until = now + self.pause

    def passed(self) -> bool:
        """Note that a document went through all components; returns whether this ended a pause."""
        ended = self.is_open
        self._fault, self._count, self._is_open, self._is_probing = None, 0, False, False
        return ended

    def untested(self) -> None:
        """Note that a fetch brought no document and tested no component: the next may go at once."""
        if self._is_probing:
            self._is_probing, self._closed_until = False, 0.0

    def failed(self, fault: Fault, now: float) -> Verdict:
        """Note that a component failed on a document, and decide what becomes of that."""
        self._count = self._count + 1 if fault == self._fault else 1
        self._fault = fault
        if self.is_open and not self._is_probing:
            return Verdict.WAITS
        if not self.pause or (self._count < self._last and not self.is_open):
            return Verdict.FAILED
        self._is_open, self._is_probing = True, False
        self._closed_until = now + self.pause
        return Verdict.PAUSED
