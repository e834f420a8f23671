"""What hubs of WebSub send: no hub keeps those of other sources out."""

import asyncio
import hmac
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from lcc_scrapy.apps.sources.callbacks import CONTENT_MAX, WAITING, WAITING_EACH, Busy, CallbackService
from lcc_scrapy.apps.sources.rules import Source
from lcc_scrapy.web.body_room import NoRoom

SIGNED = "sha256=" + hmac.new(b"secret", b"x", "sha256").hexdigest()


def source(number):
    return Source(number, 7, "websub", "http://www.example.org/feed", 3600, secret="secret")


class Held:
    """Stands for a runner whose runs do not end before they are let."""

    def __init__(self):
        self.let = asyncio.Event()
        self.registry = SimpleNamespace(pinged=None)

    def made(self, of):
        async def take(_):
            await self.let.wait()

        return SimpleNamespace(take=take, source=of)

    async def work(self, *_):
        return None


def run(test):
    with ThreadPoolExecutor(1) as thread:  # the loop of the tests is another one
        return thread.submit(asyncio.run, asyncio.wait_for(test(), 120)).result()


async def answered(service, *numbers):
    """Send content of these sources, and return whose was taken in; the others were told to come again."""
    sent = [asyncio.ensure_future(service.content(source(number), SIGNED, b"x")) for number in numbers]
    while sum(one.done() for one in sent) < len(sent) - service._waiting.total():
        await asyncio.sleep(0)
    service.runner.let.set()
    found = await asyncio.gather(*sent, return_exceptions=True)
    service.runner.let.clear()
    assert {type(one) for one in found} <= {bool, Busy}
    return [number for number, one in zip(numbers, found, strict=True) if one is True]


def test_a_hub_that_pings_without_end_leaves_room_for_the_hubs_of_others():
    async def test():
        service = CallbackService(Held())
        taken = await answered(service, *[1] * 100, 2, 3)
        assert taken == [1] * WAITING_EACH + [2, 3]
        assert await answered(service, 1) == [1]
        assert not service._waiting

    run(test)


def test_what_is_under_way_is_bounded_in_all():
    async def test():
        assert len(await answered(CallbackService(Held()), *range(100))) == WAITING

    run(test)


def test_one_source_never_takes_the_memory_that_content_of_others_needs():
    async def test():
        bodies = CallbackService(Held()).bodies
        with bodies.place(1) as first, bodies.place(1) as second, bodies.place(2) as other:
            first.add(CONTENT_MAX)
            second.add(CONTENT_MAX)
            with pytest.raises(NoRoom) as told:
                second.add(1)
            assert told.value.mine
            other.add(CONTENT_MAX)

    run(test)
