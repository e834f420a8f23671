"""Content files of other machines, got from the `lcc files` that runs there.

Which machine is where, machines registered in the LCC's own database, or the operator says so
(``LCC_FILES_MACHINES``), so private addresses are as good as any. A redirect is an error.
"""

import asyncio
import io
import threading
from collections.abc import Callable, Coroutine
from typing import IO, Any, TypeVar
from urllib.parse import urlsplit

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.content import ContentElsewhere
from lcc_scrapy.http.answer import HttpError
from lcc_scrapy.http.connection import Connection
from lcc_scrapy.http.outgoing import NoConnection, Outgoing, tls_context
from lcc_scrapy.http.pool import Pool
from lcc_scrapy.http.request import Origin, Request

CONNECTIONS = 20
SILENCE = 30.0
"""Seconds that another machine has to connect, to answer, and between two pieces of a file."""

_BLOCK = 256 * 1024
_OK, _NOT_THERE = 200, 404

T = TypeVar("T")


class OtherMachines:
    """A ``feed.content.Content`` of other machines; ``address_of`` says where each is (None = not known).

    It may be used by several threads at a time; a thread of its own, begun when first needed, does the rest.
    """

    def __init__(self, address_of: Callable[[int], str | None], token: str) -> None:
        self._address_of = address_of
        self._token = token
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._way_out: Outgoing | None = None

    def open(self, row: CachedUrl | Version) -> IO[bytes]:
        """Return a content as it is stored; raises ``FileNotFoundError`` or ``ContentElsewhere``."""
        machine = row.fetched_machineid
        address = self._address_of(machine)
        if address is None:
            raise ContentElsewhere(
                f"the content of document {row.docid} lies on machine {machine}:"
                " start `lcc files` there, mount its content folder, or name it in LCC_FILES_MACHINES"
            )
        url = f"{address}/v1/files/{machine}/{row.fetched_fileid}"
        try:
            connection = self._run(self._ask(url))
        except (HttpError, NoConnection, TimeoutError, ValueError) as error:
            raise ContentElsewhere(f"machine {machine} does not answer ({url}): {_told(error)}") from error
        status = connection.answer.status
        if status == _OK:
            return io.BufferedReader(_Remote(url, connection, self._run, self._give_back), _BLOCK)
        self._give_back(connection)
        if status == _NOT_THERE:
            raise FileNotFoundError(url)
        raise ContentElsewhere(f"machine {machine} refuses its files ({url}): {status}")

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        if self._way_out is not None:
            asyncio.run_coroutine_threadsafe(self._way_out.close(), loop).result(SILENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _give_back(self, connection: Connection) -> None:
        """End an exchange soon, in the loop, which may have ended."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._pool().release, connection)

    def _pool(self) -> Pool:
        if self._way_out is None:
            self._way_out = Outgoing(CONNECTIONS, tls_context())
        return self._way_out.pool(private=True)

    async def _ask(self, url: str) -> Connection:
        return await self._pool().ask(_request(url, self._token), patience=SILENCE, deadline=0.0)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="files", daemon=True)
                self._thread.start()
            loop = self._loop
        return asyncio.run_coroutine_threadsafe(work, loop).result()


class _Remote(io.RawIOBase):
    """The body of an answer, read as it comes; one that is cut off is an error."""

    def __init__(
        self,
        url: str,
        connection: Connection,
        run: Callable[[Coroutine[Any, Any, list[bytes]]], list[bytes]],
        give_back: Callable[[Connection], None],
    ) -> None:
        self._url = url
        self._connection = connection
        self._run = run
        self._give_back = give_back
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
            return b"".join(self._run(self._connection.more()))
        except HttpError as error:
            raise ContentElsewhere(f"{self._url} was cut off: {_told(error)}") from error

    def close(self) -> None:
        """Give the connection back."""
        if not self.closed:
            self._give_back(self._connection)
        super().close()


def _request(url: str, token: str) -> Request:
    """Return the request for a file; raises ``ValueError`` where the address is none."""
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    origin = Origin(parts.hostname or "", parts.port or (443 if tls else 80), tls)
    shown = [(b"Authorization", b"Bearer " + token.encode()), (b"Accept-Encoding", b"identity")]
    return Request(origin, parts.path, shown)


def _told(error: BaseException) -> str:
    return str(error) or type(error).__name__
