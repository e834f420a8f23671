"""The head of a request, as bytes on the wire."""

import ssl
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from lcc_scrapy.domain.site_access import Proxy

REPEATABLE = frozenset({"GET", "HEAD"})
"""Methods that do no harm when they are sent twice."""

_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_USUAL_PORTS = {False: 80, True: 443}


class Origin(NamedTuple):
    """Whom connections are kept for, and by which way. ``host`` is a name or an address, without brackets.

    ``identity`` is TLS with a client certificate; None = without one. ``owner`` is for whom it is asked, as a
    provider's pid; 0 = for nobody in particular. What a site sends late for one reaches no other.
    """

    host: str
    port: int
    tls: bool = False
    proxy: Proxy | None = None
    identity: ssl.SSLContext | None = None
    owner: int | str = 0

    @property
    def authority(self) -> str:
        """``host:port`` as in CONNECT."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def shown(self) -> str:
        """What Host says: the port only where it is not the usual one."""
        usual = self.port == _USUAL_PORTS[self.tls]
        return self.authority.rpartition(":")[0] if usual else self.authority


class Request(NamedTuple):
    """One request. ``target`` is what stands in its first line, ASCII; ``data`` is its body."""

    origin: Origin
    target: str
    headers: Sequence[tuple[bytes, bytes]]
    method: str = "GET"
    data: bytes = b""

    def encoded(self) -> bytes:
        """Return it as it is sent; Host and Content-Length are added where they are missing.

        Raises ``ValueError`` where a line would not be one.
        """
        fields, names = _written(tuple(self.headers))
        breaks = len(self.headers)
        head = f"{self.method} {self.target} HTTP/1.1".encode("ascii")
        if b"host" not in names:
            head += b"\r\nHost: " + _shown(self.origin)
            breaks += 1
        head += fields
        if (self.data or self.method in _WITH_BODY) and b"content-length" not in names:
            head += b"\r\nContent-Length: %d" % len(self.data)
            breaks += 1
        if head.count(b"\n") != breaks or head.count(b"\r") != breaks or b"\0" in head:
            raise ValueError("line break or NUL in a request")
        return head + b"\r\n\r\n" + self.data


@lru_cache(maxsize=100)
def _written(headers: tuple[tuple[bytes, bytes], ...]) -> tuple[bytes, frozenset[bytes]]:
    """Return header fields with the line breaks before them, and their names: most requests have the same."""
    fields = b"".join(b"\r\n" + name + b": " + value for name, value in headers)
    return fields, frozenset(name.lower() for name, _ in headers)


@lru_cache(maxsize=1000)
def _shown(origin: Origin) -> bytes:
    return origin.shown.encode("ascii")
