"""Reads one HTTP/1.1 response (RFC 9112), cut wherever it may be: bytes in, bytes of its body out."""

from __future__ import annotations

from collections.abc import Callable

HEAD_MAX = 64 * 1024
"""Bytes of the status line, headers and trailers together, those of interim (1xx) responses included."""
LINE_MAX = 16 * 1024
_CHUNK_DIGITS = 15


class NotHttp(Exception):
    """What came is no HTTP response, or one with a head beyond all bounds."""


class HttpReader:
    """`feed` raises `NotHttp`, after which the reader is of no more use."""

    def __init__(self) -> None:
        self.status = 0
        """0 = not read yet."""
        self.headers: dict[str, str] = {}
        """By their names in small letters; the last one of a name counts."""
        self.complete = False
        self._line = bytearray()
        self._size = 0
        self._left = 0
        self._chunked = self._until_close = False
        self._take_line: Callable[[bytes], None] = self._take_status

    @property
    def in_body(self) -> bool:
        """Tell whether the head was read."""
        return self.complete or self._left > 0 or self._until_close or self._chunked

    def feed(self, data: bytes) -> bytes:
        """Take in some bytes, b"" for the end of the connection; return what they bring of the body."""
        if not data:
            self.complete |= self._until_close
            return b""
        found, at = [], 0
        while at < len(data) and not self.complete:
            if self._left or self._until_close:
                piece = data[at : at + self._left] if self._left else data[at:]
                found.append(piece)
                at += len(piece)
                self._passed(len(piece))
            else:
                at = self._read_line(data, at)
        return b"".join(found)

    def _passed(self, count: int) -> None:
        if self._left:
            self._left -= count
            self.complete = not self._left and not self._chunked

    def _read_line(self, data: bytes, at: int) -> int:
        end = data.find(b"\n", at) + 1 or len(data)
        self._line += data[at:end]
        if len(self._line) > LINE_MAX:
            raise NotHttp("a line without an end")
        if self._line.endswith(b"\n"):
            line, self._line = bytes(self._line).strip(), bytearray()
            self._take_line(line)
        return end

    def _bounded(self, line: bytes) -> None:
        self._size += len(line) + 2
        if self._size > HEAD_MAX:
            raise NotHttp(f"more than {HEAD_MAX} bytes of headers")

    def _take_status(self, line: bytes) -> None:
        self._bounded(line)
        version, _, rest = line.partition(b" ")
        digits = rest[:3]
        if not version.startswith(b"HTTP/1.") or not digits.isdigit() or rest[3:4].strip():
            raise NotHttp("no HTTP response")
        self.status = int(digits)
        self._take_line = self._take_header

    def _take_header(self, line: bytes) -> None:
        self._bounded(line)
        if not line:
            self._begin_body()
            return
        name, _, value = line.decode("latin-1").partition(":")
        self.headers[name.strip().lower()] = value.strip()

    def _begin_body(self) -> None:
        if 100 <= self.status < 200:  # noqa: PLR2004 - interim responses
            self.headers, self._take_line = {}, self._take_status
            return
        length = self.headers.get("content-length", "")
        if self.status in {204, 304}:
            self.complete = True
        elif "chunked" in self.headers.get("transfer-encoding", "").lower():
            self._chunked, self._take_line = True, self._take_chunk_size
        elif length.isascii() and length.isdigit() and len(length) <= _CHUNK_DIGITS:
            self._left = int(length)
            self.complete = not self._left
        else:
            self._until_close = True

    def _take_chunk_size(self, line: bytes) -> None:
        digits = line.partition(b";")[0].strip()
        try:
            size = int(digits, 16) if len(digits) <= _CHUNK_DIGITS else -1
        except ValueError:
            size = -1
        if size < 0:
            raise NotHttp("a chunk without its size")
        self._left = size
        self._take_line = self._take_chunk_end if size else self._take_trailer

    def _take_chunk_end(self, line: bytes) -> None:
        if line:
            raise NotHttp("a chunk longer than its size")
        self._take_line = self._take_chunk_size

    def _take_trailer(self, line: bytes) -> None:
        self._bounded(line)
        self.complete = not line
