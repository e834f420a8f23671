"""What is kept of a found URL after a visit: how it ended, and when to revisit it adaptively."""

from dataclasses import dataclass, replace

from lcc_scrapy.db.records import Spidered
from lcc_scrapy.domain.revisits import Bounds, Visits, after_visit, due, first_visit

REFUSED_TYPE = 703


@dataclass(frozen=True, slots=True)
class Visit:
    """How a visit ended: with the ``code`` of a failure (0 = none); ``changed``: with another content."""

    code: int = 0
    changed: bool = False


def ended(row: Spidered, visit: Visit, now: int, bounds: Bounds) -> Spidered:
    """Return what is kept of a URL after a visit that ended ``now`` (epoch seconds).

    A failure says nothing of changes: the interval stays, within the bounds as they are now. What was refused
    for its type is of another type some day, if ever: that has the longest interval.
    """
    interval = row.every or bounds.every
    if visit.code == REFUSED_TYPE:
        return replace(row, visited=now, code=visit.code, due=now + bounds.longest)
    if visit.code:
        return replace(row, visited=now, code=visit.code, due=now + bounds.hold(interval))
    visits = first_visit(now, bounds)
    if row.answered:
        before = Visits(interval, row.answered, row.changes)
        visits = after_visit(before, changed=visit.changed, now=now, bounds=bounds)
    return replace(
        row, visited=now, code=0, answered=now, every=visits.interval, changes=visits.changes, due=due(visits)
    )


def is_needless(row: Spidered, since: int, now: int) -> bool:
    """Tell whether a URL would be refused for its type again: it was, on the terms that hold ``since``."""
    return row.code == REFUSED_TYPE and row.visited >= since and now < row.due
