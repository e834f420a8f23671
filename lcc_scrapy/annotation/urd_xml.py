"""Reads URDs out of XML (seed 002, Table 4, mended): bounded, as it comes, without a tree.

No document type is accepted, so there are no entities but the five of XML. What is not part of a URD is
refused, for it may be a misspelt part.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lcc_scrapy.annotation.urd_formats import whole_of, word
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.domain.urd_rules import PROTOCOLS, BadUrd, checked
from lcc_scrapy.domain.urds import KEYWORD_MAX, KEYWORDS_MAX, RULE_MAX, Keyword, Method, Process, Urd
from lcc_scrapy.wire.xml_parsing import BadXml, XmlParser

TOKEN_MAX = 1_000_000
"""Bytes of one tag, comment or other piece of XML."""

PIECE = 64 * 1024
_SHOWN = 60
_TEXT_MAX = {"uri": 2 * URL_MAX, "rule": 2 * RULE_MAX}
"""Characters with the blanks around; what is too long without these is refused as in every other format."""

_PARENTS = {
    "urds": ("",),
    "urd": ("", "urds"),
    **dict.fromkeys(
        ("uri", "type", "keywords", "rule", "depth", "urgency", "threshold", "expires"), ("urd",)
    ),
    "keyword": ("keywords",),
}
_ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "urd": {"id": "urdid", "owner": "owner"},
    "uri": {"timing": "timing", "lastcheck": "lastcheck", "port": "port"},
    "type": {"protocol": "protocol", "method": "method", "processtype": "processtype"},
    "depth": {"level": "depth"},
    "urgency": {"urgent": "urgency"},
    "threshold": {"relevance": "threshold"},
    "expires": {"time": "expires"},
    "keyword": {"key": "", "weight": ""},
}
"""For each element its attributes, and what they are of a ``Urd``."""


def read_xml(pieces: Iterable[bytes], owner: str = "") -> Iterator[Urd]:
    """Yield the URDs of a document in pieces; ``owner`` where one names none. Raises ``BadUrd``."""
    document = _Document(owner)
    parser = _parser(document)
    for piece in _large(pieces):
        _parse(parser, piece)
        yield from document.taken()
        if parser.unfinished > TOKEN_MAX:
            line = parser.expat.CurrentLineNumber
            raise BadUrd(f"line {line}: a piece of XML of more than {TOKEN_MAX} bytes")
    _parse(parser, b"", last=True)
    yield from document.taken()


def _large(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield pieces of ``PIECE`` bytes at least: expat looks again at a tag that was cut."""
    waiting = bytearray()
    for piece in pieces:
        waiting += piece
        if len(waiting) >= PIECE:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting)


def _parse(parser: XmlParser, piece: bytes, *, last: bool = False) -> None:
    try:
        parser.feed(piece, last=last)
    except BadXml as error:
        raise BadUrd(f"line {error.line}: {error}") from None
    except BadUrd as bad:
        raise BadUrd(f"line {parser.expat.CurrentLineNumber}: {bad}") from None


def _parser(document: "_Document") -> XmlParser:
    parser = XmlParser()
    parser.expat.StartDoctypeDeclHandler = _refuse_doctype
    parser.expat.StartElementHandler = document.start
    parser.expat.EndElementHandler = document.end
    parser.expat.CharacterDataHandler = document.text
    return parser


def _refuse_doctype(*_: object) -> None:
    raise BadUrd("it has a document type (<!DOCTYPE), which is not read")


class _Document:
    """Takes the elements of one document in their order."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._open = [""]
        self._urds: list[Urd] = []
        self._begin()

    def taken(self) -> list[Urd]:
        """Return the URDs read since it was asked last."""
        urds, self._urds = self._urds, []
        return urds

    # --- what the parser calls -------------------------------------------------------------------

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        if self._open[-1] not in _PARENTS.get(name, ()):
            inside = f"inside of <{self._open[-1]}>" if self._open[-1] else "at the beginning"
            raise BadUrd(f"<{name[:_SHOWN]}> {inside} is no part of a URD")
        self._open.append(name)
        if name == "urd":
            self._begin()
        elif name in self._seen:
            raise BadUrd(f"<{name}> stands there twice")
        if name not in {"urds", "urd", "keyword"}:
            self._seen.add(name)
        self._take(name, attributes)

    def text(self, text: str) -> None:
        """A piece of text."""
        name = self._open[-1]
        if name not in _TEXT_MAX:
            if text.strip():
                raise BadUrd(f"text {text.strip()[:_SHOWN]!r} is no part of a URD")
            return
        self._texts.append(text)
        self._length += len(text)
        if self._length > _TEXT_MAX[name]:
            raise BadUrd(f"{name} of more than {_TEXT_MAX[name]} characters")

    def end(self, name: str) -> None:
        """An element ends."""
        self._open.pop()
        if name in _TEXT_MAX:
            self._fields[name] = "".join(self._texts).strip()
            self._texts.clear()
            self._length = 0
        elif name == "urd":
            self._urds.append(self._urd())

    # --- what it comes to ------------------------------------------------------------------------

    def _begin(self) -> None:
        self._fields: dict[str, Any] = {}
        self._keywords: list[Keyword] = []
        self._seen: set[str] = set()
        self._texts: list[str] = []
        self._length = 0

    def _urd(self) -> Urd:
        if "uri" not in self._fields:
            raise BadUrd("<uri> is missing")
        given = {"urdid": 0, "owner": self._owner, **self._fields}
        return checked(Urd(**given, keywords=tuple(self._keywords)))

    def _take(self, name: str, attributes: Mapping[str, str]) -> None:
        known = _ATTRIBUTES.get(name, {})
        for attribute in attributes:
            if attribute not in known:
                raise BadUrd(f"{attribute[:_SHOWN]!r} is no attribute of <{name}>")
        if name == "keyword":
            self._keyword(attributes)
            return
        for attribute, value in attributes.items():
            self._fields[known[attribute]] = _value(attribute, value)

    def _keyword(self, attributes: Mapping[str, str]) -> None:
        """Take a keyword; what is wrong with one is told with its own line."""
        key = attributes.get("key", "")
        if not 0 < len(key) <= KEYWORD_MAX:
            raise BadUrd(f"keyword of {len(key)} characters, expected 1 to {KEYWORD_MAX}")
        if len(self._keywords) >= KEYWORDS_MAX:
            raise BadUrd(f"more than {KEYWORDS_MAX} keywords")
        self._keywords.append(Keyword(key, whole_of("weight", attributes.get("weight", "1"))))


def _value(attribute: str, text: str) -> object:
    if attribute == "owner":
        return text
    if attribute == "protocol":
        if text not in PROTOCOLS:
            raise BadUrd(f"protocol {text[:_SHOWN]!r}, expected http or https")
        return text
    if attribute == "method":
        return word(attribute, text, Method)
    return word(attribute, text, Process) if attribute == "processtype" else whole_of(attribute, text)
