"""Reads one file of a source: sitemap, sitemap index, feed, or a list of ResourceSync.

Bytes in, a listing out. Everything is bounded: bytes before and after decoding, entries, depth, and the
length of texts and tags. No document type is accepted, so there are no entities but the five of XML.
"""

import codecs
from collections.abc import Iterable, Iterator

from lcc_scrapy.apps.sources.grammar import Full, Grammar
from lcc_scrapy.apps.sources.plain import read_json, read_lines
from lcc_scrapy.apps.sources.rules import Listing
from lcc_scrapy.content.decoding import BadCoding, decoder
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.kit.fetching import MOST_BYTES
from lcc_scrapy.wire.xml_parsing import WIDE, BadXml, XmlParser

TOKEN_MAX = 1_000_000
"""Bytes of one tag, comment or other piece of XML."""

PIECE = 64 * 1024
_GZIP = b"\x1f\x8b"
_BEGINNINGS = (b"<", *WIDE)
_BLANK = codecs.BOM_UTF8 + b" \t\r\n"


class Unreadable(LccError):
    """A file is not what it should be; the text says why."""


def read(pieces: Iterable[bytes], most: int = MOST_BYTES) -> Listing:
    """Read a file that comes in pieces, packed with gzip or not; raises ``Unreadable``."""
    try:
        return _read(_bounded(_unpacked(pieces), most))
    except (BadCoding, ValueError, RecursionError) as error:
        raise Unreadable(_why(error)) from None


def _why(error: Exception) -> str:
    if isinstance(error, BadXml):
        return error.sentence
    return str(error)[:200] or type(error).__name__


def _read(pieces: Iterator[bytes]) -> Listing:
    begin, is_utf8 = b"", False
    for piece in pieces:
        begin = piece.lstrip(_BLANK)
        is_utf8 |= codecs.BOM_UTF8 in piece[: len(piece) - len(begin)]
        if begin:
            break
    if begin.startswith(_BEGINNINGS):
        return _read_xml(_with(codecs.BOM_UTF8 * is_utf8 + begin, pieces))
    if begin.startswith(b"{"):
        return read_json(_with(begin, pieces))
    return read_lines(_with(begin, pieces))


def _with(begin: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield begin
    yield from pieces


def _unpacked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield pieces, unpacked where they begin as gzip does."""
    pieces = iter(pieces)
    begin = b""
    for piece in pieces:
        begin += piece
        if len(begin) >= len(_GZIP):
            break
    coding = decoder("gzip" if begin.startswith(_GZIP) else "")
    for piece in _with(begin, pieces):
        yield from coding.feed(piece)
    coding.end()


def _bounded(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    """Yield pieces of at least ``PIECE`` but the last: some parsers look again at what was cut."""
    came = 0
    waiting = bytearray()
    for piece in pieces:
        came += len(piece)
        if came > most:
            raise ValueError(f"more than {most} bytes")
        waiting += piece
        if len(waiting) >= PIECE:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting)


def _read_xml(pieces: Iterator[bytes]) -> Listing:
    """Read XML until its end, or as many entries as are read at most."""
    grammar = Grammar()
    parser = _parser(grammar)
    try:
        for piece in pieces:
            parser.feed(piece)
            if parser.unfinished > TOKEN_MAX:
                raise ValueError(f"a piece of XML of more than {TOKEN_MAX} bytes")
        parser.feed(b"", last=True)
    except Full:
        return grammar.listing(cut=True)
    return grammar.listing()


def _parser(grammar: Grammar) -> XmlParser:
    parser = XmlParser(namespaces=True, mends=True)
    parser.expat.StartDoctypeDeclHandler = _refuse_doctype
    parser.expat.StartElementHandler = grammar.start
    parser.expat.EndElementHandler = grammar.end
    parser.expat.CharacterDataHandler = grammar.text
    return parser


def _refuse_doctype(*_: object) -> None:
    raise ValueError("it has a document type (<!DOCTYPE), which is not read")
