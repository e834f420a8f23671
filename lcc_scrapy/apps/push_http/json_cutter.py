"""Cuts a JSON text into its members and elements while it arrives, without parsing them.

Every byte is looked at once, however the network cut: a value is parsed only when it is whole.
"""

import re
from collections.abc import Iterator

from lcc_scrapy.uns.charsets import Unreadable

_OUTSIDE = re.compile(rb'"(?:[^"\\]*")?|[\[\]{},:]')
"""A string without escapes, the begin of any other string, or what structures a value."""
_INSIDE = re.compile(rb'["\\]')

_QUOTE, _BACKSLASH = b'"'[0], b"\\"[0]
_OPENING, _CLOSING = frozenset(b"[{"), frozenset(b"]}")


class Cutter:
    """Gives each value with the byte behind it: one of ``,:]}``, or ``[`` before it where ``opens`` is set.

    Brackets within a value are counted and not matched: its parser does that. ``most`` bytes of one value
    are kept; more raise ``Unreadable``.
    """

    def __init__(self, most: int) -> None:
        self.opens = False
        """Stop at a ``[`` with which a value begins, instead of taking all of that value."""
        self._most = most
        self._held = bytearray()
        self._depth = 0
        self._in_string = False
        self._escaped = False

    @property
    def rest(self) -> bytes:
        """What has come of a value that is not whole."""
        return bytes(self._held)

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Take some bytes, and give what is whole; go on to the end, for what is left is kept then."""
        start = at = 0
        while at < len(data):
            if self._in_string:
                at = self._through_string(data, at)
                continue
            found = _OUTSIDE.search(data, at)
            if found is None:
                break
            at = found.end()
            if self._cuts(found[0]):
                yield self._taken(data[start : at - 1]), found[0]
                start = at
        self._keep(data[start:])

    def _through_string(self, data: bytes, at: int) -> int:
        """Return where to go on: behind the string, or behind a character that means something in it."""
        if self._escaped:
            self._escaped = False
            return at + 1
        found = _INSIDE.search(data, at)
        if found is None:
            return len(data)
        self._escaped = found[0][0] == _BACKSLASH
        self._in_string = self._escaped
        return found.end()

    def _cuts(self, mark: bytes) -> bool:
        """Tell whether a value ends here, and count brackets."""
        first = mark[0]
        if first == _QUOTE:
            self._in_string = len(mark) == 1
            return False
        if self._depth == 0 and not (first in _OPENING and not (self.opens and mark == b"[")):
            return True
        self._depth += (first in _OPENING) - (first in _CLOSING)
        return False

    def _taken(self, last: bytes) -> bytes:
        self._keep(last)
        whole = bytes(self._held)
        self._held.clear()
        return whole

    def _keep(self, data: bytes) -> None:
        self._held += data
        if len(self._held) > self._most:
            raise Unreadable(f"more than {self._most} bytes in one element")
