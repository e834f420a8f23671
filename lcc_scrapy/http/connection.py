"""One connection: bytes and time. It serves one exchange at a time, and decides nothing about answers."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import cast

from lcc_scrapy.http.answer import Answer, HttpError

UNREAD = 256 * 1024
"""Bytes of body that may wait for their reader, and one read of the operating system's more."""

_NEVER = float("inf")


class Silence(HttpError):
    """Nothing came for too long, or not all of it in time."""


class Connection(asyncio.Protocol):
    """Sends requests and hands out the pieces of their answers. ``gone`` is called when it has ended.

    ``answer`` is that of the exchange under way, or of the last one.
    """

    def __init__(self, gone: Callable[["Connection"], None]) -> None:
        self.answer = Answer()
        self.peer = ""
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._error: HttpError | None = None
        self._asked = self._heard = self._paused = self._bounded = False
        self._patience = self._due = 0.0
        self._left = self._until = _NEVER
        self._unread = UNREAD
        self._taken = 0

    # --- the exchange ----------------------------------------------------------------------------

    async def ask(self, request: bytes, *, bodiless: bool, patience: float, deadline: float) -> None:
        """Send a request and wait for the head of its answer.

        ``patience``: seconds for the whole head, and later for the next piece; ``deadline``: seconds that the
        peer may be waited for in all, until the answer is complete; 0 = any. Seconds in which the reader
        waits for something else do not count. Raises ``HttpError``; who asked closes it then.
        """
        answer, self._asked, self._heard = self.answer, True, False
        answer.begin(bodiless=bodiless)
        self._taken = 0
        self._patience, self._left = patience, deadline or _NEVER
        self._due = self._loop.time() + patience
        if self._transport is None or self._transport.is_closing():
            self._hang_up()
        else:
            self._transport.write(request)
        while not answer.headed:
            await self._something()

    async def more(self) -> list[bytes]:
        """Return the next pieces of the body, none of them at its end; raises ``HttpError``."""
        answer = self.answer
        while True:
            pieces, self._taken = answer.take(), answer.arrived
            if self._paused:
                self._go_on()
            if pieces or (answer.complete and self._error is None):
                return pieces
            await self._something()

    def hold(self) -> None:
        """Read nothing before ``more`` is called again: the peer is held back by TCP meanwhile."""
        if not self._paused and not self.answer.complete:
            self._pause()

    async def _something(self) -> None:
        if self._error is not None:
            raise self._error
        began = self._loop.time()
        self._until = began + self._left
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
            self._left -= self._loop.time() - began

    def finish(self) -> bool:
        """End the exchange; returns whether another may follow. What is unread, nobody will read."""
        self._asked = False
        fit = self.answer.complete and self.answer.keep and self._error is None
        if not fit or not self.usable:
            self.close()
            return False
        if self._paused:
            self._go_on()
        return True

    @property
    def usable(self) -> bool:
        """Tell whether nothing is known to be wrong with it."""
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        """Close at once; nobody says goodbye in HTTP."""
        if self._transport is not None:
            self._transport.abort()

    async def within(self, tls: ssl.SSLContext, host: str, inner: "Connection") -> "Connection":
        """Speak TLS with ``host`` over this connection, in whose place ``inner`` then is."""
        assert self._transport is not None
        transport = await self._loop.start_tls(self._transport, inner, tls, server_hostname=host)
        assert transport is not None
        inner.connection_made(transport)
        return inner

    # --- time and amounts ------------------------------------------------------------------------

    def look(self, now: float) -> None:
        """Give the exchange up when it takes too long; to be called every now and then (loop's clock)."""
        if not self._asked or self.answer.complete or self._error is not None:
            return
        if self._waiter is not None and now >= self._until:
            self._fail(Silence("the answer took too long"))
        elif self._waiter is None or (self._heard and self.answer.headed):
            self._heard = False
            self._due = now + self._patience
        elif self._patience and now >= self._due:
            self._fail(Silence(f"nothing came for {self._patience:g} s"))

    def bound(self, window: int, largest: int) -> None:
        """Bound what the peer may send in advance to ``window`` bytes; 0 = as the system likes it.

        The system would take in megabytes that nobody reads yet. What was bounded once cannot be left to the
        system again, so it then keeps ``largest``.
        """
        if window or self._bounded:
            self._bounded = True
            self._unread = min(UNREAD, (window or largest) // 2)
            if self._transport is not None:
                inner = self._transport.get_extra_info("socket")
                inner.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window or largest)

    def _pause(self) -> None:
        self._paused = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _go_on(self) -> None:
        self._paused = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _fail(self, error: HttpError) -> None:
        self._error = error
        self.close()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- what the event loop calls ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the transport and where it leads."""
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.peer = str(peer[0]).partition("%")[0] if peer else ""

    def data_received(self, data: bytes) -> None:
        """Read on in the answer; what nobody asked for ends the connection."""
        answer = self.answer
        if not self._asked or answer.complete:
            self.close()
            return
        self._heard = True
        try:
            answer.feed(data)
        except HttpError as error:
            self._fail(error)
            return
        if answer.arrived - self._taken > self._unread and not self._paused and not answer.complete:
            self._pause()
        if answer.headed:
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """End: for some answers that is how they are complete."""
        self._transport = None
        self._hang_up(exc)
        self._gone(self)

    def _hang_up(self, exc: Exception | None = None) -> None:
        if self._asked and self._error is None:
            try:
                if exc is not None and not (self.answer.complete or self.answer.empty):
                    raise self.answer.bad(str(exc))
                self.answer.end()
            except HttpError as error:
                self._error = error
        self._wake()
