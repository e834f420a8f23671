"""Messages of the Internet Cache Protocol, version 2 (RFC 2186): bytes in, values out."""

import re
from dataclasses import dataclass
from struct import Struct

QUERY, HIT, MISS, ERR = 1, 2, 3, 4
VERSION = 2
LONGEST = 16384
"""Bytes of a message (RFC 2186, section 2)."""

_HEADER = Struct("!BBHIII4s")
_REQUESTER = 4
_VISIBLE = re.compile(rb"[\x21-\x7e]*+")


class BadMessage(ValueError):
    """Bytes that are no question and get no answer."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question whether an object is to be had; ``url`` is empty if it cannot be read as text."""

    number: int
    url: str

    @classmethod
    def parse(cls, data: bytes) -> "Query":
        """Read a message; raises ``BadMessage`` for all that is not a whole query of this version."""
        if not _HEADER.size + _REQUESTER < len(data) <= LONGEST:
            raise BadMessage("of no length that a query has")
        opcode, version, length, number, *_ = _HEADER.unpack_from(data)
        if (opcode, version, length) != (QUERY, VERSION, len(data)):
            raise BadMessage("no query, of another version, or not whole")
        url, end, _ = data[_HEADER.size + _REQUESTER :].partition(b"\0")
        if not end:
            raise BadMessage("its URL does not end")
        return cls(number, _text(url))

    def __bytes__(self) -> bytes:
        return _message(QUERY, self.number, bytes(_REQUESTER) + self.url.encode("ascii"))


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: ``HIT``, ``MISS`` or ``ERR``, with number and URL of the query."""

    opcode: int
    number: int
    url: str

    def __bytes__(self) -> bytes:
        return _message(self.opcode, self.number, self.url.encode("ascii"))


def _message(opcode: int, number: int, payload: bytes) -> bytes:
    length = _HEADER.size + len(payload) + 1
    return _HEADER.pack(opcode, VERSION, length, number, 0, 0, bytes(4)) + payload + b"\0"


def _text(url: bytes) -> str:
    """Return a URL of visible ASCII; "" = it is none."""
    return url.decode("ascii") if _VISIBLE.fullmatch(url) else ""
