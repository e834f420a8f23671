"""The encoding of a text: as its byte order mark tells, as it was served, as it declares, or as it looks.

HTML declares it in a ``meta`` element (HTML Standard, 13.2.3.2). Parsers believe the first one whose label is
known wherever it stands, but none in a comment, a script or a title; an XML declaration counts behind them.
"""

import codecs
import re

from lcc_scrapy.content.charsets import PIECE, UTF_8, encoding_of, marked

_REST_OF_TAG = rb"""(?:=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))|[^>])*+(?:>|\Z)"""
_MARKUP = re.compile(
    rb"""
    <!--(?:-?>|.*?(?:--!?>|\Z))
  | <(?P<raw>script|style|title|textarea|xmp|iframe|noembed|noframes)(?=[\s/>])"""
    + _REST_OF_TAG
    + rb""".*?(?:</(?P=raw)(?=[\s/>])|\Z)
  | <plaintext(?=[\s/>]).*
  | <meta(?=[\s/])(?P<meta>"""
    + _REST_OF_TAG
    + rb""")
  | </?[a-z]"""
    + _REST_OF_TAG
    + rb"""
  | <[!?/][^>]*+(?:>|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
_ATTRIBUTE = re.compile(
    rb"""[\s/]*+([^\s/>=][^\s/>=]*+)\s*+(?:=\s*+(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|([^\s>]*+)))?"""
)
_IN_CONTENT = re.compile(rb"""charset\s*+=\s*+(?:(["'])(.*?)\1|([^\s;"'][^\s;]*+)|)""", re.DOTALL)
_XML = re.compile(rb"""<\?xml\s[^>]*?\sencoding\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_XML_IN_UTF_16 = {b"<\0?\0x\0": "utf-16le", b"\0<\0?\0x": "utf-16be"}
_XML_MAX = 1024
"""Bytes in which an XML declaration ends."""

_MISNOMERS = {"utf-16be": UTF_8, "utf-16le": UTF_8, "x-user-defined": "windows-1252"}
"""A declaration that can be read in ASCII is not in UTF-16."""

_HTML = frozenset({"", "text/html", "text/x-rendered-html"})
_XHTML = "application/xhtml+xml"
_WINDOWS = "windows-1252"
_TAG_MAX = 100_000
"""Bytes of a ``meta`` element that are looked at."""


def encoding_of_text(data: bytes, label: str, mimetype: str, *, whole: bool = True) -> str:
    """Return the encoding of a text; ``label`` and ``mimetype`` are as served, empty = not said (HTML).

    One that is not ``whole`` may end in half a character.
    """
    return (
        marked(data)[0] or encoding_of(label) or _of_markup(data, mimetype) or _as_it_looks(data, whole=whole)
    )


def _as_it_looks(data: bytes, *, whole: bool) -> str:
    """Return UTF-8 where it is that, or else what Windows wrote, in which everything can be read."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), PIECE):
            decoder.decode(data[start : start + PIECE])
        decoder.decode(b"", whole)
    except UnicodeDecodeError:
        return _WINDOWS
    return UTF_8


def _of_markup(data: bytes, mimetype: str) -> str:
    if mimetype in _HTML:
        return _of_meta(data) or _of_xml(data)
    if mimetype == _XHTML:
        return _of_xml(data) or _of_meta(data)
    return _of_xml(data) if mimetype.endswith(("/xml", "+xml")) else ""


def _of_xml(data: bytes) -> str:
    head = data[:_XML_MAX]
    if head[:6] in _XML_IN_UTF_16:
        return _XML_IN_UTF_16[head[:6]]
    found = _XML.match(head)
    return _declared(found[1] or found[2] or b"") if found else ""


def _declared(label: bytes) -> str:
    encoding = encoding_of(label.decode("latin-1"))
    return _MISNOMERS.get(encoding, encoding)


def _of_meta(data: bytes) -> str:
    lower = data.lower()
    last = lower.rfind(b"charset")
    for found in _MARKUP.finditer(lower):
        if found.start() > last:
            break
        encoding = _of_attributes(found["meta"][:_TAG_MAX]) if found["meta"] else ""
        if encoding:
            return encoding
    return ""


def _of_attributes(tag: bytes) -> str:
    """Return what a ``meta`` element declares: by ``charset``, or by the ``content`` of a Content-Type."""
    attributes: dict[bytes, bytes] = {}
    for name, *values in _ATTRIBUTE.findall(tag):
        attributes.setdefault(name, b"".join(values))
    if b"charset" in attributes:
        return _declared(attributes[b"charset"])
    if attributes.get(b"http-equiv", b"") != b"content-type":
        return ""
    found = _IN_CONTENT.search(attributes.get(b"content", b""))
    return _declared(found[2] or found[3] or b"") if found else ""
