"""Times in HTTP headers (RFC 9110 sections 5.6.7 and 10.2.3)."""

from email.utils import parsedate_to_datetime


def retry_after_seconds(value: str, date: str) -> float:
    """Read ``Retry-After``: seconds, or a date relative to the answer's own ``Date``; 0 = unusable."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        return max(0.0, (parsedate_to_datetime(value) - parsedate_to_datetime(date)).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def epoch_of_date(value: str) -> int | None:
    """Read an HTTP date in epoch seconds; None = it is none."""
    try:
        return int(parsedate_to_datetime(value).timestamp())
    except (ValueError, TypeError, OverflowError):
        return None
