"""One conversation with a UNS: login, at most one set, close (seed 003 section 13)."""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, Union

from lcc_scrapy.push import link
from lcc_scrapy.push.answers import Answer, AnswerReader, NotAnAnswer
from lcc_scrapy.push.link import Lost, Unreachable
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

DEFAULT_PORT = 9000
_NO_HOST = re.compile(r"[\x00-\x20\x7f-\xa0/?#@\\\"'<>]")
_PORT = re.compile(r"[0-9]{1,10}")
_BLOCK = 64 * 1024

Verdict = Union[SetAccepted, SetRejected]


class Talk(Protocol):
    """One conversation with an LCC, from `login` to `close`."""

    def login(self, message: Init) -> InitAccepted | InitRejected:
        """Introduce oneself; raises `Unreachable` when this is no LCC, `Lost` when it goes away."""

    def submit(self, start: SetStart, urls: Iterable[bytes], on_error: Callable[[UrlError], None]) -> Verdict:
        """Send a set; ``on_error`` is called for each refused URL as its refusal comes in.

        Raises `Lost` when there is no verdict: the set may have been taken or not.
        """

    @property
    def later_login(self) -> InitAccepted | None:
        """What a second login was answered with, if this way needs another one for the set."""

    def close(self) -> None:
        """Say goodbye; nothing is raised."""


class Server(Protocol):
    """Where an LCC listens; its text is for people."""

    def connect(self, timeout: float, tls: ssl.SSLContext | None) -> Talk:
        """Open a conversation; ``timeout`` (seconds) bounds every wait. Raises `Unreachable`."""

    @property
    def logins_of_a_set(self) -> int:
        """How many logins a set takes after the first one."""


def connect(server: Server, timeout: float, tls: ssl.SSLContext | None = None) -> Talk:
    """Open a conversation; ``timeout`` (seconds) bounds every wait. Raises `Unreachable`."""
    return server.connect(timeout, tls)


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
        if (
            not host
            or _NO_HOST.search(host)
            or (port and not _PORT.fullmatch(port))
            or not 0 < int(port or DEFAULT_PORT) < 1 << 16
        ):
            raise ValueError(text)
        if ":" in host and not _is_ipv6(host):
            raise ValueError(text)
        return cls(host, int(port or DEFAULT_PORT))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def logins_of_a_set(self) -> int:
        """The login of the conversation is that of its set."""
        return 0

    def connect(self, timeout: float, tls: ssl.SSLContext | None = None) -> Conversation:
        """Open a conversation; ``timeout`` (seconds) bounds every wait. Raises `Unreachable`."""
        return Conversation(link.connect(self.host, self.port, timeout, tls), timeout)


def _is_ipv6(host: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
    except OSError:
        return False
    return True


class Conversation:
    """A connection to a UNS; used once, from `login` to `close`."""

    def __init__(
        self, connection: socket.socket, timeout: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._link = link.Link(connection, timeout, self._arrived, "the UNS", clock=clock)
        self._reader = AnswerReader()
        self._login: InitAccepted | InitRejected | None = None
        self._verdict: Verdict | None = None
        self._on_error: Callable[[UrlError], None] = lambda _error: None
        self._whole = True

    @property
    def later_login(self) -> None:
        """One login is enough."""

    def login(self, message: Init) -> InitAccepted | InitRejected:
        """Introduce oneself; raises `Unreachable` when this is no UNS, `Lost` when it goes away."""
        try:
            self._send(writing.init(message))
            self._link.receive_until(lambda: self._login is not None)
        except NotAnAnswer as error:
            raise Unreachable(f"what answers there is no UNS ({error})") from None
        if self._login is None:
            hint = "" if isinstance(self._link.socket, ssl.SSLSocket) else " (does it expect --tls?)"
            raise Lost(f"the UNS closed the connection without an answer{hint}")
        return self._login

    def submit(self, start: SetStart, urls: Iterable[bytes], on_error: Callable[[UrlError], None]) -> Verdict:
        """Send a set; ``on_error`` is called for each refused URL as its refusal comes in.

        Raises `Lost` when there is no verdict: the set may have been taken or not.
        """
        self._on_error = on_error
        try:
            self._whole = all(self._send(block) for block in blocks(start, urls, self._reader.is_sent))
            self._link.receive_until(lambda: self._verdict is not None)
        except NotAnAnswer as error:
            raise Lost(f"the answer cannot be read ({error})") from None
        if self._verdict is None:
            raise Lost("the connection was lost before the UNS answered")
        return self._verdict

    def _send(self, data: bytes) -> bool:
        return self._link.send(data, self._is_settled)

    def _is_settled(self) -> bool:
        return self._verdict is not None or isinstance(self._login, InitRejected)

    def _arrived(self, data: bytes) -> None:
        try:
            found = self._reader.feed(data)
        except NotAnAnswer:
            self._whole = False
            raise
        for answer in found:
            self._take(answer)

    def _take(self, answer: Answer) -> None:
        if isinstance(answer, UrlError):
            self._on_error(answer)
        elif isinstance(answer, (InitAccepted, InitRejected)):
            self._login = self._login or answer
        else:
            self._verdict = self._verdict or answer

    def close(self) -> None:
        """Say goodbye, so that the UNS knows that everything was read; nothing is raised."""
        self._link.close(politely=self._whole)


def blocks(
    start: SetStart, urls: Iterable[bytes], is_sent: Callable[[bytes], None] = lambda _block: None
) -> Iterable[bytes]:
    """Yield a set as blocks of 64 KiB and more; ``is_sent`` gets each of them before it goes out."""
    gathered = [writing.set_start(start)]
    size = 0
    for line in urls:
        gathered.append(line)
        size += len(line)
        if size >= _BLOCK:
            yield _noted(b"".join(gathered), is_sent)
            gathered, size = [], 0
    yield _noted(b"".join([*gathered, writing.set_end()]), is_sent)


def _noted(block: bytes, is_sent: Callable[[bytes], None]) -> bytes:
    is_sent(block)
    return block
