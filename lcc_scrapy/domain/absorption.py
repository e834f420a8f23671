"""Whose set goes into the queue next (design section 5 "Overload", section 4 "Order between sets").

Providers whose sets wait stand in a ring. Each has the first of its sets, in the order of its logins,
taken forward by a few steps; then it is the next one's turn. A set of any size delays the others by no
more than that.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Protocol, TypeVar

from lcc_scrapy.domain.dynamic_threshold import room_left

TURN = 4
"""Steps of one provider before the next one's turn."""

IDLE, OPEN, COMPLETE = "idle", "open", "complete"
"""Stages of a login: no set has begun for a while; one has, or may at once; its set waits in the spool."""


class Waiting(Protocol):
    """An accepted set: whose, from which login, and when it arrived (any unit)."""

    @property
    def pid(self) -> int:
        """The provider."""

    @property
    def seq(self) -> int:
        """The number of the login."""

    @property
    def arrived(self) -> int:
        """When it arrived."""


Set = TypeVar("Set", bound=Waiting)


def _order(waiting: Waiting) -> tuple[int, int]:
    return waiting.seq, waiting.arrived


class Line(Generic[Set]):
    """All sets that wait in one spool."""

    def __init__(self) -> None:
        self._ring: deque[int] = deque()
        self._sets: dict[int, list[Set]] = {}
        self._steps = 0

    def __len__(self) -> int:
        """Return how many providers stand in the ring."""
        return len(self._ring)

    def __contains__(self, login: tuple[int, int]) -> bool:
        """Tell whether the set of a login (pid, seq) waits here."""
        pid, seq = login
        sets = self._sets.get(pid, [])
        at = bisect_left(sets, (seq, 0), key=_order)
        return at < len(sets) and sets[at].seq == seq

    def add(self, waiting: Set) -> None:
        """Take a set in."""
        if waiting.pid not in self._sets:
            self._ring.append(waiting.pid)
        insort(self._sets.setdefault(waiting.pid, []), waiting, key=_order)

    def heads(self, limit: int) -> list[Set]:
        """Return the first set of each provider, by turn, of ``limit`` providers at most."""
        return [self._sets[pid][0] for pid in islice(self._ring, limit)]

    def pass_by(self, count: int) -> None:
        """Let the first ``count`` providers wait for another turn."""
        if count:
            self._ring.rotate(-count)
            self._steps = 0

    def stepped(self) -> None:
        """Note a step of the provider whose turn it is."""
        self._steps += 1
        if self._steps >= TURN:
            self.pass_by(1)

    def remove(self, waiting: Set) -> None:
        """Forget a set of the provider whose turn it is, which ends with it."""
        sets = self._sets[waiting.pid]
        sets.remove(waiting)
        if sets:
            self.pass_by(1)
        else:
            del self._sets[self._ring.popleft()]
            self._steps = 0


class Earlier(Protocol):
    """A login before that of a set, at some UNS, whose own set may still come."""

    @property
    def uns(self) -> str:
        """The id of the UNS."""

    @property
    def stage(self) -> str:
        """``IDLE``, ``OPEN`` or ``COMPLETE``."""

    @property
    def overtaken(self) -> bool:
        """Whether a set of a later login was absorbed already."""


@dataclass(frozen=True, slots=True)
class WaitRule:
    """For how many seconds a complete set waits, at the UNS ``uns``, for those of earlier logins."""

    uns: str
    bound: float

    def is_over(self, waited: float, *, sending_here: bool, earlier: Iterable[Earlier]) -> bool:
        """Tell whether a set that has been complete for ``waited`` need not wait for earlier logins.

        A complete set of an earlier login is waited for without a bound. What is not complete is waited for
        while its set is being sent, up to the bound, and not once it was overtaken. ``sending_here`` says
        this of the logins at our own UNS, whose notes may be older; complete ones are in its line.
        """
        if any(one.stage == COMPLETE and one.uns != self.uns for one in earlier):
            return False
        waiting = (one for one in earlier if one.stage == OPEN and not one.overtaken)
        hold = any(sending_here if one.uns == self.uns else True for one in waiting)
        return not hold or waited >= self.bound


@dataclass(frozen=True, slots=True)
class View:
    """What decides who may be absorbed from: a look at the queue.

    ``queued`` URLs of at most ``queue_max`` (0 = no limit) wait in all, ``own`` of each provider. The sets of
    those in ``held_up`` wait for one of an earlier login, at any UNS.
    """

    queue_max: int
    queued: int
    own: Mapping[int, int]
    held_up: Collection[int]

    @property
    def full(self) -> bool:
        """Whether nobody's set may be taken a step forward."""
        return bool(self.queue_max) and self.queued >= self.queue_max

    def admits(self, pid: int, more: int = 0) -> bool:
        """Tell whether a provider's next set may be taken forward; ``more`` URLs of others wait by then."""
        return pid not in self.held_up and self.room(pid, more) > 0

    def room(self, pid: int, more: int = 0) -> int:
        """Return how many URLs more of a provider may wait."""
        return room_left(self.own.get(pid, 0), self.queued + more, self.queue_max)
