"""States of a turn that a worker holds, and the two tables that say what may follow what.

A turn stands in both tables at once: its window is read while URLs of it are fetched. An event happens if
every table that knows it has a row for it where the turn stands; else it is refused and changes nothing.
``docs/make_diagrams.py`` draws the tables (``docs/turn-states.md``).
"""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where a turn stands, first with its window, then with what is fetched in it."""

    __hash__ = str.__hash__  # that of enumerations is not in C: several look-ups a page

    UNREAD = "unread"
    READING = "reading"
    OUTDATED = "outdated"
    READ = "read"
    LEAVING = "leaving"

    IDLE = "idle"
    FETCHING = "fetching"
    SETTLING = "settling"

    GONE = "gone"


class Event(StrEnum):
    """What happens to a turn."""

    __hash__ = str.__hash__

    READ_ON = "its window runs low"
    READ_ANEW = "its rows changed"
    READ_BEGINS = "a read begins"
    READ_ENDS = "the read ends"
    READ_FAILS = "the read fails"
    HAND_OUT = "a URL is handed out"
    FETCH_ENDS = "the last fetch ends"
    ALL_SETTLED = "all outcomes are durable"
    LEAVE = "another worker wants it"
    GIVE_BACK = "it is given back"
    LOSE = "its lease is lost"


Table = dict[tuple[State, Event], State]

_S, _E = State, Event
WINDOW: Table = {
    (_S.READ, _E.READ_ON): _S.UNREAD,
    (_S.READ, _E.READ_ANEW): _S.UNREAD,
    (_S.UNREAD, _E.READ_ANEW): _S.UNREAD,
    (_S.READING, _E.READ_ANEW): _S.OUTDATED,
    (_S.UNREAD, _E.READ_BEGINS): _S.READING,
    (_S.READING, _E.READ_ENDS): _S.READ,
    (_S.OUTDATED, _E.READ_ENDS): _S.UNREAD,
    (_S.READING, _E.READ_FAILS): _S.UNREAD,
    (_S.OUTDATED, _E.READ_FAILS): _S.UNREAD,
    (_S.UNREAD, _E.HAND_OUT): _S.UNREAD,
    (_S.READING, _E.HAND_OUT): _S.READING,
    (_S.OUTDATED, _E.HAND_OUT): _S.OUTDATED,
    (_S.READ, _E.HAND_OUT): _S.READ,
    (_S.UNREAD, _E.LEAVE): _S.LEAVING,
    (_S.READING, _E.LEAVE): _S.LEAVING,
    (_S.OUTDATED, _E.LEAVE): _S.LEAVING,
    (_S.READ, _E.LEAVE): _S.LEAVING,
    (_S.READ, _E.GIVE_BACK): _S.GONE,
    (_S.LEAVING, _E.GIVE_BACK): _S.GONE,
    (_S.UNREAD, _E.LOSE): _S.GONE,
    (_S.READING, _E.LOSE): _S.GONE,
    (_S.OUTDATED, _E.LOSE): _S.GONE,
    (_S.READ, _E.LOSE): _S.GONE,
    (_S.LEAVING, _E.LOSE): _S.GONE,
}
"""``OUTDATED``: its rows changed during the read. ``LEAVING``: its window is emptied and stays so."""

FETCHES: Table = {
    (_S.IDLE, _E.HAND_OUT): _S.FETCHING,
    (_S.FETCHING, _E.HAND_OUT): _S.FETCHING,
    (_S.SETTLING, _E.HAND_OUT): _S.FETCHING,
    (_S.FETCHING, _E.FETCH_ENDS): _S.SETTLING,
    (_S.SETTLING, _E.ALL_SETTLED): _S.IDLE,
    (_S.IDLE, _E.GIVE_BACK): _S.GONE,
    (_S.IDLE, _E.LOSE): _S.GONE,
    (_S.FETCHING, _E.LOSE): _S.GONE,
    (_S.SETTLING, _E.LOSE): _S.GONE,
}
"""The next fetch may begin while outcomes of those before are made durable.

How many may be under way, ``turns.Turn.may_begin`` says: one, if the provider did not permit more.
"""

_KNOWN_TO = {
    event: tuple(any(known is event for _, known in table) for table in (WINDOW, FETCHES)) for event in Event
}


@dataclass(slots=True)
class TurnState:
    """Where one turn stands in both tables."""

    window: State = State.UNREAD
    fetches: State = State.IDLE

    def happens(self, event: Event) -> bool:
        """Go on to what follows; False, and nothing has changed, if the event is refused."""
        to_window, to_fetches = _KNOWN_TO[event]
        window = WINDOW.get((self.window, event)) if to_window else self.window
        fetches = FETCHES.get((self.fetches, event)) if to_fetches else self.fetches
        if window is None or fetches is None:
            return False
        self.window, self.fetches = window, fetches
        return True
