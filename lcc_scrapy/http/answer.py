"""One answer out of a stream of bytes, without I/O: any cutting of the stream gives the same answer."""

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

HEAD_MAX = 64 * 1024
"""Bytes of all heads and trailers of an answer, and of what else brings nothing."""

FIELDS_MAX = 256
"""Header fields of an answer, trailers and informational answers before it included."""

INFORMATIONAL = 20
"""Answers of status 1xx that may come before the real one."""

CHUNK_FRAME = 8
"""Bytes that may come on top for each byte of a body: the frame of a chunk that holds no more."""

_SMALL = 512
"""Bytes of a piece below which it joins the next one: nobody is to handle chunks of one byte one by one."""

_OK = 200
_LEAST_STATUS = 100
_NOTED = frozenset({b"content-type", b"content-encoding", b"content-length", b"transfer-encoding"})


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
    ``keep`` tells when it is complete whether another request may follow.
    """

    def __init__(self) -> None:
        parser = HttpResponseParser(self)
        parser.set_dangerous_leniencies(  # broken servers that everybody else reads, too
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._parser = parser
        self.begin()

    def begin(self, *, bodiless: bool = False) -> None:
        """Expect a further answer. ``bodiless``: it is one to HEAD, or has no end of its own (CONNECT)."""
        self.status = 0
        self.version = ""
        self.headers: list[tuple[bytes, bytes]] = []
        self.headed = self.complete = self.keep = False
        self.arrived = 0
        self._reason = b""
        self._noted: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []
        self._small = bytearray()
        self._bodiless = bodiless
        self._informational = self._fields = self._bulk = self._fed = 0

    @property
    def reason(self) -> str:
        """The words behind the status; may be empty."""
        return self._reason.decode("latin-1")

    @property
    def empty(self) -> bool:
        """Tell whether nothing at all came yet."""
        return not self._fed

    def field(self, name: bytes) -> str:
        """Return one of the fields that matter here (lower case); several lines are joined by commas."""
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
        self._fed += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            cause = error.__context__
            raise cause if isinstance(cause, HttpError) else self.bad(str(error)) from None
        if not self.complete and self._fed - self.arrived * (1 + CHUNK_FRAME) > HEAD_MAX:
            raise self.bad(f"more than {HEAD_MAX} bytes that bring nothing")

    def end(self) -> None:
        """Note that the connection has ended; raises unless that is how this answer ends, or has."""
        if self.complete:
            return
        if self.empty:
            raise Unanswered("the connection was closed without an answer")
        if not self.headed or self._has_an_end():
            raise self.bad("the connection was closed before the end of the answer")
        self.complete = True

    def bad(self, text: str) -> HttpError:
        """Return what is wrong, as an error of the head or of the body."""
        return BadBody(text) if self.headed else BadHead(text)

    def _has_an_end(self) -> bool:
        return b"content-length" in self._noted or self._noted.get(b"transfer-encoding") == b"chunked"

    # --- what the parser calls -------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Nobody asked for a second answer."""
        if self.complete:
            raise BadBody("something stands behind the answer")

    def on_status(self, reason: bytes) -> None:
        """Note the words, which come in pieces."""
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a field; those of trailers count and are not kept."""
        self._fields += 1
        self._bulk += len(name) + len(value)
        if self._fields > FIELDS_MAX or self._bulk > HEAD_MAX:
            raise self.bad(f"more than {HEAD_MAX} bytes or {FIELDS_MAX} fields of head")
        if self.headed:
            return
        if b"\0" in value:
            raise BadHead("NUL in a header field")
        value = value.rstrip(b" \t")
        self.headers.append((name, value))
        lower = name.lower()
        if lower in _NOTED:
            before = self._noted.get(lower)
            self._noted[lower] = value if before is None else _joined(lower, before, value)

    def on_headers_complete(self) -> None:
        """Judge the head; informational answers are forgotten."""
        status = self._parser.get_status_code()
        if status < _OK:
            self._pass_over(status)
            return
        coding = self._noted.get(b"transfer-encoding", b"").lower()
        if coding not in {b"", b"identity", b"chunked"}:
            raise BadHead(f"transfer coding {coding.decode('latin-1')[:40]!r}")
        if coding:
            self._noted[b"transfer-encoding"] = coding
        self.status = status
        self.version = self._parser.get_http_version()
        self.headed = True
        self.complete = self._bodiless

    def _pass_over(self, status: int) -> None:
        self._informational += 1
        if status < _LEAST_STATUS or status == 101 or self._informational > INFORMATIONAL:  # noqa: PLR2004
            raise BadHead(f"status {status} that nobody asked for, or too many of it")
        self.headers, self._noted, self._reason = [], {}, b""

    def on_body(self, piece: bytes) -> None:
        """Keep a piece until it is taken."""
        self.arrived += len(piece)
        if self._bodiless:
            return
        if len(piece) < _SMALL:
            self._small += piece
            return
        self._gather()
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """Note the end, but not that of an informational answer."""
        if self.headed and not self._bodiless:
            self.complete = True
            self.keep = self._parser.should_keep_alive()


def _joined(name: bytes, before: bytes, value: bytes) -> bytes:
    """Make one of two lines; of types, which cannot be a list, the first one counts."""
    return before if name == b"content-type" else before + b"," + value
