"""What share of the changes of a provider's documents was not pushed, from samples of the documents.

A sample tells whether a document changed, unpushed, since its content was last confirmed: some
*watched* time. Pushed changes are counted, all of them. Both are rates per document and time. Of the pushed
changes only the part counts that falls into as much time as the samples watched; then the share is that of
missed ones among so many changes, and its interval that of Wilson (1927) for so many trials. Pushed changes
are known better than by sampling, so the interval is rather too wide than too narrow.
"""

import math
from dataclasses import dataclass

DAY = 86400
WINDOW = 30
"""Days that count, today included."""

CONFIDENCE = 1.959964
"""Standard deviations to both sides: the true share is inside in 95 of 100 cases."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What is known of a provider in a ``period`` (seconds) in which it had so many ``documents``.

    ``pushed`` changes of documents in all; ``sampled`` documents were looked at, ``missed`` of them had
    changed, and nobody had looked at them for ``watched`` seconds together (each at most the period).
    """

    documents: int
    period: int
    pushed: int
    sampled: int
    missed: int
    watched: int


@dataclass(frozen=True, slots=True)
class Share:
    """A share between 0 and 1, and the bounds between which the true one is likely to be."""

    value: float
    lowest: float
    highest: float


def share_missed(counts: Counts) -> Share | None:
    """Return the share of changes that were not pushed; None when nothing is known that changed."""
    seen = _part_seen(counts)
    pushed = counts.pushed * seen
    changes = counts.missed + pushed
    if not seen or not changes:
        return None
    return Share(counts.missed / changes, *wilson(counts.missed, changes))


def _part_seen(counts: Counts) -> float:
    """Return what part of the time of all documents the samples watched."""
    whole = counts.documents * counts.period
    return min(1.0, counts.watched / whole) if whole > 0 else 0.0


def wilson(found: float, trials: float) -> tuple[float, float]:
    """Return the bounds of a share that was found so often in so many trials (more than 0)."""
    square = CONFIDENCE**2
    middle = (found + square / 2) / (trials + square)
    spread = math.sqrt(found * (trials - found) / trials + square / 4) * CONFIDENCE / (trials + square)
    return max(0.0, middle - spread), min(1.0, middle + spread)


def falls_back(share: Share | None, most: float, *, falling: bool) -> bool:
    """Tell whether a provider that may miss the share ``most`` (0 = any) is visited as well.

    It begins when the share is surely higher, and ends when it is probably lower.
    """
    if not most or share is None:
        return False
    return share.value >= most if falling else share.lowest > most


def first_day(now: int) -> int:
    """Return the first day that counts, in days since the epoch."""
    return now // DAY - WINDOW + 1


def begin_of(now: int, since: int) -> int:
    """Return when the period begins that counts, for something that is counted ``since`` (epoch seconds)."""
    return max(first_day(now) * DAY, since)
