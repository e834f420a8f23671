"""Answers whose status says all: nothing of their bodies changes what they mean.

A redirect that is cut is a redirect, and a 404 with half a gzip body says that there is nothing. What comes
of such a body is read so that the connection can be kept, and for those who look at error pages.
"""

import asyncio
from contextlib import suppress
from typing import NamedTuple

from lcc_scrapy.content import decoding
from lcc_scrapy.http.answer import HttpError
from lcc_scrapy.http.connection import Connection

DRAINED_MAX = 64 * 1024
"""Bytes that are read of such a body, and as many decoded; the connection of a longer one is not kept."""

DRAINED_SECONDS = 3.0
"""How long it is waited for."""


class Drained(NamedTuple):
    """The beginning of a body, decoded as far as that is possible. ``whole``: it is all of it."""

    body: bytes
    whole: bool


async def drained(connection: Connection) -> Drained:
    """Return what comes of a body that changes nothing; whatever is wrong with it is no error."""
    pieces: list[bytes] = []
    size = 0
    with suppress(HttpError, TimeoutError):
        async with asyncio.timeout(DRAINED_SECONDS):
            while size <= DRAINED_MAX and (came := await connection.more()):
                pieces += came
                size += sum(map(len, came))
            if size <= DRAINED_MAX:
                return _decoded(connection, pieces)
    connection.close()
    return _decoded(connection, pieces)._replace(whole=False)


def _decoded(connection: Connection, pieces: list[bytes]) -> Drained:
    decoder, body = decoding.decoder(connection.answer.field(b"content-encoding")), bytearray()
    with suppress(decoding.BadCoding):
        for piece in pieces:
            for part in decoder.feed(piece):
                body += part
                if len(body) > DRAINED_MAX:
                    return Drained(bytes(body[:DRAINED_MAX]), whole=False)
        decoder.end()
        return Drained(bytes(body), whole=True)
    return Drained(bytes(body), whole=False)
