"""What one site may do to the event loop, and what a full disk does to a body that arrives."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import brotli
import pytest

from lcc_scrapy.content.decoding import decoder
from lcc_scrapy.content.sink import Sink
from lcc_scrapy.domain.errors import NotDurable
from lcc_scrapy.fetch.client import pour
from lcc_scrapy.fetch.pacing import Pacer


class Unlimited:
    """A Queue Manager without limits."""

    def charge(self, _turn: object, _size: int) -> float:
        return 0.0

    def expect(self, _turn: object, _size: int) -> float:
        return 0.0


class Bringing:
    """A connection that brings a body of zeros, two kilobytes on the wire."""

    def __init__(self, size: int) -> None:
        self.answer = SimpleNamespace(
            field=lambda name: "br" if name == b"content-encoding" else "", complete=False
        )
        packer, piece = brotli.Compressor(quality=5), bytes(1_000_000)
        self.pieces = [b"".join(packer.process(piece) for _ in range(size // len(piece))) + packer.finish()]

    async def more(self) -> list[bytes]:
        pieces, self.pieces = self.pieces, []
        return pieces


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_a_small_body_that_decodes_to_a_large_one_does_not_stop_the_event_loop(
    tmp_path: Any, coding: str
) -> None:
    worker: Any = SimpleNamespace(
        aborting=False, manager=Unlimited(), config=SimpleNamespace(pace_deadline=0.0)
    )
    content: Any = SimpleNamespace(unfinished_path=lambda name: tmp_path / name)
    longest = 0.0

    async def heartbeat() -> None:
        """Count the CPU seconds of the loop's own thread between two beats: other work has no part in them."""
        nonlocal longest
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.01)
            longest = max(longest, time.thread_time() - before)

    async def scenario() -> None:
        connection: Any = Bringing(300_000_000)
        beating = asyncio.ensure_future(heartbeat())
        await asyncio.sleep(0.05)
        sink = Sink(content, 1_000_000, 2_000_000_000, coding)
        pacer = Pacer(worker, None, connection, sink)
        await pour(connection, sink, pacer, decoder("br"))
        sink.discard()
        await asyncio.sleep(0.05)
        beating.cancel()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, scenario()).result()
    assert longest < 0.5, f"nothing else ran for {longest:.1f} CPU s"


def test_a_disk_that_takes_no_more_is_no_fault_of_the_site(tmp_path: Any) -> None:
    content: Any = SimpleNamespace(unfinished_path=lambda name: tmp_path / "missing" / name)
    sink = Sink(content, 10, 1000)
    sink.write(bytes(11))
    with pytest.raises(NotDurable):
        sink.work()
