r"""The lines between the stages of ``file2url | lcccpstate | lcccp``.

Each line is one empty XML element in UTF-8, at most 64 KiB long, ended by ``\n`` (several on a line, and one
over some lines, are read, too)::

    <url curl="a.html" mimetype="text/html" len="12" mtime="1700000000" md5="…"/>   a URL (seed 000)
    <url curl="b.html" mimetype="text/html" op="remove"/>                           a removal
    <keep curl="c.html" mimetype="text/html"/>         present, but could not be read: no removal
    <handover state="/home/me/state.txt" id="…" full="no"/>    first line of lcccpstate: what lcccp commits
    <end count="3"/>                                   last line: so many url and keep lines came before

Without the end mark, or with one that counts wrong or says ``partial="yes"``, nothing that is absent
may be taken for removed; what is named as removed is, unless it counts wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import BinaryIO, Union
from xml.parsers import expat

from lcc_scrapy.push.command import Status, Stop
from lcc_scrapy.push.elements import ELEMENT_MAX, cut
from lcc_scrapy.wire.messages import Url
from lcc_scrapy.wire.writing import element

LINE_MAX = ELEMENT_MAX
"""Bytes of the longest line."""

NEW = "new"
"""Attribute by which lcccpstate marks URLs that the LCC does not have yet; it never goes over the wire."""

REFUSED = "refused"
"""Attribute of a line in a state: the code for which the LCC refused it (`refusals`)."""

FAILED = "failed"
"""Attribute of a line in a state: how its fetch failed, and when it is sent again (`refusals.Failure`)."""

_MARKS = frozenset({NEW, REFUSED, FAILED})

_SYNONYMS = {"c": "curl", "b": "burl", "f": "furl"}


class BadLine(ValueError):
    """A line that is not one of the elements above; the text says why."""


@dataclass(frozen=True)
class Keep:
    """A document that is there but could not be read. An empty mimetype stands for every view of it."""

    curl: str
    mimetype: str = ""


@dataclass(frozen=True)
class HandOver:
    """What lcccp commits once the set is accepted: the state file and the id of its pending state."""

    state: str
    set_id: str
    full: bool = False


@dataclass(frozen=True)
class End:
    """The end mark. ``partial``: the sender itself had no complete input."""

    count: int
    partial: bool = False


Line = Union[Url, Keep, HandOver, End]


def write(line: Line) -> bytes:
    """Write one line, with its newline."""
    return (_element_of(line) + "\n").encode()


def _element_of(line: Line) -> str:
    if isinstance(line, Url):
        return element("url", line.attributes)
    if isinstance(line, Keep):
        return element("keep", {"curl": line.curl, "mimetype": line.mimetype or None})
    if isinstance(line, HandOver):
        return element("handover", {"state": line.state, "id": line.set_id, "full": _yes_or_no(line.full)})
    return element("end", {"count": line.count, "partial": "yes" if line.partial else None})


def parse(raw: bytes) -> Line:
    """Read one line; raises `BadLine`."""
    if len(raw) > LINE_MAX:
        raise BadLine(f"longer than {LINE_MAX} bytes")
    name, attributes = parse_element(raw)
    if name == "url":
        return Url(MappingProxyType(_canonical(attributes)))
    if name == "keep":
        return Keep(_required(attributes, "keep", "curl"), attributes.get("mimetype", ""))
    if name == "handover":
        return HandOver(
            _required(attributes, "handover", "state"),
            _required(attributes, "handover", "id"),
            attributes.get("full") == "yes",
        )
    if name == "end":
        return End(_count(attributes), attributes.get("partial") == "yes")
    raise BadLine(f"<{name}> is not known here")


def parse_element(raw: bytes) -> tuple[str, dict[str, str]]:
    """Read one empty element; raises `BadLine`."""
    elements: list[tuple[str, dict[str, str]]] = []
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = lambda name, attributes: elements.append((name, attributes))
    parser.CharacterDataHandler = _refuse_text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise BadLine(expat.ErrorString(error.code)) from None
    if len(elements) != 1:
        raise BadLine("more than one element")
    return elements[0]


def _refuse_text(text: str) -> None:
    if text.strip():
        raise BadLine("text inside the element")


def _refuse_doctype(*_declaration: object) -> None:
    raise BadLine("a document type declaration (DOCTYPE)")


def _canonical(attributes: dict[str, str]) -> dict[str, str]:
    if not _SYNONYMS.keys() & attributes.keys():
        return attributes
    canonical = {_SYNONYMS.get(name, name): value for name, value in attributes.items()}
    if len(canonical) != len(attributes):
        raise BadLine("the same attribute under two names")
    return canonical


def _required(attributes: Mapping[str, str], element_name: str, name: str) -> str:
    value = attributes.get(name, "")
    if not value:
        raise BadLine(f"<{element_name}> without {name}")
    return value


def _count(attributes: Mapping[str, str]) -> int:
    text = attributes.get("count", "")
    if not (text.isascii() and text.isdigit()):
        raise BadLine("<end> without a count")
    return int(text)


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def unmarked(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes as they go over the wire, without the marks of a state."""
    return {name: value for name, value in attributes.items() if name not in _MARKS}


def is_removal(url: Url) -> bool:
    """Tell whether a line asks for a removal (design section 4: ``op="remove"`` or an empty furl)."""
    return url.attributes.get("op") == "remove" or url.attributes.get("furl") == ""


class Reading:
    """The lines of a stream, once; afterwards what can be said about their end.

    Iterating raises `Stop` (65) with the number of a line that cannot be read. ``number`` is the line where
    the last element began.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._begun = False
        self.number = 0
        self.entries = 0
        self.end: End | None = None

    def __iter__(self) -> Iterator[Url | Keep | HandOver]:
        for number, raw in cut(self._stream):
            self.number = number
            if raw.startswith(b"<!--") and raw.rstrip().endswith(b"-->"):
                continue
            line = self._parse(raw)
            self._begun = True
            if isinstance(line, End):
                self.end = line
                continue
            self.entries += not isinstance(line, HandOver)
            yield line

    def _parse(self, raw: bytes) -> Line:
        try:
            line = parse(raw.strip())
        except BadLine as error:
            raise self._stop(str(error)) from None
        if self.end is not None:
            raise self._stop("comes after the end mark")
        if isinstance(line, HandOver) and self._begun:
            raise self._stop("the hand-over is not the first line")
        return line

    def _stop(self, why: str) -> Stop:
        return Stop(Status.BAD_INPUT, f"line {self.number}: {why}; nothing sent")

    @property
    def fault(self) -> str:
        """Say why the input is not complete; empty when it is."""
        if self.end is None:
            return "no end mark"
        if self.end.count != self.entries:
            return f"{self.entries} of {self.end.count} lines"
        return "marked as partial" if self.end.partial else ""
