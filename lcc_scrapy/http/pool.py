"""Connections that are kept for further requests to the same origin."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from lcc_scrapy.http.answer import Unanswered
from lcc_scrapy.http.connection import Connection
from lcc_scrapy.http.request import REPEATABLE, Origin, Request

KEPT = 15.0
"""Seconds for which an idle connection is kept."""

IDLE = 1000
"""Idle connections that are kept, of all origins; the one idle for longest goes first."""

TICK = 0.25
"""Seconds between two looks at the connections: by so much a time-out may be late."""

Making = Callable[[Origin, Callable[[Connection], None]], Awaitable[Connection]]
"""Makes a connection to an origin, which calls its second argument when it has ended."""


class Pool:
    """Asks, over connections kept or new; at most ``limit`` of them are in use at a time.

    Must be used inside one running event loop, and closed there.
    """

    def __init__(self, make: Making, limit: int) -> None:
        self._make = make
        self._limit = limit
        self._open: dict[Connection, Origin] = {}
        self._making = 0
        self._idle: dict[Origin, list[Connection]] = {}
        self._resting: dict[Connection, float] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def ask(
        self, request: Request, *, patience: float, deadline: float, window: int = 0, largest: int = 0
    ) -> Connection:
        """Send a request; returns the connection with the head of its answer, for ``release`` in the end.

        Times are those of ``Connection.ask``, ``window`` and ``largest`` as in ``Connection.bound``. A
        connection that ends without an answer is no answer yet: where that does no harm, the request is sent
        once more. Raises ``HttpError``, ``TimeoutError`` where no connection can be had within ``patience``,
        and what making one raises.
        """
        sent, bodiless = request.encoded(), request.method == "HEAD"
        connection = self._kept(request.origin) or await self._new(request.origin, patience)
        for repeatable in (request.method in REPEATABLE, False):
            connection.bound(window, largest)
            try:
                await connection.ask(sent, bodiless=bodiless, patience=patience, deadline=deadline)
            except BaseException as error:
                self._drop(connection)  # it may have ended before it was known here
                if not (repeatable and isinstance(error, Unanswered)):
                    raise
                connection = await self._new(request.origin, patience)
            else:
                break
        return connection

    def release(self, connection: Connection) -> None:
        """End an exchange. Its connection is kept only if all of the answer was read and more may follow."""
        if not connection.finish() or connection not in self._open:
            self._drop(connection)
            return
        self._idle.setdefault(self._open[connection], []).append(connection)
        self._resting[connection] = asyncio.get_running_loop().time() + KEPT
        self.relax(IDLE)
        self._tell_of_room()

    def relax(self, idle: int = 0) -> None:
        """Close idle connections until only so many are left."""
        while len(self._resting) > idle:
            self._drop(next(iter(self._resting)))

    async def close(self) -> None:
        """Close all connections."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connection in list(self._open):
            self._drop(connection)
        await asyncio.sleep(0)  # the sockets are closed by the next turn of the loop
        await asyncio.sleep(0)

    # --- connections -----------------------------------------------------------------------------

    def _kept(self, origin: Origin) -> Connection | None:
        stack = self._idle.get(origin)
        while stack:
            connection = stack.pop()
            del self._resting[connection]
            if not stack:
                del self._idle[origin]
            if connection.usable:
                return connection
        return None

    async def _new(self, origin: Origin, patience: float) -> Connection:
        async with asyncio.timeout(patience or None):
            return await self._opened(origin)

    async def _opened(self, origin: Origin) -> Connection:
        while self._is_full():
            await self._room()
        self._making += 1
        try:
            connection = await self._make(origin, self._drop)
        finally:
            self._making -= 1
            self._tell_of_room()
        self._open[connection] = origin
        if self._timer is None:
            self._tick()
        return connection

    def _is_full(self) -> bool:
        return len(self._open) - len(self._resting) + self._making >= self._limit

    async def _room(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                self._tell_of_room()
            raise

    def _tell_of_room(self) -> None:
        while self._waiting and not self._is_full():
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                break

    def _drop(self, connection: Connection) -> None:
        """Forget a connection that has ended, or ends now."""
        origin = self._open.pop(connection, None)
        if origin is None:
            return
        if self._resting.pop(connection, None) is not None:
            stack = self._idle[origin]
            stack.remove(connection)
            if not stack:
                del self._idle[origin]
        connection.close()
        self._tell_of_room()

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in list(self._open):
            connection.look(now)
        for connection, until in list(self._resting.items()):
            if until > now:
                break
            self._drop(connection)
        self._timer = loop.call_later(TICK, self._tick) if self._open else None
