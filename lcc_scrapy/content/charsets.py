"""Text of sites: the encoding that a charset label names, what bytes in it say, and queries written in it.

Labels and encodings are those of browsers (WHATWG Encoding). Other labels that Python knows are read, too:
then the encoding has Python's name. Pages, lists and exported texts are decoded here and nowhere else.
"""

import codecs
import encodings
import pkgutil
from collections.abc import Iterable
from encodings.aliases import aliases
from functools import cache, lru_cache
from typing import Protocol
from urllib.parse import quote

import webencodings
from webencodings.labels import LABELS

from lcc_scrapy.content import iso_2022_jp
from lcc_scrapy.content.multibyte import BAD, NAMES, Multibyte, multibyte

LABEL_MAX = 64
"""Characters of a label: none that is longer is known."""

PIECE = 65_536
"""Bytes that are decoded at a time: one call for a whole page would keep other threads waiting."""

UTF_8 = "utf-8"
_ISO_2022_JP, _REPLACEMENT, _USER_DEFINED = "iso-2022-jp", "replacement", "x-user-defined"
_UTF_16 = frozenset({"utf-16be", "utf-16le"})

_NOT_OF_PAGES = frozenset(
    {"idna", "mbcs", "oem", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)  # as ``codecs.lookup`` calls them
"""Slow ones (punycode: seconds for 100 kB), those of Python, and one that browsers do not read."""

_WITHOUT_MARK = {"utf-16": "utf-16le", "utf-32": "utf-32-le"}
"""What texts are in that have no byte order mark; Python's codecs wait for one."""

_MARKS = (
    (codecs.BOM_UTF8, UTF_8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # which begins as UTF-16 does
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16le"),
    (codecs.BOM_UTF16_BE, "utf-16be"),
)

_PYTHONS = {
    "iso-8859-8-i": "iso-8859-8",
    "macintosh": "mac-roman",
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac-cyrillic",
}
"""Names of the standard that Python does not know."""

_DIFFERENCES = {"koi8-u": {0xAE: "\u045e", 0xBE: "\u040e"}, "windows-1255": {0xCA: "\u05ba"}}
"""Bytes that Python's codecs read in another way than the standard."""

_SINGLE_BYTE = frozenset(LABELS.values()) - NAMES - _UTF_16 - {UTF_8, _ISO_2022_JP, _REPLACEMENT}

_IN_QUERIES = "/%:=&?~+!$,;@()*[]\\^`{|}"
"""What browsers leave as it is in a query, beside letters, digits and ``-._~``."""


def encoding_of(label: str | None) -> str:
    """Return the encoding that a label stands for, empty = none that a text may be in."""
    return _labelled(label) if label and len(label) <= LABEL_MAX and label.isascii() else ""


@lru_cache(maxsize=1000)
def _labelled(label: str) -> str:
    known = webencodings.lookup(label)
    if known is not None and known.name != _REPLACEMENT:
        return str(known.name)
    name = encodings.normalize_encoding(label.strip()).lower()
    return _pythons(name) if name in _python_names() else ""


@cache
def _python_names() -> frozenset[str]:
    """Return the names that Python has codecs for; it remembers each other name that it is asked for."""
    modules = (module.name for module in pkgutil.iter_modules(encodings.__path__))
    return frozenset({*aliases, *aliases.values(), *modules})


def _pythons(name: str) -> str:
    try:
        codec = codecs.lookup(name).name
        b"x".decode(codec, "replace")
    except (LookupError, ValueError):  # one that makes no text
        return ""
    return "" if codec in _NOT_OF_PAGES else _WITHOUT_MARK.get(codec, codec)


def marked(data: bytes) -> tuple[str, int]:
    """Return the encoding that a byte order mark tells, empty = there is none, and the length of the mark."""
    return next(((name, len(mark)) for mark, name in _MARKS if data.startswith(mark)), ("", 0))


class Decoder(Protocol):
    """Decodes one text; what is malformed becomes U+FFFD."""

    def decode(self, data: bytes, final: bool = False, /) -> str:
        """Take the next bytes."""


def decoder(encoding: str) -> Decoder:
    """Return a decoder for one text in an encoding that ``encoding_of`` gave."""
    if encoding in NAMES:
        return _MultibyteDecoder(multibyte(encoding))
    if encoding in _SINGLE_BYTE:
        return _SingleByteDecoder(_table(encoding))
    if encoding == _ISO_2022_JP:
        return iso_2022_jp.Decoder()
    return codecs.getincrementaldecoder(encoding)("replace")


def decoded(data: bytes, encoding: str, *, whole: bool = True) -> str:
    """Return a text without its byte order mark; one that is not ``whole`` may end in half a character."""
    name, length = marked(data)
    text = decoder(encoding)
    starts = range(length if name == encoding else 0, len(data), PIECE)
    return "".join([*(text.decode(data[at : at + PIECE]) for at in starts), text.decode(b"", whole)])


class _MultibyteDecoder:
    def __init__(self, encoding: Multibyte) -> None:
        self._encoding = encoding
        self._rest = b""

    def decode(self, data: bytes, final: bool = False, /) -> str:
        text, self._rest = self._encoding.decode(self._rest + data, final=final)
        return text


class _SingleByteDecoder:
    def __init__(self, table: str) -> None:
        self._table = table

    def decode(self, data: bytes, final: bool = False, /) -> str:
        del final
        return codecs.charmap_decode(data, "strict", self._table)[0]


@cache
def _table(encoding: str) -> str:
    """Return what each byte of an encoding of single bytes stands for."""
    differences = _DIFFERENCES.get(encoding, {})
    return "".join(differences.get(byte) or _character(byte, encoding) for byte in range(0x100))


def _character(byte: int, encoding: str) -> str:
    """Return what a byte stands for; those from 0x80 to 0x9F that Python has none for are controls."""
    if encoding == _USER_DEFINED:
        return chr(byte if byte < 0x80 else byte + 0xF700)  # noqa: PLR2004
    text = bytes((byte,)).decode(_PYTHONS.get(encoding, encoding), "replace")
    return chr(byte) if text == BAD and byte < 0xA0 else text  # noqa: PLR2004


# --- queries ---------------------------------------------------------------------------------------


def query_in(encoding: str, query: str) -> str:
    """Return the query of a link as browsers ask for it on a page in this encoding (URL Standard, 1.3).

    A character that the encoding lacks becomes a percent-encoded reference (``&#162;``).
    """
    return "".join(
        f"%26%23{ord(part)}%3B" if isinstance(part, str) else quote(part, safe=_IN_QUERIES)
        for part in _octets_of(query, encoding)
    )


def _octets_of(text: str, encoding: str) -> Iterable[bytes | str]:
    """Return a text as it is written, and as it is each character that has no bytes."""
    if encoding == _ISO_2022_JP:
        return iso_2022_jp.octets_of(text)
    if encoding in NAMES:
        return [multibyte(encoding).octets(character) or character for character in text]
    if encoding in _SINGLE_BYTE:
        octets = _octets(encoding)
        return [octets.get(character) or character for character in text]
    return [text.encode("utf-8", "replace")]


@cache
def _octets(encoding: str) -> dict[str, bytes]:
    """Return the bytes of all characters of an encoding of single bytes; of several, the first."""
    return {
        character: bytes((byte,))
        for byte, character in reversed([*enumerate(_table(encoding))])
        if character != BAD
    }
