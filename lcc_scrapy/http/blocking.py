"""Exchanges for threads that may wait: an event loop in a thread of its own does them, begun when needed."""

import asyncio
import io
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from lcc_scrapy.http.answer import HttpError
from lcc_scrapy.http.connection import Connection
from lcc_scrapy.http.draining import drained
from lcc_scrapy.http.outgoing import Outgoing, tls_context
from lcc_scrapy.http.pool import Pool
from lcc_scrapy.http.request import Request

_CLOSING = 30.0

T = TypeVar("T")


class Exchanges:
    """Requests to hosts that an operator named, so private addresses are as good as any.

    It may be used by several threads at a time. ``connections`` may be in use at a time.
    """

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._way_out: Outgoing | None = None

    def ask(self, request: Request, *, patience: float, deadline: float) -> Connection:
        """Send a request; the answer's head is there then. Times and errors are those of ``Pool.ask``."""

        async def ask() -> Connection:
            return await self._pool().ask(request, patience=patience, deadline=deadline)

        return self._run(ask())

    def more(self, connection: Connection) -> list[bytes]:
        """Return the next pieces of a body, none at its end; raises ``HttpError``."""
        return self._run(connection.more())

    def drained(self, connection: Connection) -> bytes:
        """Return what comes of a body that changes nothing of what its status says."""
        return self._run(drained(connection)).body

    def release(self, connection: Connection) -> None:
        """End an exchange soon, in the loop, which may have ended."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._pool().release, connection)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        if self._way_out is not None:
            asyncio.run_coroutine_threadsafe(self._way_out.close(), loop).result(_CLOSING)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _pool(self) -> Pool:
        if self._way_out is None:
            self._way_out = Outgoing(self._connections, tls_context())
        return self._way_out.pool(private=True)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="exchanges", daemon=True)
                self._thread.start()
            loop = self._loop
        return asyncio.run_coroutine_threadsafe(work, loop).result()


class Body(io.RawIOBase):
    """The body of an answer, read as it comes. One that is cut off is an error, which ``cut_off`` makes."""

    def __init__(
        self, exchanges: Exchanges, connection: Connection, cut_off: Callable[[HttpError], Exception]
    ) -> None:
        self._exchanges = exchanges
        self._connection = connection
        self._cut_off = cut_off
        self._unread = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or a part of it; 0 = the end."""
        if not self._unread:
            self._unread = memoryview(self._more())
        target = memoryview(buffer).cast("B")
        data, self._unread = self._unread[: len(target)], self._unread[len(target) :]
        target[: len(data)] = data
        return len(data)

    def _more(self) -> bytes:
        try:
            return b"".join(self._exchanges.more(self._connection))
        except HttpError as error:
            raise self._cut_off(error) from error

    def close(self) -> None:
        """Give the connection back."""
        if not self.closed:
            self._exchanges.release(self._connection)
        super().close()
