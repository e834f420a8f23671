"""Spans of time in which fetches are counted: short enough to tell of the last hour."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

SPAN = 600
"""Seconds of a span; spans begin at its multiples."""

HOUR, DAY = 3600, 86_400


def span_of(now: int) -> int:
    """Return when the span began in which a moment lies (both epoch seconds)."""
    return now - now % SPAN


def since(now: int, seconds: int) -> int:
    """Return the beginning of the first of those spans that cover so many seconds until now.

    What is counted from there on is up to a span more.
    """
    return span_of(now - seconds)


@dataclass(frozen=True, slots=True)
class Column:
    """Of the time from ``begun`` on (epoch seconds): fetches that ended, and those that failed."""

    begun: int
    tried: int
    failed: int


def columns(
    counts: Mapping[tuple[int, str], int], now: int, seconds: int, step: int, failing: Collection[str]
) -> list[Column]:
    """Return what was counted within so many seconds until now, by ``step`` seconds, oldest first.

    ``counts`` are by (beginning of a span, result); ``step`` is a multiple of ``SPAN``. The last column goes
    on.
    """
    first = since(now, seconds)
    tried: Counter[int] = Counter()
    failed: Counter[int] = Counter()
    for (begun, result), count in counts.items():
        place = (begun - first) // step
        tried[place] += count
        failed[place] += count if result in failing else 0
    places = range((now - first) // step + 1)
    return [Column(first + step * place, tried[place], failed[place]) for place in places]
