"""ACIs as JSON and as XML (seed 002, Table 6, mended).

Elements and attributes of others survive: they are read into ``detail`` (``elements``, ``attributes``; of
JSON ``fields``) and written again.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from lcc_scrapy.domain.acis import Aci
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.feed.row_formats import for_xml
from lcc_scrapy.wire.xml_parsing import BadXml, XmlParser, in_utf8

ACI_MAX = 1_000_000
"""Bytes of one ACI as it is read."""

ATTRIBUTES_MAX = 100
"""Attributes of one element."""

_SHOWN = 60
_DIGITS_MAX = 19
_NUMBERS = frozenset(one.name for one in fields(Aci) if one.type is int)
_ATTRIBUTES = {
    "owner": "owner",
    "extension": "extension",
    "format": "format",
    "relevance": "relevance",
    "updatetime": "updatetime",
    "filesize": "filesize",
    "docid": "urlkey",
    "seq": "seq",
    "number": "number",
    "urd": "urdid",
    "pid": "pid",
    "made": "made",
}
"""Attributes of ``<aci>``; the first six are those of Table 6."""

_CHILDREN = ("uri", "urgency", "docbase", "expired", "title", "summary", "detail")
_TEXTS = ("uri", "docbase", "title", "summary")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_OTHERS = ("attributes", "elements")
_JSON = (*_ATTRIBUTES, "uri", "urgency", "docbase", "expired", "title", "summary", "detail")
_NOTHING = Aci(b"", 0, "", 0, 0, 0, "", "", 0, 0, 0, "", 0, "", False, "", "", "{}", 0)


class BadAci(LccError):
    """What should be an ACI is none; the text says why in one line."""


def detail_of(aci: Aci) -> dict[str, Any]:
    """Return the detail as it was before it was stored; empty where it is no object of JSON."""
    try:
        detail = json.loads(aci.detail or "{}")
    except (ValueError, RecursionError):
        return {}
    return detail if isinstance(detail, dict) else {}


# --- JSON ----------------------------------------------------------------------------------------


def record_of(aci: Aci) -> dict[str, Any]:
    """Return an ACI as it is written in JSON; ``docid`` is 32 hex digits, ``detail`` an object."""
    detail = detail_of(aci)
    others = detail.pop("fields", {})
    known = {name: getattr(aci, field) for name, field in _ATTRIBUTES.items()}
    known |= {
        name: getattr(aci, name) for name in ("uri", "urgency", "docbase", "expired", "title", "summary")
    }
    return {**known, "docid": aci.docid, "detail": detail, **(others if isinstance(others, dict) else {})}


def aci_of(record: object) -> Aci:
    """Read what ``record_of`` gives; raises ``BadAci``."""
    if not isinstance(record, dict):
        raise BadAci("expected an object with the fields of an ACI")
    detail = record.get("detail", {})
    if not isinstance(detail, dict):
        raise BadAci("detail, expected an object")
    others = {name: value for name, value in record.items() if name not in _JSON}
    given = {_ATTRIBUTES.get(name, name): record[name] for name in _JSON if name in record}
    given["detail"] = _dumped({**detail, "fields": others} if others else detail)
    return _made(given)


# --- XML -----------------------------------------------------------------------------------------


def xml_of(aci: Aci) -> str:
    """Return the element of an ACI."""
    detail = detail_of(aci)
    attributes, elements = (detail.pop(name, None) for name in _OTHERS)
    known = {name: str(getattr(aci, field)) for name, field in _ATTRIBUTES.items()}
    known["docid"] = aci.docid
    texts = {name: _element(name, getattr(aci, name)) for name in _TEXTS}
    lines = (
        texts["uri"],
        f'<urgency urgent="{aci.urgency}"/>',
        texts["docbase"],
        f'<expired expir="{str(aci.expired).lower()}"/>',
        texts["title"],
        texts["summary"],
        _element("detail", _dumped(detail)) if detail else "",
        *_of_others(elements),
    )
    inner = "".join(f"  {line}\n" for line in lines if line)
    others = attributes if isinstance(attributes, dict) else {}
    every = {**{name: value for name, value in others.items() if _NAME.fullmatch(name)}, **known}
    return f"<aci{''.join(f' {name}={_quoted(value)}' for name, value in every.items())}>\n{inner}</aci>\n"


def aci_of_xml(document: bytes) -> Aci:
    """Read the element of an ACI, as Table 6 has it or as ``xml_of`` writes it; raises ``BadAci``."""
    root = _root(document)
    given: dict[str, Any] = {_ATTRIBUTES[name]: root.get(name) for name in _ATTRIBUTES if name in root.attrib}
    others = {name: value for name, value in root.attrib.items() if name not in _ATTRIBUTES}
    given |= {name: root.findtext(name) for name in _TEXTS if root.find(name) is not None}
    given["urgency"] = _attribute(root, "urgency", "urgent", "0")
    given["expired"] = _attribute(root, "expired", "expir", "false") == "true"
    elements = [_text_of(one) for one in root if one.tag not in _CHILDREN and isinstance(one.tag, str)]
    detail = detail_of(_made({"detail": root.findtext("detail") or "{}"}))
    more = {"attributes": others, "elements": elements}
    given["detail"] = _dumped(detail | {name: value for name, value in more.items() if value})
    return _made(given)


def _parser(encoding: str | None = None) -> etree.XMLParser:
    return etree.XMLParser(
        encoding=encoding, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )


def _root(document: bytes) -> Any:
    if len(document) > ACI_MAX:
        raise BadAci(f"{len(document)} bytes, at most {ACI_MAX}")
    try:
        _check_attributes(document)
        root = etree.fromstring(in_utf8(document, 4 * ACI_MAX), _parser("utf-8"))
    except BadXml as error:
        raise BadAci(error.sentence) from None
    except (etree.XMLSyntaxError, ValueError) as error:
        raise BadAci(f"not well-formed: {str(error)[:_SHOWN]}") from None
    if root.tag != "aci":
        raise BadAci(f"<{str(root.tag)[:_SHOWN]}> is no ACI")
    return root


def _check_attributes(document: bytes) -> None:
    """Refuse what is not well-formed, and many attributes: libxml2 compares each with all others."""
    parser = XmlParser()
    parser.expat.StartDoctypeDeclHandler = _refuse_doctype
    parser.expat.StartElementHandler = _refuse_many
    parser.feed(document, last=True)


def _refuse_doctype(*_: object) -> None:
    raise BadAci("it has a document type (<!DOCTYPE), which is not read")


def _refuse_many(name: str, attributes: dict[str, str]) -> None:
    if len(attributes) > ATTRIBUTES_MAX:
        raise BadAci(f"<{name[:_SHOWN]}> has {len(attributes)} attributes, at most {ATTRIBUTES_MAX}")


def _attribute(root: Any, element: str, name: str, missing: str) -> str:
    found = root.find(element)
    return missing if found is None else str(found.get(name, missing))


def _text_of(element: Any) -> str:
    return str(etree.tostring(element, encoding="unicode", with_tail=False))


def _of_others(elements: object) -> Iterator[str]:
    """Yield elements of others as they are written; what came as JSON may be anything."""
    for text in elements if isinstance(elements, list) else ():
        with suppress(etree.XMLSyntaxError, ValueError, TypeError):
            yield _text_of(etree.fromstring(text, _parser()))


def _element(name: str, text: str) -> str:
    return f"<{name}>{escape(for_xml(text), _RETURN)}</{name}>"


_RETURN = {"\r": "&#13;"}


def _quoted(value: object) -> str:
    return quoteattr(for_xml(str(value)))


# --- both ----------------------------------------------------------------------------------------


def _dumped(detail: Mapping[str, Any]) -> str:
    return json.dumps(detail, ensure_ascii=False)


def _made(given: Mapping[str, Any]) -> Aci:
    """Return an ACI; what is not given is empty."""
    values = {one.name: getattr(_NOTHING, one.name) for one in fields(Aci)}
    for name, value in given.items():
        values[name] = _value(name, value)
    return Aci(**values)


def _value(name: str, value: object) -> object:
    if name in _NUMBERS:
        return _whole(name, value)
    if name == "expired":
        return value is True
    if not isinstance(value, str):
        raise BadAci(f"{name}, expected a text")
    if name == "urlkey":
        return _key(value)
    return value


def _key(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise BadAci(f"docid {text[:_SHOWN]!r}, expected hex digits") from None


def _whole(name: str, value: object) -> int:
    text = str(value).strip()
    if isinstance(value, bool) or not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise BadAci(f"{name} {text[:_SHOWN]!r}, expected a whole number")
    return int(text)
