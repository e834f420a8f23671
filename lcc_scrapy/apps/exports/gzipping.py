"""gzip (RFC 1952), member by member. What comes out depends on the bytes alone: no time, no name."""

import zlib
from typing import IO, Any

from lcc_scrapy.apps.exports.interface import LEVEL


class Gzip:
    """A file that compresses what is written to it into members of a gzip file; ``out`` stays open."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._member = _new_member()

    def write(self, data: Any) -> int:
        """Take bytes of the current member, which begins with them if there is none."""
        self._out.write(self._member.compress(data))
        return len(data)

    def end_member(self) -> None:
        """Complete a member; what is written next begins another one."""
        self._out.write(self._member.flush())
        self._member = _new_member()

    def flush(self) -> None:
        """Do nothing: a record's end is its member's."""


def _new_member() -> Any:
    return zlib.compressobj(LEVEL, zlib.DEFLATED, zlib.MAX_WBITS + 16)  # with gzip's head and tail
