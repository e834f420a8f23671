"""Content codings of a request's body: gzip, or none. What comes out of a small body is bounded."""

import zlib
from collections.abc import Iterator

PIECE = 64 * 1024
"""Bytes that are decoded at a time."""

RATIO = 200
"""Times the size of what was sent. Lists of URLs shrink to a tenth or thirtieth."""

FREE = 1_000_000
"""Bytes that any body may become."""

_BITE = 4096
_GZIP = 16 + zlib.MAX_WBITS


class Undecodable(Exception):
    """The body is not what its coding says, or becomes too large."""


class Plain:
    """No coding."""

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Give what has come."""
        yield data

    def finish(self) -> None:
        """Nothing can be missing."""


class Gzip:
    """``Content-Encoding: gzip`` (RFC 1952), of one or several members."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._came = self._gave = 0
        self._begun = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Give what is decoded by now; raises ``Undecodable``."""
        for start in range(0, len(data), _BITE):
            bite = data[start : start + _BITE]
            self._came += len(bite)
            yield from self._decoded(bite)

    def finish(self) -> None:
        """Check that the last member is whole; raises ``Undecodable``."""
        if self._begun and not self._member.eof:
            raise Undecodable("the gzip stream is cut short")

    def _decoded(self, left: bytes) -> Iterator[bytes]:
        while left:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP)
            self._begun = True
            yield self._counted(self._decompress(left))
            left = self._member.unconsumed_tail or self._member.unused_data
        while not self._member.eof and (more := self._decompress(b"")):
            yield self._counted(more)

    def _decompress(self, data: bytes) -> bytes:
        try:
            return self._member.decompress(data, PIECE)
        except zlib.error:
            raise Undecodable("the body is not gzip, as its Content-Encoding says") from None

    def _counted(self, piece: bytes) -> bytes:
        self._gave += len(piece)
        if self._gave > FREE + RATIO * self._came:
            raise Undecodable(f"the body becomes more than {RATIO} times its size")
        return piece


CODINGS: dict[str, type[Plain | Gzip]] = {"": Plain, "identity": Plain, "gzip": Gzip, "x-gzip": Gzip}
"""By the value of ``Content-Encoding``, in lower case."""
