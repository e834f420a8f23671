"""gzip (RFC 1952) by several threads, beside whoever reads and frames what is to be compressed.

A member is cut into blocks, each of them compressed on its own with the end of the one before it as its
dictionary, as pigz does: any gunzip reads the result as one member. What comes out depends on the bytes that
went in, neither on the number of threads nor on how the bytes were cut when they were given.
"""

import os
import zlib
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from struct import pack
from typing import IO, Any

from lcc_scrapy.feed.exports.interface import LEVEL

BLOCK = 256 * 1024
"""Bytes that are compressed at a time: some milliseconds of work."""

_THREADS = min(4, len(os.sched_getaffinity(0)))
_WAITING = 8
"""Blocks that are given to the threads before the oldest one has to be done: the bound on memory."""

_DICTIONARY = 32 * 1024
_BEGIN = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
"""The head of a member: deflate, no time, no name, no system."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a member: what to write before and behind it, and what came before it in the same member."""

    head: bytes
    before: bytes
    data: bytes
    tail: bytes

    def compressed(self) -> bytes:
        """Return it as it stands in the file."""
        deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=self.before[-_DICTIONARY:])
        end = zlib.Z_FINISH if self.tail else zlib.Z_SYNC_FLUSH
        return b"".join((self.head, deflate.compress(self.data), deflate.flush(end), self.tail))


class Gzip:
    """A file that compresses what is written to it into members of a gzip file.

    ``out`` is written to in the caller's thread only, in order. Memory is bounded, whatever is written.
    """

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._threads = ThreadPoolExecutor(_THREADS, "gzip")
        self._running: deque[Future[bytes]] = deque()
        self._pieces: list[_Piece] = []
        self._to_give = 0
        self._begin()

    def _begin(self) -> None:
        self._data = bytearray()
        self._head, self._before = _BEGIN, b""
        self._crc = self._size = 0

    def write(self, data: Any) -> int:
        """Take bytes of the current member, which begins with them if there is none."""
        self._data += data
        while len(self._data) > BLOCK:
            self._cut(BLOCK)
        return len(data)

    def end_member(self) -> None:
        """Complete a member; what is written next begins another one."""
        self._cut(len(self._data), ends=True)
        self._begin()

    def flush(self) -> None:
        """Do nothing: what is written goes on when there is a block of it."""

    def close(self) -> None:
        """Write all members that were ended, and let the threads go; ``out`` stays open."""
        try:
            self._give()
            while self._running:
                self._take()
        finally:
            self._threads.shutdown(cancel_futures=True)

    def _cut(self, size: int, *, ends: bool = False) -> None:
        """Make a piece of the first bytes that wait."""
        with memoryview(self._data) as view:
            data = bytes(view[:size])
        del self._data[:size]
        self._crc, self._size = zlib.crc32(data, self._crc), self._size + size
        tail = pack("<LL", self._crc, self._size & 0xFFFFFFFF) if ends else b""
        self._pieces.append(_Piece(self._head, self._before, data, tail))
        self._head, self._before = b"", data
        self._to_give += size
        if self._to_give >= BLOCK:
            self._give()

    def _give(self) -> None:
        """Give a thread what there is to do: a piece, or small members together."""
        if self._pieces:
            self._running.append(self._threads.submit(_compressed, self._pieces))
        self._pieces, self._to_give = [], 0
        while len(self._running) > _WAITING:
            self._take()

    def _take(self) -> None:
        self._out.write(self._running.popleft().result())


def _compressed(pieces: Sequence[_Piece]) -> bytes:
    return b"".join(piece.compressed() for piece in pieces)
