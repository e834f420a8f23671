"""The windows of one worker's turns: which are read next, how large they are, and what is put into them.

Every turn gets its first window before any gets its second; of those, higher priority comes first. They are
read some at a time, in a thread of their own where the store has one to spare.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from twisted.python.failure import Failure

from lcc_scrapy.db.records import StoredTurn
from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.queue import Ticket, is_among
from lcc_scrapy.domain.turns import NEVER, PRIORITIES, Turn, Turns
from lcc_scrapy.queue.leases import Member
from lcc_scrapy.queue.window_rows import Reach, RowsDue, Wanted, Window, windows_of

_log = logging.getLogger(__name__)

AT_ONCE = 50
"""Windows read in one transaction."""

ROWS_AT_ONCE = 2000
"""Tickets wanted in one transaction, beyond the first window."""

FIRST, LEAST = 32, 8
"""Tickets of a turn's first window, and of a window whose turn is slow."""

QUICK, SLOW = 2.0, 30.0
"""Seconds: a window that was read on sooner is doubled, one that lasted longer is halved."""

RETRY = 1.0

FOREVER = float(1 << 40)
"""A moment that never comes: a turn waits for news."""


@dataclass(slots=True)
class Held:
    """A turn this worker holds, with the providers whose URLs it fetches in it.

    ``out`` are keys handed out and not settled, ``arrivals`` what had arrived when it was last read,
    ``charged`` the bytes of the fetch under way or last. ``leaving``: it goes to another worker as soon as
    nothing is under way in it any more. ``reach``: how far its window was read, None = from the head it is
    to be read next; ``size``: tickets that its windows have, ``read_at``: when one was read on.
    """

    lease: StoredTurn
    turn: Turn
    members: dict[int, Member] = field(default_factory=dict)
    out: set[bytes] = field(default_factory=set)
    arrivals: int = 0
    charged: int = 0
    leaving: bool = False
    reach: Reach | None = None
    size: int = 0
    read_at: float = 0.0

    def is_idle(self) -> bool:
        """Tell whether nothing is under way in this turn."""
        return self.turn.fetching is None and not self.out

    def is_low(self) -> bool:
        """Tell whether its window should be read on: it is half empty, and there is more."""
        return self.turn.more and len(self.turn.window) <= (self.size - 1) // 2

    def at_rest(self, look_at: float) -> StoredTurn:
        """Return the turn as it is to be given back, to be looked at again then."""
        backoff = self.turn.backoff
        return replace(
            self.lease,
            look_at=min(look_at, FOREVER),
            not_before=self.turn.free_at(),
            failures=backoff.failures,
            failing_since=backoff.failing_since,
            arrivals=self.arrivals,
        )


@dataclass(slots=True)
class _Reading:
    """What happened to a turn while its window was read: ``taken`` keys, and when one is due again."""

    taken: set[bytes] = field(default_factory=set)
    due: float = NEVER


@dataclass(frozen=True, slots=True)
class Room:
    """What bounds windows: ``window`` tickets of one turn, ``tickets`` of all of them together."""

    window: int
    tickets: int


class Windows:
    """Reads windows of the turns in ``held``; all methods run on the event loop.

    ``filled`` is called with the turns whose windows were read. Times come from ``now`` (epoch seconds).
    """

    def __init__(
        self,
        store: Store,
        thread: StoreThread,
        readers: StoreThread,
        clock: Clock,
        *,
        held: Mapping[str, Held],
        turns: Turns,
        room: Room,
        zone: ZoneInfo,
        now: Callable[[], float],
        filled: Callable[[Sequence[str]], None],
    ) -> None:
        self._store = store
        self._thread = thread
        self._readers = readers
        self._clock = clock
        self._held = held
        self._turns = turns
        self.room = room
        self.expected = 0
        """Turns that may be held soon: those that are held by now share the room with them."""
        self._zone = zone
        self._now = now
        self._filled = filled
        self._unread: dict[tuple[int, bool], dict[str, None]] = {
            (priority, later): {} for priority in PRIORITIES for later in (False, True)
        }
        self._reading: dict[str, _Reading] = {}
        self._anew: set[str] = set()
        self._beginning = False
        self._ended = False
        self.failure = ""

    def is_read(self, turnkey: str) -> bool:
        """Tell whether a window is being read, or is to be read."""
        return turnkey in self._reading or any(turnkey in waiting for waiting in self._unread.values())

    def handed_out(self, ticket: Ticket) -> None:
        """Take note of a ticket that was taken from its window."""
        turnkey = ticket.turnkey
        if turnkey in self._reading:
            self._reading[turnkey].taken.add(ticket.row.urlkey)
        if self._held[turnkey].is_low():
            self.read_on([turnkey])

    def read_on(self, turnkeys: Iterable[str]) -> None:
        """Read windows on, soon; one that is being read is looked at again when it has been."""
        for turnkey in turnkeys:
            if turnkey not in self._reading:
                self._want(turnkey)
        self._read_next()

    def read_anew(self, turnkeys: Iterable[str]) -> None:
        """Read windows again from the head of the queue, soon: what lies there has changed."""
        for turnkey in turnkeys:
            if turnkey in self._reading:
                self._anew.add(turnkey)
            elif turnkey in self._held:
                self._held[turnkey].reach = None
                self._want(turnkey)
        self._read_next()

    def look_by(self, turnkey: str, at: float) -> None:
        """Read a window from the head again at some moment: a URL of the turn is due then."""
        if turnkey in self._reading:  # what is being read may not know of it
            self._reading[turnkey].due = min(self._reading[turnkey].due, at)
        self._turns.look_by(turnkey, at, self._now())

    def forget(self, turnkey: str) -> None:
        """Read a window no more."""
        for waiting in self._unread.values():
            waiting.pop(turnkey, None)

    def stop(self) -> None:
        """Begin to read nothing any more."""
        self._ended = True
        for waiting in self._unread.values():
            waiting.clear()

    # --- which ones ------------------------------------------------------------------------------

    def _want(self, turnkey: str) -> None:
        held = self._held.get(turnkey)
        if held is not None and not held.leaving and not self._ended and not self.is_read(turnkey):
            self._unread[held.turn.priority, held.size > 0][turnkey] = None

    def _read_next(self) -> None:
        """Read the next windows, when those before have been."""
        while not self._reading and not self._beginning and (wanted := self._next()):
            reading = self._readers.run(self._read, wanted)
            reading.addErrback(self._bring_back, wanted)
            reading.addCallback(self._fill)
            reading.addErrback(self._failed, [one.lease.turnkey for one in wanted])
            self._beginning = True  # in tests it may have ended by now
            reading.addBoth(lambda _: self._read_next())
            self._beginning = False

    def _next(self) -> list[Wanted]:
        """Take the next turns out of the line, as many as may be read together."""
        wanted: list[Wanted] = []
        rows, free = 0, self.room.tickets - sum(len(turn.window) for turn in self._turns)
        for turnkey in islice(self._in_line(), AT_ONCE):
            one = self._wanted(self._held[turnkey], free)
            if wanted and rows + one.limit > ROWS_AT_ONCE:
                break
            wanted.append(one)
            rows, free = rows + one.limit, free - one.limit
        for one in wanted:
            self.forget(one.lease.turnkey)
            self._reading[one.lease.turnkey] = _Reading()
        return wanted

    def _in_line(self) -> Iterator[str]:
        return (turnkey for waiting in self._unread.values() for turnkey in waiting)

    def _wanted(self, held: Held, free: int) -> Wanted:
        """Return how much of a turn's queue to read; ``free`` tickets are not in any window."""
        left = len(held.turn.window)
        held.size = self._size(held, free + left)
        limit = held.size if held.reach is None else max(1, held.size - left)
        return Wanted(held.lease, tuple(held.members.values()), limit, frozenset(held.out), held.reach)

    def _size(self, held: Held, free: int) -> int:
        """Return how large a window may be: twice as large when the last one was soon half empty.

        All turns have an equal share of the room. What others leave free is shared by those that wait to be
        read; one alone may take a half.
        """
        now, room = self._now(), self.room
        share = max(1, room.tickets // max(1, len(self._held), self.expected))
        waiting = sum(map(len, self._unread.values()))
        if not held.size:
            held.read_at = now
            return max(1, min(FIRST, room.window, share, free))
        size = held.size
        if held.reach is not None:
            lasted, held.read_at = now - held.read_at, now
            size = max(LEAST, size * 2 if lasted < QUICK else size // 2 if lasted > SLOW else size)
        return max(1, min(size, room.window, max(share, free // max(2, waiting)), free))

    # --- reading ---------------------------------------------------------------------------------

    def _read(self, wanted: Sequence[Wanted]) -> list[Window]:
        """Read windows (in the readers' thread)."""
        with self._store.read() as tx:
            return windows_of(tx, wanted, self._now(), zone=self._zone, bring_back=False)

    def _bring_back(self, failure: Failure, wanted: Sequence[Wanted]) -> Any:
        """Read windows in the thread that writes: rows that were set aside are due."""
        if not isinstance(failure.value, RowsDue):
            return failure
        return self._thread.run(self._read_writing, wanted)

    def _read_writing(self, wanted: Sequence[Wanted]) -> list[Window]:
        with self._store.begin() as tx:
            return windows_of(tx, wanted, self._now(), zone=self._zone, bring_back=True)

    def _fill(self, windows: Sequence[Window]) -> None:
        for window in windows:
            turnkey = window.lease.turnkey
            meanwhile = self._reading.pop(turnkey, _Reading())
            held = self._held.get(turnkey)
            if held is not None and held.lease.token == window.lease.token and not held.leaving:
                self._put(held, window, meanwhile)
            anew = turnkey in self._anew
            self._anew.discard(turnkey)
            if anew:
                self.read_anew([turnkey])
            elif held is not None and held.is_low():
                self.read_on([turnkey])
        self._filled([window.lease.turnkey for window in windows])

    def _put(self, held: Held, window: Window, meanwhile: _Reading) -> None:
        turns, turnkey, now, taken = self._turns, held.turn.key, self._now(), meanwhile.taken
        held.arrivals, held.reach = window.arrivals, window.reach
        tickets = [one for one in window.tickets if not taken or not is_among(one.row, taken)]
        if window.on:
            turns.extend(turnkey, tickets, now, more=window.more)
        else:
            turns.refill(turnkey, tickets, now, more=window.more, look_at=window.look_at)
        turns.look_by(turnkey, meanwhile.due, now)

    def _failed(self, failure: Failure, turnkeys: Sequence[str]) -> None:
        self.failure = failure.getErrorMessage()
        _log.error("cannot read the queue now, trying again: %s", self.failure)
        for turnkey in turnkeys:
            self._reading.pop(turnkey, None)
            self._anew.discard(turnkey)
        self._clock.callLater(RETRY, self.read_anew, turnkeys)
