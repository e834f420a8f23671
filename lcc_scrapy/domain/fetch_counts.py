"""Spans of time in which fetches are counted: short enough to tell of the last hour."""

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
