"""Reads one HTTP/1.1 response (RFC 9112), cut wherever it may be: bytes in, bytes of its body out.

It forgives what browsers forgive, as long as nobody can be in doubt where the body ends: its connection is
closed after it, so that nothing behind it counts. A line that cannot be read is left out, but not one that
may say how long the body is or how it is packed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

HEAD_MAX = 256 * 1024
"""Bytes of the status line and headers together, those of interim (1xx) responses included, and of all that
chunks have besides their sizes."""
FIELDS_MAX = 5000
"""Headers, of these too."""
LINE_MAX = 16 * 1024
"""Bytes of a status line, and of the line before a chunk."""

_SERVER_ERROR = 500
_NEVER = frozenset({501, 505})
"""Server errors that another try does not mend: the method, or HTTP, is unknown there."""
_CHUNK_DIGITS = 15
_STATUS = re.compile(rb"HTTP/1\.[0-9][ \t]+([0-9]{3})(?![0-9])", re.IGNORECASE)
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:(.*)", re.DOTALL)
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,%d}" % _CHUNK_DIGITS)
_DECISIVE = re.compile(rb"content-length|transfer-encoding|content-encoding", re.IGNORECASE)
_OF_LENGTH = frozenset({"content-length", "transfer-encoding"})
_SWITCHING, _NO_CONTENT, _REDIRECT, _UNCHANGED, _STATUSES = 101, 204, 300, 304, 600


class NotHttp(Exception):
    """What came is no HTTP response, or one with a head beyond all bounds."""


class HttpReader:
    """`feed` raises `NotHttp`, after which the reader is of no more use, unless its status `decides`."""

    def __init__(self) -> None:
        self.status = 0
        """0 = not read yet; one that HTTP does not have (600 to 999) is 500 (RFC 9110 section 15)."""
        self.said = ""
        """The status as it was sent."""
        self.headers: dict[str, str] = {}
        """By their names in small letters; the last one of a name counts."""
        self.complete = False
        self.until_close = False
        """Whether the end of the connection is that of the body."""
        self.has_head = False
        self._line = bytearray()
        self._size = self._fields = 0
        self._left = 0
        self._chunked = False
        self._lengths: set[str] = set()
        self._codings: list[str] = []
        self._before = b""
        self._take_line: Callable[[bytes], None] = self._take_status

    @property
    def decides(self) -> bool:
        """Tell whether the status says all, whatever becomes of the body."""
        return self.has_head and self.status >= _REDIRECT

    @property
    def is_passing(self) -> bool:
        """Tell whether it is a server error that may pass."""
        return self.status >= _SERVER_ERROR and self.status not in _NEVER

    def feed(self, data: bytes) -> bytes:
        """Take in some bytes, b"" for the end of the connection; return what they bring of the body."""
        if not data:
            self.complete |= self.until_close
            return b""
        found, at = [], 0
        while at < len(data) and not self.complete:
            if self._left or self.until_close:
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
        most = HEAD_MAX if self.status and not self.has_head else LINE_MAX
        if len(self._line) > most:
            raise NotHttp("a line without an end")
        if self._line.endswith(b"\n"):
            line, self._line = bytes(self._line).rstrip(b"\r\n"), bytearray()
            self._take_line(line)
        return end

    def _bounded(self, line: bytes) -> None:
        self._fields += 1
        if self._fields > FIELDS_MAX:
            raise NotHttp(f"more than {FIELDS_MAX} lines of headers")
        self._spend(len(line) + 2)

    def _spend(self, size: int) -> None:
        self._size += size
        if self._size > HEAD_MAX:
            raise NotHttp(f"more than {HEAD_MAX} bytes of headers")

    def _take_status(self, line: bytes) -> None:
        self._bounded(line)
        if not line.strip():
            return
        found = _STATUS.match(line.lstrip())
        status = int(found[1]) if found else 0
        if status < 100 or status == _SWITCHING:  # noqa: PLR2004 - the first of all
            raise NotHttp("no HTTP response")
        self.said = str(status)
        self.status = status if status < _STATUSES else _SERVER_ERROR
        self._take_line = self._take_header

    def _take_header(self, line: bytes) -> None:
        self._bounded(line)
        if not line.strip():
            self._begin_body()
            return
        field = _FIELD.fullmatch(line)
        if field is None:
            if _DECISIVE.search(line) or (line[:1].isspace() and _DECISIVE.match(self._before)):
                raise NotHttp("a header that cannot be read says how the body is sent")
            return
        self._before = field[1]
        name, value = field[1].decode("ascii").lower(), field[2].decode("latin-1").strip()
        self.headers[name] = value
        if name == "content-length":
            self._lengths.update(one.strip() for one in value.split(","))
        elif name == "transfer-encoding":
            self._codings += [one.strip().lower() for one in value.split(",")]

    def _begin_body(self) -> None:
        if self.status < 200:  # noqa: PLR2004 - interim responses
            self.headers, self._take_line = {}, self._take_status
            self._lengths, self._codings, self._before = set(), [], b""
            return
        self.has_head = True
        if self.status in {_NO_CONTENT, _UNCHANGED}:
            self.complete = True
        elif self._is_chunked():
            self._chunked, self._take_line = True, self._take_chunk_size
        else:
            self._begin_counted()

    def _is_chunked(self) -> bool:
        """Tell whether the body comes in chunks; said twice is said once, and "identity" says nothing."""
        codings = {one for one in self._codings if one not in {"", "identity"}}
        if codings - {"chunked"}:
            raise NotHttp("a transfer coding that nobody asked for")
        return bool(codings)

    def _begin_counted(self) -> None:
        lengths = self._lengths or {""}
        if len(lengths) > 1:
            raise NotHttp("two lengths")
        (length,) = lengths
        if not (length.isascii() and length.isdigit()):
            self.until_close = True
            return
        if len(length.lstrip("0")) > _CHUNK_DIGITS:
            raise NotHttp("a length beyond all bounds")
        self._left = int(length)
        self.complete = not self._left

    def _take_chunk_size(self, line: bytes) -> None:
        digits = line.partition(b";")[0].strip()
        self._spend(len(line) - len(digits))
        if not _SIZE.fullmatch(digits):
            raise NotHttp("a chunk without its size")
        self._left = int(digits, 16)
        self._take_line = self._take_chunk_end
        # nothing that follows the last chunk is needed: trailers say nothing here
        self.complete = not self._left

    def _take_chunk_end(self, line: bytes) -> None:
        if line.strip():
            raise NotHttp("a chunk longer than its size")
        self._take_line = self._take_chunk_size
