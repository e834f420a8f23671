"""How alerts do: what waits, and how many were told within the deadline of their service level."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.alerts import GIVEN_UP, LEVEL_NAMES, kept_counter, late_counter
from lcc_scrapy.web.ports import Measure


@dataclass(frozen=True, slots=True)
class Level:
    """A service level: alerts that were told in time and too late."""

    level: int
    name: str
    kept: int
    late: int

    @property
    def share(self) -> float:
        """The share that was told in time, 1 where none was told."""
        told = self.kept + self.late
        return self.kept / told if told else 1.0


@dataclass(frozen=True, slots=True)
class AlertCounts:
    """All of it. ``overdue`` are those that wait and are late."""

    waiting: int
    overdue: int
    given_up: int
    levels: tuple[Level, ...]

    def facts(self) -> dict[str, Any]:
        """Return it as JSON tells it."""
        levels = [{**asdict(one), "share": round(one.share, 4)} for one in self.levels]
        return {**asdict(self), "levels": levels}


def read(store: Store, now: int) -> AlertCounts:
    """Read the counts; ``now`` in epoch milliseconds."""
    with store.read() as tx:
        waiting, overdue = tx.count_waiting_alerts(now)
        levels = tuple(
            Level(level, name, tx.peek(kept_counter(level)), tx.peek(late_counter(level)))
            for level, name in enumerate(LEVEL_NAMES)
        )
        return AlertCounts(waiting, overdue, tx.peek(GIVEN_UP), levels)


def measures(store: Store, now: int) -> Iterator[Measure]:
    """Yield what ``/metrics`` tells of alerts; ``now`` in epoch seconds."""
    found = read(store, now * 1000)
    told = [
        ((str(one.level), kept), float(count))
        for one in found.levels
        for kept, count in (("yes", one.kept), ("no", one.late))
    ]
    yield Measure("lcc_alerts_waiting", "Alerts that wait", [((), float(found.waiting))])
    yield Measure("lcc_alerts_late", "Those of them that are late", [((), float(found.overdue))])
    yield Measure("lcc_alerts_given_up", "Alerts given up", [((), float(found.given_up))], counter=True)
    yield Measure("lcc_alerts_told", "Alerts that were told", told, ("level", "in_time"), counter=True)
