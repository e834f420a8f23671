"""A web server that answers byte for byte what a test tells it to, and remembers what it was asked."""

import asyncio
import datetime as dt
import math
import ssl
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Answer:
    """What one request gets: ``pieces`` with ``gap`` seconds between them, after ``wait`` seconds.

    ``held`` keeps the answer back until the event is set, ``last`` closes the connection behind it.
    """

    pieces: Sequence[bytes] = ()
    last: bool = True
    wait: float = 0.0
    gap: float = 0.0
    held: threading.Event | None = None


class Endless(Sequence[bytes]):
    """Pieces that never come to an end: a first one, then always the same."""

    def __init__(self, first: bytes, again: bytes) -> None:
        self._first, self._again = first, again

    def __len__(self) -> int:
        return 1 << 60

    def __getitem__(self, number: object) -> bytes:  # type: ignore[override]
        return self._again if number else self._first


@dataclass
class Visit:
    """One request; times are those of the monotonic clock, ``end`` is 0 while it is under way.

    ``cut``: the client went away before the answer was whole; ``end`` is then when this was noticed.
    """

    port: int
    path: str
    headers: dict[str, str]
    start: float
    together: int
    end: float = 0.0
    cut: bool = False

    @property
    def area(self) -> str:
        """The first part of the path: by it, tests give every provider a root of its own."""
        return self.path.split("/")[1]


def page(body: bytes | str, status: str = "200 OK", **headers: str) -> Answer:
    """Return a well-formed answer on a connection that stays open; ``content_type`` becomes Content-Type."""
    data = body.encode() if isinstance(body, str) else body
    fields = {"Content-Type": "text/html", "Content-Length": str(len(data))}
    fields |= {name.replace("_", "-").title(): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    return Answer((f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + data,), last=False)


def raw(*pieces: bytes, gap: float = 0.0) -> Answer:
    """Return an answer as it stands; the connection is closed behind it."""
    return Answer(pieces, gap=gap)


NOT_FOUND = page("nothing here", "404 Not Found")


def unknown_certificate(folder: Path) -> ssl.SSLContext:
    """Return what serves TLS with a certificate that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    plain = serialization.NoEncryption()
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def overlaps(visits: Sequence[Visit]) -> bool:
    """Tell whether any answer was under way when the next request came.

    The ends of whole answers are exact. When a client went away before the end is not known, only when this
    side noticed: such a visit overlaps none that began after it.
    """
    ordered = sorted(visits, key=lambda visit: visit.start)
    ends = accumulate((visit.start if visit.cut else visit.end or math.inf for visit in ordered), max)
    return any(later.start < end for end, later in zip(ends, ordered[1:], strict=False))


@dataclass
class Site:
    """Listens on as many ports of 127.0.0.1 as asked for; ``pages`` are by path, then by number of visit.

    A path behind a port (``8080/robots.txt``) is a page of that port alone.
    """

    pages: dict[str, list[Answer]] = field(default_factory=dict)
    visits: list[Visit] = field(default_factory=list)
    connections: Counter[int] = field(default_factory=Counter)

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._under_way: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(300)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(300)
        self._loop.close()

    def listen(self, tls: ssl.SSLContext | None = None, address: str = "127.0.0.1") -> int:
        """Open a further port and return its number."""
        starting = asyncio.start_server(self._serve, address, 0, ssl=tls)
        server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(300)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    @property
    def is_busy(self) -> bool:
        """Tell whether any answer is under way."""
        return any(self._under_way.values())

    def put(self, path: str, *answers: Answer) -> None:
        """Say what the next visits of a path get; the last answer goes on for ever."""
        self._asked[path] = 0
        self.pages[path] = list(answers)

    def asked(self, path: str) -> list[Visit]:
        """Return the visits of one path, or of all paths below one that ends in a slash."""
        whole = path.endswith("/")
        return [one for one in self.visits if one.path == path or (whole and one.path.startswith(path))]

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0.2)  # what was closed says goodbye at the next turns of the loop

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        port = int(writer.get_extra_info("sockname")[1])
        self.connections[port] += 1
        try:
            while await self._one(reader, writer, port):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            if writer.get_extra_info("sslcontext") is None:
                writer.close()
            else:
                writer.transport.abort()  # a TLS goodbye waits for an answer that may never come
            self._tasks.discard(task)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])
        }
        area = path.split("/")[1]
        self._under_way[area] += 1
        visit = Visit(port, path, headers, time.monotonic(), sum(self._under_way.values()))
        self.visits.append(visit)
        try:
            return await self._answer(reader, writer, self._next(port, path), visit)
        finally:
            if not visit.end:
                visit.end, visit.cut = time.monotonic(), True
            self._under_way[area] -= 1

    def _next(self, port: int, path: str) -> Answer:
        path = f"{port}{path}" if f"{port}{path}" in self.pages else path
        answers = self.pages.get(path, [NOT_FOUND])
        number = min(self._asked[path], len(answers) - 1)
        self._asked[path] += 1
        return answers[number]

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer, visit: Visit
    ) -> bool:
        await _pause(reader, answer.wait)
        while answer.held is not None and not answer.held.is_set():
            await _pause(reader, 0.05)
        for number, piece in enumerate(answer.pieces):
            if number:
                await _pause(reader, answer.gap)
            if number == len(answer.pieces) - 1:
                visit.end = time.monotonic()  # before the client can know of it, however busy this side is
            writer.write(piece)
            await writer.drain()
        return not answer.last


async def _pause(reader: asyncio.StreamReader, seconds: float) -> None:
    """Wait, but not for a client that went away."""
    if seconds:
        with suppress(TimeoutError):
            await asyncio.wait_for(reader.read(1), seconds)
            raise ConnectionResetError
