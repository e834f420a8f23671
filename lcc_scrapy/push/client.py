"""One conversation with a UNS: login, at most one set, close (seed 003 section 13).

The socket does not block: while a set goes out, answers are taken in, so that neither side ever waits for
the other with full buffers, and a set that is turned away early is not sent to its end. One thread, because
a TLS connection must not be read and written at the same time.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Union

from lcc_scrapy.push.answers import Answer, AnswerReader, NotAnAnswer
from lcc_scrapy.wire import writing
from lcc_scrapy.wire.messages import (
    Init,
    InitAccepted,
    InitRejected,
    SetAccepted,
    SetRejected,
    SetStart,
    UrlError,
)
from lcc_scrapy.wire.sockets import send_at_once

DEFAULT_PORT = 9000
LINGER = 5.0
"""Seconds to wait for the other side's goodbye."""

_RECEIVE = 64 * 1024
_WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

Verdict = Union[SetAccepted, SetRejected]


class Unreachable(Exception):
    """There is no UNS at that address, or its certificate is not trusted."""


class Lost(Exception):
    """The conversation ended, or stopped, before it was over."""


@dataclass(frozen=True)
class Address:
    """Where a UNS listens."""

    host: str
    port: int = DEFAULT_PORT

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read ``host``, ``host:port``, ``[v6]:port`` or a bare IPv6 address; raises ValueError."""
        host, port = text, ""
        if text.startswith("["):
            host, bracket, port = text[1:].partition("]")
            if not bracket or (port and not port.startswith(":")):
                raise ValueError(text)
            port = port[1:]
        elif text.count(":") == 1:
            host, _, port = text.partition(":")
        if not host or (port and not port.isdecimal()) or not 0 < int(port or DEFAULT_PORT) < 1 << 16:
            raise ValueError(text)
        return cls(host, int(port or DEFAULT_PORT))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def connect(address: Address, timeout: float, tls: ssl.SSLContext | None = None) -> Conversation:
    """Open a conversation; ``timeout`` (seconds) bounds every wait. Raises `Unreachable`."""
    try:
        plain = socket.create_connection((address.host, address.port), timeout)
    except socket.gaierror as error:
        raise Unreachable(f"{address.host}: {error.strerror}") from None
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"cannot connect to {address}: {_reason(error)}") from None
    send_at_once(plain)
    if tls is None:
        return Conversation(plain, timeout)
    try:
        return Conversation(tls.wrap_socket(plain, server_hostname=address.host), timeout)
    except ssl.SSLCertVerificationError as error:
        plain.close()
        raise Unreachable(f"{address}: certificate not trusted: {error.verify_message}") from None
    except OSError as error:
        plain.close()
        raise Unreachable(f"{address}: no TLS: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


class Conversation:
    """A connection to a UNS; used once, from `login` to `close`."""

    def __init__(self, connection: socket.socket, timeout: float) -> None:
        self._socket = connection
        self._timeout = timeout
        self._reader = AnswerReader()
        self._login: InitAccepted | InitRejected | None = None
        self._verdict: Verdict | None = None
        self._on_error: Callable[[UrlError], None] = lambda _error: None
        self._ended = False
        self._whole = True
        connection.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ)

    def login(self, message: Init) -> InitAccepted | InitRejected:
        """Introduce oneself; raises `Unreachable` when this is no UNS, `Lost` when it goes away."""
        try:
            self._send(writing.init(message))
            while self._login is None and not self._ended:
                self._receive_or_wait()
        except NotAnAnswer as error:
            raise Unreachable(f"what answers there is no UNS ({error})") from None
        if self._login is None:
            hint = "" if isinstance(self._socket, ssl.SSLSocket) else " (does it expect --tls?)"
            raise Lost(f"the UNS closed the connection without an answer{hint}")
        return self._login

    def submit(self, start: SetStart, urls: Iterable[bytes], on_error: Callable[[UrlError], None]) -> Verdict:
        """Send a set; ``on_error`` is called for each refused URL as its refusal comes in.

        Raises `Lost` when there is no verdict: the set may have been taken or not.
        """
        self._on_error = on_error
        try:
            self._whole = self._send_all(start, urls)
            while self._verdict is None and not self._ended:
                self._receive_or_wait()
        except NotAnAnswer as error:
            raise Lost(f"the answer cannot be read ({error})") from None
        if self._verdict is None:
            raise Lost("the connection was lost before the UNS answered")
        return self._verdict

    def _send_all(self, start: SetStart, urls: Iterable[bytes]) -> bool:
        return (
            self._send(writing.set_start(start))
            and all(self._send(block) for block in _blocks(urls))
            and self._send(writing.set_end())
        )

    def _send(self, data: bytes) -> bool:
        """Send some bytes; False when there is no point any more: a verdict came, or the end."""
        rest = memoryview(data)
        while rest:
            while self._receive():
                pass
            if self._verdict is not None or self._ended or isinstance(self._login, InitRejected):
                return False
            try:
                rest = rest[self._socket.send(rest) :]
            except ssl.SSLWantReadError:
                self._wait(selectors.EVENT_READ)
            except _WOULD_BLOCK:
                self._wait(selectors.EVENT_READ | selectors.EVENT_WRITE)
            except OSError:
                self._hear_out()
                return False
        return True

    def _hear_out(self) -> None:
        """Sending failed; the reason may still be waiting to be read."""
        while self._verdict is None and not self._ended:
            self._receive_or_wait()

    def _receive_or_wait(self) -> None:
        if not self._receive() and not self._ended:
            self._wait(selectors.EVENT_READ)

    def _receive(self) -> bool:
        """Take in what has arrived; False when that is nothing."""
        if self._ended:
            return False
        try:
            data = self._socket.recv(_RECEIVE)
        except _WOULD_BLOCK:
            return False
        except OSError:
            data = b""
        self._ended = not data
        for answer in self._reader.feed(data):
            self._take(answer)
        return not self._ended

    def _take(self, answer: Answer) -> None:
        if isinstance(answer, UrlError):
            self._on_error(answer)
        elif isinstance(answer, (InitAccepted, InitRejected)):
            self._login = self._login or answer
        else:
            self._verdict = self._verdict or answer

    def _wait(self, events: int) -> None:
        self._selector.modify(self._socket, events)
        if not self._selector.select(self._timeout):
            raise Lost(f"the UNS did not answer for {self._timeout:g} seconds")

    def close(self) -> None:
        """Say goodbye, so that the UNS knows that everything was read; nothing is raised."""
        self._selector.close()
        with suppress(OSError, ValueError):
            if self._whole and not self._ended:
                self._part()
        self._socket.close()

    def _part(self) -> None:
        deadline = time.monotonic() + LINGER
        self._socket.settimeout(LINGER)
        if isinstance(self._socket, ssl.SSLSocket):
            self._socket = self._socket.unwrap()
        self._socket.shutdown(socket.SHUT_WR)
        while self._socket.recv(_RECEIVE) and time.monotonic() < deadline:
            pass


def _blocks(lines: Iterable[bytes]) -> Iterable[bytes]:
    """Put lines together to blocks of 64 KiB and more."""
    gathered: list[bytes] = []
    size = 0
    for line in lines:
        gathered.append(line)
        size += len(line)
        if size >= _RECEIVE:
            yield b"".join(gathered)
            gathered, size = [], 0
    yield b"".join(gathered)
