"""Contents in files and bodies that may be compressed: the way there, and back to what was served.

Both codings hold a check of the whole content, so that a file that was cut or damaged does not decode.
"""

import io
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Protocol

from lcc_scrapy.content.decoding import Decoder, decoder
from lcc_scrapy.domain.cache import Body
from lcc_scrapy.domain.compression import GZIP, ZSTD

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_GZIP_LEVEL = 6
_ZSTD_OPTIONS: Mapping[int, int] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.window_log: 19,  # 1 MB of memory for each body under way instead of 4
    zstd.CompressionParameter.checksum_flag: 1,
}

_BLOCK = 256 * 1024


def decoded(file: IO[bytes], coding: str) -> IO[bytes]:
    """Return the content of a file with this coding (empty = none) as a stream; closing it closes the file.

    Reading raises ``BadCoding`` where the file is damaged.
    """
    return io.BufferedReader(_Decoded(file, decoder(coding, checked=True))) if coding else file


def open_body(body: Body) -> IO[bytes]:
    """Open a fetched body for reading, decoded, wherever it lies."""
    if body.path:
        return decoded(Path(body.path).open("rb"), body.encoding)
    return io.BytesIO(body.data or b"")


class _Decoded(io.RawIOBase):
    """Decodes while it is read, in pieces of bounded size."""

    def __init__(self, file: IO[bytes], coding: Decoder) -> None:
        self._file = file
        self._pieces = self._decode(coding)
        self._rest = memoryview(b"")

    def _decode(self, coding: Decoder) -> Iterator[bytes]:
        while block := self._file.read(_BLOCK):
            yield from coding.feed(block)
        coding.end()

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or a part of it; 0 = the end."""
        target = memoryview(buffer).cast("B")
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        taken = self._rest[: len(target)]
        target[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)

    def close(self) -> None:
        """Close the file too."""
        self._file.close()
        super().close()


class Encoder(Protocol):
    """Encodes one body."""

    def compress(self, data: bytes, /) -> bytes:
        """Take the next bytes; gives what is ready, which may be nothing."""

    def flush(self) -> bytes:
        """Return what is left; nothing comes after it."""


def encoder(coding: str) -> Encoder:
    """Return an encoder for one body; ``coding`` is ``gzip`` or ``zstd``."""
    return _ENCODERS[coding]()


_ENCODERS: dict[str, Callable[[], Encoder]] = {
    GZIP: lambda: zlib.compressobj(_GZIP_LEVEL, wbits=zlib.MAX_WBITS | 16),
    ZSTD: lambda: zstd.ZstdCompressor(options=_ZSTD_OPTIONS),
}
