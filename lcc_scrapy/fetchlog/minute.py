"""Mass failure is seen in the log: while fetches fail, a line a minute says how many, and whose."""

import logging
from collections import Counter
from collections.abc import Sequence
from threading import Lock
from typing import Any

from lcc_scrapy.db.thread import Clock
from lcc_scrapy.queue.fetch_counts import FAILING, in_words, most
from lcc_scrapy.queue.settlement import LOST, Settled

MINUTE = 60.0
_NAMED = 3
"""Providers that a line names."""

_log = logging.getLogger(__name__)


class MinuteLog:
    """Logs once a minute what became of fetches, if some of them failed; otherwise nothing.

    ``note`` may be called in any one thread, the rest on the event loop.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timer: Any = None
        self._lock = Lock()
        self._counts: Counter[tuple[int, str, int]] = Counter()

    def start(self) -> None:
        """Begin the first minute."""
        self._timer = self._clock.callLater(MINUTE, self._tick)

    def stop(self) -> None:
        """Tell of the minute that is not over."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
            self._tell()

    def note(self, settled: Sequence[Settled]) -> None:
        """Count outcomes."""
        with self._lock:
            self._counts.update(
                (one.outcome.ticket.row.pid, one.result, one.code) for one in settled if one.result != LOST
            )

    def _tick(self) -> None:
        self._tell()
        self.start()

    def _tell(self) -> None:
        with self._lock:
            counts, self._counts = self._counts, Counter()
        failing: Counter[int] = Counter()
        totals: Counter[tuple[str, int]] = Counter()
        for (pid, result, code), count in counts.items():
            totals[result, code] += count
            failing[pid] += count * (result in FAILING)
        if any(failing.values()):
            _log.info("fetches of the last minute: %s; failing: %s", in_words(totals), _whose(failing))


def _whose(failing: Counter[int]) -> str:
    some = [(pid, count) for pid, count in most(failing.items()) if count]
    named = ", ".join(f"provider {pid} ({count})" for pid, count in some[:_NAMED])
    return named + (f" and {len(some) - _NAMED} more" if len(some) > _NAMED else "")
