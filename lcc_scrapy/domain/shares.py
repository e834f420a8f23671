"""Shares of a service: how much one client may have at a time, and how often it may ask.

A request counts for each of its *keys*, by which a client is known: its address, its token. It is served when
none of them has used its share up, and refused without counting for any otherwise.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.settings import setting
from lcc_scrapy.domain.throttling import KEYS, Buckets, Rate


class Kind(StrEnum):
    """What is counted while it lasts."""

    REQUEST = "requests"
    STREAM = "streams"
    EXPORT = "exports"


AGAIN: Mapping[Kind, int] = {Kind.REQUEST: 1, Kind.STREAM: 2, Kind.EXPORT: 10}
"""Seconds after which to come again when as many as may be are under way."""


# fmt: off
@dataclass(frozen=True, slots=True)
class Share:
    """The share of one client."""

    requests: int = setting("LCC_WEB_SHARE_REQUESTS", "64", read.at_least_one, "Requests to `lcc web` at a time with one token, and likewise from one address; more get 429.")
    streams: int = setting("LCC_WEB_SHARE_STREAMS", "32", read.at_least_one, "Those of them that wait for changes, or whose answers are contents or lists; more get 429.")
    exports: int = setting("LCC_WEB_SHARE_EXPORTS", "2", read.at_least_one, "Those of them that write an export or a package; more get 429.")
    rate: Rate = setting("LCC_WEB_RATE", "200/s", read.rate, "Requests to `lcc web` with one token, and likewise from one address (an IPv6 /64 counts as one; programs on the same machine have no share by address): as many at once, and then as many per time; more get 429.")
    # fmt: on

    def most(self) -> dict[Kind, int]:
        """Return the bounds at a time by kind."""
        return {Kind.REQUEST: self.requests, Kind.STREAM: self.streams, Kind.EXPORT: self.exports}


class ShareUsedUp(LccError):
    """A client has as much as it may have; ``seconds`` (whole ones) says when to come again."""

    def __init__(self, what: str, seconds: int) -> None:
        super().__init__(f"{what}: ask again in {seconds} s")
        self.seconds = seconds


class Shares:
    """What clients have at this moment. ``clock`` gives seconds and never goes back.

    Only keys of requests under way are remembered, and of ``KEYS`` others when they asked last.
    """

    def __init__(self, share: Share, clock: Callable[[], float]) -> None:
        self._most = share.most()
        self._clock = clock
        self._rates: Buckets[Hashable] = Buckets(share.rate, KEYS)
        self._under_way: Counter[tuple[Kind, Hashable]] = Counter()

    def __len__(self) -> int:
        return len(self._under_way)

    def enter(self, keys: Sequence[Hashable]) -> "Visit":
        """Begin a request; ``Visit.leave`` ends it. Raises ``ShareUsedUp``."""
        now = self._clock()
        wait = max((self._rates.wait(key, now) for key in keys), default=0.0)
        if wait:
            raise ShareUsedUp("too many requests in so short a time", math.ceil(wait))
        visit = Visit(self, keys)
        visit.begin(Kind.REQUEST)
        for key in keys:
            self._rates.take(key, now)
        return visit

    def add(self, kind: Kind, keys: Sequence[Hashable]) -> None:
        """Count something for all keys, or for none: then ``ShareUsedUp`` is raised."""
        most = self._most[kind]
        if any(self._under_way.get((kind, key), 0) >= most for key in keys):
            raise ShareUsedUp(f"{most} {kind} of yours are under way already", AGAIN[kind])
        self._under_way.update((kind, key) for key in keys)

    def remove(self, kind: Kind, keys: Sequence[Hashable]) -> None:
        """Something is over."""
        for key in keys:
            self._under_way[kind, key] -= 1
            if not self._under_way[kind, key]:
                del self._under_way[kind, key]


class Visit:
    """One request, and what it counts as; each kind once."""

    def __init__(self, shares: Shares, keys: Sequence[Hashable]) -> None:
        self._shares = shares
        self._keys = keys
        self._kinds: list[Kind] = []

    def begin(self, kind: Kind) -> None:
        """Count the request as this too, until it ends; raises ``ShareUsedUp``."""
        if kind not in self._kinds:
            self._shares.add(kind, self._keys)
            self._kinds.append(kind)

    def leave(self) -> None:
        """The request is over."""
        while self._kinds:
            self._shares.remove(self._kinds.pop(), self._keys)
