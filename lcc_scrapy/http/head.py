"""The head of an answer, whole, and where its body ends. No I/O.

llhttp reads the head first. It accepts only what every recipient reads alike, apart from lines that end
with a bare LF. A head that llhttp refuses is read once more, as browsers, curl and wget read it:

* blanks before a colon are stripped, folded lines are joined, other malformed lines are dropped;
* a malformed line with the name of a framing or coding field refuses the head: dropping it could change
  where the body ends, or what it is;
* nothing that is kept contains CR, LF or NUL.

The same rules of framing hold for both: equal lengths are one, chunks win over a length. No other request
may follow after a head that was read a second time, or whose framing is not ``exact`` (RFC 9112 section 6.3).
Only answers are read like this, never the requests to servers of our own.
"""

import re
from typing import NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

Fields = list[tuple[bytes, bytes]]

_STATUS_LINE = re.compile(rb"(?i:http)/([0-9]\.[0-9])[ \t]+([0-9]{3})(?![0-9])(.*)", re.DOTALL)
_FOLDS = tuple((end + blank, blank) for end in (b"\r\r\n", b"\r\n", b"\n") for blank in (b" ", b"\t"))
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FRAMING = (b"content-length", b"transfer-encoding", b"content-encoding")
_DIGITS = re.compile(rb"(?=[0-9])0*+([0-9]{0,18}+)")
_NOTED = frozenset({b"content-type", *_FRAMING})
_NO_BODY = frozenset({204, 304})
_KNOWN_CODINGS = frozenset({b"chunked", b"identity", b""})
_FIRST_WITH_CODINGS = "1.1"
_USUAL_DIGITS = 18


class Malformed(Exception):
    """This is no HTTP, or its end cannot be known."""


class Head(NamedTuple):
    """A status line and its fields, as they came. ``keep``: another request may follow, as far as it says."""

    status: int
    version: str
    reason: bytes
    fields: Fields
    keep: bool


class Framing(NamedTuple):
    """Where a body ends: ``chunked``, or after ``length`` bytes, or (None) with the connection.

    ``exact``: there is nothing in the head that another recipient could understand in another way.
    """

    chunked: bool
    length: int | None
    exact: bool


_CHUNKED = Framing(chunked=True, length=None, exact=True)


def read_head(data: bytes) -> Head:
    """Read one head, its empty line included; raises ``Malformed``."""
    if b"\0" in data:
        raise Malformed("NUL in the head")
    return _read_strictly(data) or _read_again(data)


class _Strict:
    """One head read by llhttp, which calls the methods ``on_...``."""

    __slots__ = ("_parser", "fields", "heads", "keep", "reason")

    def __init__(self) -> None:
        self.fields: Fields = []
        self.reason = b""
        self.heads = 0
        self.keep = False

    def read(self, data: bytes) -> HttpResponseParser:
        """Read a head; returns the parser, which knows the rest."""
        self._parser = parser = HttpResponseParser(self)
        try:
            parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)
            parser.feed_data(data)
        finally:
            del self._parser  # it refers to this object: as a cycle they would cost more than their work
        return parser

    def on_status(self, reason: bytes) -> None:
        self.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name, value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        self.heads += 1
        self.keep = self._parser.should_keep_alive()

    def on_body(self, _: bytes) -> None:
        self.heads += 1


def _read_strictly(data: bytes) -> Head | None:
    found = _Strict()
    try:
        parser = found.read(data)
    except (HttpParserError, HttpParserUpgrade):
        return None
    if found.heads != 1:
        return None
    return Head(parser.get_status_code(), parser.get_http_version(), found.reason, found.fields, found.keep)


def _read_again(data: bytes) -> Head:
    for fold, blank in _FOLDS:
        data = data.replace(fold, blank)
    first, *lines = data.split(b"\n")
    version, status, reason = _status_of(first.rstrip(b"\r"))
    read = (_field(line.rstrip(b"\r")) for line in lines)
    return Head(status, version, reason, [field for field in read if field is not None], keep=False)


def _status_of(line: bytes) -> tuple[str, int, bytes]:
    found = _STATUS_LINE.fullmatch(line)
    if found is None or _names_framing(line):
        raise Malformed(f"status line {line[:60]!r}")
    version, status, reason = found.groups()
    return version.decode(), int(status), reason.strip(b" \t\r").replace(b"\r", b" ")


def _field(line: bytes) -> tuple[bytes, bytes] | None:
    name, colon, value = line.partition(b":")
    name = name.rstrip(b" \t")
    if colon and _TOKEN.fullmatch(name) and b"\r" not in value:
        return name, value.strip(b" \t")
    if _names_framing(line):
        raise Malformed(f"header line {line[:60]!r}")
    return None


def _names_framing(line: bytes) -> bool:
    lower = line.lower()
    return any(name in lower for name in _FRAMING)


def joined(fields: Fields) -> dict[bytes, bytes]:
    """Return the fields that matter here, by lower case name; several lines are joined by commas."""
    found: dict[bytes, bytes] = {}
    for name, value in fields:
        lower = name.lower()
        if lower in _NOTED:
            before = found.get(lower)
            found[lower] = value if before is None else before + b"," + value
    return found


def framing(head: Head, noted: dict[bytes, bytes]) -> Framing:
    """Return where the body ends; raises ``Malformed`` where that is ambiguous or not supported."""
    if head.status in _NO_BODY:
        return Framing(chunked=False, length=0, exact=not _codings(noted))
    if b"transfer-encoding" in noted:
        return _framing_of_coded(head.version, noted)
    length = noted.get(b"content-length", b"")
    if length.isdigit() and len(length) <= _USUAL_DIGITS:
        return Framing(False, int(length), True)  # keywords would take as long as all the rest
    lengths = _members(noted, b"content-length")
    return Framing(chunked=False, length=_length(lengths), exact=len(lengths) == 1)


def _framing_of_coded(version: str, noted: dict[bytes, bytes]) -> Framing:
    """Return where a body with a transfer coding ends; HTTP/1.0 knows none (RFC 9112 section 6.1)."""
    is_alone = b"content-length" not in noted and version >= _FIRST_WITH_CODINGS
    if is_alone and noted[b"transfer-encoding"] == b"chunked":
        return _CHUNKED
    codings = _codings(noted)
    if b"chunked" in codings:
        return Framing(chunked=True, length=None, exact=is_alone and len(codings) == 1)
    return Framing(chunked=False, length=_length(_members(noted, b"content-length")), exact=False)


def _codings(noted: dict[bytes, bytes]) -> list[bytes]:
    codings = _members(noted, b"transfer-encoding")
    unknown = set(codings) - _KNOWN_CODINGS
    if unknown:
        raise Malformed(f"transfer coding {min(unknown).decode('latin-1')[:40]!r}")
    return codings


def _members(noted: dict[bytes, bytes], name: bytes) -> list[bytes]:
    said = noted.get(name)
    return [] if said is None else [member.strip(b" \t").lower() for member in said.split(b",")]


def _length(said: list[bytes]) -> int | None:
    """Return what all lengths say alike. One that is no number says nothing."""
    lengths = {_number(length) for length in said if length}
    if len(lengths) > 1:
        raise Malformed("unequal lengths")
    return lengths.pop() if lengths else None


def _number(length: bytes) -> int | None:
    found = _DIGITS.fullmatch(length)
    return int(found[1] or b"0") if found else None
