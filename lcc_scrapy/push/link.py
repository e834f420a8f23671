"""A connection to a server: everything that arrives is taken in while something goes out.

The socket does not block. So neither side ever waits for the other with full buffers, and what the server
turns away early is not sent to its end. One thread, because a TLS connection must not be read and written
at the same time.

Deadlines count what the server does. What goes out may take any time, as long as the server goes on taking
it: an owner's line may be slow. An answer has `ANSWER_SECONDS` from the last byte of the question on, however
it drips.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address

from lcc_scrapy.wire.sockets import send_at_once

ANSWER_SECONDS = 120.0
"""Seconds for a whole answer, and for a connection; more where the user allows a longer silence."""
LINGER = 5.0
"""Seconds to wait for the other side's goodbye."""

_RECEIVE = 64 * 1024
_WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Unreachable(Exception):
    """There is no such server at that address, or its certificate is not trusted."""


class Lost(Exception):
    """The conversation ended, or stopped, before it was over."""


def is_local(host: str) -> bool:
    """Tell whether a host is this machine, by its name or address alone."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def connect(host: str, port: int, timeout: float, tls: ssl.SSLContext | None = None) -> socket.socket:
    """Connect; ``timeout`` (seconds) bounds every wait. Raises `Unreachable`."""
    name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        plain = _connected(host, port, timeout)
    except socket.gaierror as error:
        raise Unreachable(f"{host}: {error.strerror}") from None
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"cannot connect to {name}: {_reason(error)}") from None
    send_at_once(plain)
    if tls is None:
        return plain
    try:
        # without its goodbye (close_notify) the end of a connection is no end of what it brought
        return tls.wrap_socket(plain, server_hostname=host, suppress_ragged_eofs=False)
    except ssl.SSLCertVerificationError as error:
        plain.close()
        raise Unreachable(f"{name}: certificate not trusted: {error.verify_message}") from None
    except OSError as error:
        plain.close()
        raise Unreachable(f"{name}: no TLS: {_reason(error)}") from None


def _connected(host: str, port: int, timeout: float) -> socket.socket:
    """Try the addresses of a host, in order; their number is up to whoever runs its DNS."""
    end = time.monotonic() + max(timeout, ANSWER_SECONDS)
    problem: OSError = socket.gaierror(socket.EAI_NONAME, "no address")
    for family, kind, protocol, _, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        left = min(timeout, end - time.monotonic())
        if left <= 0:
            break
        made = socket.socket(family, kind, protocol)
        made.settimeout(left)
        try:
            made.connect(place)
        except OSError as error:
            made.close()
            problem = error
        else:
            made.settimeout(timeout)
            return made
    raise problem


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


class Link:
    """A connected socket. ``take`` gets the bytes that arrive, and b"" once at their end.

    ``timeout``: seconds of silence. ``whole``: seconds of an answer, at least ``timeout``.
    """

    def __init__(
        self,
        connection: socket.socket,
        timeout: float,
        take: Callable[[bytes], None],
        peer: str,
        *,
        whole: float = ANSWER_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.socket = connection
        self._timeout = timeout
        self._whole = max(timeout, whole)
        self._clock = clock
        self._take = take
        self._peer = peer
        self.ended = False
        self.was_cut = False
        """Whether it ended without a goodbye."""
        connection.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ)

    def send(self, data: bytes, settled: Callable[[], bool]) -> bool:
        """Send some bytes; False when there is no point any more: it is settled, or the other side left.

        Raises `Lost` when the server takes nothing for too long, whatever it sends meanwhile.
        """
        rest, end = memoryview(data), self._clock() + self._timeout
        while rest:
            brought = self.receive()
            if self.ended or settled():
                return False
            try:
                rest = rest[self.socket.send(rest) :]
                end = self._clock() + self._timeout
                continue
            except ssl.SSLWantReadError:
                events = selectors.EVENT_READ
            except _WOULD_BLOCK:
                events = selectors.EVENT_READ | selectors.EVENT_WRITE
            except OSError:
                # The reason may still be waiting to be read.
                self.receive_until(settled)
                return False
            if not brought:
                self._wait(events, end)
        return True

    def receive_until(self, settled: Callable[[], bool]) -> None:
        """Take in bytes until it is settled, or they end.

        Raises `Lost` when none come for too long, and when they do not end in time.
        """
        end = self._clock() + self._whole
        while not self.ended and not settled():
            if self._clock() > end:
                raise Lost(f"{self._peer} did not end its answer in {self._whole:g} seconds")
            if not self.receive() and not self.ended:
                self._wait(selectors.EVENT_READ, self._clock() + self._timeout)

    def receive(self) -> bool:
        """Take in what has arrived; False when that is nothing."""
        if self.ended:
            return False
        try:
            data = self.socket.recv(_RECEIVE)
        except _WOULD_BLOCK:
            return False
        except OSError:
            data, self.was_cut = b"", True
        self.ended = not data
        self._take(data)
        return not self.ended

    def _wait(self, events: int, end: float) -> None:
        left = end - self._clock()
        self._selector.modify(self.socket, events)
        if left <= 0 or not self._selector.select(left):
            raise Lost(f"{self._peer} did not answer for {self._timeout:g} seconds")

    def close(self, *, politely: bool) -> None:
        """Close; ``politely`` waits for the other side's goodbye. Nothing is raised."""
        self._selector.close()
        with suppress(OSError, ValueError):
            if politely and not self.ended:
                self._part()
        self.socket.close()

    def _part(self) -> None:
        deadline = time.monotonic() + LINGER
        self.socket.settimeout(LINGER)
        if isinstance(self.socket, ssl.SSLSocket):
            self.socket = self.socket.unwrap()
        self.socket.shutdown(socket.SHUT_WR)
        while self.socket.recv(_RECEIVE) and time.monotonic() < deadline:
            pass
