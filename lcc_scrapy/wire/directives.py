"""Reads files of crawling directives: as text in the form of seed 002 (section 4), as JSON lines, as XML.

Everything is bounded, and nothing is kept: a file may be as long as it likes. What a reader yields is the
number of a line with a ``Directive``, or with what is wrong in it; ``Unreadable`` ends a file.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

from lcc_scrapy.domain.directives import OWNERS_MAX, Directive, directive
from lcc_scrapy.wire.messages import NAMESPACE
from lcc_scrapy.wire.xml_parsing import BadXml, XmlParser

LINE_MAX = 16 * 1024
"""Bytes of a line."""

_BITE = 16 * 1024
_SILENT_MAX = 8 * _BITE
"""Bytes in which no markup may begin or end: expat would keep them all."""

_NAMES_MAX = 32
_OWNERS_READ = 10 * OWNERS_MAX
_FORM = "expected [link, parent link, depth, {owner, owner}] with a blank behind each comma"
_KEYS = {"link", "parent", "depth", "owners"}

Line = tuple[int, Directive | str]


class Unreadable(Exception):
    """The file cannot be read on from here; the text says at which line, and why."""


def read_text(file: BinaryIO) -> Iterator[Line]:
    """Read one directive a line, UTF-8. Empty lines and those that begin with ``#`` say nothing."""
    return _read_lines(file, _of_text)


def read_jsonl(file: BinaryIO) -> Iterator[Line]:
    """Read one object a line, with ``link``, and maybe ``parent``, ``depth`` (0) and ``owners`` ([])."""
    return _read_lines(file, _of_json)


def _read_lines(file: BinaryIO, read: Callable[[str], Directive]) -> Iterator[Line]:
    number, too_long = 1, False
    while line := file.readline(LINE_MAX):
        ends = line.endswith(b"\n") or len(line) < LINE_MAX
        line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if not (ends or too_long):
            yield number, f"longer than {LINE_MAX} bytes"
        elif not too_long and (text := line.strip()) and not text.startswith(b"#"):
            yield number, _checked(text, read)
        too_long = not ends
        number += ends


def _checked(line: bytes, read: Callable[[str], Directive]) -> Directive | str:
    try:
        return read(line.decode())
    except UnicodeDecodeError:
        return "not UTF-8"
    except ValueError as error:
        return str(error)


def _of_text(line: str) -> Directive:
    if not (line.startswith("[") and line.endswith("]")):
        raise ValueError(_FORM)
    parts = re.split(r",\s+", line[1:-1].strip(), maxsplit=3)
    if len(parts) != len(_KEYS) or not (parts[3].startswith("{") and parts[3].endswith("}")):
        raise ValueError(_FORM)
    link, parent, depth, owners = (part.strip() for part in parts)
    names = owners[1:-1].strip()
    return directive(link, parent, depth, [name.strip() for name in names.split(",")] if names else ())


def _of_json(line: str) -> Directive:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
    if not isinstance(said, dict) or not said.keys() <= _KEYS:
        raise ValueError(f"expected an object with {', '.join(sorted(_KEYS))} and no other keys")
    link, parent, depth = said.get("link", ""), said.get("parent") or "", said.get("depth", 0)
    owners = said.get("owners", [])
    if not isinstance(owners, list) or not all(isinstance(one, str) for one in (link, parent, *owners)):
        raise ValueError("link and parent are strings, owners a list of strings")
    if type(depth) is not int:
        raise ValueError(f"depth {str(depth)[:20]!r}, expected a whole number")
    return directive(link, parent, depth, owners)


def read_xml(file: BinaryIO) -> Iterator[Line]:
    """Read ``<lococa:directives>`` with ``<directive link= parent= depth=><owner>…</owner></directive>``.

    What else stands in it makes it unreadable, a DTD first of all.
    """
    reader = _XmlReader()
    while bite := file.read(_BITE):
        reader.feed(bite)
        yield from reader.take()
    reader.feed(b"")
    yield from reader.take()


class _XmlReader:
    """Elements in, directives out. Names come as expat gives them with namespaces: ``URI local``."""

    def __init__(self) -> None:
        self._parser = XmlParser(namespaces=True)
        parser = self._parser.expat
        parser.buffer_text = False
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartNamespaceDeclHandler = self._prefix
        parser.CommentHandler = self._alive
        parser.ProcessingInstructionHandler = self._alive
        self._found: list[Line] = []
        self._place = ""
        self._said: dict[str, str] = {}
        self._line = 0
        self._owners: list[str] = []
        self._owner = ""
        self._prefixes = 0
        self._silent = 0

    def feed(self, bite: bytes) -> None:
        """Parse some bytes; none at all = the file has ended."""
        self._silent += len(bite)
        try:
            self._parser.feed(bite, last=not bite)
        except BadXml as error:
            raise Unreadable(f"line {error.line}: {error}") from None
        if self._silent > _SILENT_MAX:
            raise self._unreadable(f"more than {_SILENT_MAX} bytes in one piece of markup")

    def take(self) -> list[Line]:
        """Return what was found since."""
        found, self._found = self._found, []
        return found

    def _unreadable(self, what: str) -> Unreadable:
        return Unreadable(f"line {self._parser.expat.CurrentLineNumber}: {what}")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._silent = 0
        uri, _, local = name.rpartition(" ")
        place = f"{self._place}/{local}"
        if uri not in ({NAMESPACE} if not self._place else {NAMESPACE, ""}):
            raise self._unreadable(f"not this format: element {local[:40]!r} in namespace {uri[:80]!r}")
        if place == "/directives/directive" and attributes.keys() <= _KEYS - {"owners"}:
            self._said, self._owners, self._line = attributes, [], self._parser.expat.CurrentLineNumber
        elif place not in {"/directives", "/directives/directive/owner"} or attributes:
            raise self._unreadable(f"element {local[:40]!r} may not stand here, or not with these attributes")
        self._owner = ""
        self._place = place

    def _end(self, _name: str) -> None:
        self._silent = 0
        if self._place == "/directives/directive/owner":
            self._owners.append(self._owner.strip())
            if len(self._owners) > _OWNERS_READ:
                raise self._unreadable(f"more than {_OWNERS_READ} owners in one directive")
        elif self._place == "/directives/directive":
            self._found.append((self._line, self._made()))
        self._place = self._place.rpartition("/")[0]

    def _made(self) -> Directive | str:
        said = self._said
        try:
            return directive(
                said.get("link", ""), said.get("parent", ""), said.get("depth", "0"), self._owners
            )
        except ValueError as error:
            return str(error)

    def _text(self, text: str) -> None:
        self._silent = 0
        if self._place.endswith("/owner"):
            self._owner += text
        elif text.strip():
            raise self._unreadable("text outside of owners")
        if len(self._owner) > LINE_MAX:
            raise self._unreadable("an owner that is too long")

    def _doctype(self, *_: object) -> None:
        raise self._unreadable("a document type declaration (DOCTYPE) is not read")

    def _prefix(self, *_: object) -> None:
        self._prefixes += 1
        if self._prefixes > _NAMES_MAX:
            raise self._unreadable(f"more than {_NAMES_MAX} namespaces")

    def _alive(self, *_: object) -> None:
        self._silent = 0


READERS: dict[str, Callable[[BinaryIO], Iterator[Line]]] = {
    "text": read_text,
    "jsonl": read_jsonl,
    "xml": read_xml,
}
