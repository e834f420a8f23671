"""Interfaces of what takes the pushes that come over HTTP; ``app.intake_service`` implements them."""

from typing import Any, Protocol

from twisted.python.failure import Failure

from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.uns.dialect import Dialect
from lcc_scrapy.wire.messages import Init, InitRejected, SetRejected


class Conversation(Protocol):
    """One conversation with the UNS: an ``IProtocol`` and ``IHalfCloseableProtocol`` with a verdict."""

    @property
    def rejected(self) -> InitRejected | SetRejected | None:
        """Why the login or the set was refused."""

    def makeConnection(self, transport: Any) -> None:  # noqa: N802 - Twisted's name
        """Begin."""

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """Take a part of the body."""

    def readConnectionLost(self) -> None:  # noqa: N802 - Twisted's name
        """The body has come whole."""

    def connectionLost(self, reason: Failure) -> None:  # noqa: N802 - Twisted's name
        """The end: ``ConnectionDone`` when the whole answer was given."""

    def break_off(self, detail: str) -> None:
        """Refuse what cannot be read."""

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's name
        """Answer no more for now."""

    def resumeProducing(self) -> None:  # noqa: N802 - Twisted's name
        """Answer again."""


class Uns(Protocol):
    """An Update Notification Server that listens to connections which others accepted."""

    @property
    def limits(self) -> Limits:
        """The bounds of conversations that begin now."""

    def converse(self, peer: str, dialect: Dialect, init: Init | None) -> Conversation | None:
        """Make a conversation; None when there are too many, or when the server stops."""
