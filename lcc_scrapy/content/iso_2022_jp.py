"""ISO-2022-JP as browsers decode and encode it (WHATWG Encoding, section 12.2).

Escape sequences switch between four sets of characters; all bytes are below 0x80.
"""

import re
from collections.abc import Iterator

from lcc_scrapy.content.multibyte import BAD, multibyte

_ESCAPE = re.compile(rb"\x1b(?:\(([BJI])|\$[@B])")
_CUT_ESCAPE = re.compile(rb"\x1b[($]?\Z")
_TOKEN = re.compile(rb"([\x21-\x7e]{2})|[\x21-\x7e](?:[^\x1b]|\Z)|[\x00-\xff]", re.DOTALL)
_CUT_TOKEN = re.compile(rb"[\x21-\x7e]\Z")
_UPPER = bytes(byte | 0x80 for byte in range(0x100))
_LOWER = bytes(byte & 0x7F for byte in range(0x100))

_NOTHING = dict.fromkeys((0x0E, 0x0F, 0x1B, *range(0x80, 0x100)), BAD)
_KANJI, _ASCII, _ROMAN, _KANA = b"", b"B", b"J", b"I"
_SINGLE: dict[bytes, dict[int, str]] = {
    _ASCII: _NOTHING,
    _ROMAN: _NOTHING | {0x5C: "\xa5", 0x7E: "\u203e"},
    _KANA: dict.fromkeys(range(0x100), BAD) | {kana: chr(kana + 0xFF40) for kana in range(0x21, 0x60)},
}
"""What bytes stand for in the sets that have one for a character, where it is not ASCII."""

_ROMANS = {"\xa5": b"\\", "\u203e": b"~"}
_TO_SWITCH = {_KANJI: b"\x1b$B", _ASCII: b"\x1b(B", _ROMAN: b"\x1b(J"}
_WIDE = "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜"  # noqa: E501
_AS_WRITTEN = str.maketrans({chr(0xFF61 + at): wide for at, wide in enumerate(_WIDE)} | {"\u2212": "\uff0d"})
_AS_WRITTEN |= dict.fromkeys((0x0E, 0x0F, 0x1B), BAD)
"""Narrow Katakana are written as wide ones, and what would switch is not written at all."""


class Decoder:
    """Decodes one text."""

    def __init__(self) -> None:
        self._rest = b""
        self._set = _ASCII
        self._switched = False
        """Whether nothing has come since the last escape sequence: a second one is an error."""

    def decode(self, data: bytes, final: bool = False) -> str:
        """Take the next bytes."""
        data = self._rest + data
        cut = None if final else _CUT_ESCAPE.search(data, max(0, len(data) - 2))
        end = cut.start() if cut else len(data)
        self._rest = data[end:]
        return "".join(self._parts(data[:end], waits=not final))

    def _parts(self, data: bytes, *, waits: bool) -> Iterator[str]:
        begin = 0
        for escape in _ESCAPE.finditer(data):
            yield self._in_set(data[begin : escape.start()])
            if self._switched:
                yield BAD
            self._switched, self._set = True, escape[1] or _KANJI
            begin = escape.end()
        yield self._in_set(data[begin:], waits=waits and not self._rest)

    def _in_set(self, data: bytes, *, waits: bool = False) -> str:
        if self._set == _KANJI:
            return self._kanji(data, waits=waits)
        self._switched = self._switched and not data
        return data.decode("latin-1").translate(_SINGLE[self._set])

    def _kanji(self, data: bytes, *, waits: bool) -> str:
        table = multibyte("euc-jp").table
        text = []
        for token in _TOKEN.finditer(data):
            if waits and token.end() == len(data) and _CUT_TOKEN.fullmatch(token[0]):
                self._rest = token[0]
                break
            text.append(table[token[1].translate(_UPPER)] if token[1] else BAD)
        self._switched = self._switched and not text
        return "".join(text)


def octets_of(text: str) -> Iterator[bytes | str]:
    """Yield a text as it is written, and as it is each character that has no bytes."""
    now = _ASCII
    for character in text.translate(_AS_WRITTEN):
        if now == _ROMAN and character.isascii() and character not in {"\\", "~"}:
            yield character.encode()
            continue
        wanted, octets = _in_its_set(character)
        if not octets:
            wanted = _ASCII if now == _KANJI else now
        if wanted != now:
            yield _TO_SWITCH[wanted]
            now = wanted
        yield octets or character
    if now != _ASCII:
        yield _TO_SWITCH[_ASCII]


def _in_its_set(character: str) -> tuple[bytes, bytes]:
    """Return the set in which a character is written, and its bytes there; empty = there are none."""
    if character.isascii():
        return _ASCII, character.encode()
    if character in _ROMANS:
        return _ROMAN, _ROMANS[character]
    return _KANJI, multibyte("euc-jp").octets(character).translate(_LOWER)
