"""A simulated month over 1,000 pages: how fresh copies are, by the rule that says when to visit again.

Pages change as pages do: most at random, at rates that differ by orders of magnitude, some every day at nine,
some never, some at every look. Every rule may fetch equally often; what it does with that is compared:
the share of time in which a copy is the page as it is, and for how long a copy has been outdated in the mean.

    python bench/revisits.py                     # at one fetch per page and 6 hours, day, 3 days
    python bench/revisits.py --seed 2 --every 12
"""

import argparse
import math
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lcc_scrapy.domain.revisits import Bounds, Visits, after_visit, due

HOUR, DAY = 3600, 86_400
MONTH = 30 * DAY
MINUTE = 60
SHORTEST, LONGEST = HOUR // 2, 30 * DAY


@dataclass(frozen=True)
class Page:
    """A page: what kind it is, when it changes (seconds, rising), how often a second in the mean."""

    kind: str
    changes: tuple[float, ...]
    rate: float


def pages(count: int, seed: int) -> list[Page]:
    """Make pages: 65 % change at random, 10 % daily at nine, 20 % never, 5 % every minute."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        share = number / count
        if share < 0.65:
            made.append(_at_random(chance))
        elif share < 0.75:
            made.append(Page("daily", tuple(day * DAY + 9 * HOUR for day in range(30)), 1 / DAY))
        elif share < 0.95:
            made.append(Page("never", (), 0.0))
        else:
            made.append(Page("always", tuple(range(MINUTE, MONTH, MINUTE)), 1 / MINUTE))
    return made


def _at_random(chance: random.Random) -> Page:
    """Make a page whose changes are a Poisson process; half of all change more often than once a week."""
    mean = min(max(chance.lognormvariate(math.log(7 * DAY), 2.0), 10 * MINUTE), 50 * 365 * DAY)
    changes, at = [], chance.expovariate(1 / mean)
    while at < MONTH:
        changes.append(at)
        at += chance.expovariate(1 / mean)
    return Page("at random", tuple(changes), 1 / mean)


# --- rules -------------------------------------------------------------------------------------------


class Visitor:
    """Visits one page at a fixed interval; the others are its heirs."""

    def __init__(self, interval: float, now: float) -> None:
        self.interval = interval
        self.next = now

    def visited(self, *, changed: bool) -> None:  # noqa: ARG002 - the others look at it
        self.next += self.interval


class Adaptive(Visitor):
    """As the LCC does."""

    def __init__(self, every: int, now: float) -> None:
        super().__init__(every, int(now))
        self._bounds = Bounds(every, min(SHORTEST, every), max(LONGEST, every))
        self._visits = Visits(every, 0)

    def visited(self, *, changed: bool) -> None:
        self._visits = after_visit(self._visits, changed=changed, now=int(self.next), bounds=self._bounds)
        self.next = due(self._visits)


class Multiplicative(Visitor):
    """Longer by 40 % when unchanged, shorter by 20 % when changed, as well-known crawlers do by default."""

    def visited(self, *, changed: bool) -> None:
        longer = self.interval * (0.8 if changed else 1.4)
        self.interval = min(max(longer, SHORTEST), LONGEST)
        self.next += self.interval


def best(multiplier: float, page: Page, now: float) -> Visitor:
    """Visit at the best fixed interval of the page, whose rate is known (Cho and Garcia-Molina 2003)."""
    if not page.rate or page.rate * multiplier >= 1:
        return Visitor(MONTH, MONTH)
    low, high = 1e-9, 200.0
    for _ in range(60):
        middle = (low + high) / 2
        gained = (1 - math.exp(-middle) - middle * math.exp(-middle)) / page.rate
        low, high = (middle, high) if gained < multiplier else (low, middle)
    return Visitor(low / page.rate, min(now, low / page.rate))


# --- the month ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Month:
    """What came of it: fetches, the share of time in which copies were fresh, their mean age (hours)."""

    fetches: int
    freshness: float
    age: float


def month(made: list[Page], begin: Callable[[Page, float], Visitor], every: float) -> Month:
    """Let a month go by; all copies are fresh at its beginning, first visits are spread over ``every``."""
    chance = random.Random(0)
    fetches, fresh, age = 0, 0.0, 0.0
    for page in made:
        for begun, ended, change in _copies(page, begin(page, chance.uniform(0, every))):
            fetches += ended < MONTH
            fresh += min(change, ended) - begun
            age += max(0.0, ended - change) ** 2 / 2
    return Month(fetches, fresh / MONTH / len(made), age / MONTH / len(made) / HOUR)


def _copies(page: Page, visitor: Visitor) -> Iterator[tuple[float, float, float]]:
    """Yield of each copy when it was fetched, when the next one was, and when the page changed after it."""
    begun = 0.0
    while begun < MONTH:
        at = bisect_right(page.changes, begun)
        change = page.changes[at] if at < len(page.changes) else math.inf
        ended = min(visitor.next, MONTH)
        yield begun, ended, change
        if ended < MONTH:
            visitor.visited(changed=change <= ended)
        begun = ended


def fixed(made: list[Page], every: float) -> Month:
    return month(made, lambda _, now: Visitor(every, now), every)


def adaptive(made: list[Page], every: int) -> Month:
    return month(made, lambda _, now: Adaptive(every, now), every)


def multiplicative(made: list[Page], every: float) -> Month:
    return month(made, lambda _, now: Multiplicative(every, now), every)


def known(made: list[Page], multiplier: float) -> Month:
    return month(made, lambda page, now: best(multiplier, page, now), DAY)


def at_cost(fetches: int, try_: Callable[[float], Month], low: float, high: float) -> Month:
    """Return the month in which a rule fetched so often, by trying what it is asked for."""
    for _ in range(14):
        middle = math.sqrt(low * high)
        found = try_(middle)
        if abs(found.fetches - fetches) <= fetches / 1000:
            break
        low, high = (middle, high) if found.fetches > fetches else (low, middle)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--every", type=float, help="hours between fetches of a page (default: 6, 24 and 72)")
    given = parser.parse_args()
    made = pages(given.pages, given.seed)
    for hours in (given.every,) if given.every else (6, 24, 72):
        every = hours * HOUR
        plain = fixed(made, every)
        print(f"{plain.fetches} fetches of {len(made)} pages in 30 days (seed {given.seed})")
        rules = {
            "fixed": plain,
            "adaptive": at_cost(plain.fetches, lambda one: adaptive(made, int(one)), every / 8, every * 8),
            "multiplicative": at_cost(plain.fetches, lambda one: multiplicative(made, one), MINUTE, MONTH),
            "rates known": at_cost(plain.fetches, lambda one: known(made, one), 1, 1e9),
        }
        for name, one in rules.items():
            print(f"  {name:16}{one.fetches:8} fetches {one.freshness:8.1%} fresh {one.age:8.2f} h old")


if __name__ == "__main__":
    main()
