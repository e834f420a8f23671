"""One connection: bytes and time. It serves one exchange at a time, and decides nothing about answers.

A server may send bytes that belong to no request: a body behind a 304, more than its Content-Length, a second
answer. On a kept connection they would be read as the answer to the next request. They are noticed

* before a request is written, in the buffers of the system, too: the event loop may not have read them yet;
* while the server cannot have read the request, because its side has not acknowledged all of it;
* behind an answer, when it is complete, and for a little while behind one that comes much too soon.

Nothing surely tells bytes apart that look like an answer and come after the server's system has received a
request, but before its program answers it.
"""

import asyncio
import fcntl
import socket
import ssl
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import Any, cast

from lcc_scrapy.http.answer import Answer, BadBody, BadHead, HttpError

UNREAD = 256 * 1024
"""Bytes of body that may wait for their reader, and one read of the operating system's more."""

EARLY = 0.7
"""Share of the shortest time to an answer: one that comes sooner may not be that to its request."""

WATCHED = 1.0
"""Seconds at most for which it is waited for what may follow such an answer."""

GOODBYE = 31
"""Bytes at most that TLS takes to say that nothing follows."""

Accepts = Callable[[bytes], bool]
"""Says of the digest of a body whether that is good though it is ``Unclosed``."""

_NEVER = float("inf")

_AMOUNT = bytearray(1025)
"""Where the system writes an amount. With 1,024 bytes or less, each question would let other threads run."""

_TCP_INFO, _ESTABLISHED = getattr(socket, "TCP_INFO", -1), 1
"""The option of Linux whose first byte is the state of a connection, and the state of one that is open."""


class Unclosed(BadBody):
    """A body without a length came over TLS, which ended without saying so: it may be cut (RFC 9112 9.8)."""


class Silence(HttpError):
    """Nothing came for too long, or not all of it in time."""


class Connection(asyncio.Protocol):
    """Sends requests and hands out the pieces of their answers. ``gone`` is called when it has ended.

    ``answer`` is that of the exchange under way, or of the last one. ``reused``: it is not the first one.
    ``stray``: bytes came that nobody asked for.
    """

    def __init__(self, gone: Callable[["Connection"], None]) -> None:
        self.answer = Answer()
        self.peer = ""
        self.reused = self.stray = False
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
        self._fd = -1
        self._socket: Any = None
        self._tls: Any = None
        self._may_be_cut = False
        self._digest: Any = None
        self._sent = self._took = self._quickest = self._watch = 0.0
        self._accepts: Accepts = _never

    # --- the exchange ----------------------------------------------------------------------------

    async def ask(
        self,
        request: bytes,
        *,
        bodiless: bool,
        patience: float,
        deadline: float,
        accepts: Accepts | None = None,
    ) -> None:
        """Send a request and wait for the head of its answer.

        ``patience``: seconds for the whole head, and later for the next piece; ``deadline``: seconds that the
        peer may be waited for in all, until the answer is complete; 0 = any. Seconds in which the reader
        waits for something else do not count. ``accepts`` says whether a body is good though it is
        ``Unclosed``. Raises ``HttpError``; who asked closes it then.
        """
        answer, self._asked, self._heard = self.answer, True, False
        self.reused = answer.complete
        answer.begin(bodiless=bodiless)
        self._taken, self._digest, self._accepts = 0, None, accepts or _never
        self._patience, self._left = patience, deadline or _NEVER
        self._sent, self._watch = self._loop.time(), 0.0
        self._due = self._sent + patience
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
            if self._may_be_cut and not answer.has_end:
                self._note(pieces)
            if pieces or self._is_whole():
                return pieces
            await self._something()

    def _note(self, pieces: list[bytes]) -> None:
        """Go on with the digest of a body that only the end of its connection ends."""
        self._digest = self._digest or blake2b(digest_size=8)
        for piece in pieces:
            self._digest.update(piece)

    def _is_whole(self) -> bool:
        if isinstance(self._error, Unclosed) and self._accepts(self._digest.digest()):
            self._error = None
        return self.answer.complete and self._error is None

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
        fit = self.answer.complete and self.answer.keep and self._error is None and not self.stray
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

    def is_quiet(self) -> bool:
        """Tell whether another request may follow: it is usable, and nothing came since the last answer."""
        if not self.usable:
            return False
        if self._fd < 0 or not (_waiting(self._fd, termios.FIONREAD) or _has_ended(self._socket)):
            return True
        self._note_waiting()
        return False

    async def look_behind(self) -> None:
        """Note whether bytes came behind a complete answer, not the first one; the end of all is none."""
        if not (self.reused and self.answer.complete):
            return
        self._note_waiting()
        if self._watch and not self.stray and self.usable:
            self._waiter = self._loop.create_future()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._watch):
                    await self._waiter
            self._waiter = None
            if not self.stray:
                self._quickest, self._watch = self._took, 0.0

    @property
    def doubtful(self) -> bool:
        """Tell whether the answer may not be that to its request: it came much too soon, or not alone."""
        return self.stray or self._watch > 0

    def _note_waiting(self) -> None:
        self.stray = self.stray or self.answer.followed
        if not self.stray and self.usable and self._fd >= 0:
            self.stray = _waiting(self._fd, termios.FIONREAD) > (GOODBYE if self._tls else 0)

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
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window or largest)

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
        self._socket = inner = transport.get_extra_info("socket")
        self._fd = inner.fileno() if inner is not None else -1
        self._tls = transport.get_extra_info("ssl_object")
        self._may_be_cut = self._tls is not None

    def data_received(self, data: bytes) -> None:
        """Read on in the answer; what nobody asked for ends the connection."""
        answer = self.answer
        if not self._asked or answer.complete:
            self.stray = True
            self._wake()
            self.close()
            return
        try:
            if answer.empty:
                self._first_bytes()
            self._heard = True
            answer.feed(data)
        except HttpError as error:
            self._fail(error)
            return
        if answer.arrived - self._taken > self._unread and not self._paused and not answer.complete:
            self._pause()
        if answer.headed:
            self._wake()

    def _first_bytes(self) -> None:
        """Refuse what comes before the other side has received the request, and note what comes very soon."""
        self._took = self._loop.time() - self._sent
        if not self.reused:
            self._quickest = self._took
        elif self._took < self._quickest * EARLY:
            self._watch = min(2 * self._quickest, WATCHED)
        if self.reused and self._fd >= 0 and _waiting(self._fd, termios.TIOCOUTQ):
            self.stray = True
            raise BadHead("something came before the request had arrived")

    def eof_received(self) -> None:
        """Note whether TLS says that nothing follows: a cut connection ends without it."""
        if self._tls is not None:
            self._may_be_cut = not _said_goodbye(self._tls)

    def connection_lost(self, exc: Exception | None) -> None:
        """End: for some answers that is how they are complete."""
        self._transport, self._socket, self._fd = None, None, -1
        self._hang_up(exc)
        self._gone(self)

    def _hang_up(self, exc: Exception | None = None) -> None:
        if self._asked and self._error is None:
            try:
                if exc is not None and not (self.answer.complete or self.answer.empty):
                    raise self.answer.bad(str(exc))
                framed = self.answer.complete
                self.answer.end()
                if self._may_be_cut and not framed:
                    raise Unclosed("TLS ended without close_notify in a body without a length")
            except HttpError as error:
                self._error = error
        self._wake()


def _never(_: bytes) -> bool:
    return False


def _has_ended(tcp: Any) -> bool:
    """Tell whether nothing more can come."""
    try:
        state: int = tcp.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 1)[0]
    except OSError:  # not every system says this of every socket
        return False
    return state != _ESTABLISHED


def _waiting(fd: int, which: int) -> int:
    """Return the bytes that wait to be read (FIONREAD), or to be acknowledged (TIOCOUTQ)."""
    try:
        fcntl.ioctl(fd, which, _AMOUNT)
    except OSError:  # not every system says this of every socket
        return 0
    return int.from_bytes(_AMOUNT[:4], sys.byteorder)


def _said_goodbye(tls: Any) -> bool:
    try:
        return not tls.read(1)
    except ssl.SSLZeroReturnError:
        return True
    except ssl.SSLError:
        return False
