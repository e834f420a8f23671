"""Writing queries and results as XML, in UTF-8.

What XML 1.0 cannot carry (control characters, lone surrogates, U+FFFE, U+FFFF) is escaped: the attribute
``escaped`` names those attributes of its element in which a backslash is written as two, and such a character
as a backslash, ``u`` and four hex digits. All other attributes are as they are.
"""

import base64
import re
from collections.abc import Mapping

from lcc_scrapy.apps.query.wire.messages import (
    OPS,
    VERSION,
    Missing,
    Query,
    QueryRejected,
    Reached,
    ResultBegins,
    ResultEnds,
    Row,
    Wanted,
    What,
)
from lcc_scrapy.wire.messages import NAMESPACE
from lcc_scrapy.wire.writing import NOT_XML, element

CONTENT_BLOCK = 48 * 1024
"""Bytes of content that are written as one line: divisible by three, so that no block needs padding."""

_TO_ESCAPE = re.compile(rf"\\|{NOT_XML.pattern}")
_ELEMENTS = {op: name for name, op in OPS.items()}
_DECLARED = {"xmlns:lococa": NAMESPACE, "version": VERSION}
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def query(message: Query) -> bytes:
    """Write a query."""
    attributes = {
        **_DECLARED,
        "what": message.what if message.what is not What.CHANGES else None,
        "since": message.since or None,
        "since-time": message.since_time,
        "limit": message.limit or None,
        "content": message.content if message.content is not Wanted.NONE else None,
        "wait": message.wait or None,
        "token": message.token or None,
    }
    filters = {
        "provider": message.providers,
        "mimetype": message.mimetypes,
        "subtype": message.subtypes,
        "urlprefix": message.url_prefixes,
        "docid": message.docids,
        "anew": message.anew,
    }
    lines = [f"  {_element(name, {'value': one})}\n" for name, values in filters.items() for one in values]
    return f"{_open('lococa:query', attributes)}\n{''.join(lines)}</lococa:query>\n".encode()


def begin(message: ResultBegins) -> bytes:
    """Open a result."""
    attributes = {**_DECLARED, "lcc": message.lcc, "position": message.position}
    return f"{_HEAD}{_open('lococa:result', attributes)}\n".encode()


def row(message: Row) -> bytes:
    """Write a row; one with content inside stays open for it."""
    attributes = {**message.values, "content": message.content or None}
    write = _open if message.content == Wanted.INSIDE else _element
    return f"{write(_ELEMENTS[message.op], attributes)}\n".encode()


def content(block: bytes) -> bytes:
    """Write some content: ``CONTENT_BLOCK`` bytes, or fewer if they are the last."""
    return base64.b64encode(block) + b"\n"


def content_end() -> bytes:
    """Close a row that was open for its content."""
    return b"</document>\n"


def reached(message: Reached) -> bytes:
    """Write how far a result has come."""
    return f"{_element('reached', {'position': message.position})}\n".encode()


def missing(message: Missing) -> bytes:
    """Write that a part of the result is missing."""
    attributes = {"name": message.name, "start-over": "yes" if message.start_over else None}
    return f"{_element('missing', attributes)}\n".encode()


def end(message: ResultEnds) -> bytes:
    """Close a result that is complete."""
    attributes = {
        "position": message.position,
        "documents": message.documents,
        "removed": message.removed,
        "left": message.left,
    }
    return f"{_element('end', attributes)}\n</lococa:result>\n".encode()


def rejected(message: QueryRejected) -> bytes:
    """Write that there is no result."""
    return f"{_HEAD}{_element('lococa:query_rejected', _DECLARED | _reason(message))}\n".encode()


def broken_off(message: QueryRejected) -> bytes:
    """Close a result that cannot be completed."""
    return f"{_element('broken_off', _reason(message))}\n</lococa:result>\n".encode()


def _reason(message: QueryRejected) -> dict[str, object]:
    return {"code": message.code, "text": message.text, "retry-after": message.retry_after or None}


def _element(name: str, attributes: Mapping[str, object]) -> str:
    return element(name, _carried(attributes))


def _open(name: str, attributes: Mapping[str, object]) -> str:
    return _element(name, attributes).removesuffix("/>") + ">"


def _carried(attributes: Mapping[str, object]) -> Mapping[str, object]:
    strange = {key: text for key, value in attributes.items() if NOT_XML.search(text := str(value))}
    if not strange:
        return attributes
    escaped = {key: _TO_ESCAPE.sub(_escape, text) for key, text in strange.items()}
    return {**attributes, **escaped, "escaped": " ".join(strange)}


def _escape(found: "re.Match[str]") -> str:
    return "\\\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}"
