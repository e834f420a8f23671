"""A request and its answer as the transport of a conversation with the UNS.

The answer is held until the conversation has said all, so that the status can tell of a refusal; but no
more of it than ``HOLD`` bytes. Then it begins, with 200, and the verdict is in its text alone.
"""

import asyncio
from typing import Any

from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.python.failure import Failure

from lcc_scrapy.uns.protocol import UnsProtocol

HOLD = 64 * 1024
_MOST_WAITING = 64 * 1024
"""Bytes that wait for the client before the conversation is asked to say no more for now."""


class RequestTransport:
    """What a conversation asks of a transport. ``decided``, ``news`` and ``readable`` are waited for."""

    def __init__(self) -> None:
        self.decided = asyncio.Event()
        """The status is known: all is said, or too much to hold."""
        self.news = asyncio.Event()
        """There is more to send, or nothing more will come."""
        self.readable = asyncio.Event()
        """More of the body may be given to the conversation."""
        self.readable.set()
        self.said_all = False
        self.closed = False
        self.aborted = False
        self._waiting = bytearray()
        self._producer: Any = None
        self._paused = False

    # --- the conversation's side ---------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Take a part of the answer."""
        self._waiting += data
        if len(self._waiting) > HOLD:
            self.decided.set()
        self._tell()
        if self.decided.is_set() and len(self._waiting) > _MOST_WAITING and not self._paused:
            self._paused = True
            if self._producer is not None:
                self._producer.pauseProducing()

    def loseWriteConnection(self) -> None:  # noqa: N802 - Twisted's name
        """All is said; what still comes of the body is thrown away."""
        self.said_all = True
        self._tell()

    def loseConnection(self) -> None:  # noqa: N802 - Twisted's name
        """All is said, and nothing more of the body is wanted."""
        self.said_all = self.closed = True
        self._tell()

    def abortConnection(self) -> None:  # noqa: N802 - Twisted's name
        """End it now."""
        self.aborted = True
        self.loseConnection()

    def registerProducer(self, producer: Any, _streaming: bool) -> None:  # noqa: N802 - Twisted's name
        """Whom to ask to say no more for now."""
        self._producer = producer

    def unregisterProducer(self) -> None:  # noqa: N802 - Twisted's name
        """All is said, and was not held back."""
        self._producer = None

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's name
        """Read no more of the body for now."""
        self.readable.clear()

    def resumeProducing(self) -> None:  # noqa: N802 - Twisted's name
        """Read on."""
        self.readable.set()

    # --- the request's side --------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Bytes that wait to be sent."""
        return len(self._waiting)

    def take(self) -> bytes:
        """Return what waits to be sent."""
        portion = bytes(self._waiting)
        self._waiting.clear()
        return portion

    def sent(self) -> None:
        """The client has room for more."""
        if self._paused:
            self._paused = False
            if self._producer is not None:
                self._producer.resumeProducing()

    def end(self, conversation: UnsProtocol, *, answered: bool) -> None:
        """Tell the conversation that the request is over, and whether its answer was given."""
        why = ConnectionDone() if answered else ConnectionLost()
        conversation.connectionLost(Failure(why))  # type: ignore[no-untyped-call]

    def _tell(self) -> None:
        if self.said_all:
            self.decided.set()
            self.readable.set()
        self.news.set()
