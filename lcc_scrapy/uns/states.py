"""States and events of a conversation, and the one table that says what may follow what.

``docs/make_diagrams.py`` draws it (``docs/protocol-states.md``).
"""

from dataclasses import dataclass
from enum import StrEnum

from lcc_scrapy.domain.errors import Refusal
from lcc_scrapy.uns.codec import Malformed
from lcc_scrapy.uns.ports import Login
from lcc_scrapy.wire.messages import Init, SetEnd, SetStart, Url, UrlRun


class State(StrEnum):
    """Where a conversation stands."""

    CONNECTED = "connected"
    AUTHENTICATING = "authenticating"
    READY = "ready"
    RECEIVING = "receiving"
    SETTLING = "settling"
    LINGERING = "lingering"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class LoginGranted:
    """The login service let the provider in."""

    login: Login


@dataclass(frozen=True, slots=True)
class LoginRefused:
    """The login service, or the counting of connections, turned the provider away."""

    refusal: Refusal


@dataclass(frozen=True, slots=True)
class FullSetSpent:
    """A full set begins, but none is left to this provider (made from ``SetStart`` by the session).

    Or it is complete, and others that came at the same time were the last.
    """


@dataclass(frozen=True, slots=True)
class SetStored:
    """The spool file is durable."""


@dataclass(frozen=True, slots=True)
class SetCounted:
    """A dry run is done."""

    would_remove: int
    would_hold: int = 0


@dataclass(frozen=True, slots=True)
class SpoolFailed:
    """The set cannot be kept: not now, or, ``too_large``, not ever."""

    too_large: bool = False


@dataclass(frozen=True, slots=True)
class TooSlow:
    """A deadline has passed."""

    detail: str


@dataclass(frozen=True, slots=True)
class Stopping:
    """The server stops and cannot wait for this provider any longer."""


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """The provider will send nothing more; ``unfinished`` when that cuts something short."""

    unfinished: bool = False


@dataclass(frozen=True, slots=True)
class Vanished:
    """The connection is gone; nothing can be written any more."""


Event = (
    Init | SetStart | Url | UrlRun | SetEnd | Malformed
    | LoginGranted | LoginRefused | FullSetSpent | SetStored | SetCounted | SpoolFailed
    | TooSlow | Stopping | StreamEnded | Vanished
)  # fmt: skip

_S = State
TABLE: dict[tuple[State, type[Event]], State] = {
    (_S.CONNECTED, Init): _S.AUTHENTICATING,
    (_S.CONNECTED, LoginRefused): _S.LINGERING,
    (_S.CONNECTED, Malformed): _S.LINGERING,
    (_S.CONNECTED, TooSlow): _S.LINGERING,
    (_S.CONNECTED, Stopping): _S.LINGERING,
    (_S.CONNECTED, StreamEnded): _S.CLOSED,
    (_S.CONNECTED, Vanished): _S.CLOSED,
    (_S.AUTHENTICATING, LoginGranted): _S.READY,
    (_S.AUTHENTICATING, LoginRefused): _S.LINGERING,
    (_S.AUTHENTICATING, Stopping): _S.LINGERING,
    (_S.AUTHENTICATING, Vanished): _S.CLOSED,
    (_S.READY, SetStart): _S.RECEIVING,
    (_S.READY, FullSetSpent): _S.LINGERING,
    (_S.READY, Malformed): _S.LINGERING,
    (_S.READY, TooSlow): _S.LINGERING,
    (_S.READY, Stopping): _S.LINGERING,
    (_S.READY, StreamEnded): _S.CLOSED,
    (_S.READY, Vanished): _S.CLOSED,
    (_S.RECEIVING, Url): _S.RECEIVING,
    (_S.RECEIVING, UrlRun): _S.RECEIVING,
    (_S.RECEIVING, SetEnd): _S.SETTLING,
    (_S.RECEIVING, SpoolFailed): _S.LINGERING,
    (_S.RECEIVING, Malformed): _S.LINGERING,
    (_S.RECEIVING, TooSlow): _S.LINGERING,
    (_S.RECEIVING, Stopping): _S.LINGERING,
    (_S.RECEIVING, StreamEnded): _S.CLOSED,
    (_S.RECEIVING, Vanished): _S.CLOSED,
    (_S.SETTLING, SetStored): _S.LINGERING,
    (_S.SETTLING, SetCounted): _S.LINGERING,
    (_S.SETTLING, SpoolFailed): _S.LINGERING,
    (_S.SETTLING, FullSetSpent): _S.LINGERING,
    (_S.SETTLING, Vanished): _S.CLOSED,
    (_S.LINGERING, StreamEnded): _S.CLOSED,
    (_S.LINGERING, Vanished): _S.CLOSED,
}  # fmt: skip
