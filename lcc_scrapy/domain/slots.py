"""Slots: which fetches may run at a time, and which have given their slot on because they are paced.

A fetch takes a slot when it is handed out. Once it waits for bandwidth while its body arrives, it does not
hold up those that could go on:

* behind the limit of its own turn, it counts against ``paced`` instead, for only its own limit holds it up;
* behind the limit of all turns together, it holds its slot against turns of its own priority and below:
  more of them would only divide the same bytes further.

It stays so to its end. What it reads from then on is bounded by its limit, so that it needs no slot to go
on; and a site that falls silent afterwards holds up nobody.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

LONG = 5.0
"""Seconds after which a fetch is told of, for ``lcc explain``."""

TOLD_AGAIN = 20.0
"""Seconds after which it is told again how far it is."""


class Pacing(IntEnum):
    """What a fetch has had to wait for, in rising order."""

    NONE = 0
    COMMON = 1
    OWN = 2


Key = tuple[str, int, bytes]
"""A turn, the token of its lease, and the key of the URL that is fetched in it."""


@dataclass(slots=True, eq=False)
class Fetch:
    """A fetch under way; times are epoch seconds, 0 = never.

    ``charged`` are the bytes of all its answers. ``transferred`` of ``size`` bytes (0 = not known) of the
    answer under way have arrived; ``paced_since`` is when it first had to wait for bandwidth.
    """

    key: Key
    priority: int
    begun: float
    pacing: Pacing = Pacing.NONE
    paced_since: float = 0.0
    charged: int = 0
    transferred: int = 0
    size: int = 0
    told: float = 0.0


@dataclass(slots=True)
class Slots:
    """The fetches of one worker. ``total`` may run at a time beside those behind a limit of their own.

    While there are ``paced`` of those, turns with a limit of their own begin nothing; others go on.
    """

    total: int
    paced: int
    _under_way: dict[Key, Fetch] = field(default_factory=dict)
    _common: Counter[int] = field(default_factory=Counter)
    _own: int = 0
    _ended: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self._under_way)

    def get(self, key: Key) -> Fetch | None:
        """Return a fetch that is under way."""
        return self._under_way.get(key)

    def count(self, *kinds: Pacing) -> int:
        """Return how many fetches are of some kinds."""
        common = self._common.total()
        counts = {Pacing.COMMON: common, Pacing.OWN: self._own}
        counts[Pacing.NONE] = len(self._under_way) - common - self._own
        return sum(counts[kind] for kind in kinds)

    def is_open(self, priority: int, limited: bool) -> bool:
        """Tell whether a turn of a priority may begin a fetch; ``limited``: it has a limit of its own."""
        if limited and self._own >= self.paced:
            return False
        taken = len(self._under_way) - self._own
        if self._common:
            taken -= sum(count for other, count in self._common.items() if other < priority)
        return taken < self.total

    def begin(self, fetch: Fetch) -> None:
        """Take a slot."""
        self._under_way[fetch.key] = fetch

    def end(self, key: Key) -> None:
        """Leave, whatever came of the fetch."""
        fetch = self._under_way.pop(key, None)
        if fetch is not None:
            self._count(fetch, -1)
            if fetch.told:
                self._ended.add(key[0])

    def give_on(self, fetch: Fetch, pacing: Pacing, now: float) -> bool:
        """Note that a fetch waits for bandwidth; tells whether another one may have a slot for it now."""
        if pacing <= fetch.pacing:
            return False
        self._count(fetch, -1)
        fetch.pacing, fetch.paced_since = pacing, fetch.paced_since or now
        self._count(fetch, 1)
        return True

    def _count(self, fetch: Fetch, step: int) -> None:
        if fetch.pacing is Pacing.OWN:
            self._own += step
        elif fetch.pacing is Pacing.COMMON:
            self._common[fetch.priority] += step

    def moved(self, step: float) -> None:
        """Take note that the clock was moved."""
        for fetch in self._under_way.values():
            fetch.begun += step
            fetch.paced_since += step if fetch.paced_since else 0.0
            fetch.told += step if fetch.told else 0.0

    # --- what is told of them --------------------------------------------------------------------

    def to_tell(self, now: float, limit: int) -> list[Fetch]:
        """Return fetches that take long and of which nothing was told for long, up to ``limit``.

        Of each turn it is the one that began first.
        """
        first: dict[str, Fetch] = {}
        for fetch in self._under_way.values():
            if now - fetch.begun >= LONG:
                first.setdefault(fetch.key[0], fetch)
        due = (fetch for fetch in first.values() if now - fetch.told >= TOLD_AGAIN)
        return sorted(due, key=lambda fetch: fetch.told)[:limit]

    def ended(self) -> frozenset[str]:
        """Return the turns whose fetches were told of and have ended."""
        return frozenset(self._ended)

    def forget(self, turnkeys: Iterable[str]) -> None:
        """Note that it was told that these fetches have ended."""
        self._ended.difference_update(turnkeys)
