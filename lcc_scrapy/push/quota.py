"""Tells whether a set fits into the provider's quota, and what to leave out if it does not.

What the provider's side can know: in a full set, everything it names takes room out of used + free. In
a partial set only URLs that the LCC does not have yet count, with their whole len; that changed documents
may have grown, and that removals make room, is not counted. Without lcccpstate every URL counts as new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from lcc_scrapy.push import pipe
from lcc_scrapy.push.state import key_of
from lcc_scrapy.push.submission import Demand, Item
from lcc_scrapy.wire.messages import UNLIMITED, Quota


class OverQuota(str, Enum):
    """What to do with a set that does not fit."""

    __str__ = str.__str__

    WARN = "warn"
    TRIM = "trim"
    FAIL = "fail"


@dataclass(frozen=True)
class Fit:
    """What a set takes, what there is, and the keys of the URLs that no longer fit, in their order."""

    demand: Demand
    room: Demand
    left_out: frozenset[bytes] = field(default=frozenset(), repr=False)

    @property
    def excess(self) -> str:
        """Say what is too much; empty when all fits."""
        parts = []
        if self.demand.files > self.room.files:
            parts.append(f"{self.demand.files:,} files for {self.room.files:,} places")
        if self.demand.space > self.room.space:
            parts.append(f"{self.demand.space:,} bytes into {self.room.space:,}")
        return " and ".join(parts)

    def admitted(self, items: Iterable[Item]) -> Iterable[Item]:
        """Yield the URLs that are not left out."""
        if not self.left_out:
            return items
        return (item for item in items if not (item.new and key_of_item(item) in self.left_out))


def room_for(quota: Quota, *, full: bool) -> Demand:
    """Return what a set may take; a full set takes the place of everything there was."""
    return Demand(
        _room(quota.files_used if full else 0, quota.files_free),
        _room(quota.space_used if full else 0, quota.space_free),
    )


def _room(used: int, free: int) -> int:
    return free if free >= UNLIMITED else used + max(0, free)


def fit(items: Callable[[], Iterable[Item]], room: Demand, *, full: bool, trim: bool) -> Fit:
    """Add up a set; with ``trim`` new URLs that would go beyond the room are marked to be left out.

    ``items`` begins anew at each call. What the LCC already has goes before what is new.
    """
    counted = [Demand(), Demand()]
    for item in items():
        if full or item.new:
            counted[item.new] = counted[item.new].plus(item)
    known, new = counted
    found = Fit(Demand(known.files + new.files, known.space + new.space), room)
    return replace(found, left_out=_left_out(items(), room, known)) if trim and found.excess else found


def _left_out(items: Iterable[Item], room: Demand, taken: Demand) -> frozenset[bytes]:
    left_out: set[bytes] = set()
    for item in items:
        more = taken.plus(item)
        if not item.new:
            continue
        if more.files > room.files or more.space > room.space:
            left_out.add(key_of_item(item))
        else:
            taken = more
    return frozenset(left_out)


def key_of_item(item: Item) -> bytes:
    """Return the key of a URL that is to be sent."""
    return key_of(pipe.parse_element(item.xml)[1])
