"""Content files of other machines, got from the `lcc files` that runs there.

Which machine is where, machines registered in the LCC's own database, or the operator says so
(``LCC_FILES_MACHINES``), so private addresses are as good as any. A redirect is an error.
"""

import asyncio
import io
import threading
from collections.abc import Callable, Coroutine
from typing import IO, Any, TypeVar

import aiohttp

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.outgoing import Outgoing, tls_context
from lcc_scrapy.users.content import ContentElsewhere

CONNECTIONS = 20
SILENCE = 30.0
"""Seconds that another machine has to connect, to answer, and between two pieces of a file."""

_BLOCK = 256 * 1024
_OK, _NOT_THERE = 200, 404

T = TypeVar("T")


class OtherMachines:
    """A ``users.content.Content`` of other machines; ``address_of`` says where each is (None = not known).

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
            answer = self._run(self._ask(url))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ContentElsewhere(f"machine {machine} does not answer ({url}): {_told(error)}") from error
        if answer.status != _OK:
            self._later(answer.close)
            if answer.status == _NOT_THERE:
                raise FileNotFoundError(url)
            raise ContentElsewhere(f"machine {machine} refuses its files ({url}): {answer.status}")
        return io.BufferedReader(_Remote(answer, self._run, self._later), _BLOCK)

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

    def _later(self, act: Callable[[], object]) -> None:
        """Do something soon in the loop, which may have ended."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(act)

    async def _ask(self, url: str) -> aiohttp.ClientResponse:
        if self._way_out is None:
            waits = aiohttp.ClientTimeout(total=None, connect=SILENCE, sock_read=SILENCE)
            self._way_out = Outgoing(CONNECTIONS, tls_context(), timeout=waits)
        session = self._way_out.session(private=True)
        shown = {"Authorization": f"Bearer {self._token}", "Accept-Encoding": "identity"}
        return await session.get(url, headers=shown, allow_redirects=False)

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
        answer: aiohttp.ClientResponse,
        run: Callable[[Coroutine[Any, Any, bytes]], bytes],
        later: Callable[[Callable[[], object]], None],
    ) -> None:
        self._answer = answer
        self._run = run
        self._later = later

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or a part of it; 0 = the end."""
        target = memoryview(buffer).cast("B")
        try:
            data = self._run(self._answer.content.read(len(target)))
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ContentElsewhere(f"{self._answer.url} was cut off: {_told(error)}") from error
        target[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Give the connection back."""
        if not self.closed:
            self._later(self._answer.close)
        super().close()


def _told(error: BaseException) -> str:
    return str(error) or type(error).__name__
