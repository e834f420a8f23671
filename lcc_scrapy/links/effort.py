"""Effort: a bound on the cost of reading one document, which is read only up to there.

A page with a long base and many short links gives URLs of many times its bytes, and a list of 50 kB unpacks
to 50 MB: bounds of bytes are not enough.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS = 10.0
"""Of processor time. A sitemap of 50,000 URLs takes one."""

CHARACTERS = 10_000_000
"""Of the URLs that one document gives: 200 of each, when it gives as many as a sitemap may."""

AT_ONCE = 64
"""URLs between two looks at the clock: each look is a system call."""


class Effort:
    """The processor time and the characters that one document has taken so far.

    ``cut``: it wanted more than ``seconds`` and ``characters``. ``clock`` tells the processor time of the
    thread that calls it.
    """

    def __init__(
        self,
        seconds: float = SECONDS,
        characters: int = CHARACTERS,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self.cut = False
        self._seconds = seconds
        self._characters = characters
        self._clock = clock
        self._begun = 0.0
        self._urls = 0

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count the processor time of this thread; one thread after the other may work."""
        self._begun = self._clock()
        try:
            yield
        finally:
            self._seconds -= self._clock() - self._begun

    def is_spent(self) -> bool:
        """Tell whether the time is used up; to be asked while ``working``."""
        if self._clock() - self._begun >= self._seconds:
            self.cut = True
        return self.cut

    def takes(self, url: str) -> bool:
        """Tell whether there is time and room for one more URL, which then counts."""
        self._characters -= len(url)
        self._urls += 1
        if self._characters < 0:
            self.cut = True
        return not (self.cut if self._urls % AT_ONCE else self.is_spent())
