"""Documents as JSON lines: the columns of ``lcc select``, ``title`` and ``text`` where somebody wants them,
and ``content`` in base64.
"""

import base64
import json
from typing import IO

from lcc_scrapy.apps.exports.interface import Item, text_fields
from lcc_scrapy.feed.row_formats import Record

_BLOCK = 3 * 64 * 1024
"""Bytes encoded at a time; a multiple of three, so that pieces of base64 fit together."""


class JsonLinesWithContent:
    """One object a line; the last one has the cursor, and tells by being there that nothing is missing."""

    def __init__(self, out: IO[bytes], *, content: bool = True) -> None:
        self._out = out
        self._content = content

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Write a line, piece by piece."""
        self._out.write(_line({**item.record, **text_fields(item)})[:-1])
        if self._content:
            self._out.write(b', "content": "')
            while block := content.read(_BLOCK):
                self._out.write(base64.b64encode(block))
            self._out.write(b'"')
        self._out.write(b"}\n")

    def departure(self, one: Record) -> None:
        """Write a line."""
        self._out.write(_line(one) + b"\n")

    def end(self, manifest: IO[bytes], size: int, last: Record) -> None:
        """Write the last line; everything else has been told."""
        del manifest, size
        self._out.write(_line(last) + b"\n")

    def close(self) -> None:
        """Everything is written."""


def _line(one: Record) -> bytes:
    given = {name: value for name, value in one.items() if name != "path"}
    return json.dumps(given, ensure_ascii=False).encode("utf-8", "backslashreplace")
