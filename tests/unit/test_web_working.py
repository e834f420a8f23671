"""Slots for requests: clients take turns, and none of them has all."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from lcc_scrapy.web.working import Slots


def in_loop(work: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await work()

    with ThreadPoolExecutor(1) as apart:  # where no loop runs
        apart.submit(lambda: asyncio.run(run())).result()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Asked:
    """Requests that were asked for, and the order in which they got a slot."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.order: list[str] = []
        self.held = {}
        self.tasks = {}

    def ask(self, *names: str) -> None:
        for name in names:
            self.tasks[name] = asyncio.ensure_future(self._take(name))

    async def _take(self, name: str) -> None:
        self.held[name] = await self.slots.take(name[0])
        self.order.append(name)


def test_clients_take_turns_however_much_one_of_them_asks_for():
    async def work() -> None:
        asked = Asked(Slots(free=1, each=1))
        asked.ask("a1", "a2", "a3", "a4", "b1", "c1", "b2")
        await settled()
        while len(asked.order) < len(asked.tasks):
            asked.held.pop(asked.order[-1]).leave()
            await settled()
        assert asked.order == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]

    in_loop(work)


def test_a_client_has_some_slots_only_even_if_nobody_else_asks():
    async def work() -> None:
        asked = Asked(Slots(free=4, each=2))
        asked.ask("a1", "a2", "a3", "a4")
        await settled()
        assert asked.order == ["a1", "a2"]
        asked.ask("b1")
        await settled()
        assert asked.order == ["a1", "a2", "b1"]
        asked.held["a1"].leave()
        await settled()
        assert asked.order[3:] == ["a3"]

    in_loop(work)


def test_a_slot_is_given_back_once():
    async def work() -> None:
        asked = Asked(Slots(free=1, each=1))
        asked.ask("a1", "b1", "c1")
        await settled()
        asked.held["a1"].leave()
        asked.held["a1"].leave()
        await settled()
        assert asked.order == ["a1", "b1"]

    in_loop(work)


def test_who_goes_away_takes_no_slot_along():
    async def work() -> None:
        asked = Asked(Slots(free=1, each=1))
        asked.ask("a1", "b1", "c1", "d1")
        await settled()
        asked.tasks["b1"].cancel()
        asked.held["a1"].leave()
        await settled()
        assert asked.order == ["a1", "c1"]
        asked.held["c1"].leave()
        asked.tasks["d1"].cancel()  # it has its slot, and does not know of it yet
        await settled()
        asked.ask("e1")
        await settled()
        assert asked.order == ["a1", "c1", "e1"]
        assert not asked.slots._lines
        assert not asked.slots._next

    in_loop(work)


def test_a_long_answer_waits_for_its_turn_again_before_each_part():
    async def work() -> None:
        asked = Asked(Slots(free=1, each=1))
        asked.ask("a1", "b1")
        await settled()
        slot = asked.held["a1"]
        slot.leave()
        going_on = asyncio.ensure_future(slot.take_again())
        await settled()
        assert asked.order == ["a1", "b1"]
        assert not going_on.done(), "the other one is being worked for"
        asked.held["b1"].leave()
        await settled()
        assert going_on.done()
        await slot.take_again()  # it has one already
        asked.ask("c1")
        await settled()
        assert "c1" not in asked.held
        slot.leave()
        await settled()
        assert "c1" in asked.held

    in_loop(work)
