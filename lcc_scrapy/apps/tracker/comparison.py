"""Which replicas hold nothing that is known to differ: digests of contents, level by level of both trees.

Identities may come from another tracker, and need not belong to the rows. Only rows of the same shape are
compared: of one server, with as many subdirectories and names as ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lcc_scrapy.apps.tracker.entries import MOST_DEPTH
from lcc_scrapy.apps.tracker.rules.tracked import TrackedDirectory
from lcc_scrapy.apps.tracker.store import TrackerRows

COMPARED = 20
"""Replicas whose contents are compared where digests are known, best first; others are not offered."""

READ = 20_000
"""Directories of ours that one look-up compares, over all replicas; what is left then is not offered."""


@dataclass(frozen=True, slots=True)
class _Level:
    """Subdirectories of one depth in two trees: consecutive numbers, ``count`` from each of both on."""

    ours: int
    theirs: int
    count: int = 1


@dataclass(slots=True)
class Comparison:
    """What one look-up compares; ``left`` are the directories that it may still read."""

    rows: TrackerRows
    left: int = READ

    def same(
        self, way: Sequence[TrackedDirectory], rest: Sequence[bytes], others: Sequence[TrackedDirectory]
    ) -> set[int]:
        """Return those of ``others`` in which nothing is known to differ, by number.

        ``way`` is our directory and those from it to what is wanted: the file ``rest``, or all that is in
        the last one. Equal trees are numbered alike, level by level.
        """
        alike = [one for one in others if one.dirs == way[0].dirs]
        twins = {one.dirid: one for one in alike[:COMPARED]}
        for ours, step in pairwise(way):
            twins = self._further(twins, ours, step)
        if rest:
            return self._same_file(way[-1], twins, rest[0])
        return {number for number, one in twins.items() if self._same_tree(way[-1], one)}

    def _further(
        self, twins: dict[int, TrackedDirectory], ours: TrackedDirectory, step: TrackedDirectory
    ) -> dict[int, TrackedDirectory]:
        """Return the rows for ``step``, a subdirectory of ours, where they are like it."""
        ahead = step.dirid - ours.first
        rows = self.rows.directories({one.first + ahead for one in twins.values()})
        led = {number: (one.hostid, rows.get(one.first + ahead)) for number, one in twins.items()}
        shape = step.dirs, step.name
        return {
            number: row
            for number, (hostid, row) in led.items()
            if row is not None and row.hostid == hostid and (row.dirs, row.name) == shape
        }

    def _same_file(self, ours: TrackedDirectory, twins: dict[int, TrackedDirectory], name: bytes) -> set[int]:
        digests = self.rows.digests_of({ours.dirid, *(one.dirid for one in twins.values())}, name)
        its = digests.get(ours.dirid)
        return {number for number, one in twins.items() if not _differ(its, digests.get(one.dirid))}

    def _same_tree(self, ours: TrackedDirectory, theirs: TrackedDirectory) -> bool:
        """Tell whether two trees were compared to their ends, and nothing differs."""
        level: _Level | None = _Level(ours.dirid, theirs.dirid)
        for _ in range(MOST_DEPTH + 2):  # with the last, which is empty
            if level is None or level.count > self.left:
                return False
            if not level.count:
                return True
            self.left -= level.count
            if self.rows.digests_differ(level.ours, level.ours + level.count, level.theirs):
                return False
            level = self._below(level, ours.hostid, theirs.hostid)
        return False

    def _below(self, level: _Level, our_host: int, their_host: int) -> _Level | None:
        """Return the next level; None where the trees are not alike."""
        last = level.count - 1
        numbers = [level.ours, level.ours + last, level.theirs, level.theirs + last]
        rows = self.rows.directories(set(numbers))
        ends = [rows[one] for one in numbers if one in rows]
        if [one.hostid for one in ends] != [our_host, our_host, their_host, their_host]:
            return None
        first, upto, other, beyond = (ends[0].first, _behind(ends[1]), ends[2].first, _behind(ends[3]))
        return _Level(first, other, upto - first) if upto - first == beyond - other >= 0 else None


def _behind(directory: TrackedDirectory) -> int:
    """Return the number behind those of its subdirectories."""
    return directory.first + directory.dirs


def _differ(one: bytes | None, other: bytes | None) -> bool:
    return one is not None and other is not None and len(one) == len(other) and one != other
