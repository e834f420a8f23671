"""Contents and exports on their way out: in pieces, as fast as the client takes them."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from io import BufferedWriter, RawIOBase
from typing import IO, Annotated, Any, TypeVar

import anyio
from anyio import CapacityLimiter, from_thread, to_thread
from anyio.streams.memory import MemoryObjectSendStream
from fastapi import Depends, Request
from fastapi.responses import StreamingResponse
from starlette.types import Send

from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.shares import Kind
from lcc_scrapy.web.access import Reading
from lcc_scrapy.web.problems import Busy
from lcc_scrapy.web.sharing import visit_of
from lcc_scrapy.web.working import Slot, current

PIECE = 64 * 1024
_WAITING = 8
"""Pieces of an export that wait for the client."""


_Piece = TypeVar("_Piece", str, bytes)


class Broken(Exception):
    """An answer cannot be completed; the client must see that it is not whole."""


def unless_broken(written: Iterable[_Piece]) -> Iterator[_Piece]:
    """Yield what an answer is written of; raises ``Broken`` when it cannot go on."""
    try:
        yield from written
    except LccError as error:
        raise Broken(str(error)) from error


async def pieces(stream: IO[bytes], part: range) -> AsyncIterator[bytes]:
    """Yield a part of a stream, which is closed at the end; raises ``Broken`` when it ends before."""
    left = len(part)
    try:
        await to_thread.run_sync(_skip, stream, part.start)
        while left:
            data = await to_thread.run_sync(stream.read, min(PIECE, left))
            if not data:
                raise Broken("the content file is shorter than its row says: run `lcc verify --repair`")
            left -= len(data)
            yield data
    except (OSError, LccError) as error:
        raise Broken(str(error)) from error
    finally:
        stream.close()


def _skip(stream: IO[bytes], count: int) -> None:
    if stream.seekable():
        stream.seek(count)
        return
    while count and (data := stream.read(min(PIECE, count))):
        count -= len(data)


async def _threads(request: Request, _: Reading) -> CapacityLimiter:
    """Return where an export may be written; raises ``Busy`` when as many are as may be, ``ShareUsedUp`` when
    as many are of the same client.
    """
    visit_of(request).begin(Kind.EXPORT)
    threads: CapacityLimiter = request.app.state.exports
    if threads.available_tokens < 1:
        count = int(threads.total_tokens)
        raise Busy(f"{count} exports or packages are being written already: ask again later")
    return threads


Threads = Annotated[CapacityLimiter, Depends(_threads)]
"""In which something long is written."""


class Written(StreamingResponse):
    """An answer that ``write`` writes into a file in a thread of its own.

    Each piece of it is made when it is its client's turn. It is held up while the client is; when the client
    is gone its next write fails.
    """

    def __init__(
        self, write: Callable[[IO[bytes]], object], threads: CapacityLimiter, **options: Any
    ) -> None:
        super().__init__((), **options)
        self._write = write
        self._threads = threads
        self._broken: Broken | None = None

    async def stream_response(self, send: Send) -> None:
        """Send what is written."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        putting, getting = anyio.create_memory_object_stream[bytes](_WAITING)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run, putting)
            async with getting:
                async for piece in getting:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        if self._broken is not None:
            raise self._broken
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _run(self, putting: MemoryObjectSendStream[bytes]) -> None:
        async with putting:
            slot = current.get()
            assert slot is not None, "only requests that take turns are answered like this"
            try:
                await slot.take_again()
                pipe = _Pipe(putting, slot)
                await to_thread.run_sync(partial(self._write_all, pipe), limiter=self._threads)
            except Broken as error:
                self._broken = error
            finally:
                slot.leave()

    def _write_all(self, pipe: "_Pipe") -> None:
        try:
            with BufferedWriter(pipe, PIECE) as out:
                self._write(out)
        except (OSError, LccError) as error:
            raise Broken(str(error)) from error


class _Pipe(RawIOBase):
    """A file whose writer, in a thread, waits for its reader on the event loop."""

    def __init__(self, putting: MemoryObjectSendStream[bytes], slot: Slot) -> None:
        self._putting = putting
        self._slot = slot

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """Pass a piece on; fails when the reader is gone."""
        try:
            from_thread.run(self._hand_over, bytes(data))
        except anyio.BrokenResourceError:
            raise BrokenPipeError("the client is gone") from None
        return len(data)

    async def _hand_over(self, piece: bytes) -> None:
        self._slot.leave()
        await self._putting.send(piece)
        await self._slot.take_again()
