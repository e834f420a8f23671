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
_NEXT = re.compile(rb"\r\n([0-9A-Fa-f]{1,8})\r\n")
_LAST = b"\r\n0\r\n\r\n"
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
            if self._state == _DATA:
                at = self._data(data, at)
            elif self._state == _SIZE and not self._line:
                at = self._size(data, at)
            else:
                at = self._frame(data, at)
        return data[at:]

    def _size(self, data: bytes, at: int) -> int:
        """Read a size, and its data; or the usual end of a body. Returns where they end."""
        found = _USUAL.match(data, at)
        if found is None or self._spent > _SURELY_FEW:
            return self._frame(data, at)
        end, self._left = found.end(), int(found[1], 16)
        if self._left:
            self._state = _DATA
            self._spent += end - at
            return self._data(data, end)
        if data.startswith(b"\r\n", end):
            self._state = _END
            return end + 2
        return self._frame(data, at)

    def _data(self, data: bytes, at: int) -> int:
        """Take data, and the usual chunks behind it; returns where they end.

        All of it is put as one piece, which is never longer than ``data``.
        """
        whole: list[bytes] = []
        if at + self._left + len(_LAST) < len(data):
            at = self._usual(data, at, whole)
        piece = data[at : at + self._left]
        at += len(piece)
        self._left -= len(piece)
        self._spent -= CHUNK_FRAME * len(piece)
        self._put(b"".join((*whole, piece)) if whole else piece)
        return at if self._left else self._break(data, at)

    def _usual(self, data: bytes, at: int, whole: list[bytes]) -> int:
        """Collect the data of usual chunks, as fast as Python can; returns where those of the last begin."""
        match, left, spent = _NEXT.match, self._left, self._spent
        while spent <= _SURELY_FEW and (found := match(data, at + left)) is not None:
            frame, size = found[0], int(found[1], 16)
            if not size:
                break
            whole.append(data[at : at + left])
            spent += len(frame) - CHUNK_FRAME * left
            at, left = found.end(), size
            step = len(frame) - CHUNK_FRAME * size
            while step <= 0 and data.startswith(frame, at + left):  # many servers send chunks of one size
                whole.append(data[at : at + left])
                spent += step
                at += len(frame) + left
        self._left, self._spent = left, spent
        return at

    def _break(self, data: bytes, at: int) -> int:
        """Pass over the usual line break behind the data of a chunk, if all of it came."""
        self._state = _BREAK
        if self._spent <= _SURELY_FEW and data.startswith(b"\r\n", at):
            self._spent += 2
            self._state = _SIZE
            at += 2
        return at

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
