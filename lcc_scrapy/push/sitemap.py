"""Reads sitemaps (sitemaps.org 0.9): bytes in, entries out, cut wherever they may be; also gzipped ones."""

from __future__ import annotations

import re
import zlib
from calendar import timegm
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from lcc_scrapy.wire.xml_parsing import BadXml, XmlParser

DOCUMENT_MAX = 50 * 1024 * 1024
"""Bytes of one sitemap, unpacked: what its protocol allows."""
TEXT_MAX = 8 * 1024
TOKEN_MAX = 256 * 1024
DEPTH_MAX = 32
_BITE = 16 * 1024
_GZIP = b"\x1f\x8b"
_URLSET, _INDEX = "urlset", "sitemapindex"
_ENTRIES = {_URLSET: "url", _INDEX: "sitemap"}
_LEAST = (1, 1, 1, 0, 0, 0)
_DATE = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?(Z|z|[+-]\d\d:?\d\d)?)?)?)?",
    re.ASCII,
)


class NotASitemap(Exception):
    """What came is no sitemap, or one beyond all bounds; the text says why."""


@dataclass(frozen=True)
class Entry:
    """A URL of the site, or another sitemap. ``modified``: epoch seconds, None = not said."""

    loc: str
    modified: int | None = None


class SitemapReader:
    """`feed` and `finish` return the entries that became complete; both raise `NotASitemap`."""

    def __init__(self) -> None:
        self._unpacker: Unpacker | None = None
        self._begin = b""
        self._size = 0
        self._quiet = 0
        self._path: list[str] = []
        self._texts: list[str] = []
        self._text_size = 0
        self._found: dict[str, str] = {}
        self._entries: list[Entry] = []
        self.is_index = False
        self.dropped = 0
        """Entries without a URL that can be used."""
        self._parser = XmlParser(namespaces=True, mends=True)
        self._parser.expat.StartElementHandler = self._start
        self._parser.expat.EndElementHandler = self._end
        self._parser.expat.CharacterDataHandler = self._text
        self._parser.expat.StartDoctypeDeclHandler = _refuse_doctype

    def feed(self, data: bytes) -> list[Entry]:
        """Take in some bytes, at most a megabyte."""
        if self._unpacker is None:
            data, self._begin = self._begin + data, b""
            if len(data) < len(_GZIP):
                self._begin = data
                return []
            self._unpacker = Unpacker(packed=data.startswith(_GZIP))
        for piece in self._unpacker.pieces(data):
            self._size += len(piece)
            if self._size > DOCUMENT_MAX:
                raise NotASitemap(f"larger than {DOCUMENT_MAX // 2**20} MB unpacked")
            self._parse(piece)
        return self._taken()

    def _taken(self) -> list[Entry]:
        entries, self._entries = self._entries, []
        return entries

    def finish(self) -> list[Entry]:
        """Check that the document is whole."""
        if self._unpacker is None:
            raise NotASitemap("empty")
        try:
            self._parse(b"", last=True)
        except NotASitemap:
            self._unpacker.finish()
            raise
        return self._taken()

    def _parse(self, piece: bytes, *, last: bool = False) -> None:
        self._quiet += len(piece)
        try:
            self._parser.feed(piece, last=last)
        except BadXml as error:
            raise NotASitemap(error.sentence) from None
        if self._quiet > TOKEN_MAX:
            raise NotASitemap("a tag or text without an end")

    def _start(self, name: str, _attributes: dict[str, str]) -> None:
        self._quiet = 0
        if len(self._path) >= DEPTH_MAX:
            raise NotASitemap("nested too deeply")
        local = name.rpartition(" ")[2]
        if not self._path:
            if local not in _ENTRIES:
                raise NotASitemap(f"<{local[:50]}> instead of <urlset> or <sitemapindex>")
            self.is_index = local == _INDEX
        self._path.append(local)
        self._texts, self._text_size = [], 0

    def _text(self, text: str) -> None:
        if self._text_size <= TEXT_MAX:
            self._texts.append(text)
            self._text_size += len(text)

    def _end(self, _name: str) -> None:
        self._quiet = 0
        root, *inner = self._path
        self._path.pop()
        if inner[:1] != [_ENTRIES[root]]:
            return
        if len(inner) == 2 and inner[1] in {"loc", "lastmod"}:  # noqa: PLR2004 - a child of an entry
            self._found[inner[1]] = "".join(self._texts).strip() if self._text_size <= TEXT_MAX else ""
        elif len(inner) == 1:
            self._entry(self._found.get("loc", ""), self._found.get("lastmod", ""))
            self._found = {}

    def _entry(self, loc: str, lastmod: str) -> None:
        if re.match(r"https?://[^\s/?#]", loc, re.IGNORECASE) and not re.search(r"\s", loc):
            self._entries.append(Entry(loc, modified(lastmod)))
        else:
            self.dropped += 1


class Unpacker:
    """Unpacks gzip by and by; what is not packed passes."""

    def __init__(self, *, packed: bool) -> None:
        self._packed = zlib.decompressobj(31) if packed else None

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Return an iterator of at most 16 KB each."""
        return _plain(data) if self._packed is None else self._unpacked(data)

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        assert self._packed is not None
        rest = data
        try:
            while rest:
                piece = self._packed.decompress(rest, _BITE)
                rest = self._packed.unconsumed_tail
                if piece:
                    yield piece
                elif not rest:
                    return
        except zlib.error:
            raise NotASitemap("its gzip cannot be unpacked") from None

    def finish(self) -> None:
        """Check that the packed stream is whole; a document that is needs no more of it."""
        if self._packed is not None and not self._packed.eof:
            raise NotASitemap("its gzip is cut short")


def _plain(data: bytes) -> Iterator[bytes]:
    return (data[at : at + _BITE] for at in range(0, len(data), _BITE))


def _refuse_doctype(*_declaration: object) -> None:
    raise NotASitemap("a document type declaration (DOCTYPE)")


def modified(text: str) -> int | None:
    """Read a W3C date (year, month, day, or with a time); None for anything else."""
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    numbers = (int(part or least) for part, least in zip(found.groups()[:6], _LEAST))
    year, month, day, hour, minute, second = numbers
    try:
        moment = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - its zone is taken off below
    except ValueError:
        return None
    return timegm(moment.timetuple()) - _offset(found[7] or "Z")


def _offset(zone: str) -> int:
    if zone in "Zz":
        return 0
    digits = zone[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return seconds if zone[0] == "+" else -seconds
