"""A site that answers byte for byte, with pauses and every kind of end: what real sites were seen to send.

``tests/integration/site.py`` serves tests of one request at a time. This one also sends behind the end of an answer,
and ends TLS without close_notify. Each connection has a thread, so that late bytes keep their time.
"""

import re
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Self

PATIENCE = 120.0
"""Seconds that a connection may stay idle."""


class End(Enum):
    """How an answer ends; over TLS ``CLOSE`` says close_notify and ``CUT`` does not."""

    KEEP = "keep"
    CLOSE = "close"
    CUT = "cut"


@dataclass(frozen=True)
class Reply:
    """What one request gets: bytes to send, and seconds to pause between them."""

    pieces: tuple[bytes | float, ...]
    end: End = End.KEEP

    @property
    def head(self) -> bytes:
        first = self.pieces[0] if self.pieces else b""
        return first if isinstance(first, bytes) else b""


@dataclass(frozen=True)
class Asked:
    """One request: ``path`` in ASCII, octets of other bytes percent-encoded; ``at`` of the monotonic clock."""

    port: int
    path: str
    headers: Mapping[str, str]
    at: float
    connection: int


Script = Sequence[Reply | Callable[[Asked], Reply]]
"""What the visits of a path get, one after the other; the last goes on for ever."""


def page(
    body: bytes, status: str = "200 OK", *lines: str, length: int | None = None, end: End = End.KEEP
) -> Reply:
    """Return an answer with a length; ``lines`` are added to its head, those of a field replace the usual one."""
    names = {line.partition(":")[0].lower() for line in lines}
    usual = ["Content-Type: text/html", f"Content-Length: {len(body) if length is None else length}"]
    fields = [line for line in usual if line.partition(":")[0].lower() not in names] + list(lines)
    head = "\r\n".join([f"HTTP/1.1 {status}", *(line for line in fields if not line.endswith(":")), "", ""])
    return Reply((head.encode("latin-1") + body,), end)


def raw(*pieces: bytes | float, end: End = End.CLOSE) -> Reply:
    return Reply(pieces, end)


NOTHING_HERE = page(b"nothing here", "404 Not Found")


@dataclass
class RealWebSite:
    """Listens on as many ports of 127.0.0.1 as asked for; scripts are by port and path."""

    scripts: dict[tuple[int, str], Script] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._listeners: list[socket.socket] = []
        self._connections: set[socket.socket] = set()
        self._opened = 0
        self._visits: Counter[tuple[int, str]] = Counter()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        return self

    def __exit__(self, *_: object) -> None:
        for listener in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for link in list(self._connections):
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(PATIENCE)

    def listen(self, tls: ssl.SSLContext | None = None) -> int:
        """Open a further port and return its number."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._listeners.append(listener)
        self._start(self._accept, listener, tls)
        return int(listener.getsockname()[1])

    def put(self, port: int, path: str, *script: Reply | Callable[[Asked], Reply]) -> None:
        """Say what the next visits of a path get."""
        with self._lock:
            self._visits[port, path] = 0
            self.scripts[port, path] = script

    def visits(self, port: int, path: str) -> list[Asked]:
        return [one for one in self.asked if (one.port, one.path) == (port, path)]

    def _start(self, what: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=what, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            link.settimeout(PATIENCE)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._opened += 1
            self._start(self._serve, link, tls, self._opened)

    def _serve(self, link: socket.socket, tls: ssl.SSLContext | None, number: int) -> None:
        self._connections.add(link)
        try:
            with suppress(OSError):
                if tls is not None:
                    link = tls.wrap_socket(link, server_side=True, suppress_ragged_eofs=True)
                    self._connections.add(link)
                while self._one(link, number):
                    pass
        finally:
            self._connections.discard(link)
            link.close()
            with suppress(ValueError):
                self._threads.remove(threading.current_thread())

    def _one(self, link: socket.socket, number: int) -> bool:
        head = _head_of(link)
        if not head:
            return False
        reply = self._reply(_parsed(head, link.getsockname()[1], number))
        for piece in reply.pieces:
            if isinstance(piece, bytes):
                link.sendall(piece)
            else:
                time.sleep(piece)
        if reply.end is End.KEEP:
            return True
        if reply.end is End.CLOSE and isinstance(link, ssl.SSLSocket):
            link.settimeout(5)
            link.unwrap()
        _leave(link)
        return False

    def _reply(self, asked: Asked) -> Reply:
        with self._lock:
            self.asked.append(asked)
            script = self.scripts.get((asked.port, asked.path), (NOTHING_HERE,))
            number = min(self._visits[asked.port, asked.path], len(script) - 1)
            self._visits[asked.port, asked.path] += 1
        step = script[number]
        return step if isinstance(step, Reply) else step(asked)


def _head_of(link: socket.socket) -> bytes:
    """Return the head of the next request; requests have no bodies here. Empty: the client has gone."""
    head = b""
    while b"\r\n\r\n" not in head:
        more = link.recv(65536)
        if not more:
            return b""
        head += more
    return head


def _parsed(head: bytes, port: int, number: int) -> Asked:
    first, *lines = head.decode("latin-1").split("\r\n")
    target = first.split(" ", 1)[1].rpartition(" ")[0]
    target = re.sub("^http://[^/]*", "", target)
    path = re.sub("[\x80-\xff ]", lambda found: f"%{ord(found[0]):02X}", target)
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    return Asked(port, path, headers, time.monotonic(), number)


def _leave(link: socket.socket) -> None:
    """Say goodbye by TCP alone, and let the client read all that was sent: a reset would take it away."""
    plain = link
    with suppress(OSError):
        socket.socket.shutdown(plain, socket.SHUT_WR)
        plain.settimeout(2)
        while socket.socket.recv(plain, 65536):
            pass
