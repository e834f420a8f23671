"""The windows of one worker's turns: which are read next, how large they are, and what is put into them.

Every turn gets its first window before any gets its second; of those, higher priority comes first. They are
read some at a time, in a thread of their own where the store has one to spare.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.queue import is_among
from lcc_scrapy.domain.turn import NEVER
from lcc_scrapy.domain.turn_states import Event, State
from lcc_scrapy.domain.turns import PRIORITIES, Turns
from lcc_scrapy.queue.held_turn import HeldTurn
from lcc_scrapy.queue.window_rows import RowsDue, Wanted, Window, windows_of

_log = logging.getLogger(__name__)

AT_ONCE = 50
"""Windows read in one transaction."""

ROWS_AT_ONCE = 2000
"""Tickets wanted in one transaction, beyond the first window."""

FIRST, LEAST = 32, 8
"""Tickets of a turn's first window, and of a window whose turn is slow."""

PROBED = 1000
"""Rows among which a URL is looked for by which a failing host is tried; only that one becomes a ticket."""

LASTS = 3.0
"""Seconds for which a window is to last at the rate at which it drained of late."""

RETRY = 1.0


@dataclass(frozen=True, slots=True)
class Room:
    """What bounds windows: ``window`` tickets of one turn, ``tickets`` of all of them together."""

    window: int
    tickets: int


@dataclass(eq=False, kw_only=True)
class WindowReader:
    """Reads windows of ``turns``; all methods run on the event loop.

    ``filled`` is called with the turns whose windows were read. Times come from ``now`` (epoch seconds).
    ``expected``: turns that may be held soon; those that are held by now share the room with them.
    """

    store: Store
    thread: StoreThread
    readers: StoreThread
    clock: Clock
    turns: Turns[HeldTurn]
    room: Room
    zone: ZoneInfo
    now: Callable[[], float]
    filled: Callable[[Sequence[HeldTurn]], object]
    expected: int = 0

    _reading = _beginning = _ended = False

    def __post_init__(self) -> None:
        """Open a line for each priority, and in each one for first windows and one for later ones."""
        self._lines: dict[tuple[int, bool], dict[HeldTurn, None]] = {
            (priority, later): {} for priority in PRIORITIES for later in (False, True)
        }

    def read_on(self, turn: HeldTurn) -> None:
        """Read a window on, soon, if it runs low."""
        if turn.is_low() and turn.state.happens(Event.READ_ON):
            self._line_up([turn])

    def read_anew(self, turns: Iterable[HeldTurn]) -> None:
        """Read windows again from the head of the queue, soon: what lies there has changed."""
        changed = [turn for turn in turns if turn.state.happens(Event.READ_ANEW)]
        for turn in changed:
            turn.reach = None
        self._line_up(changed)

    def look_by(self, turn: HeldTurn, at: float) -> None:
        """Read a window from the head again at some moment: a URL of the turn is due then."""
        turn.due = min(turn.due, at)
        self.turns.look_by(turn.key, at, self.now())

    def forget(self, turn: HeldTurn) -> None:
        """Read a window no more."""
        for line in self._lines.values():
            line.pop(turn, None)

    def stop(self) -> None:
        """Begin to read nothing any more."""
        self._ended = True

    # --- which ones ------------------------------------------------------------------------------

    def _line_up(self, turns: Iterable[HeldTurn]) -> None:
        for turn in turns:
            if turn.state.window is State.UNREAD:
                self.forget(turn)
                self._lines[turn.priority, turn.size > 0][turn] = None
        self._read_next()

    def _read_next(self) -> None:
        """Read the next windows, when those before have been."""
        while not self._reading and not self._beginning and not self._ended and (chosen := self._next()):
            turns, wanted = [turn for turn, _ in chosen], [one for _, one in chosen]
            self._reading = self._beginning = True
            reading: Deferred[Any] = self.readers.run(self._read, wanted)
            reading.addCallback(self._bring_back, wanted)
            reading.addCallback(self._fill, turns)
            reading.addErrback(self._failed, turns)
            reading.addBoth(lambda _: self._read_ended())  # in tests it may have ended by now
            self._beginning = False

    def _read_ended(self) -> None:
        self._reading = False
        self._read_next()

    def _next(self) -> list[tuple[HeldTurn, Wanted]]:
        """Take the next turns out of the line, as many as may be read together."""
        chosen: list[tuple[HeldTurn, Wanted]] = []
        rows, free = 0, self.room.tickets - sum(len(turn.window) for turn in self.turns)
        for turn in islice(self._in_line(), AT_ONCE):
            one = self._wanted(turn, free)
            if chosen and rows + one.limit > ROWS_AT_ONCE:
                break
            chosen.append((turn, one))
            rows, free = rows + one.limit, free - one.limit
        for turn, _ in chosen:
            self.forget(turn)
            turn.state.happens(Event.READ_BEGINS)
            turn.taken, turn.due = set(), NEVER
        return chosen

    def _in_line(self) -> Iterator[HeldTurn]:
        return (turn for line in self._lines.values() for turn in line)

    def _wanted(self, turn: HeldTurn, free: int) -> Wanted:
        """Return how much of a turn's queue to read; ``free`` tickets are not in any window."""
        left = len(turn.window)
        turn.size = self._size(turn, free + left)
        limit = turn.size if turn.reach is None else max(1, turn.size - left)
        waits: Mapping[str, float] = {}
        if turn.hosts:
            waits = turn.waits(self.now())
            limit = max(limit, PROBED) if turn.reach is None and turn.is_to_ask(self.now()) else limit
        members, since = tuple(turn.members.values()), turn.since_retries()
        return Wanted(turn.lease, members, limit, frozenset(turn.kept_out()), turn.reach, since, waits)

    def _size(self, turn: HeldTurn, free: int) -> int:
        """Return how large a window may be: as it drains, but not less than half as large as the last one.

        All turns have an equal share of the room. What others leave free is shared by those that wait to be
        read; one alone may take a half.
        """
        now, room = self.now(), self.room
        share = max(1, room.tickets // max(1, len(self.turns), self.expected))
        waiting = sum(map(len, self._lines.values()))
        if not turn.size:
            turn.read_at = now
            return max(1, min(FIRST, room.window, share, free))
        size = turn.size
        if turn.reach is not None:
            drained, lasted, turn.read_at = size - len(turn.window), now - turn.read_at, now
            size = max(LEAST, size // 2, round(LASTS * drained / max(lasted, 0.001)))
        return max(1, min(size, room.window, max(share, free // max(2, waiting)), free))

    # --- reading ---------------------------------------------------------------------------------

    def _read(self, wanted: Sequence[Wanted]) -> list[Window] | None:
        """Read windows (in the readers' thread); None: rows that were set aside are due.

        The exception ends here: in a failure, its frames would stay until Python looks for garbage.
        """
        try:
            with self.store.read() as tx:
                return windows_of(tx, wanted, self.now(), zone=self.zone, bring_back=False)
        except RowsDue:
            return None

    def _bring_back(self, windows: list[Window] | None, wanted: Sequence[Wanted]) -> Any:
        """Read windows in the thread that writes when rows that were set aside are due."""
        return self.thread.run(self._read_writing, wanted) if windows is None else windows

    def _read_writing(self, wanted: Sequence[Wanted]) -> list[Window]:
        with self.store.begin() as tx:
            return windows_of(tx, wanted, self.now(), zone=self.zone, bring_back=True)

    def _fill(self, windows: Sequence[Window], turns: Sequence[HeldTurn]) -> None:
        for turn, window in zip(turns, windows, strict=True):
            if turn.state.happens(Event.READ_ENDS):  # else it is leaving, or was lost meanwhile
                self._put(turn, window)
        self.filled(turns)

    def _put(self, turn: HeldTurn, window: Window) -> None:
        now, taken, outdated = self.now(), turn.taken, turn.state.window is State.UNREAD
        turn.arrivals, turn.reach = window.arrivals, window.reach
        tickets = [one for one in window.tickets if not taken or not is_among(one.row, taken)]
        if window.on:
            self.turns.extend(turn.key, tickets, now, more=window.more)
        else:
            self.turns.refill(
                turn.key, tickets, now, more=window.more, look_at=window.look_at, outdated=outdated
            )
        self.turns.look_by(turn.key, turn.due, now)
        if outdated:
            turn.reach = None
            self._line_up([turn])
        else:
            self.read_on(turn)

    def _failed(self, failure: Failure, turns: Sequence[HeldTurn]) -> None:
        _log.error("cannot read the queue now, trying again: %s", failure.getErrorMessage())
        for turn in turns:
            turn.state.happens(Event.READ_FAILS)
            turn.reach = None
        self.clock.callLater(RETRY, self._line_up, turns)
