"""Bandwidth: when a provider, or the whole LCC, may fetch again (seed 001 "Fetching").

Every byte transferred moves the moment of the next permission by 1 ÷ limit. Charging as the bytes
arrive serves both uses: a fetch in flight pauses when it runs ahead, and the next fetch starts late
enough that the average over any time is the limit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CREDIT = 0.5
"""Seconds of unused bandwidth that may be made up for, so that late timers cost no throughput."""

AHEAD = 0.5
"""Seconds that a body in flight may run ahead of its limit before it is paused."""


@dataclass(slots=True)
class Pace:
    """A rate limit in bytes per second; 0 = no limit. ``ready_at`` is in epoch seconds."""

    limit: int = 0
    ready_at: float = 0.0

    def charge(self, now: float, size: int) -> None:
        """Account for ``size`` bytes that were transferred at ``now``."""
        if self.limit:
            self.ready_at = max(self.ready_at, now - CREDIT) + size / self.limit

    def moved(self, step: float) -> None:
        """Take note that the clock was moved."""
        self.ready_at += step

    def change(self, now: float, limit: int) -> None:
        """Set another limit; the bytes that ran ahead of the old one are made up for at the new one."""
        if self.limit and limit and self.ready_at > now:
            self.ready_at = now + (self.ready_at - now) * self.limit / limit
        self.limit = limit

    def delay(self, now: float) -> float:
        """Return the seconds until the next fetch may start."""
        return max(0.0, self.ready_at - now) if self.limit else 0.0

    def pause(self, now: float) -> float:
        """Return the seconds for which a body in flight should stop arriving."""
        return max(0.0, self.ready_at - now - AHEAD) if self.limit else 0.0

    def may_start_at(self) -> float:
        """Return when ``pause`` is over: where many fetches share a limit, none may wait for calm."""
        return self.ready_at - AHEAD if self.limit else 0.0


@dataclass(slots=True)
class Meter:
    """Measures bytes per second over ``period`` seconds at least: a body arrives in bursts."""

    period: float
    since: float
    transferred: int = 0
    rate: float = 0.0

    def measure(self, now: float) -> float:
        """Return the rate of late."""
        if now - self.since >= self.period:
            self.rate = self.transferred / (now - self.since)
            self.transferred, self.since = 0, now
        return self.rate


@dataclass(frozen=True, slots=True)
class Demand:
    """What a worker used of the limit it shares, in bytes per second, and whether it wants more."""

    rate: float
    hungry: bool


IDLE_SHARE = 0.02
"""Share of the common limit that all idle workers keep together, to begin with."""

HEADROOM = 1.25
"""What a worker that does not use its share may grow by before it has to ask."""


def allotments(limit: int, demands: Mapping[str, Demand]) -> dict[str, int]:
    """Divide a common limit (bytes per second) among workers: nobody more than it uses, the rest equally.

    Every worker computes this from the same figures, so no one has to hand anything out.
    """
    least = limit * IDLE_SHARE / max(1, len(demands))
    wanted = {name: max(least, one.rate * HEADROOM) for name, one in demands.items() if not one.hungry}
    open_ = sorted(demands.keys() - wanted.keys())
    left = float(limit)
    given: dict[str, float] = {}
    for name in sorted(wanted, key=lambda name: (wanted[name], name)):
        given[name] = min(wanted[name], left / (len(demands) - len(given)))
        left -= given[name]
    if not open_ and left > 0:
        given = {name: share * limit / (limit - left) for name, share in given.items()}
    given.update({name: left / len(open_) for name in open_})
    return {name: max(1, round(share)) for name, share in given.items()}


def shared_limit(limits: Iterable[int]) -> int:
    """Return the limit (bytes per second, 0 = none) of those who share a turn: the smallest one."""
    return min((limit for limit in limits if limit), default=0)
