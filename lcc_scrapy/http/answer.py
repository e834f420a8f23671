"""One answer out of a stream of bytes, without I/O: any cutting of the stream gives the same answer.

A head is collected until its empty line and then read as a whole (``head.py``); the body is cut out of the
stream by the framing that the head says (``chunks.py``). Bytes behind the answer are dropped, and no other
request may follow then.
"""

import re

from lcc_scrapy.http.chunks import Chunks
from lcc_scrapy.http.head import Fields, Head, Malformed, framing, joined, read_head

HEAD_MAX = 256 * 1024
"""Bytes of all heads of an answer, informational ones before it included; browsers read as much."""

FIELDS_MAX = 5000
"""Header fields of an answer, informational answers before it included."""

INFORMATIONAL = 20
"""Answers of status 1xx that may come before the real one."""

_SMALL = 512
"""Bytes of a piece below which it joins the next one: nobody is to handle chunks of one byte one by one."""

_OK = 200
_LEAST_STATUS, _SWITCHING = 100, 101
_EMPTY_LINE = re.compile(rb"\n\r{0,2}\n")
_LOOK_BACK = 3
"""Bytes of an empty line and the line break before it that may have come already."""

_BEGINNING = b"http/"
_USUAL_BEGINNING = b"HTTP/"


class HttpError(Exception):
    """There is no complete answer."""


class BadHead(HttpError):
    """What came is not HTTP, or its head is beyond all bounds."""


class Unanswered(BadHead):
    """The connection ended before anything of an answer came."""


class BadBody(HttpError):
    """The body was cut, is malformed, or is followed by what nobody asked for."""


class Answer:
    """Reads one answer after the other of one connection: ``begin``, then ``feed`` until ``complete``.

    ``headers`` are pairs as they came, ``arrived`` the bytes of the body so far, without frames of chunks.
    ``keep`` tells when it is complete whether another request may follow, ``followed`` whether bytes stood
    behind it that belong to no request.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self, *, bodiless: bool = False) -> None:
        """Expect a further answer. ``bodiless``: it is one to HEAD, or has no end of its own (CONNECT)."""
        self.status = 0
        self.version = ""
        self.headers: Fields = []
        self.headed = self.complete = self.keep = self.followed = False
        self.arrived = 0
        self._reason = b""
        self._noted: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []
        self._small = bytearray()
        self._bodiless = bodiless
        self._head = bytearray()
        self._chunks: Chunks | None = None
        self._left: int | None = None
        self._may_keep = True
        self._informational = self._fields = self._bulk = 0

    @property
    def reason(self) -> str:
        """The words behind the status; may be empty."""
        return self._reason.decode("latin-1")

    @property
    def empty(self) -> bool:
        """Tell whether nothing at all came yet."""
        return not (self._bulk or self._head)

    def field(self, name: bytes) -> str:
        """Return one of the fields that matter here (lower case); several lines are joined by commas.

        That is the type, the coding and the length of the body; empty = nothing that counts was said.
        """
        return self._noted.get(name, b"").decode("latin-1")

    def take(self) -> list[bytes]:
        """Return what came of the body since the last time."""
        self._gather()
        pieces, self._pieces = self._pieces, []
        return pieces

    def _gather(self) -> None:
        if self._small:
            self._pieces.append(bytes(self._small))
            self._small.clear()

    def feed(self, data: bytes) -> None:
        """Take the next bytes; raises ``BadHead`` or ``BadBody``. Pieces from before stay to be taken."""
        try:
            if not self.headed:
                data = self._look_for_head(data)
            if data and self.headed:
                self._take_body(data)
        except Malformed as error:
            raise self.bad(str(error)) from None

    def end(self) -> None:
        """Note that the connection has ended; raises unless that is how this answer ends, or has."""
        if self.complete:
            return
        if self.empty:
            raise Unanswered("the connection was closed without an answer")
        if not self.headed or self.has_end:
            raise self.bad("the connection was closed before the end of the answer")
        self.complete = True

    @property
    def has_end(self) -> bool:
        """Tell whether the head says where the body ends: else the connection does."""
        return self._left is not None or self._chunks is not None

    def bad(self, text: str) -> HttpError:
        """Return what is wrong, as an error of the head or of the body."""
        return BadBody(text) if self.headed else BadHead(text)

    # --- heads -----------------------------------------------------------------------------------

    def _look_for_head(self, data: bytes) -> bytes:
        """Read heads up to the last one; returns what stands behind it."""
        while data and not self.headed:
            end = self._whole_head(data)
            head, data = (data[:end], data[end:]) if end else self._collected(data)
            if head:
                self._bulk += len(head)
                self._take_head(read_head(head))
        return data

    def _whole_head(self, data: bytes) -> int:
        """Return where a head ends that came at once and begins as usual; 0 = it has to be collected."""
        if self._head or not data.startswith(_USUAL_BEGINNING):
            return 0
        found = _EMPTY_LINE.search(data)
        return found.end() if found and self._bulk + found.end() <= HEAD_MAX else 0

    def _collected(self, data: bytes) -> tuple[bytes, bytes]:
        """Collect a head; returns it when it is whole, else nothing, and what stands behind it."""
        if not self._head:
            data = self._without_blank_lines(data)
        held = len(self._head)
        self._head += data
        found = _EMPTY_LINE.search(self._head, max(0, held - _LOOK_BACK))
        end = found.end() if found else len(self._head)
        if self._bulk + end > HEAD_MAX:
            raise Malformed(f"more than {HEAD_MAX} bytes of head")
        start = self._head[: len(_BEGINNING)]
        if not _BEGINNING.startswith(start.lower()):
            raise Malformed(f"{bytes(start)!r} is no beginning of an answer")
        if found is None:
            return b"", b""
        head = bytes(self._head[:end])
        self._head.clear()
        return head, data[end - held :]

    def _without_blank_lines(self, data: bytes) -> bytes:
        rest = data.lstrip(b"\r\n")
        self._bulk += len(data) - len(rest)
        return rest

    def _take_head(self, head: Head) -> None:
        """Judge a head; informational answers are forgotten."""
        self._fields += len(head.fields)
        if self._fields > FIELDS_MAX:
            raise Malformed(f"more than {FIELDS_MAX} fields of head")
        self._may_keep &= head.keep
        if head.status < _OK:
            self._pass_over(head.status)
            return
        self._noted = joined(head.fields)
        if not self._bodiless:
            self._begin_body(head)
        self.status, self.version, self.headers, self._reason = (
            head.status,
            head.version,
            head.fields,
            head.reason,
        )
        self.headed = True
        if self._bodiless:
            self.complete = True
        elif self._left == 0:
            self._end_body()

    def _pass_over(self, status: int) -> None:
        self._informational += 1
        if status < _LEAST_STATUS or status == _SWITCHING or self._informational > INFORMATIONAL:
            raise Malformed(f"status {status} that nobody asked for, or too many of it")

    # --- body ------------------------------------------------------------------------------------

    def _begin_body(self, head: Head) -> None:
        found = framing(head, self._noted)
        self._may_keep &= found.exact
        self._left = found.length
        if found.length is not None:
            self._noted[b"content-length"] = b"%d" % found.length
        else:
            self._noted.pop(b"content-length", None)
        if found.chunked:
            self._chunks = Chunks(self._keep_piece)

    def _take_body(self, data: bytes) -> None:
        if self.complete:
            self.keep, self.followed = False, True
        elif self._chunks is not None:
            rest = self._chunks.feed(data)
            if self._chunks.complete:
                self._may_keep &= self._chunks.exact
                self._end_body(rest)
        elif self._left is None:
            self._keep_piece(data)
        else:
            piece, rest = data[: self._left], data[self._left :]
            self._left -= len(piece)
            self._keep_piece(piece)
            if not self._left:
                self._end_body(rest)

    def _keep_piece(self, piece: bytes) -> None:
        self.arrived += len(piece)
        if len(piece) < _SMALL:
            self._small += piece
            return
        self._gather()
        self._pieces.append(piece)

    def _end_body(self, behind: bytes = b"") -> None:
        self.complete, self.followed = True, bool(behind)
        self.keep = self._may_keep and not behind
