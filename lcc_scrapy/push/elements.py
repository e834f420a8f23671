"""Cuts a stream into elements: mostly one on a line, but also several, or one over some lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

ELEMENT_MAX = 64 * 1024
"""Bytes of the longest element; a longer one is handed on as far as it was read."""

# no attribute value holds a raw "<", so that each of them begins an element, or ends one
_BEGINNING = re.compile(rb"(?=<(?!/))")


def cut(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield (number of the line in which it begins, bytes) of each element, and of whatever is none."""
    open_parts = _Parts()
    number, line_ended = 0, True
    while raw := stream.readline(ELEMENT_MAX + 2):
        number += line_ended
        line_ended = raw.endswith(b"\n")
        if not open_parts.size and raw.isspace():
            continue
        if not open_parts.size and raw.count(b"<") == 1 and raw.startswith(b"<") and _is_whole(raw):
            yield number, raw
            continue
        before, *begun = _BEGINNING.split(raw) if b"<" in raw else [raw]
        if open_parts.size:
            open_parts.add(before)
        elif before and not before.isspace():
            yield number, before
        for part in begun:
            if open_parts.size:
                yield open_parts.take()
            open_parts.begin(number, part)
        if open_parts.is_whole or open_parts.size > ELEMENT_MAX:
            yield open_parts.take()
    if open_parts.size:
        yield open_parts.take()


def _is_whole(part: bytes) -> bool:
    """Tell whether an element ends with these bytes: it is empty, or has an end tag."""
    part = part.rstrip()
    return part.endswith(b"/>") or (part.endswith(b">") and b"</" in part)


class _Parts:
    """An element whose end was not read yet."""

    def __init__(self) -> None:
        self._number = 0
        self._parts: list[bytes] = []
        self.size = 0

    def begin(self, number: int, part: bytes) -> None:
        self._number, self._parts, self.size = number, [part], len(part)

    def add(self, part: bytes) -> None:
        self._parts.append(part)
        self.size += len(part)

    def take(self) -> tuple[int, bytes]:
        taken = self._number, b"".join(self._parts)
        self._parts, self.size = [], 0
        return taken

    @property
    def is_whole(self) -> bool:
        return bool(self._parts) and _is_whole(self._parts[-1])
