"""The PROXY protocol, versions 1 and 2: the header in which a proxy names its client.

Source: HAProxy's ``proxy-protocol.txt``, sections 2.1 and 2.2. Pure; bytes in, an introduction out.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from lcc_scrapy.listeners.peers import plain_address

LONGEST = 4096
"""Bytes of a header; the specification allows 65,551 in version 2, for extensions that are ignored here."""

_V1 = b"PROXY "
_V1_LONGEST = 107
_V1_WORDS = 6
_V2 = b"\r\n\r\n\0\r\nQUIT\n"
_V2_FIXED = 16
_V2_LOCAL, _V2_PROXY = 0x20, 0x21
_V2_UNSPECIFIED, _V2_TCP4, _V2_TCP6 = 0x00, 0x11, 0x21


class NotIntroduced(Exception):
    """What came is no PROXY header, or one that speaks of something else than TCP."""


@dataclass(frozen=True, slots=True)
class Introduced:
    """A complete header: ``size`` bytes long; ``peer`` is empty when the proxy speaks for itself.

    It is in plain form: a proxy that listens for IPv6 and IPv4 at once names IPv4 clients inside IPv6.
    """

    peer: str
    size: int


def header_for(peer: str) -> bytes:
    """Write a header, of version 2, that names a client by its address; anything else is passed on unnamed.

    The destination and both ports are zero: who reads it goes by the source alone.
    """
    try:
        source = ip_address(peer)
    except ValueError:
        return _V2 + bytes([_V2_LOCAL, _V2_UNSPECIFIED]) + bytes(2)
    kind = _V2_TCP4 if source.version == 4 else _V2_TCP6  # noqa: PLR2004 - of IP
    addresses = source.packed + bytes(len(source.packed) + 4)
    return _V2 + bytes([_V2_PROXY, kind]) + len(addresses).to_bytes(2) + addresses


def read_header(data: bytes) -> Introduced | None:
    """Read what has come so far; None = the header is not complete yet. Raises ``NotIntroduced``."""
    if data.startswith(_V1):
        return _read_v1(data)
    if data.startswith(_V2):
        return _read_v2(data)
    if _V1.startswith(data) or _V2.startswith(data):
        return None
    raise NotIntroduced("no PROXY header")


def _read_v1(data: bytes) -> Introduced | None:
    line, end, _ = data[:_V1_LONGEST].partition(b"\r\n")
    if not end:
        if len(data) >= _V1_LONGEST:
            raise NotIntroduced("PROXY line too long")
        return None
    words = line.decode("ascii", "replace").split(" ")
    size = len(line) + len(end)
    if words[1] == "UNKNOWN":
        return Introduced("", size)
    kind = {"TCP4": IPv4Address, "TCP6": IPv6Address}.get(words[1])
    if kind is None or len(words) != _V1_WORDS:
        raise NotIntroduced("PROXY line of an unknown kind")
    try:
        return Introduced(plain_address(str(kind(words[2]))), size)
    except ValueError:
        raise NotIntroduced("PROXY line without an address") from None


def _read_v2(data: bytes) -> Introduced | None:
    if len(data) < _V2_FIXED:
        return None
    command, family, size = data[12], data[13], _V2_FIXED + int.from_bytes(data[14:16])
    if command not in {_V2_LOCAL, _V2_PROXY} or size > LONGEST:
        raise NotIntroduced("PROXY header of an unknown kind")
    if len(data) < size:
        return None
    if command == _V2_LOCAL or family == _V2_UNSPECIFIED:
        return Introduced("", size)
    return Introduced(plain_address(_v2_source(family, data[_V2_FIXED:size])), size)


def _v2_source(family: int, addresses: bytes) -> str:
    """Return the first of source, destination and two ports, as the family has them."""
    if family == _V2_TCP4 and len(addresses) >= 4 + 4 + 2 + 2:
        return str(IPv4Address(addresses[:4]))
    if family == _V2_TCP6 and len(addresses) >= 16 + 16 + 2 + 2:
        return str(IPv6Address(addresses[:16]))
    raise NotIntroduced("PROXY header without an address")
