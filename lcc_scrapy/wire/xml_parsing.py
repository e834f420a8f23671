"""Parsing XML that others wrote: any encoding in, one error out.

expat knows four encodings. For any other it asks Python, and raises LookupError for what is none, ValueError
where a character has more than one byte. So it gets nothing but UTF-8 here. A byte order mark says what the
document is in, else its declaration (XML 1.0, 4.3.3 and appendix F), as in browsers.

The provider's commands use this: standard library only, Python 3.8.
"""

from __future__ import annotations

import codecs
import re
from xml.parsers import expat

from lcc_scrapy.wire.ampersands import Ampersands

DECLARATION_MAX = 1024
"""Bytes of the longest XML declaration."""

_PIECE = 64 * 1024
_CONTROLS = dict.fromkeys({*range(0x20), 0xFFFE, 0xFFFF} - {9, 10, 13}, "\ufffd")

WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE, b"\0<", b"\0\0\0<")
"""Beginnings, other than "<", of XML whose characters have two or four bytes."""

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_FIRST_CHARACTERS = (
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_DECLARED = re.compile(rb"""<\?xml\s[^>]*?\bencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")

_LABELS = {
    label: codec
    for codec, labels in {
        "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8 "
        "unicode csunicode iso-10646-ucs-2 ucs-2 iso-10646-ucs-4 ucs-4 unicodefeff unicodefffe",
        "iso8859-1": "iso88591",
        "iso8859-2": "iso88592",
        "iso8859-3": "iso88593",
        "iso8859-4": "iso88594",
        "iso8859-5": "iso88595",
        "iso8859-6": "iso88596 iso-8859-6-e iso-8859-6-i csiso88596e csiso88596i",
        "iso8859-7": "iso88597 sun_eu_greek",
        "iso8859-8": "iso88598 iso-8859-8-e iso-8859-8-i csiso88598e csiso88598i visual logical",
        "iso8859-9": "iso88599",
        "iso8859-10": "iso885910",
        "iso8859-13": "iso885913",
        "iso8859-14": "iso885914",
        "iso8859-15": "iso885915 csisolatin9",
        "koi8-r": "koi koi8",
        "koi8-u": "koi8-ru",
        "mac-roman": "mac csmacintosh x-mac-roman",
        "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
        "cp874": "iso885911 dos-874 windows-874",
        **{f"cp{page}": f"x-cp{page}" for page in range(1250, 1259)},
        "cp932": "windows-31j x-sjis",
        "cp949": "windows-949 cseuckr csksc56011987 iso-ir-149 ks_c_5601-1989 ksc_5601",
        "euc_jp": "x-euc-jp cseucpkdfmtjapanese",
        "gb18030": "x-gbk gb_2312 gb_2312-80 csgb2312",
        "big5hkscs": "cn-big5 x-x-big5",
    }.items()
    for label in labels.split()
}
"""Labels of the Encoding Standard that Python does not know."""

_WIDER = {"shift_jis": "cp932", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949", "big5": "big5hkscs"}
"""Encodings in which sites use characters that only a wider one has."""

_UTF8 = frozenset({"utf-8", "utf-8-sig", "ascii"})
_NO_ENCODINGS = frozenset({"utf-7", "unicode-escape", "raw-unicode-escape", "charmap", "idna", "punycode"})
"""Codecs of Python in which no document is written; some would make markup out of text."""

_OF_EXPAT = frozenset({"utf-8", "utf-16", "iso-8859-1", "us-ascii"})


class BadXml(ValueError):
    """A document cannot be read on; the text says why, ``line`` where, ``sentence`` both."""

    def __init__(self, text: str, line: int = 1) -> None:
        super().__init__(text)
        self.line = line

    @property
    def sentence(self) -> str:
        """All that there is to say."""
        return f"line {self.line}: {self}"


class NotWellFormed(BadXml):
    """It is no XML."""

    @property
    def sentence(self) -> str:
        """All that there is to say."""
        return f"not well-formed, line {self.line}: {self}"


class XmlParser:
    """An expat parser for one document. Its handlers are those of `expat`; what they raise passes.

    ``namespaces``: names come as ``URI local``. ``mends``: see `Ampersands`.
    """

    def __init__(self, *, namespaces: bool = False, mends: bool = False) -> None:
        self.expat = expat.ParserCreate("utf-8", " " if namespaces else None)
        self.expat.buffer_text = True
        self._text = Utf8Text(mends=mends)
        self._fed = 0

    def feed(self, data: bytes, *, last: bool = False) -> None:
        """Parse some bytes, cut wherever they may be; raises `BadXml`."""
        text = self._text.feed(data, last=last)
        self._fed += len(text)
        try:
            self.expat.Parse(text, last)
        except expat.ExpatError as error:
            raise NotWellFormed(expat.ErrorString(error.code), error.lineno) from None

    @property
    def unfinished(self) -> int:
        """Bytes of the tag, comment or text whose end has not come yet."""
        return self._fed - max(self.expat.CurrentByteIndex, 0)


class Utf8Text:
    """A document as it came in, the same in UTF-8 out.

    ``replaces``: what cannot be read becomes U+FFFD, for parsers that would leave it out without a word.
    """

    def __init__(self, *, mends: bool = False, replaces: bool = False) -> None:
        self._begin = b""
        self._begun = False
        self._encoding = "utf-8"
        self._decoder: codecs.IncrementalDecoder | None = None
        self._replaces = replaces
        self._ampersands = Ampersands(replaces=replaces) if mends else None

    def feed(self, data: bytes, *, last: bool = False) -> bytes:
        """Return what these bytes bring; raises `BadXml`."""
        if not self._begun:
            self._begin += data
            if not (last or b">" in self._begin or len(self._begin) > DECLARATION_MAX):
                return b""
            data, self._begin, self._begun = self._read_beginning(self._begin), b"", True
        if self._decoder is not None:
            data = self._decoded(data, last=last)
        return data if self._ampersands is None else self._ampersands.feed(data, last=last)

    def _read_beginning(self, begin: bytes) -> bytes:
        """Decide on the encoding; returns the bytes without a mark."""
        mark, self._encoding = encoding_of(begin)
        if self._replaces or self._encoding not in _UTF8:
            errors = "replace" if self._replaces else "strict"
            self._decoder = codecs.getincrementaldecoder(self._encoding)(errors)
        return begin[mark:]

    def _decoded(self, data: bytes, *, last: bool) -> bytes:
        assert self._decoder is not None
        try:
            text = self._decoder.decode(data, last)
            return (text.translate(_CONTROLS) if self._replaces else text).encode("utf-8")
        except UnicodeError:
            raise BadXml(f"it is not in its encoding, {self._encoding}") from None


def in_utf8(document: bytes, most: int, *, mends: bool = False, replaces: bool = False) -> bytes:
    """Return a whole document in UTF-8, or about as many bytes of it as ``most``; raises `BadXml`."""
    text, found, at = Utf8Text(mends=mends, replaces=replaces), bytearray(), 0
    while at < len(document) and len(found) < most:
        found += text.feed(document[at : at + _PIECE])
        at += _PIECE
    return bytes(found + text.feed(b"", last=True)) if at >= len(document) else bytes(found)


def encoding_of(begin: bytes) -> tuple[int, str]:
    """Return the length of the mark that a document begins with, and Python's name of its encoding.

    Raises `BadXml` where it declares an encoding that nobody knows.
    """
    for mark, encoding in _BOMS:
        if begin.startswith(mark):
            return len(mark), encoding
    for character, encoding in _FIRST_CHARACTERS:
        if begin.startswith(character):
            return 0, encoding
    declared = _DECLARED.match(begin)
    if declared is not None:
        return 0, _codec_of(declared[1].decode("ascii"), declared[0])
    if begin.startswith(b"<?xml") and b">" not in begin[:DECLARATION_MAX]:
        raise BadXml("its XML declaration has no end")
    return 0, "utf-8"


def _codec_of(label: str, declaration: bytes) -> str:
    """Return Python's name of an encoding; the declaration must be readable in it."""
    name = _LABELS.get(label.lower(), label)
    try:
        codec = codecs.lookup(name).name
        if codec.startswith(("utf-16", "utf-32")):
            return "utf-8"  # it would not have been read so far
        is_known = codec not in _NO_ENCODINGS and declaration.decode(name) == declaration.decode("ascii")
    except (LookupError, ValueError):
        is_known = False
    if not is_known:
        raise BadXml(f"its encoding {label[:40]!r} is not known")
    return _WIDER.get(codec, codec)


def refuse_encoding(_version: str, label: str | None, _standalone: int) -> None:
    """Raise `BadXml` for an encoding that expat cannot read by itself.

    It is the XmlDeclHandler of a parser that gets bytes as they came: one that reads several documents out of
    one stream must know where each ends.
    """
    if label is None or label.lower() in _OF_EXPAT:
        return
    _codec_of(label, f'encoding="{label}"'.encode())
    try:
        is_read = len(bytes(range(256)).decode(label, "replace")) == 256  # noqa: PLR2004 - one byte each
    except (LookupError, ValueError):
        is_read = False
    if not is_read:
        raise BadXml(f"its encoding {label[:40]!r} is not read here")
