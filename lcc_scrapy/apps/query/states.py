"""States and events of a conversation at the query socket, and the table that says what may follow what.

``docs/make_diagrams.py`` draws it (``docs/query-states.md``).
"""

from dataclasses import dataclass
from enum import StrEnum

from lcc_scrapy.apps.query.wire.messages import Query
from lcc_scrapy.domain.errors import Refusal


class State(StrEnum):
    """Where a conversation stands."""

    ASKING = "asking"
    ANSWERING = "answering"
    WAITING = "waiting"
    LINGERING = "lingering"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Portion:
    """The next piece of the answer."""

    data: bytes


@dataclass(frozen=True, slots=True)
class NothingYet:
    """There is no change so far, and the content user waits for one."""


@dataclass(frozen=True, slots=True)
class LookAgain:
    """It is time to see whether there is a change."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer is complete."""


@dataclass(frozen=True, slots=True)
class Refused:
    """There is no answer, or no more of it."""

    refusal: Refusal


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """The content user will send nothing more."""


@dataclass(frozen=True, slots=True)
class Vanished:
    """The connection is gone; nothing can be written any more."""


Event = Query | Portion | NothingYet | LookAgain | Answered | Refused | StreamEnded | Vanished

_S = State
TABLE: dict[tuple[State, type[Event]], State] = {
    (_S.ASKING, Query): _S.ANSWERING,
    (_S.ASKING, Refused): _S.LINGERING,
    (_S.ASKING, StreamEnded): _S.CLOSED,
    (_S.ASKING, Vanished): _S.CLOSED,
    (_S.ANSWERING, Portion): _S.ANSWERING,
    (_S.ANSWERING, NothingYet): _S.WAITING,
    (_S.ANSWERING, Answered): _S.LINGERING,
    (_S.ANSWERING, Refused): _S.LINGERING,
    (_S.ANSWERING, Vanished): _S.CLOSED,
    (_S.WAITING, LookAgain): _S.ANSWERING,
    (_S.WAITING, Refused): _S.LINGERING,
    (_S.WAITING, Vanished): _S.CLOSED,
    (_S.LINGERING, StreamEnded): _S.CLOSED,
    (_S.LINGERING, Vanished): _S.CLOSED,
}
