"""Sites whose answers are followed by bytes that nobody asked for; every page says which one it is."""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

POISON = b"poison"
STRAYS: dict[str, bytes] = {
    "a whole answer": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\npoison",
    "an answer in chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\npoison\r\n0\r\n\r\n",
    "an answer without a length": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\npoison",
    "an answer that never ends": b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\npoison",
    "a redirect": b"HTTP/1.1 302 Found\r\nLocation: /poison\r\nContent-Length: 0\r\n\r\n",
    "a 404": b"HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\npoison",
    "a 304": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "a 408": b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    "a body": b"<html><body>" + POISON + b"</body></html>",
    "a long body": b"<p>" + POISON * 3000,
    "the end of chunks": b"0\r\n\r\n",
    "an empty line": b"\r\n",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "early hints": b"HTTP/1.1 103 Early Hints\r\nLink: </poison>\r\n\r\n",
    "NUL": b"\0",
}


def body_of(port: int, path: str) -> bytes:
    return f"<p>{port} {path}</p>".encode() * 20


def answer_to(port: int, path: str) -> bytes:
    """Return the answer to a request, of a kind that its number gives: pages, and what has no body."""
    body, kind = body_of(port, path), int(path.rpartition("/")[2]) % 6
    if kind == 0:
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (
            len(body),
            body,
        )
    if kind == 1:
        return b"HTTP/1.1 304 Not Modified\r\nETag: %b\r\n\r\n" % mark_of(port, path)
    if kind == 2:
        where = mark_of(port, path)
        return b"HTTP/1.1 302 Found\r\nLocation: /%b\r\nETag: %b\r\nContent-Length: 0\r\n\r\n" % (
            where,
            where,
        )
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: %b\r\n" % mark_of(port, path)
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def mark_of(port: int, path: str) -> bytes:
    return f"{port}-{path.rpartition('/')[2]}".encode()


@dataclass
class LateSites:
    """So many sites; a share of their answers is followed by ``strays`` after 0 to ``latest`` seconds.

    ``behind_requests``: also when a request has come meanwhile that is not answered yet. Answers take ``think``
    seconds.
    """

    sites: int
    share: float
    latest: float
    seed: int
    strays: Sequence[bytes] = tuple(STRAYS.values())
    think: float = 0.0
    behind_requests: bool = False
    sent: Counter[str] = field(default_factory=Counter)
    ports: list[int] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._random = random.Random(self.seed)
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(60)
        return self

    async def _listen(self) -> None:
        self._servers = [await asyncio.start_server(self._serve, "127.0.0.1", 0) for _ in range(self.sites)]
        self.ports = [server.sockets[0].getsockname()[1] for server in self._servers]

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        port = writer.get_extra_info("sockname")[1]
        self.sent["connections"] += 1
        busy = [False]
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                busy[0] = True
                if self.think:
                    await asyncio.sleep(self.think)
                writer.write(answer_to(port, head.split(b" ", 2)[1].decode()))
                busy[0] = False
                if self._random.random() < self.share:
                    self._loop.call_later(self._random.random() * self.latest, self._stray, writer, busy)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self._tasks.discard(task)

    def _stray(self, writer: asyncio.StreamWriter, busy: list[bool]) -> None:
        if writer.is_closing():
            self.sent["too late"] += 1
        elif busy[0] and not self.behind_requests:
            self.sent["held back"] += 1
        else:
            self.sent["before an answer" if busy[0] else "strays"] += 1
            writer.write(self._random.choice(self.strays))
