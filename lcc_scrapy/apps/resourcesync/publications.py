"""Publications: the times of lists, for harvesters that know no cursors.

A harvester keeps the latest time that it saw, and asks for what came later. The time of a fetch does not
fit: a document may be settled long after its fetch, and after the harvester asked. So the LCC notes at each
request how far its feed has come. A change gets the time of the first note that covers it. That time is
later than all times that the LCC told before. Notes may be lost or merged: then changes get a later time,
and are taken twice.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lcc_scrapy.domain.cursor import Position

MOST = 80
"""Publications that are remembered: many of the last hours, few of the last months."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Everything up to ``seq`` had been told ``at`` (epoch seconds)."""

    seq: int
    at: int


class Publications(Protocol):
    """Where publications are remembered. Calls block."""

    def publish(self, head: Position, now: int) -> list[Publication]:
        """Note that the feed is told up to ``head`` now; return all that is remembered, oldest first.

        Those of another LCC, or from before it was restored, are forgotten.
        """


def noted(known: Sequence[Publication], seq: int, now: int) -> list[Publication]:
    """Return the publications with that of ``seq`` among them; their times rise strictly."""
    if known and known[-1].seq >= seq:
        return list(known)
    at = max(now, known[-1].at + 1) if known else now
    return _thinned([*known, Publication(seq, at)])


def _thinned(known: list[Publication]) -> list[Publication]:
    """Merge a publication with the next one where that makes the least difference to its age."""
    if len(known) <= MOST:
        return known
    now = known[-1].at
    gaps = [(known[i + 1].at - known[i - 1].at) / (now - known[i].at + 1) for i in range(1, len(known) - 1)]
    least = gaps.index(min(gaps)) + 1
    return known[:least] + known[least + 1 :]


@dataclass(frozen=True, slots=True)
class Span:
    """What a list of changes covers: everything after the first publication, to the last one."""

    publications: Sequence[Publication]

    @classmethod
    def complete(cls, known: Sequence[Publication], forgotten: int) -> "Span":
        """Return the longest span in which no removal has been forgotten; there is always one."""
        return cls([one for one in known if one.seq >= forgotten])

    @property
    def first(self) -> Publication:
        """Whoever has everything up to here needs only the changes of this span."""
        return self.publications[0]

    @property
    def last(self) -> Publication:
        """The newest change that is told."""
        return self.publications[-1]

    @property
    def moments(self) -> dict[str, int]:
        """The times (epoch seconds) of whoever needs it, and of whoever has it."""
        return {"from": self.first.at, "until": self.last.at}

    def moment(self, seq: int) -> int:
        """Return when a change of the span was told first (epoch seconds)."""
        return self._covering(seq).at

    def within(self, after: int, upto: int) -> dict[str, int]:
        """Return the same times for the changes behind ``after`` up to ``upto``."""
        return {"from": self._before(after).at, "until": self.moment(upto)}

    def around(self, seq: int) -> tuple[int, int]:
        """Return the seqs of the last publication without a change of the span, and the first one with it."""
        return self._before(seq - 1).seq, self._covering(seq).seq

    def _before(self, seq: int) -> Publication:
        """Return the last publication that told nothing behind a seq."""
        return self.publications[bisect_right(self.publications, seq, key=lambda one: one.seq) - 1]

    def _covering(self, seq: int) -> Publication:
        return self.publications[bisect_left(self.publications, seq, key=lambda one: one.seq)]
