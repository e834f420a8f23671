"""Answers on their way out: kept here, within a bound, while the provider does not read."""

from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import ISSLTransport

from lcc_scrapy.domain.dynamic_threshold import room_left

_PORTION = 64 * 1024


class Backlog:
    """Bytes that wait in all outboxes of one UNS."""

    def __init__(self) -> None:
        self.size = 0


class Outbox:
    """Between a session and its transport; nothing is ever thrown away.

    ``limit`` bytes may wait here, and in all outboxes of a ``backlog`` about ``in_all``, which they share by
    what is left free. Beside that the transport holds two portions of 64 KiB at most.
    """

    def __init__(self, transport: Any, limit: int, in_all: int, backlog: Backlog) -> None:
        self._transport = transport
        self._limit = limit
        self._in_all = in_all
        self._backlog = backlog
        self._kept = bytearray()
        self._paused = False
        self._end: Callable[[], None] | None = None
        self._registered = True

    @property
    def full(self) -> bool:
        """Tell whether nothing more should be asked for until the provider has read something."""
        own = len(self._kept)
        if not own:
            return False
        return own > self._limit or not room_left(own, self._backlog.size, self._in_all)

    def write(self, data: bytes) -> None:
        """Send, now or later."""
        self._kept += data
        self._backlog.size += len(data)
        self._send()

    def pause(self) -> None:
        """The transport's own buffer is full."""
        self._paused = True

    def resume(self) -> None:
        """The transport's own buffer is empty."""
        self._paused = False
        self._send()

    def half_close(self) -> None:
        """Send what is left and then our end of stream; the transport goes on receiving."""
        # TLS says its own goodbye and receives until the provider has said it too.
        tls = ISSLTransport.providedBy(self._transport)
        self._end = self._transport.loseConnection if tls else self._transport.loseWriteConnection
        self._send()

    def close(self) -> None:
        """Send what is left and close."""
        self._end = self._transport.loseConnection
        self._send()

    def forget(self) -> None:
        """The connection is gone, and what waited with it."""
        self._backlog.size -= len(self._kept)
        self._kept.clear()

    def _send(self) -> None:
        while self._kept and not self._paused:
            portion = bytes(self._kept[:_PORTION])
            del self._kept[:_PORTION]
            self._backlog.size -= len(portion)
            self._transport.write(portion)
        if self._end is not None and not self._kept:
            self._finish(self._end)

    def _finish(self, end: Callable[[], None]) -> None:
        self._end = None
        if self._registered:
            self._registered = False
            self._transport.unregisterProducer()
        end()
