"""The type of an answer, as browsers read its Content-Type fields (Fetch, "extract a MIME type").

Of several types the last one counts; ``*/*`` and what cannot be parsed count as none.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_BLANKS = " \t\r\n"
_IN_QUOTES = r'(?:[^"\\]|\\.|\\\Z)*+'
_PART = re.compile(rf'((?:[^",]|"{_IN_QUOTES}"?)*+)(?:,|\Z)', re.DOTALL)
_ESSENCE = re.compile(rf"({_WORD}/{_WORD})[{_BLANKS}]*+(?:;|\Z)")
_PARAMETER = re.compile(rf'[{_BLANKS}]*+([^;=]*+)(?:=(?:"({_IN_QUOTES})[^;]*+|([^;]*+)))?(?:;|\Z)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_NAME = b"content-type"
_USUAL = 200
"""Characters from which on it is not remembered what a field says."""

_UNKNOWN = frozenset({"*/*", "application/unknown", "unknown/unknown"})


class ContentType(NamedTuple):
    """A mimetype in lower case and its charset label, each empty = not said."""

    mimetype: str
    charset: str


NONE = ContentType("", "")


def content_type(text: str) -> ContentType:
    """Return what the Content-Type fields of an answer say, joined by commas."""
    return (_remembered if len(text) < _USUAL else _extracted)(text)


def type_of(fields: Iterable[tuple[bytes, bytes]]) -> ContentType:
    """Return the same of all fields of an answer."""
    return content_type(
        ",".join(
            value.decode("latin-1")
            for name, value in fields
            if len(name) == len(_NAME) and name.lower() == _NAME
        )
    )


def _extracted(text: str) -> ContentType:
    found = NONE
    for part in _parts(text):
        mimetype, charset = _parsed(part)
        if mimetype and mimetype != "*/*":
            inherits = not charset and mimetype == found.mimetype
            found = ContentType(mimetype, found.charset if inherits else charset)
    return NONE if found.mimetype in _UNKNOWN else found


_remembered = lru_cache(maxsize=1000)(_extracted)


def _parts(text: str) -> Iterator[str]:
    """Yield the members of a list; commas in quotes separate none (Fetch, "get, decode, and split")."""
    return (part[1].strip(_BLANKS) for part in _PART.finditer(text))


def _parsed(text: str) -> ContentType:
    """Read one type (MIME Sniffing, "parse a MIME type")."""
    essence = _ESSENCE.match(text)
    if essence is None:
        return NONE
    charset = None
    for found in _PARAMETER.finditer(text, essence.end()):
        name, quoted, bare = found.groups()
        if charset is None and name.lower() == "charset":
            charset = _value(quoted, bare)
    return ContentType(essence[1].lower(), charset or "")


def _value(quoted: str | None, bare: str | None) -> str | None:
    """Return the value of a parameter, None = it counts as not there."""
    value = (bare or "").rstrip(_BLANKS) or None if quoted is None else _ESCAPED.sub(r"\1", quoted)
    return value if value is not None and _VALUE.fullmatch(value) else None
