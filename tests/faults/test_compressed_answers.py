"""What sites and providers put into answers costs the event loop no more than usual text does."""

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from lcc_scrapy.web.guards import CompressText
from tests.faults.costs import processor_time

SIZE = 128 * 1024 - 1
"""Bytes of the largest piece that is compressed on the event loop."""

CHOSEN = random.Random(1)


def text_of(*words: str) -> bytes:
    """Return a piece of random words."""
    return "".join(CHOSEN.choices(words, k=SIZE)).encode()[:SIZE]


USUAL = "".join(
    f"<loc>https://example.org/{CHOSEN.getrandbits(128):032x}</loc>\n" for _ in range(3000)
).encode()
ATTACKS = {"two letters": text_of("a", "b"), "escapes": text_of("&amp;", "&quot;", "&lt;", "'")}


def compressed(piece: bytes) -> bytes:
    """Send a piece of a long answer to a client that takes gzip; returns the body as it was sent."""
    sent = []

    async def app(_scope, _receive, send):
        headers = [(b"content-type", b"application/xml")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def send(message):
        sent.append(message.get("body", b""))

    scope = {"type": "http", "path": "/list.xml", "headers": [(b"accept-encoding", b"gzip")]}
    with ThreadPoolExecutor(1) as apart:  # in this one a reactor runs
        apart.submit(asyncio.run, CompressText(app)(scope, None, send)).result()
    return b"".join(sent)


@pytest.mark.parametrize("name", ATTACKS)
def test_no_text_costs_much_more_to_compress_than_a_usual_one(name):
    usual, attack = USUAL[:SIZE], ATTACKS[name]
    assert len(compressed(attack)) < len(attack) / 3
    assert processor_time(lambda: compressed(attack)) < 8 * processor_time(lambda: compressed(usual))
