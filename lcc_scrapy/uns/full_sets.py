"""Full sets that were accepted and of which the store does not know yet (design section 5 "Full set").

A full set counts against its provider's allowance from its acceptance on, which may be long before the
database can note it. Until then, this is where it counts; a restart learns it from the spool files.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock


@dataclass(frozen=True, slots=True)
class FullSet:
    """A full set: the number of its login, its id (empty = none), and whether it counts."""

    pid: int
    seq: int
    set_id: str
    charged: bool


@dataclass(frozen=True, slots=True)
class Accepted:
    """What one provider has brought: the sets that still wait, and how many counted ones ever came here."""

    waiting: tuple[FullSet, ...] = ()
    charged: int = 0

    def without(self, seqs: Iterable[int]) -> "Accepted":
        """Leave out the sets of logins that the store knows about."""
        known = frozenset(seqs)
        return Accepted(tuple(one for one in self.waiting if one.seq not in known), self.charged)

    def newly_charged(self, known_ids: Iterable[str]) -> int:
        """Count the waiting sets that count, each id once; those of ``known_ids`` were counted already."""
        ids = {one.set_id for one in self.waiting if one.charged and one.set_id}
        nameless = sum(one.charged and not one.set_id for one in self.waiting)
        return len(ids.difference(known_ids)) + nameless


class AcceptedFullSets:
    """All of one spool folder; may be asked from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[tuple[int, int], FullSet] = {}
        self._charged: Counter[int] = Counter()

    def add(self, full_set: FullSet) -> None:
        """Take note of a set that is accepted now."""
        with self._lock:
            self._waiting[full_set.pid, full_set.seq] = full_set
            self._charged[full_set.pid] += full_set.charged

    def withdraw(self, full_set: FullSet) -> None:
        """Take an acceptance back: the set could not be kept."""
        with self._lock:
            if self._waiting.pop((full_set.pid, full_set.seq), None) is not None:
                self._charged[full_set.pid] -= full_set.charged

    def remove(self, pid: int, seq: int) -> None:
        """Forget a set that waits no longer; harmless for any other."""
        with self._lock:
            self._waiting.pop((pid, seq), None)

    def of(self, pid: int) -> Accepted:
        """Return what a provider has brought."""
        with self._lock:
            waiting = tuple(one for one in self._waiting.values() if one.pid == pid)
            return Accepted(waiting, self._charged[pid])
