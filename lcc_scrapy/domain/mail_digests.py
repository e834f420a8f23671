"""When a provider is written to: a digest a day, and a note when something new waits for it."""

from datetime import datetime, time, timedelta, tzinfo
from typing import NamedTuple

DAY = 86400

MARGIN = 600
"""Seconds after which an error is in the database: a digest tells of none that are younger."""

_FIRST_WAIT, _LONGEST_WAIT = 600, 6 * 3600
"""Seconds that a mail waits after its first failure, and at most; each wait doubles."""

_DOUBLINGS = 10


class Told(NamedTuple):
    """What a provider was last told of something that stands, and when (epoch seconds, 0 = never)."""

    what: str | int
    at: int


def next_digest(now: int, hour: time, zone: tzinfo) -> int:
    """Return when the hour next comes, by the clock of a time zone; all in epoch seconds.

    An hour that a change of the clock leaves out comes an hour later, one that comes twice counts once.
    """
    today = datetime.fromtimestamp(now, zone).date()
    days = (today + timedelta(days=number) for number in (0, 1, 2))
    times = (int(datetime.combine(day, hour, zone).timestamp()) for day in days)
    return next(at for at in times if at > now)


def is_news(stands: str | int, told: Told, now: int) -> bool:
    """Tell whether a provider has to hear of what ``stands`` (a reason, a number) now.

    It hears of each occurrence once: when there is something, or more than it was told. It gets one note of a
    kind a day at most.
    """
    counted = isinstance(stands, int) and isinstance(told.what, int)
    rose = int(stands) > int(told.what) if counted else stands != told.what
    return bool(stands) and rose and not told.at <= now < told.at + DAY


def still_told(stands: str | int, told: str | int) -> str | int:
    """Return what a provider knows when it hears nothing now: it forgets what does not stand any more."""
    if isinstance(stands, int) and isinstance(told, int):
        return min(stands, told)
    return told if stands else ""


def wait(tries: int) -> int:
    """Return for how many seconds a mail waits after its ``tries``-th failure."""
    return int(min(_FIRST_WAIT * 2 ** min(tries - 1, _DOUBLINGS), _LONGEST_WAIT))
