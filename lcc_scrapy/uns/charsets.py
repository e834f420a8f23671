"""Decoding: bytes in any charset become whole pieces of UTF-8 for the XML parser (design section 4).

What providers send is XML by their own lights: several documents on one stream, a declaration before
each of them, Latin-1 without saying so, ampersands that nobody escaped. A piece given out always ends
with ``>``, so that neither a character, nor a reference, nor a declaration is ever cut, whatever the
network did to the stream.
"""

import codecs
import re
from collections.abc import Iterator

from lcc_scrapy.domain.uns_limits import Limits

_DECLARATION = b"<?xml"
_DECLARATION_START = re.compile(re.escape(_DECLARATION) + rb"(?=[ \t\r\n])")
_DECLARED_ENCODING = re.compile(rb"""\sencoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
_BARE_AMPERSAND = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9A-Fa-f]+);)")
_UTF8_BOM = b"\xef\xbb\xbf"
_LONGEST_BOM = 4

_TEXT_ENCODINGS = frozenset(
    {"ascii", "big5", "cp437", "cp850", "cp866", "cp932", "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk"}
    | {"koi8-r", "koi8-u", "mac-roman", "shift_jis", "tis-620", "utf-8"}
    | {f"iso8859-{part}" for part in range(1, 17)}
    | {f"cp{page}" for page in range(1250, 1259)}
)
"""Encodings in which every byte below 128 that follows a ``>`` stands for itself; no others are read."""

_UNDECLARED = ""


class Unreadable(Exception):
    """The stream cannot be read on; the text says why, the flag whether it was only too long."""

    def __init__(self, detail: str, *, too_large: bool = False) -> None:
        super().__init__(detail)
        self.too_large = too_large


def _as_latin1(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("iso8859-1"), error.end


def _as_nul(error: UnicodeError) -> tuple[str, int]:
    """Put what no XML parser takes where an encoding was violated, so that all before it still counts."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\0", error.end


codecs.register_error("lcc.latin1", _as_latin1)
codecs.register_error("lcc.nul", _as_nul)


def _wide_encoding(head: bytes) -> str | None:
    """Recognise UTF-16 by its mark or by its first ``<`` (XML 1.0, appendix F)."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if head.startswith(b"<\0"):
        return "utf-16-le"
    return "utf-16-be" if head.startswith(b"\0<") else None


class Normaliser:
    """Gives UTF-8 without declarations and bare ampersands; holds at most one unfinished tag.

    ``feed`` raises ``Unreadable``: not XML, an unknown encoding, a tag without end.
    """

    def __init__(self, limits: Limits) -> None:
        self._limit = limits.element_bytes
        self._login_limit = limits.login_bytes
        self._skipped = 0
        self._held = bytearray()
        self._encoding = _UNDECLARED
        self._wide: codecs.IncrementalDecoder | None = None
        self._head: bytes | None = b""
        self._begun = False

    @property
    def holds_something(self) -> bool:
        """Tell whether an unfinished tag or character is still held."""
        return bool(self._held.strip()) or bool(self._head)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take at most ``Limits.element_bytes`` and give the pieces that are whole by now."""
        data = self._as_bytes_of_ascii_kind(data)
        if not self._begun:
            data = self._begin(data)
        self._check_gap(data)
        last = data.rfind(b">") + 1
        if not last:
            self._held += data
            return
        whole = bytes(self._held) + data[:last]
        self._held = bytearray(data[last:])
        yield from self._split(whole)

    def _check_gap(self, data: bytes) -> None:
        found = data.find(b">")
        if len(self._held) + (found if found >= 0 else len(data)) > self._limit:
            raise Unreadable(f"more than {self._limit} bytes in one element")

    def _as_bytes_of_ascii_kind(self, data: bytes) -> bytes:
        """Turn UTF-16 into UTF-8; leave everything else for later."""
        if self._head is not None:
            data = self._head + data
            if len(data) < _LONGEST_BOM:
                self._head = data
                return b""
            self._head = None
            wide = _wide_encoding(data)
            self._wide = codecs.getincrementaldecoder(wide)("lcc.nul") if wide else None
        return data if self._wide is None else self._wide.decode(data).encode()

    def _begin(self, data: bytes) -> bytes:
        """Skip what may stand before the first tag; anything but a tag is not XML at all."""
        given = bytes(self._held) + data
        self._held.clear()
        data = given.lstrip(b" \t\r\n").removeprefix(_UTF8_BOM).lstrip(b" \t\r\n")
        self._skipped += len(given) - len(data)
        if self._skipped > self._login_limit:
            raise Unreadable(f"more than {self._login_limit} bytes before the login")
        if data and not data.startswith(b"<") and not _UTF8_BOM.startswith(data):
            raise Unreadable("not XML: does not begin with '<'")
        self._begun = data.startswith(b"<")
        return data

    def _split(self, whole: bytes) -> Iterator[bytes]:
        """Cut the declarations out; each switches the encoding of what follows."""
        if _DECLARATION not in whole:
            yield self._utf8(whole)
            return
        start = 0
        while found := _DECLARATION_START.search(whole, start):
            if found.start() > start:
                yield self._utf8(whole[start : found.start()])
            end = whole.find(b"?>", found.end())
            if end < 0:
                self._held[:0] = whole[found.start() :]
                self._check_gap(b"")
                return
            self._switch(whole[found.start() : end])
            start = end + 2
        if start < len(whole):
            yield self._utf8(whole[start:] if start else whole)

    def _switch(self, declaration: bytes) -> None:
        declared = _DECLARED_ENCODING.search(declaration)
        name = declared[1].decode("ascii").lower() if declared else _UNDECLARED
        # In a UTF-16 stream all is transcoded already; elsewhere who could write the word was not UTF-16.
        if self._wide is not None or not name or name.startswith(("utf-16", "utf16", "ucs-2")):
            self._encoding = _UNDECLARED
            return
        try:
            encoding = codecs.lookup(name).name
        except LookupError:
            encoding = ""
        if encoding not in _TEXT_ENCODINGS:
            raise Unreadable(f"encoding {name!r} is not known here")
        self._encoding = encoding

    def _utf8(self, piece: bytes) -> bytes:
        if not piece.isascii():
            piece = self._recode(piece)
        return _BARE_AMPERSAND.sub(b"&amp;", piece) if b"&" in piece else piece

    def _recode(self, piece: bytes) -> bytes:
        if self._encoding == _UNDECLARED:
            return piece.decode("utf-8", "lcc.latin1").encode()
        return piece.decode(self._encoding, "lcc.nul").encode()
