"""What earlier tries brought of bodies that may be cut: two tries that bring the same bytes are believed."""

from lcc_scrapy.http.request import Request

REMEMBERED = 100_000
"""Requests of which the last body is remembered, about 150 bytes for each; the oldest is forgotten first."""


class EarlierTries:
    """Digests of bodies that came over TLS and ended without a word of their end, by request.

    They are kept in memory: after a restart, or in another process, it takes another try.
    """

    def __init__(self) -> None:
        self._digests: dict[int, int] = {}

    def brought(self, request: Request, digest: bytes) -> bool:
        """Tell whether the last try of a request brought the same bytes, and remember those of this one."""
        key, number = hash((request.origin, request.method, request.target)), int.from_bytes(digest)
        before = self._digests.pop(key, None)
        while len(self._digests) >= REMEMBERED:
            del self._digests[next(iter(self._digests))]
        self._digests[key] = number
        return before == number
