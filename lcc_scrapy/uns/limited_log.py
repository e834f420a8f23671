"""A limit on log lines that strangers on the network can cause."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping

from lcc_scrapy.domain.throttling import Buckets, Rate

LINES = Rate(60, 60.0)
"""Lines of one kind; those beyond are counted, and the next one that is written tells how many."""

log = logging.getLogger(__name__)


class LimitedLog:
    """``clock`` gives seconds. The kind of a line is its text before anything is filled in."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: Buckets[str] = Buckets(LINES)
        self._left_out: Counter[str] = Counter()

    def note(self, level: int, line: str, facts: Mapping[str, object]) -> None:
        """Write a line, or count it; ``facts`` are what it names as ``%(name)s``."""
        now = self._clock()
        if self._buckets.wait(line, now):
            self._left_out[line] += 1
            return
        self._buckets.take(line, now)
        if left_out := self._left_out.pop(line, 0):
            line, facts = f"{line} (%(more)d more like it before)", {**facts, "more": left_out}
        log.log(level, line, facts)
