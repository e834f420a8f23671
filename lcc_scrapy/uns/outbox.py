"""Answers on their way out: kept here, within a bound, while the provider does not read."""

from collections import deque
from typing import Any

from twisted.internet.interfaces import ISSLTransport


class Outbox:
    """Between a session and its transport. ``limit`` in bytes; nothing is ever thrown away at it."""

    def __init__(self, transport: Any, limit: int) -> None:
        self._transport = transport
        self._limit = limit
        self._kept: deque[bytes] = deque()
        self._size = 0
        self._paused = False
        self._finished = False

    @property
    def full(self) -> bool:
        """Tell whether nothing more should be asked for until the provider has read something."""
        return self._size > self._limit

    def write(self, data: bytes) -> None:
        """Send, now or later."""
        if self._paused:
            self._kept.append(data)
            self._size += len(data)
        else:
            self._transport.write(data)

    def pause(self) -> None:
        """The transport's own buffer is full."""
        self._paused = True

    def resume(self) -> None:
        """The transport's own buffer is empty."""
        self._paused = False
        if self._kept:
            data = b"".join(self._kept)
            self._kept.clear()
            self._size = 0
            self._transport.write(data)

    def half_close(self) -> None:
        """Send what is left and then our end of stream; the transport goes on receiving."""
        self._finish()
        if ISSLTransport.providedBy(self._transport):
            # TLS says its own goodbye and receives until the provider has said it too.
            self._transport.loseConnection()
        else:
            self._transport.loseWriteConnection()

    def close(self) -> None:
        """Send what is left and close."""
        self._finish()
        self._transport.loseConnection()

    def _finish(self) -> None:
        if not self._finished:
            self._finished = True
            self.resume()
            self._transport.unregisterProducer()
