"""Bodies while they arrive: when they are worked on, and by whom."""

import io
from hashlib import md5, sha256
from typing import Any, cast

import pytest

from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.content.sink import LARGE, Sink
from lcc_scrapy.domain.cache import Answer, Body
from lcc_scrapy.domain.queue import QueuedUrl, Served, Ticket
from lcc_scrapy.machine import framed_pipes
from lcc_scrapy.queue.settlement import Settled
from lcc_scrapy.queue.settling_process import messages

CONTENT = cast("ContentFiles", None)
"""Nothing here goes to a file."""

ROW = QueuedUrl(b"k" * 16, 1, "u", "text/html", "", "u", "u", None, None, None, "", 1, 1, "fetch", 1, 0, 0)
ANSWER = Answer(200, "u", "text/html", "", "", "", "[]", "HTTP/1.1 200 OK", "", 1)


def body_of(*chunks: bytes, memory: int = 1 << 30) -> Body:
    sink = Sink(CONTENT, memory, 1 << 30)
    for chunk in chunks:
        sink.write(chunk)
    return sink.finish()


def across(body: Body) -> Body:
    """Return a body as the settling process gets it."""
    sent = messages.commit([Served(Ticket(ROW, "1", 1), ANSWER, body, 7)], 1, None)
    said, parts = framed_pipes.read(io.BytesIO(b"".join(sent)))
    got: Any = messages.outcomes_of(said[3], parts)[0]
    return cast("Body", got.body)


def told(body: Body) -> tuple[int, str, str, bytes | None]:
    return body.length, body.md5, body.sha256, body.data


@pytest.mark.parametrize("size", [0, 1, 8000, LARGE, LARGE + 1, 1_000_000])
def test_a_body_is_told_as_it_came_wherever_its_digests_are_made(size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    whole = (size, md5(data, usedforsecurity=False).hexdigest(), sha256(data).hexdigest(), data)
    assert told(across(body_of(data[: size // 3], data[size // 3 :]))) == whole
    assert told(body_of(data)) == whole


def test_digests_of_a_small_body_are_made_by_the_settling_process() -> None:
    body = body_of(b"small")
    assert across(body).digests is None
    assert body.digests is None


def test_digests_that_somebody_asked_for_are_not_made_again() -> None:
    body = body_of(b"small")
    known = body.md5, body.sha256
    assert body.digests == across(body).digests == known


def test_digests_of_a_large_body_are_made_as_it_comes() -> None:
    assert body_of(b"x" * (LARGE + 1)).digests is not None


@pytest.mark.parametrize(("size", "memory", "blocks"), [(LARGE + 1, LARGE * 2, False), (9, 8, True)])
def test_a_body_whose_end_waits_for_the_disk_says_so(size: int, memory: int, *, blocks: bool) -> None:
    sink = Sink(CONTENT, memory, 1 << 30)
    sink.write(b"x" * size)
    assert sink.blocks == blocks


def test_a_large_body_that_was_worked_on_as_it_came_ends_at_once() -> None:
    sink = Sink(CONTENT, 1 << 30, 1 << 30)
    sink.write(b"x" * (LARGE + 1))
    sink.work()
    assert not sink.blocks
    assert sink.finish().digests is not None


def test_the_crawl_learns_the_digests_that_the_settling_process_made() -> None:
    body = body_of(b"small")
    there = Settled(Served(Ticket(ROW, "1", 1), ANSWER, across(body), 7), "stored")
    made = there.outcome.body.md5, there.outcome.body.sha256  # type: ignore[union-attr]
    said, rows = framed_pipes.read(io.BytesIO(b"".join(messages.settled([there], []))))
    messages.settled_of(said[1], rows, [Served(Ticket(ROW, "1", 1), ANSWER, body, 7)])
    assert body.digests == made
