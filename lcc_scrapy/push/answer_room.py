"""How much an LCC may answer: bytes, whatever they are.

An answer has `ANSWER_MAX` bytes. The lists in it are counted apart: types and earlier errors of a login have
bounds of their own, and the refused URLs of a set are bounded by the URLs that were sent.
"""

from __future__ import annotations

from collections.abc import Sequence

ANSWER_MAX = 64 * 1024
"""Bytes of the answer to a login, or to a set, without its lists."""
MIMETYPES_MAX = 1 << 20
"""Bytes of the list of types."""
ERRORS_MAX = 8 << 20
"""Bytes of the list of earlier errors, of which less is kept."""
_URL_ROOM = 1024
"""Bytes of a refused URL besides four times what was sent of it, and the prefix of its set."""

_LOGIN, _SET, _MIMETYPE, _EARLIER, _REFUSED = (
    "the answer to the login", "the answer to the set", "the list of types", "the list of earlier errors",
    "the list of refused URLs",
)  # fmt: skip
_LISTS = {
    ("init_accepted", "mime"): _MIMETYPE,
    ("init_accepted", "processing_status", "errors", "url"): _EARLIER,
    ("set_result", "errors", "url"): _REFUSED,
}


class TooMuch(ValueError):
    """The answer is longer than it can have reason to be."""


class AnswerRoom:
    """What one conversation may still bring."""

    def __init__(self) -> None:
        self._left = {
            _LOGIN: ANSWER_MAX, _SET: ANSWER_MAX, _MIMETYPE: MIMETYPES_MAX, _EARLIER: ERRORS_MAX, _REFUSED: 0
        }  # fmt: skip
        self._urls = 0
        self._prefix = -1

    def is_sent(self, block: bytes) -> None:
        """A part of a set goes out, whole lines: the LCC may refuse each URL in it."""
        if self._prefix < 0:
            self._prefix = block.find(b"\n")
        lines = block.count(b"\n")
        self._urls += lines
        self._left[_REFUSED] += 4 * len(block) + lines * (_URL_ROOM + self._prefix)

    def take(self, path: Sequence[str], size: int) -> None:
        """Some bytes came, up to the end of the element at ``path``. Raises `TooMuch`."""
        kind = _LISTS.get(tuple(path)) or (_SET if path[:1] == ["set_result"] else _LOGIN)
        if kind is _REFUSED:
            self._urls -= 1
            if self._urls < 0:
                raise TooMuch("more URLs are refused than were sent")
        self._left[kind] -= size
        if self._left[kind] < 0:
            raise TooMuch(f"{kind} is too long")
