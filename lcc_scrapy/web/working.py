"""The workers of the HTTP API: a few requests of each client at a time, and clients take turns.

The threads that read the database and files are few, and one interpreter runs them all. Without turns, one
client with many requests keeps them busy, and the only request of another waits behind all of those.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable
from contextvars import ContextVar

SLOTS = 8
"""Requests that are worked for at a time, until their answer begins or they wait for changes."""

EACH = 2
"""Of one client: what it asks for may take long, as on a machine that does not answer."""


class Slots:
    """Hands out ``free`` slots, at most ``each`` to one client; clients take turns."""

    def __init__(self, free: int = SLOTS, each: int = EACH) -> None:
        self._free = free
        self._each = each
        self._held: Counter[Hashable] = Counter()
        self._lines: dict[Hashable, deque[asyncio.Future[None]]] = {}
        self._next: OrderedDict[Hashable, None] = OrderedDict()

    async def take(self, client: Hashable) -> "Slot":
        """Wait for a slot."""
        await self.wait(client)
        return Slot(self, client)

    async def wait(self, client: Hashable) -> None:
        """Wait until a slot is a client's; ``give_back`` ends that."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(client, deque()).append(turn)
        self._queue(client)
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(client)
            raise

    def give_back(self, client: Hashable) -> None:
        """Take a client's slot back, and hand it to whose turn it is."""
        self._free += 1
        self._held[client] -= 1
        if not self._held[client]:
            del self._held[client]
        self._queue(client)
        self._hand_out()

    def _queue(self, client: Hashable) -> None:
        """Let a client have a turn if it waits for a slot and may have one more."""
        if client in self._lines and self._held[client] < self._each:
            self._next.setdefault(client)

    def _hand_out(self) -> None:
        while self._free and self._next:
            client, _ = self._next.popitem(last=False)
            line = self._lines[client]
            turn = line.popleft()
            if not line:
                del self._lines[client]
            if not turn.done():  # who asked may have gone away
                self._free -= 1
                self._held[client] += 1
                turn.set_result(None)
            self._queue(client)


class Slot:
    """A slot that a request has; giving it back twice does no harm."""

    def __init__(self, slots: Slots, client: Hashable) -> None:
        self._slots = slots
        self._client = client
        self._held = True

    def leave(self) -> None:
        """Give it back: the request goes on without one, as it only waits or its answer has begun."""
        if self._held:
            self._held = False
            self._slots.give_back(self._client)

    async def take_again(self) -> None:
        """Wait for one again: more of a long answer is to be made."""
        if not self._held:
            await self._slots.wait(self._client)
            self._held = True


current: ContextVar[Slot | None] = ContextVar("current", default=None)
"""The slot of the request under way."""
