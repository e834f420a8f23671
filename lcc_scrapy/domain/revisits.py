"""When to look at a page again of which nobody says that it changed: for what spiders found.

After each visit the interval grows if the page was unchanged, and shrinks if it had changed, so that in the
long run it is the geometric mean of two times: the interval one asks for (``Bounds.every``), and the mean
time between changes of the page. A page that changes as often as one asks for is visited as often; one that
changes four times less often is visited half as often. For changes that come at random, freshness is best
with visits in proportion to the square root of the rate of change (Cho and Garcia-Molina, "Effective page
refresh policies for Web crawlers", 2003), but for pages that change faster than one can follow: those are
best left alone. Hence a page that was found changed time after time is not visited sooner any more.
"""

import math
from dataclasses import dataclass

from lcc_scrapy.domain.entries import Origin

GAIN = 0.3
"""How much one visit may say: the interval changes by 35 % at most."""

IN_A_ROW = 2
"""Changes in a row that make visits more frequent; further ones show that nothing is gained by that."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an operator asks for, in seconds, at least 1: ``shortest`` <= ``every`` <= ``longest``.

    ``every`` is the interval of a page that changes as often, and that of a page that is not known yet.
    """

    every: int
    shortest: int
    longest: int

    def __post_init__(self) -> None:
        if not 1 <= self.shortest <= self.every <= self.longest:
            raise ValueError("1 <= shortest <= every <= longest must hold for the intervals of visits")

    @classmethod
    def of(cls, kept: str) -> "Bounds":
        """Read what ``str`` wrote: ``shortest..every..longest``, in seconds."""
        shortest, every, longest = map(int, kept.split(".."))
        return cls(every, shortest, longest)

    def __str__(self) -> str:
        return f"{self.shortest}..{self.every}..{self.longest}"

    def hold(self, interval: float) -> int:
        """Return the nearest interval inside."""
        return round(min(max(interval, self.shortest), self.longest))


DEFAULT = Bounds(86_400, 3600, 30 * 86_400)


def bounds_of(provider: str, others: Bounds) -> Bounds:
    """Return the bounds of a provider: those it has of its own (empty = none), or those of all others."""
    return Bounds.of(provider) if provider else others


@dataclass(frozen=True, slots=True)
class Visits:
    """What is kept of a page: the interval (seconds), the last visit (epoch seconds), and in how many of the
    last visits without a break it was found changed.
    """

    interval: int
    visited: int
    changes: int = 0


def first_visit(now: int, bounds: Bounds) -> Visits:
    """Return what is kept of a page that was fetched for the first time."""
    return Visits(bounds.every, now)


def after_visit(visits: Visits, *, changed: bool, now: int, bounds: Bounds) -> Visits:
    """Return what is kept after a visit that gave an answer (a failed one says nothing).

    A visit that comes early or late says less or more about the interval, and counts for that.
    """
    interval = bounds.hold(visits.interval)
    expected = _expected(interval, now - visits.visited, bounds)
    if not changed:
        return Visits(bounds.hold(interval * math.exp(GAIN * expected)), now)
    step = 0.0 if visits.changes >= IN_A_ROW else GAIN * (expected - 1)
    return Visits(bounds.hold(interval * math.exp(step)), now, visits.changes + 1)


def due(visits: Visits) -> int:
    """Return when to visit again (epoch seconds)."""
    return visits.visited + visits.interval


def may_be_guessed(origin: str) -> bool:
    """Tell whether to revisit adaptively: a provider that pushes tells of its changes."""
    return origin != Origin.PUSH


def _expected(interval: int, gap: int, bounds: Bounds) -> float:
    """Return how probable a change in ``gap`` seconds is, if ``interval`` is right for the page.

    It is for a page that changes ``every / interval**2`` times a second. Weighing by it keeps the interval in
    the mean where it is right (stochastic approximation, Robbins and Monro 1951).
    """
    return -math.expm1(-bounds.every * max(0, gap) / interval**2)
