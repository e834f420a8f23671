"""Compression of content files: the way there of ``content.decoding``, which is the way back.

Both codings hold a check of the whole content, so that a file that was cut or damaged does not decode.
"""

import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Protocol

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
