"""Directories that are still to be listed, for adapters that list one directory after the other."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from lcc_scrapy.apps.tracker.entries import Held, Path

Marks = tuple[bytes, ...]
Marked = tuple[bytes, bytes | None]
"""The name of a subdirectory and its mark; None = none is needed."""


@dataclass(frozen=True, slots=True)
class Step:
    """A directory to be listed. ``above`` are marks of those above it, and its own where it is known."""

    path: Path
    above: Marks = ()


@dataclass(frozen=True, slots=True)
class _Below:
    """Subdirectories of one directory, the next one last."""

    path: Path
    above: Marks
    names: list[Marked]


@dataclass(slots=True)
class Waiting:
    """Steps, depth first. In memory are names, not paths; raises ``Unlisted`` where these are too many."""

    _levels: list[_Below] = field(default_factory=list)
    _held: Held = field(default_factory=Held)

    def add(self, step: Step, names: Iterable[Marked]) -> None:
        """Add subdirectories of a directory; they come before what waits already."""
        kept = list(names)
        kept.reverse()
        self._held.add(len(kept), sum(map(_size, kept)))
        self._levels.append(_Below(step.path, step.above, kept))

    def next(self) -> Step | None:
        """Take the next step; None = nothing waits."""
        while self._levels:
            level = self._levels[-1]
            if level.names:
                name, mark = one = level.names.pop()
                self._held.drop(1, _size(one))
                return Step((*level.path, name), level.above if mark is None else (*level.above, mark))
            self._levels.pop()
        return None


def _size(one: Marked) -> int:
    return len(one[0]) + len(one[1] or b"")
