"""Cache Digests of Squid, version 5: a Bloom filter of the URLs that a cache can deliver.

Each URL sets four bits: the big-endian words of MD5 of the byte 1 (``GET``) and the URL, modulo the bits.
"""

from collections.abc import Collection
from hashlib import md5
from struct import Struct

MIME_TYPE = "application/cache-digest"
BITS_EACH = 5
HASHES = 4
HEADER = 128
"""Bytes before the filter."""

_HEADER = Struct("!hhiiiiBBh")
_WORDS = Struct("!4I")
_CURRENT, _REQUIRED = 5, 3
_GET = b"\x01"


def digest_of(urls: Collection[str]) -> bytes:
    """Return a digest that has room for exactly these URLs, at least one."""
    capacity = max(1, len(urls))
    mask = bytearray((capacity * BITS_EACH + 7) // 8)
    for url in urls:
        for bit in bits_of(url, len(mask)):
            mask[bit >> 3] |= 1 << (bit & 7)
    counts = (capacity, len(urls), 0, len(mask))
    header = _HEADER.pack(_CURRENT, _REQUIRED, *counts, BITS_EACH, HASHES, 0)
    return header.ljust(HEADER, b"\0") + bytes(mask)


def bits_of(url: str, size: int) -> list[int]:
    """Return the bits of a URL in a filter of ``size`` bytes."""
    key = md5(_GET + url.encode(), usedforsecurity=False).digest()
    return [word % (size * 8) for word in _WORDS.unpack(key)]
