"""Reading queries and results: bytes in, messages out. Any cutting of a stream gives the same messages.

Both are UTF-8, whatever a declaration says. The prefix ``lococa`` need not be declared.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any
from xml.parsers import expat

from lcc_scrapy.apps.query.wire.messages import (
    OPS,
    Content,
    ContentEnds,
    Missing,
    Query,
    QueryRejected,
    Reached,
    ResultBegins,
    ResultEnds,
    Row,
    Said,
    Wanted,
    What,
)
from lcc_scrapy.wire.messages import NAMESPACE

DIGITS_MAX = 18
DEPTH_MAX = 16
TAG_MAX = 1 << 20
"""Bytes of the longest tag of a result."""
_BLOCK = 64 * 1024
"""Characters of base64 that make one ``Content``."""
_BITE = 16 * 1024
_ESCAPED = re.compile(r"\\(?:\\|u([0-9a-fA-F]{4}))")
_DOCID = re.compile(r"[0-9a-f]{32}")
_ATTRIBUTES = frozenset({"version", "what", "since", "since-time", "limit", "content", "wait", "token"})
_FILTERS = {
    "provider": "providers",
    "mimetype": "mimetypes",
    "subtype": "subtypes",
    "urlprefix": "url_prefixes",
    "docid": "docids",
    "anew": "anew",
}


class NotUnderstood(Exception):
    """What came is not a query, or not a result; the text says why."""


def _new_parser(start: Callable[..., None], end: Callable[..., None]) -> expat.XMLParserType:
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = _refuse_doctype
    # Newer expats wait for more input before they tell of a tag that was cut.
    set_deferral = getattr(parser, "SetReparseDeferralEnabled", None)
    if set_deferral is not None:
        set_deferral(False)
    return parser


def _refuse_doctype(*_declaration: object) -> None:
    raise NotUnderstood("a document type declaration (DOCTYPE)")


def _parse(parser: expat.XMLParserType, data: bytes) -> None:
    try:
        parser.Parse(data, False)
    except expat.ExpatError as error:
        raise NotUnderstood(
            f"not well-formed: {expat.ErrorString(error.code)}, line {error.lineno}"
        ) from None


def _local_name(name: str, attributes: Mapping[str, str]) -> str:
    """Return a root's name without its prefix, empty when it is not of this protocol."""
    prefix, _, local = name.rpartition(":")
    predeclared = NAMESPACE if prefix == "lococa" else ""
    declared = attributes.get(f"xmlns:{prefix}" if prefix else "xmlns", predeclared)
    return local if declared == NAMESPACE else ""


def _read_attributes(given: Mapping[str, str]) -> dict[str, str]:
    """Undo what ``writing`` did to carry them, and leave declarations out."""
    values = {key: text for key, text in given.items() if key != "xmlns" and not key.startswith("xmlns:")}
    for name in values.pop("escaped", "").split():
        if name in values:
            values[name] = _ESCAPED.sub(_unescape, values[name])
    return values


def _unescape(found: "re.Match[str]") -> str:
    return chr(int(found[1], 16)) if found[1] else "\\"


def _number(values: Mapping[str, str], name: str, missing: int = 0) -> int:
    text = values.get(name, str(missing))
    if not (text.isascii() and text.isdigit()) or len(text) > DIGITS_MAX:
        raise NotUnderstood(f"{name}={text[:40]!r}, expected a whole number")
    return int(text)


# --- the query -----------------------------------------------------------------------------------


class QueryReader:
    """Reads one query of ``most`` bytes at most; what comes behind it is not looked at."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most
        self._depth = 0
        self._attributes: dict[str, str] = {}
        self._filters: dict[str, list[Any]] = {}
        self._query: Query | None = None
        self._parser = _new_parser(self._start, self._end)

    @property
    def begun(self) -> bool:
        """Tell whether anything came."""
        return self._left < self._most

    def feed(self, data: bytes) -> Query | None:
        """Take some bytes; returns the query once it is complete. Raises ``NotUnderstood``.

        The reader is of no more use after either.
        """
        piece = data[: self._left]
        self._left -= len(piece)
        try:
            _parse(self._parser, piece)  # at once: the parser begins anew with a tag that is not complete
        except NotUnderstood:
            if self._query is None:
                raise
        if self._query is None and len(data) > len(piece):
            raise NotUnderstood(f"more than {self._most} bytes")
        return self._query

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        values = _read_attributes(attributes)
        if self._depth == 1:
            if _local_name(name, attributes) != "query":
                raise NotUnderstood(f"<{name[:40]}> instead of a query")
            self._take(values)
        else:
            self._filter(name.rpartition(":")[2], values)

    def _take(self, values: dict[str, str]) -> None:
        """Nothing may be left out: a filter that is not understood would tell more than was asked for."""
        for unknown in values.keys() - _ATTRIBUTES:
            raise NotUnderstood(f"unknown attribute {unknown[:40]!r} of the query")
        self._attributes = values

    def _filter(self, name: str, values: dict[str, str]) -> None:
        if self._depth > 2 or name not in _FILTERS or values.keys() != {"value"}:  # noqa: PLR2004 - children
            expected = ", ".join(f"<{known} value=…/>" for known in _FILTERS)
            raise NotUnderstood(f"<{name[:40]}> with {sorted(values)[:5]}, expected {expected}")
        value: Any = _number(values, "value") if name == "provider" else values["value"]
        if name == "docid" and not _DOCID.fullmatch(value):
            raise NotUnderstood(f"docid {value[:40]!r}, expected 32 hex digits")
        self._filters.setdefault(_FILTERS[name], []).append(value)

    def _end(self, _name: str) -> None:
        self._depth -= 1
        if not self._depth:
            self._query = self._whole()

    def _whole(self) -> Query:
        given = self._attributes
        try:
            what, content = What(given.get("what", "changes")), Wanted(given.get("content", "none"))
        except ValueError as error:
            raise NotUnderstood(f"{error}: see what='…' and content='…'") from None
        if (what is What.ROWS) != bool("docids" in self._filters):
            raise NotUnderstood("what='rows' goes with docids, and docids with nothing else")
        return Query(
            what,
            given.get("since", ""),
            _number(given, "since-time") if "since-time" in given else None,
            _number(given, "limit"),
            content,
            _number(given, "wait"),
            given.get("token", ""),
            **{name: tuple(values) for name, values in self._filters.items()},
        )


# --- the result ----------------------------------------------------------------------------------


class ResultReader:
    """Reads the answer to one query; ``complete`` tells whether it came to its end."""

    def __init__(self) -> None:
        self.complete = False
        self._said: list[Said] = []
        self._path: list[str] = []
        self._inside = False
        self._text = ""
        self._quiet = 0
        self._parser = _new_parser(self._start, self._finish)
        self._parser.buffer_text = True
        self._parser.CharacterDataHandler = self._text_came

    def feed(self, data: bytes) -> list[Said]:
        """Take some bytes and return what became complete by them; raises ``NotUnderstood``."""
        for start in range(0, len(data), _BITE):
            bite = data[start : start + _BITE]
            self._quiet += len(bite)
            _parse(self._parser, bite)
            if self._quiet > TAG_MAX:
                raise NotUnderstood("a tag without an end")
        said, self._said = self._said, []
        return said

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._quiet = 0
        values = _read_attributes(attributes)
        local = name.rpartition(":")[2] if self._path else _local_name(name, attributes)
        self._path.append(local)
        if len(self._path) > DEPTH_MAX:
            raise NotUnderstood("nested too deeply")
        match self._path:
            case ["result"]:
                begins = ResultBegins(
                    values.get("lcc", ""), values.get("position", ""), values.get("version", "")
                )
                self._said.append(begins)
            case ["query_rejected"] | ["result", "broken_off"]:
                self._said.append(_rejected(values))
            case ["result", "document" | "removed" | "leave"]:
                content = values.pop("content", "")
                self._inside = content == Wanted.INSIDE
                self._said.append(Row(OPS[local], values, content))
            case ["result", "reached"]:
                self._said.append(Reached(values.get("position", "")))
            case ["result", "missing"]:
                self._said.append(Missing(values.get("name", ""), values.get("start-over") == "yes"))
            case ["result", "end"]:
                self.complete = True
                self._said.append(_ends(values))
            case [_]:
                raise NotUnderstood(f"<{name[:40]}> instead of a result")

    def _text_came(self, text: str) -> None:
        self._quiet = 0
        if self._inside:
            self._text += text.replace("\n", "").strip()
            while len(self._text) >= _BLOCK:
                self._said.append(Content(_decoded(self._text[:_BLOCK])))
                self._text = self._text[_BLOCK:]

    def _finish(self, _name: str) -> None:
        self._quiet = 0
        self._path.pop()
        if self._inside and len(self._path) == 1:
            if self._text:
                self._said.append(Content(_decoded(self._text)))
            self._said.append(ContentEnds())
            self._inside, self._text = False, ""


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NotUnderstood("content that is not base64") from None


def _ends(values: Mapping[str, str]) -> ResultEnds:
    counts = (_number(values, name) for name in ("documents", "removed", "left"))
    return ResultEnds(values.get("position", ""), *counts)


def _rejected(values: Mapping[str, str]) -> QueryRejected:
    return QueryRejected(_number(values, "code"), values.get("text", ""), _number(values, "retry-after"))
