"""Ampersands that nobody wrote as XML wants them: sitemaps and feeds are often put together without escaping.

Standard library only, Python 3.8.
"""

from __future__ import annotations

import re
from html.entities import html5
from re import Match

REFERENCE_MAX = 40
"""Bytes of the longest reference to a character or entity."""

_ENDS = {b"<![CDATA[": b"]]>", b"<!--": b"-->"}
_BEGINNING = re.compile(rb"<!\[CDATA\[|<!--")
_NO_REFERENCE = re.compile(rb"&(?!(?:#[0-9]{1,30}|#x[0-9A-Fa-f]{1,30}|[A-Za-z][0-9A-Za-z]{0,31});)")
_NAMED = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos);)([A-Za-z][0-9A-Za-z]{0,31};)")
_NUMBERED = re.compile(rb"&#(?:([0-9]{1,30})|x([0-9A-Fa-f]{1,30}));")
_OF_XML = ((9, 10, 13), range(0x20, 0xD800), range(0xE000, 0xFFFE), range(0x10000, 0x110000))
_LOST = "\ufffd".encode()
_CUT = re.compile(rb"(?:&#?[0-9A-Za-z]*|<(?:!(?:-|\[[CDAT]*)?)?)\Z")
"""The end of a text that the next bytes may go on with."""


class Ampersands:
    """Makes ``&`` that begins no reference ``&amp;``, as generators of sitemaps forget it: ``?a=1&b=2``.

    There is no document type, so that XML has five entities. Those of HTML become their characters; the
    parser refuses others, unless they are replaced as in `Utf8Text`. CDATA and comments stay as they are.
    """

    def __init__(self, *, replaces: bool = False) -> None:
        self._replaces = replaces
        self._rest = b""
        self._until = b""
        """The end of the CDATA or comment that is open."""

    def feed(self, data: bytes, *, last: bool = False) -> bytes:
        """Take UTF-8 in, give it back mended; what may be cut waits for the next bytes."""
        found: list[bytes] = []
        at, data = 0, self._rest + data
        while at < len(data):
            stop = self._inside(data, at, found) if self._until else self._outside(data, at, found, last=last)
            if stop == at:
                break
            at = stop
        self._rest = data[at:]
        if last:
            found.append(self._rest)
        return b"".join(found)

    def _inside(self, data: bytes, at: int, found: list[bytes]) -> int:
        """Take CDATA or a comment as it is; returns where to go on."""
        end = data.find(self._until, at)
        stop = max(at, len(data) - len(self._until) + 1) if end < 0 else end + len(self._until)
        found.append(data[at:stop])
        self._until = self._until if end < 0 else b""
        return stop

    def _outside(self, data: bytes, at: int, found: list[bytes], *, last: bool) -> int:
        """Mend text and markup; returns where to go on."""
        beginning = _BEGINNING.search(data, at)
        if beginning is not None:
            stop, self._until = beginning.end(), _ENDS[beginning[0]]
        else:
            cut = None if last else _CUT.search(data, max(at, len(data) - REFERENCE_MAX))
            stop = cut.start() if cut else len(data)
        text = _NAMED.sub(_character, _NO_REFERENCE.sub(b"&amp;", data[at:stop]))
        if self._replaces:
            text = _NUMBERED.sub(_of_xml, _NAMED.sub(_LOST, text))
        found.append(text)
        return stop


def _of_xml(numbered: Match[bytes]) -> bytes:
    number = int(numbered[1]) if numbered[1] else int(numbered[2], 16)
    return numbered[0] if any(number in numbers for numbers in _OF_XML) else _LOST


def _character(named: Match[bytes]) -> bytes:
    found = html5.get(named[1].decode("ascii"), "")
    return "".join(f"&#{ord(one)};" for one in found).encode("ascii") or named[0]
