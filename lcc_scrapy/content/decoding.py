"""Content codings (RFC 9110 section 8.4): bodies are decoded as they arrive, in pieces of bounded size.

A coded body that ends before its own end is cut, even when as many bytes came as were announced; only
checksum and length of gzip and zlib may be missing behind data that is complete. What stands behind the end
is ignored, but for further members of gzip and frames of zstd.

A coding that is not known is refused: packed bytes are no page. Names that are no coding at all, which sites
send by mistake, count as none: charsets, transfer encodings of mail, and what is left of uploads to S3.
"""

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

import brotli

from lcc_scrapy.content.charsets import encoding_of
from lcc_scrapy.domain.errors import LccError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PIECE = 256 * 1024
"""Largest piece of decoded content in bytes, whatever the ratio (brotli may give twice as much)."""

_WINDOW_LOG = 23
"""zstd may look back 8 MB and no more (RFC 9659); the format would permit 2 GB of memory for each body."""

_CHECK = 4
"""Bytes of a checksum, and of a length, behind the data of gzip; zlib has a checksum only."""

_BITE = 8192
"""Bytes that are decoded at a time: each part of a body copies what is left of them."""

_FREE_PARTS, _LEAST_PART = 1000, 1024
"""Beyond the first thousand, the parts of a body must hold a KB on average: making decoders costs time."""


class BadCoding(LccError):
    """The body is not what its Content-Encoding says, or was cut."""


class Decoder(Protocol):
    """Decodes one body."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take the next bytes as they came; gives decoded ones. Raises ``BadCoding``."""

    def end(self) -> None:
        """Note that the body has ended; raises ``BadCoding`` when it had not."""


class Plain:
    """No coding."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Give the bytes as they came."""
        yield data

    def end(self) -> None:
        """Nothing can be missing."""


class _Refused:
    """A coding that is not known, or several: each would multiply what the next may cost."""

    def __init__(self, why: str) -> None:
        self._why = why

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Refuse."""
        del data
        raise BadCoding(self._why)

    def end(self) -> None:
        """An empty body has no coding."""


class _Coded:
    """A coding whose decoder is made anew for every part of a body; an empty body has no parts."""

    def __init__(self, make: Callable[[bytes], "_Part"], *, many: bool) -> None:
        self._make = make
        self._many = many
        self.checked = False
        self._part: _Part | None = None
        self._parts = 0
        self._given = False
        self._length = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decode; raises ``BadCoding``."""
        for begin in range(0, len(data), _BITE):
            yield from self._decoded(data[begin : begin + _BITE])

    def _decoded(self, data: bytes) -> Iterator[bytes]:
        while data and (self._many or not self._complete):
            if self._part is None or self._complete:
                self._part = self._next_part(data)
            try:
                for piece in self._part.pieces(data):
                    self._given = True
                    self._length += len(piece)
                    yield piece
            except (zlib.error, brotli.error, zstd.ZstdError) as error:
                self._stop_at_junk(error)
                return
            data = self._part.rest()

    def _next_part(self, data: bytes) -> "_Part":
        self._parts += 1
        self._given = False
        if self._parts > _FREE_PARTS + self._length // _LEAST_PART:
            raise BadCoding(f"{self._parts} parts with next to nothing in them")
        return self._make(data)

    def _stop_at_junk(self, error: Exception) -> None:
        if self._parts == 1 or self._given:
            raise BadCoding(str(error)) from None
        self._part, self._many = None, False

    @property
    def _complete(self) -> bool:
        return self._part.complete() if self._part is not None else self._parts > 0

    def end(self) -> None:
        """Raise ``BadCoding`` when data of the part that began last is missing."""
        if not self._parts or self._complete:
            return
        if self.checked or not (isinstance(self._part, _Zlib) and self._part.lacks_only_checks()):
            raise BadCoding("the coded body was cut")


class _Part(Protocol):
    def pieces(self, data: bytes) -> Iterator[bytes]: ...

    def complete(self) -> bool: ...

    def rest(self) -> bytes: ...


class _Zlib:
    def __init__(self, wbits: int) -> None:
        self._zlib = zlib.decompressobj(wbits)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while piece := self._zlib.decompress(data, PIECE):
            yield piece
            data = self._zlib.unconsumed_tail

    def complete(self) -> bool:
        return self._zlib.eof

    def lacks_only_checks(self) -> bool:
        """Tell whether all data came, and nothing but the checksum or the length behind it is missing.

        zlib does not say so. But it compares each of the two as soon as its four bytes have come, so zeros
        in place of the missing ones end there. If data were missing as well, more zeros would be needed.
        """
        for given in range(2 * _CHECK):
            try:
                self._zlib.decompress(b"\0")
            except zlib.error as error:
                early = given < _CHECK and "incorrect data check" in str(error)
                return early or "incorrect length check" in str(error)
        return self._zlib.eof

    def rest(self) -> bytes:
        return self._zlib.unused_data


class _Brotli:
    def __init__(self) -> None:
        self._brotli = brotli.Decompressor()

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while piece := self._brotli.process(data, output_buffer_limit=PIECE):
            yield piece
            data = b""

    def complete(self) -> bool:
        return bool(self._brotli.is_finished())

    def rest(self) -> bytes:
        return b""


class _Zstd:
    def __init__(self) -> None:
        self._zstd = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG})

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while not self._zstd.eof:
            yield self._zstd.decompress(data, PIECE)
            if self._zstd.needs_input:
                return
            data = b""

    def complete(self) -> bool:
        return self._zstd.eof

    def rest(self) -> bytes:
        return self._zstd.unused_data


def _deflate(data: bytes) -> _Zlib:
    """Make a decoder for "deflate", which some servers send without the zlib wrapper that it should have."""
    return _Zlib(zlib.MAX_WBITS if data[0] & 0xF == 8 else -zlib.MAX_WBITS)  # noqa: PLR2004 - RFC 1950


_CODINGS: dict[str, Callable[[], _Coded]] = {
    "gzip": lambda: _Coded(lambda _: _Zlib(zlib.MAX_WBITS | 16), many=True),
    "x-gzip": lambda: _Coded(lambda _: _Zlib(zlib.MAX_WBITS | 16), many=True),
    "deflate": lambda: _Coded(_deflate, many=False),
    "br": lambda: _Coded(lambda _: _Brotli(), many=False),
    "zstd": lambda: _Coded(lambda _: _Zstd(), many=True),
}
_NO_CODINGS = frozenset({"", "identity", "none", "7bit", "8bit", "binary", "aws-chunked"})
ACCEPTED = ("br", "deflate", "gzip", "zstd")
"""Codings to ask for."""


def is_decoded(coding: str) -> bool:
    """Tell whether bodies of this Content-Encoding are decoded; others are stored as they came."""
    return bool(coding) and any(name in _CODINGS for name in _names(coding))


def to_undo(coding: str) -> list[str]:
    """Return the codings of a Content-Encoding in the order they were applied, none if one is not known."""
    names = _names(coding)
    return names if all(name in _CODINGS for name in names) else []


def decoder(coding: str, *, checked: bool = False) -> Decoder:
    """Return a decoder for one body with this Content-Encoding (empty = none).

    A body with more than one coding is refused, and so is one whose coding is not known. ``checked``: the
    checksum behind the data must be there, too, which some sites leave out.
    """
    names = _names(coding)
    if not names:
        return Plain()
    if len(names) > 1:
        return _Refused("more than one content coding")
    make = _CODINGS.get(names[0])
    if make is None:
        return _Refused(f"content coding {names[0][:40]!r}")
    made = make()
    made.checked = checked
    return made


def _names(coding: str) -> list[str]:
    if not coding:
        return []
    names = [name.strip().lower() for name in coding.split(",")]
    return [name for name in names if name in _CODINGS or not _is_no_coding(name)]


def _is_no_coding(name: str) -> bool:
    return name in _NO_CODINGS or bool(encoding_of(name))
