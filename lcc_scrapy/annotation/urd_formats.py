"""URDs as JSON lines and as XML (seed 002, Table 4, mended), one URD after the other whatever their number.

What is written here is read as the same URD (but for its ``revision``, which is the store's), and written
again as the same bytes. All readers raise ``BadUrd`` with the line.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import IO, Any, TypeVar
from xml.sax.saxutils import escape, quoteattr

from lcc_scrapy.domain.urd_rules import BadUrd, checked
from lcc_scrapy.domain.urds import Keyword, Method, Process, Urd

LINE_MAX = 2_000_000
"""Bytes of one line of JSON: more than the longest URD takes."""

_DIGITS_MAX = 19
_SHOWN = 60
_DEFAULTS = Urd(0, "", "")
_FIELDS = {
    "id": "urdid",
    "owner": "owner",
    "uri": "uri",
    "timing": "timing",
    "lastcheck": "lastcheck",
    "port": "port",
    "protocol": "protocol",
    "method": "method",
    "processtype": "processtype",
    "rule": "rule",
    "depth": "depth",
    "urgency": "urgency",
    "threshold": "threshold",
    "expires": "expires",
}
"""Names of fields in JSON, and of the attributes of a ``Urd``; keywords come last."""

_TEXTS = frozenset({"owner", "uri", "protocol", "rule"})
_Word = TypeVar("_Word", bound=StrEnum)


# --- JSON ----------------------------------------------------------------------------------------


def record_of(urd: Urd) -> dict[str, Any]:
    """Return a URD as it is written in JSON; ``id`` 0 = not stored yet."""
    record = {name: getattr(urd, field) for name, field in _FIELDS.items()}
    return {**record, "keywords": [{"key": one.key, "weight": one.weight} for one in urd.keywords]}


def urd_of(record: object, owner: str = "") -> Urd:
    """Read what came as JSON; ``owner`` where it names none. Raises ``BadUrd``, without a line."""
    if not isinstance(record, dict):
        raise BadUrd("expected an object with the fields of a URD")
    for name in record:
        if name not in _FIELDS and name != "keywords":
            raise BadUrd(f"{str(name)[:_SHOWN]!r} is no field of a URD")
    if "uri" not in record:
        raise BadUrd("uri is missing")
    read: dict[str, Any] = {
        field: _read(name, record[name]) for name, field in _FIELDS.items() if name in record
    }
    return checked(
        Urd(**{"urdid": 0, "owner": owner, **read, "keywords": _keywords(record.get("keywords", []))})
    )


def json_lines_of(urds: Iterable[Urd]) -> Iterator[str]:
    """Yield a line of JSON for each URD."""
    return (json.dumps(record_of(urd), ensure_ascii=False) + "\n" for urd in urds)


def read_json_lines(file: IO[bytes], owner: str = "") -> Iterator[Urd]:
    """Read a file of lines of JSON; empty ones count for nothing."""
    number = 0
    while line := file.readline(LINE_MAX + 1):
        number += 1
        if len(line) > LINE_MAX:
            raise BadUrd(f"line {number}: more than {LINE_MAX} bytes")
        if line.strip():
            yield _of_line(number, line, owner)


def _of_line(number: int, line: bytes, owner: str) -> Urd:
    try:
        return urd_of(json.loads(line), owner)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise BadUrd(f"line {number}: this is not JSON") from None
    except (BadUrd, ValueError) as bad:
        raise BadUrd(f"line {number}: {bad}") from None


def _read(name: str, value: object) -> object:
    if name in _TEXTS:
        return _text(name, value)
    if name == "method":
        return word(name, value, Method)
    if name == "processtype":
        return word(name, value, Process)
    return None if name == "expires" and value is None else _whole(name, value)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadUrd(f"{name}, expected a text")
    return value


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadUrd(f"{name} {str(value)[:_SHOWN]!r}, expected a whole number")
    return value


def word(name: str, value: Any, choices: type[_Word]) -> _Word:
    """Return one of some words; raises ``BadUrd``."""
    try:
        return choices(value)
    except ValueError:
        expected = " or ".join(f"`{one}`" for one in choices)
        raise BadUrd(f"{name} {str(value)[:_SHOWN]!r}, expected {expected}") from None


def _keywords(value: object) -> tuple[Keyword, ...]:
    if not isinstance(value, list):
        raise BadUrd("keywords, expected a list")
    return tuple(map(_keyword, value))


def _keyword(value: object) -> Keyword:
    if not isinstance(value, dict) or not {"key"} <= value.keys() <= {"key", "weight"}:
        raise BadUrd('a keyword, expected {"key": "…", "weight": 1}')
    return Keyword(_text("key", value["key"]), _whole("weight", value.get("weight", 1)))


# --- XML -----------------------------------------------------------------------------------------


def xml_of(urds: Iterable[Urd]) -> Iterator[str]:
    """Yield the pieces of an XML document of URDs."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<urds>\n'
    yield from map(xml_of_urd, urds)
    yield "</urds>\n"


def xml_of_urd(urd: Urd) -> str:
    """Return the element of one URD."""
    expires = _element("expires", {"time": urd.expires}) if urd.expires is not None else ""
    place = {"timing": urd.timing, "lastcheck": urd.lastcheck, "port": urd.port}
    kind = {"protocol": urd.protocol, "method": urd.method, "processtype": urd.processtype}
    lines = (
        _element("uri", place, urd.uri),
        _element("type", kind),
        _xml_of_keywords(urd.keywords),
        _element("rule", {}, urd.rule) if urd.rule else "",
        _element("depth", {"level": urd.depth}),
        _element("urgency", {"urgent": urd.urgency}),
        _element("threshold", {"relevance": urd.threshold}),
        expires,
    )
    named = {"id": urd.urdid} if urd.urdid else {}
    return f"<urd{_attributes({**named, 'owner': urd.owner})}>\n{''.join(lines)}</urd>\n"


def _xml_of_keywords(keywords: Sequence[Keyword]) -> str:
    if not keywords:
        return ""
    lines = (f"  {_element('keyword', {'key': one.key, 'weight': one.weight})}" for one in keywords)
    return f"  <keywords>\n{''.join(lines)}  </keywords>\n"


def _element(name: str, attributes: Mapping[str, object], text: str = "") -> str:
    end = f">{escape(text)}</{name}>" if text else "/>"
    return f"  <{name}{_attributes(attributes)}{end}\n"


def _attributes(given: Mapping[str, object]) -> str:
    return "".join(f" {name}={quoteattr(str(value))}" for name, value in given.items())


def whole_of(name: str, text: str) -> int:
    """Read the digits of an attribute; raises ``BadUrd``."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
        raise BadUrd(f"{name} {text[:_SHOWN]!r}, expected a whole number")
    return int(digits)
