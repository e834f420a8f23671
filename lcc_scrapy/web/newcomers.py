"""Connections that have asked for nothing yet: few are kept, and the oldest makes room for a new one."""

import asyncio
import logging
import ssl
from contextlib import suppress
from typing import Any

MOST = 200
"""Connections at most that may be shaking hands or sending their first head; each costs 0.3 MB with TLS."""

_log = logging.getLogger(__name__)


class Newcomers:
    """The newcomers of one server, oldest first; ``most`` is how many it serves in all."""

    def __init__(self, most: int) -> None:
        self._most = min(most, MOST)
        self._here: dict[Any, None] = {}

    def __len__(self) -> int:
        return len(self._here)

    def enter(self, transport: Any) -> None:
        """Take a connection in; where there are too many, the oldest one ends."""
        while len(self._here) >= self._most:
            oldest = next(iter(self._here))
            del self._here[oldest]
            oldest.abort()
        self._here[transport] = None

    def leave(self, transport: Any) -> None:
        """A connection has asked for something, or has ended."""
        self._here.pop(transport, None)


class Door(asyncio.Protocol):
    """Shakes hands (TLS) before ``inner`` is told of a connection, within so many seconds."""

    def __init__(
        self, inner: asyncio.Protocol, context: ssl.SSLContext, newcomers: Newcomers, seconds: float
    ) -> None:
        self._inner = inner
        self._context = context
        self._newcomers = newcomers
        self._seconds = seconds
        self._early: list[bytes] = []
        self._shaking: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to shake hands."""
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        self._newcomers.enter(transport)
        self._shaking = asyncio.ensure_future(self._shake(transport))

    def data_received(self, data: bytes) -> None:
        """Keep what comes at once behind the handshake."""
        self._early.append(data)

    async def _shake(self, transport: asyncio.Transport) -> None:
        try:
            secure = await asyncio.get_running_loop().start_tls(
                transport, self, self._context, server_side=True, ssl_handshake_timeout=self._seconds
            )
        except (OSError, ssl.SSLError, asyncio.CancelledError):
            transport.abort()
            return
        finally:
            self._newcomers.leave(transport)
        if secure is None or secure.is_closing():
            return
        with suppress(ConnectionError):
            secure.set_protocol(self._inner)
            self._inner.connection_made(secure)
            for data in self._early:
                if secure.is_closing():  # it was turned away
                    break
                self._inner.data_received(data)
