"""Times in HTTP headers (RFC 9110 sections 5.6.7 and 10.2.3), in the three forms that these may have."""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]+(\.[0-9]*)?")
_MOST = 999_999_999.0


def retry_after_seconds(value: str, date: str, now: float) -> float:
    """Read ``Retry-After``: seconds, or a date; 0 = unusable, or not in the future.

    A date counts from the answer's own ``date``, as clocks differ; without one, from ``now`` (epoch seconds).
    """
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return min(float(value), _MOST)
    until, since = _epoch(value), _epoch(date)
    if until is None:
        return 0.0
    return min(max(0.0, until - (now if since is None else since)), _MOST)


def epoch_of_date(value: str) -> int | None:
    """Read an HTTP date in epoch seconds; None = it is none."""
    found = _epoch(value)
    return None if found is None else int(found)


def _epoch(text: str) -> float | None:
    try:
        moment = parsedate_to_datetime(text)  # that of asctime has no zone
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
