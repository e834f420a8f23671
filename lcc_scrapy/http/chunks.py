"""The chunked transfer coding (RFC 9112 section 7.1), as browsers, curl and wget read it. No I/O.

A line may end with a bare LF, blanks may follow a size, an extension may be empty, and trailers may be
malformed, because the body is whole before them. Any of this clears ``exact``. Data that is not followed by a
line break is an error: nobody can know where the next chunk begins.
"""

import re
from collections.abc import Callable

from lcc_scrapy.http.head import Malformed

FRAMES_MAX = 64 * 1024
"""Bytes of frames and trailers that bring nothing."""

CHUNK_FRAME = 8
"""Bytes that may come on top for each byte of a body: the frame of a chunk that holds no more."""

_SURELY_FEW = FRAMES_MAX // 2
"""Bytes of frames below which they need not be counted line by line."""

_SIZE, _DATA, _BREAK, _TRAILERS, _END = range(5)
_USUAL = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_EXACT_SIZE = re.compile(rb"(?=[0-9A-Fa-f])0*+([0-9A-Fa-f]{0,15}+)[ \t]*+(?:;[\t -~\x80-\xff]++)?\r")
_ANY_SIZE = re.compile(rb"(?=[0-9A-Fa-f])0*+([0-9A-Fa-f]{0,15}+)[ \t]*+(?:;[^\r\0]*+)?\r?")
_TRAILER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\r\0]*\r")


class Chunks:
    """Reads one chunked body, and gives its pieces to ``put``. Any cutting gives the same."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self.exact = True
        self._put = put
        self._state = _SIZE
        self._left = 0
        self._line = bytearray()
        self._spent = 0

    @property
    def complete(self) -> bool:
        """Tell whether body and trailers have ended."""
        return self._state == _END

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; returns what stands behind the end. Raises ``Malformed``."""
        at = 0
        while at < len(data) and self._state != _END:
            if self._state == _SIZE and not self._line:
                at = self._usual(data, at)
            if at < len(data):
                at = self._data(data, at) if self._state == _DATA else self._frame(data, at)
        return data[at:]

    def _usual(self, data: bytes, at: int) -> int:
        """Read whole chunks without anything odd, as fast as Python can; returns where they end."""
        match, put, spent = _USUAL.match, self._put, self._spent
        while (found := match(data, at)) is not None:
            begin, size = found.end(), int(found[1], 16)
            end = begin + size
            spent += begin - at + 2 - CHUNK_FRAME * size
            if not size or spent > _SURELY_FEW or data[end : end + 2] != b"\r\n":
                break
            put(data[begin:end])
            at, self._spent = end + 2, spent
        return at

    def _data(self, data: bytes, at: int) -> int:
        piece = data[at : at + self._left]
        self._left -= len(piece)
        self._spent -= CHUNK_FRAME * len(piece)
        self._put(piece)
        if not self._left:
            self._state = _BREAK
        return at + len(piece)

    def _frame(self, data: bytes, at: int) -> int:
        """Read a line, or the beginning of one."""
        end = data.find(b"\n", at) + 1 or len(data)
        self._spent += end - at
        if max(self._spent, len(self._line) + end - at) > FRAMES_MAX:
            raise Malformed(f"more than {FRAMES_MAX} bytes of frames that bring nothing")
        if self._line or data[end - 1] != 0x0A:  # noqa: PLR2004 - LF
            self._line += data[at:end]
            if self._state == _BREAK and bytes(self._line) not in {b"\r", b"\r\n", b"\n"}:
                raise Malformed("a chunk is longer than its size")
            if self._line[-1] != 0x0A:  # noqa: PLR2004
                return end
            line = bytes(self._line[:-1])
            self._line.clear()
        else:
            line = data[at : end - 1]
        self._take(line)
        return end

    def _take(self, line: bytes) -> None:
        if self._state == _SIZE:
            self._begin(line)
        elif self._state == _BREAK:
            if line not in {b"\r", b""}:
                raise Malformed("a chunk is longer than its size")
            self.exact &= line == b"\r"
            self._state = _SIZE
        else:
            self._end_or_trailer(line)

    def _begin(self, line: bytes) -> None:
        found = _EXACT_SIZE.fullmatch(line)
        if found is None:
            self.exact = False
            found = _ANY_SIZE.fullmatch(line)
        if found is None:
            raise Malformed(f"size of a chunk {line[:40]!r}")
        self._left = int(found[1] or b"0", 16)
        self._state = _DATA if self._left else _TRAILERS

    def _end_or_trailer(self, line: bytes) -> None:
        if _TRAILER.fullmatch(line):
            return
        self.exact &= line == b"\r"
        self._state = _END
