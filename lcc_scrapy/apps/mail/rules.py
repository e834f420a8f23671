"""When a provider is written to: a digest a day, and a note when something new waits for it."""

from dataclasses import dataclass
from typing import NamedTuple

DAY = 86400

MARGIN = 600
"""Seconds after which an error is in the database: a digest tells of none that are younger."""

_FIRST_WAIT, _LONGEST_WAIT = 600, 6 * 3600
"""Seconds that a mail waits after its first failure, and at most; each wait doubles."""

_DOUBLINGS = 10


@dataclass(frozen=True, slots=True)
class MailState:
    """What a provider was told by mail (table ``mailstates``). Times are epoch seconds, 0 = not yet.

    Errors up to ``since`` were told; the next digest is ``due``. ``wanted`` is the reason for a full set, and
    ``held`` the number of held removals, that it was told. ``refused`` is the address that its mail server
    refused. ``off``: it wants no mail. After ``tries`` failures it gets nothing before ``not_before``.
    """

    pid: int
    since: int = 0
    due: int = 0
    wanted: str = ""
    wanted_at: int = 0
    held: int = 0
    held_at: int = 0
    refused: str = ""
    off: bool = False
    tries: int = 0
    not_before: int = 0


class Told(NamedTuple):
    """What a provider was last told of something that stands, and when (epoch seconds, 0 = never)."""

    what: str | int
    at: int


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
