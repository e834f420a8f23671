"""The conversation with one content user, after the table in ``states``: no I/O, no clock."""

from dataclasses import dataclass

from lcc_scrapy.apps.query.states import (
    TABLE,
    Answered,
    Event,
    LookAgain,
    NothingYet,
    Portion,
    Refused,
    State,
)
from lcc_scrapy.apps.query.wire import writing
from lcc_scrapy.apps.query.wire.messages import Query, QueryRejected
from lcc_scrapy.domain.errors import Refusal, text_of


@dataclass(frozen=True, slots=True)
class Write:
    """Send this."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Begin:
    """Find an answer to this query, portion by portion."""

    query: Query


@dataclass(frozen=True, slots=True)
class GoOn:
    """Get the next portion when there is room for it."""


@dataclass(frozen=True, slots=True)
class WaitAMoment:
    """Look again later."""


@dataclass(frozen=True, slots=True)
class HalfClose:
    """Everything is said: end our side, and let the content user end its own."""


@dataclass(frozen=True, slots=True)
class Close:
    """Nothing is left to be said."""


Effect = Write | Begin | GoOn | WaitAMoment | HalfClose | Close


class Session:
    """One conversation. ``state`` is for looking at, ``outcome`` for the log."""

    def __init__(self) -> None:
        self.state = State.ASKING
        self.outcome = "no query"
        self.said = 0
        """Bytes of the answer."""

    @property
    def over(self) -> bool:
        """Tell whether everything is said."""
        return self.state in {State.LINGERING, State.CLOSED}

    def take(self, event: Event) -> list[Effect]:
        """Follow the table; an event that has no place in this state changes nothing."""
        following = TABLE.get((self.state, type(event)))
        if following is None:
            return []
        self.state = following
        return self._effects(event)

    def _effects(self, event: Event) -> list[Effect]:
        match event:
            case Query():
                self.outcome = "cut off"
                effects: list[Effect] = [Begin(event)]
            case Portion(data):
                self.said += len(data)
                effects = [Write(data), GoOn()]
            case NothingYet():
                effects = [WaitAMoment()]
            case LookAgain():
                effects = [GoOn()]
            case Answered():
                self.outcome = "answered"
                effects = [HalfClose()]
            case Refused(refusal):
                self.outcome = f"refused {refusal.code} {refusal.detail}".rstrip()
                effects = [Write(self._refusal(refusal)), HalfClose()]
            case _:
                effects = [Close()]
        return effects

    def _refusal(self, refusal: Refusal) -> bytes:
        text = f"{text_of(refusal.code)}: {refusal.detail}" if refusal.detail else text_of(refusal.code)
        message = QueryRejected(refusal.code, text, refusal.retry_after)
        return writing.broken_off(message) if self.said else writing.rejected(message)
