"""Chinese, Japanese and Korean text as browsers decode and encode it (WHATWG Encoding, sections 10 to 13).

Python's codecs do most of it at the speed of C. A piece of text that they refuse is read by a table, which
has the characters that they lack and makes of malformed bytes what browsers make of them: an ASCII byte
behind a lead byte without a partner stays, so that no quote and no ``<`` is swallowed.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from itertools import chain, product
from types import MappingProxyType

BAD = "\ufffd"
"""What malformed bytes become."""

_FIRST_LEAD, _LONGEST = 0x80, 4

_BIG5 = """
877a 3875 21d53 2369e 26021 3eec
87a1 258de 3af5 7afc 9f97 24161 2890d 231ea 20a8a 2325e 430a 8484 9f96 942f 4930 8613 5896 974a 9218 79d0 7a32
87b5 6660 6a29 889d 744c 7bc5 6782 7a2c 524f 9046 34e6 73c4 25db9 74c6 9fc7 57b3 492f 544c 4131 2368e 5818
87c9 7a72 27b65 8b8f 46ae 26e88 4181 25d99 7bae 224bc 9fc8 224c1 224c9 224cc 9fc9 8504 235bb 40b4 9fca 44e1
87dc 2adff 62c1 706e 9fcb
a3c0 2400 2401 2402 2403 2404 2405 2406 2407 2408 2409 240a 240b 240c 240d 240e 240f 2410 2411 2412 2413 2414
a3d5 2415 2416 2417 2418 2419 241a 241b 241c 241d 241e 241f 2421 20ac
8e69 7bb8/8e6f 7c06/8e7e 7cce/8eab 7dd2/8eb4 7e1d/8ecd 8005/8ed0 8028/8f57 83c1/8f69 84a8/8f6e 840f/8fcb 89a6
8fcc 89a9/8ffe 8d77/906d 90fd/907a 92b9/90dc 975c/90f1 97ff/91bf 9f16/9244 8503/92af 5159 515b 515d 515e
92c8 936e/92d1 7479/9447 6d67/94ca 799b/95d9 9097/9644 975d/96ed 701e/96fc 5b28/9b76 7201/9b78 77d7/9b7b 7e87
9bc6 99d6/9bde 91d4/9bec 60de/9bf6 6fb6/9c42 8f36/9c53 4fbb/9c62 71df/9c68 9104/9c6b 9df0/9c77 83cf
9cbc 5c10 79e3/9cd0 5a67/9d57 8f0b/9d5a 7b51/9dc4 62d0/9ea9 6062/9eef 75f9/9efd 6c4a/9f60 9b2e/9f66 9f17
9fcb 50ed/9fd8 5f0c/a063 880f/a077 62ce/a0d5 7468/a0df 7162/a0e4 7250/a145 2027/a14e fe51/a1c2 af/a1e3 ff5e
a1f2 2295 2299/a241 2215 fe68/a244 ffe5/a246 ffe0 ffe1/c6cf 5ef4/c6d3 65e0/c6d5 7676/c6d7 96b6
c6de 3003 4edd/fa5f 5029/fa66 507d/fabd 5305/fac5 5344/fad5 537f/fb48 5605/fbb8 5a77/fbf3 5e75/fbf9 5ed0
fc4f 5f58/fc6c 60a4/fcb9 6490/fce2 6674/fcf1 675e/fdb7 6c9c 6e1d/fdbb 6e2f/fdf1 716e/fe52 732a/fe6f 745c
feaa 74e9/fedd 7809
"""
_GB18030 = """
80 20ac/a3a0 3000/a6d9 fe10 fe12 fe11 fe13 fe14 fe15 fe16/a6ec fe17 fe18/a6f3 fe19/a8bc 1e3f
fe59 9fb4/fe61 9fb5/fe66 9fb6 9fb7/fe6d 9fb8/fe7e 9fb9/fe90 9fba/fea0 9fbb/8135f437 e7c7
"""
_EUC_JP = "a1c1 ff5e 2225/a1dd ff0d/a1f1 ffe0 ffe1/a2cc ffe2/8fa2b7 ff5e"
_SHIFT_JIS = "a0 fffd/fd fffd fffd fffd"
"""Where Python's codecs and the standard differ: bytes, and the characters of them and their successors."""


def _differences(text: str) -> Iterator[tuple[bytes, str]]:
    for run in re.split(r"[/\n]", text.strip()):
        first, *characters = run.split()
        for at, character in enumerate(characters):
            yield (int(first, 16) + at).to_bytes(len(first) // 2, "big"), chr(int(character, 16))


def _of_windows() -> Iterator[tuple[bytes, str]]:
    """Yield what the standard adds to JIS X 0208, in rows 13 and 89 to 92, as EUC-JP has it."""
    for row in (13, *range(89, 93)):
        for cell in range(1, 95):
            character = _strict(_shift_jis(row, cell), "cp932")
            if character:
                yield bytes((row + 0xA0, cell + 0xA0)), character


def _shift_jis(row: int, cell: int) -> bytes:
    """Return a cell of JIS X 0208 as Shift_JIS has it: two rows for each lead byte."""
    lead = (row + 1) // 2 + (0x80 if row <= 62 else 0xC0)  # noqa: PLR2004
    odd = 0x40 if cell >= 64 else 0x3F  # noqa: PLR2004 - 0x7F is left out
    return bytes((lead, cell + (odd if row % 2 else 0x9E)))


def _strict(token: bytes, codec: str) -> str:
    """Return what Python makes of one character, empty = nothing."""
    try:
        return token.decode(codec)
    except UnicodeDecodeError:
        return ""


class _Table(dict[bytes, str]):
    """What each character of an encoding stands for, as it is met: what differs, else what Python says."""

    def __init__(self, codec: str, differences: Iterable[tuple[bytes, str]]) -> None:
        super().__init__(differences)
        self._codec = codec

    def __missing__(self, token: bytes) -> str:
        text = _strict(token, self._codec) or (BAD + chr(token[-1]) if _keeps_its_last(token) else BAD)
        if len(token) < _LONGEST and not token.isascii():
            self[token] = text
        return text


def _keeps_its_last(token: bytes) -> bool:
    return 1 < len(token) < _LONGEST and token[-1] < _FIRST_LEAD


class Multibyte:
    """One encoding: ``codec`` is Python's, ``token`` cuts bytes into characters, ``cut`` matches half of one.

    ``differences`` are those between ``codec`` and the standard. ``rare`` are those of them in whose place
    Python puts a character that has bytes of its own. Pairs of ``leads`` and ``trails``, and bytes ``alone``,
    may be written: of several for a character the first, but the last for those of ``last``.
    ``as_written``: characters in whose place others are written.
    """

    def __init__(
        self,
        codec: str,
        token: bytes,
        cut: bytes,
        leads: Iterable[int],
        trails: Iterable[int],
        *,
        alone: Iterable[int] = (),
        differences: Iterable[tuple[bytes, str]] = (),
        rare: tuple[bytes, ...] = (),
        last: str = "",
        as_written: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.table = _Table(codec, differences)
        self._codec = codec
        self._token = re.compile(token)
        self._cut = re.compile(cut)
        self._alone, self._leads, self._trails = alone, leads, trails
        self._rare = rare
        self._last = last
        self._as_written = as_written
        self._mistaken = {
            python: text
            for token, text in self.table.items()
            if token not in rare and (python := _strict(token, codec)) not in {"", text}
        }

    def decode(self, data: bytes, *, final: bool) -> tuple[str, bytes]:
        """Return the text of some bytes, and those at the end that wait for more: none if ``final``."""
        decoder = codecs.getincrementaldecoder(self._codec)()
        try:
            text = decoder.decode(data, final)
        except UnicodeDecodeError:
            return self._by_table(data, final=final)
        if any(token in data for token in self._rare):
            return self._by_table(data, final=final)
        for python, character in self._mistaken.items():
            text = text.replace(python, character)
        return text, decoder.getstate()[0]

    def _by_table(self, data: bytes, *, final: bool) -> tuple[str, bytes]:
        tokens: list[bytes] = self._token.findall(data)
        rest = tokens.pop() if tokens and self._cut.fullmatch(tokens[-1]) else b""
        text = "".join(map(self.table.__getitem__, tokens))
        return (text + BAD, b"") if rest and final else (text, rest)

    def octets(self, character: str) -> bytes:
        """Return the bytes of a character, empty = it has none."""
        character = self._as_written.get(character, character)
        return character.encode() if character.isascii() else self._inverse.get(character, b"")

    @cached_property
    def _inverse(self) -> dict[str, bytes]:
        inverse: dict[str, bytes] = {}
        alone = (bytes((byte,)) for byte in self._alone)
        pairs = (bytes(pair) for pair in product(self._leads, self._trails))
        for token in chain(alone, pairs):
            character = self.table[token]
            if character in self._last:
                inverse[character] = token
            elif BAD not in character:
                inverse.setdefault(character, token)
        return inverse


class _Gb18030(Multibyte):
    """GB18030, which has bytes for every character but one."""

    def octets(self, character: str) -> bytes:
        """Return two bytes or four."""
        rare = {"\ue5e5": b"", "\ue7c7": b"\x81\x35\xf4\x37"}.get(character)
        return super().octets(character) or (character.encode("gb18030", "ignore") if rare is None else rare)


_LEAD = rb"[\x81-\xfe]"
_TWO = rb"[\x00-\x7f]+|[\x81-\xfe][\x00-\xff]|[\x80-\xff]"
_GB_CUT = rb"[\x81-\xfe](?:[0-9][\x81-\xfe]?)?"
_GB = (
    rb"[\x00-\x7f]+|[\x81-\xfe](?:[\x40-\x7e\x80-\xff]|[0-9][\x81-\xfe][0-9])|" + _GB_CUT + rb"\Z|[\x80-\xff]"
)
_KANJI = rb"[\x00-\x7f]+|[\x81-\x9f\xe0-\xfc][\x00-\xff]|[\x80-\xff]"
_EUC_CUT = rb"[\x8e\xa1-\xfe]|\x8f[\xa1-\xfe]?"
_EUC = rb"[\x00-\x7f]+|\x8f[\xa1-\xfe](?:[\x00-\xff]|\Z)|[\x8e\x8f\xa1-\xfe][\x00-\xff]|[\x80-\xff]"
"""Tokens: a run of ASCII, a character, half of one at the end (``_CUT``), or a byte that is none."""

_HIGH, _ROWS = range(0x81, 0xFF), range(0xA1, 0xFF)
_GB_TRAILS = (*range(0x40, 0x7F), *range(0x80, 0xFF))
_KANJI_LEADS = (*range(0x81, 0xA0), *range(0xE0, 0xED), *range(0xFA, 0xFD))
"""Without what NEC had chosen of IBM's characters: those are written as IBM's."""


@cache
def multibyte(name: str) -> Multibyte:
    """Return an encoding by its name in the standard; raises ``KeyError``."""
    make: Callable[[], Multibyte] = _ENCODINGS[name]
    return make()


_PRIVATE = dict(
    zip(
        map(chr, (*range(0xE78D, 0xE797), 0xE81E, 0xE826, 0xE82B, 0xE82C, 0xE832, 0xE843, 0xE854, 0xE864)),
        map(chr, (0xFE10, 0xFE12, 0xFE11, *range(0xFE13, 0xFE1A), *range(0x9FB4, 0x9FBC))),
        strict=True,
    )
)
"""What was of private use before it had a place in Unicode."""

_JIS = {"\xa5": "\\", "\u203e": "~", "\u2212": "\uff0d"}

_ENCODINGS = {
    "big5": lambda: Multibyte(
        "big5hkscs",
        _TWO,
        _LEAD,
        _ROWS,
        (*range(0x40, 0x7F), *_ROWS),
        differences=_differences(_BIG5),
        rare=(b"\xa2\x41", b"\xa2\x42"),
        last="\u2550\u255e\u2561\u256a\u5341\u5345",
    ),
    "euc-jp": lambda: Multibyte(
        "euc_jp",
        _EUC,
        _EUC_CUT,
        (0x8E, *_ROWS),
        _ROWS,
        differences=(*_of_windows(), *_differences(_EUC_JP)),
        rare=(b"\x8f\xa2\xb7",),
        as_written=_JIS,
    ),
    "euc-kr": lambda: Multibyte("cp949", _TWO, _LEAD, _HIGH, range(0x41, 0xFF)),
    "gb18030": lambda: _Gb18030(
        "gb18030",
        _GB,
        _GB_CUT,
        _HIGH,
        _GB_TRAILS,
        differences=_differences(_GB18030),
        rare=(b"\x81\x35\xf4\x37",),
        as_written=_PRIVATE,
    ),
    "gbk": lambda: Multibyte(
        "gb18030",
        _GB,
        _GB_CUT,
        _HIGH,
        _GB_TRAILS,
        alone=(0x80,),
        differences=_differences(_GB18030),
        rare=(b"\x81\x35\xf4\x37",),
        as_written=_PRIVATE,
    ),
    "shift_jis": lambda: Multibyte(
        "cp932",
        _KANJI,
        rb"[\x81-\x9f\xe0-\xfc]",
        _KANJI_LEADS,
        (*range(0x40, 0x7F), *range(0x80, 0xFD)),
        alone=(0x80, *range(0xA1, 0xE0)),
        differences=_differences(_SHIFT_JIS),
        as_written=_JIS,
    ),
}
NAMES = frozenset(_ENCODINGS)
