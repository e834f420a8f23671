"""Connections that are kept for further requests to the same origin."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from lcc_scrapy.content.decoding import BadCoding
from lcc_scrapy.http.answer import BadBody, BadHead, Unanswered
from lcc_scrapy.http.connection import Connection, Silence
from lcc_scrapy.http.earlier_tries import EarlierTries
from lcc_scrapy.http.request import REPEATABLE, Origin, Request

_ASKS_FOR_REST = frozenset({429, 503})

KEPT = 15.0
"""Seconds for which an idle connection is kept."""

IDLE = 1000
"""Idle connections that are kept, of all origins; the one idle for longest goes first."""

TICK = 0.25
"""Seconds between two looks at the connections: by so much a time-out may be late."""

STRAYS = 2
"""How often an origin may send bytes that nobody asked for; after that, no connection to it is kept."""

STRAYS_KEPT, STRAYED_MAX = 600.0, 1000
"""Seconds since the last of them for which this holds, and origins of which it is remembered."""

T = TypeVar("T")
Making = Callable[[Origin, Callable[[Connection], None]], Awaitable[Connection]]
"""Makes a connection to an origin, which calls its second argument when it has ended."""


class Pool:
    """Asks, over connections kept or new; at most ``limit`` of them are in use at a time.

    ``tries`` remembers bodies that may be cut. Must be used inside one running event loop, and closed there.
    """

    def __init__(self, make: Making, limit: int, tries: EarlierTries | None = None) -> None:
        self._make = make
        self._limit = limit
        self._tries = EarlierTries() if tries is None else tries
        self._strayed: dict[Origin, tuple[int, float]] = {}
        self._open: dict[Connection, Origin] = {}
        self._making = 0
        self._idle: dict[Origin, list[Connection]] = {}
        self._resting: dict[Connection, float] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def exchange(
        self,
        request: Request,
        read: Callable[[Connection], Awaitable[T]],
        *,
        patience: float,
        deadline: float,
        window: int = 0,
        largest: int = 0,
        final: tuple[type[Exception], ...] = (),
    ) -> T:
        """Send a request and have its answer read; returns what ``read`` does. Otherwise as ``ask``.

        On a kept connection, an answer that cannot be read, or behind which something stands, may not be
        that to the request: where that does no harm, it is asked once more over a new one, and read again.
        The same holds where ``read`` refuses an answer of a doubtful connection, except by the errors
        ``final``, which say nothing of the answer. One that asks for rest, or comes to a stop, is believed.
        """
        final = (Silence, TimeoutError, *final)
        ask = partial(self.ask, request, patience=patience, deadline=deadline, window=window, largest=largest)
        connection = await ask()
        if not connection.reused or request.method not in REPEATABLE:
            return await self._read(connection, read)
        try:
            found = await self._read(connection, read, final)
            if not connection.stray or connection.answer.status in _ASKS_FOR_REST:
                return found
        except final:
            raise
        except Exception as error:
            if not (connection.doubtful or isinstance(error, (BadBody, BadCoding))):
                raise
        return await self._read(await ask(new=True), read)

    async def _read(
        self,
        connection: Connection,
        read: Callable[[Connection], Awaitable[T]],
        final: tuple[type[Exception], ...] = (),
    ) -> T:
        try:
            found = await read(connection)
        except final:
            raise
        except Exception:
            await connection.look_behind()
            raise
        else:
            await connection.look_behind()
            return found
        finally:
            self.release(connection)

    async def ask(
        self,
        request: Request,
        *,
        patience: float,
        deadline: float,
        window: int = 0,
        largest: int = 0,
        new: bool = False,
    ) -> Connection:
        """Send a request; returns the connection with the head of its answer, for ``release`` in the end.

        Times are those of ``Connection.ask``, ``window`` and ``largest`` as in ``Connection.bound``. ``new``:
        over no connection that was used before. One that ends without an answer is no answer yet, nor is what
        cannot be read on a kept one: where that does no harm, the request is sent once more, over a new one.
        Raises ``HttpError``, ``TimeoutError`` where no connection can be had within ``patience``, and what
        making one raises.
        """
        sent, bodiless = request.encoded(), request.method == "HEAD"
        accepts = partial(self._tries.brought, request)
        connection = None if new else self._kept(request.origin)
        for repeatable in (request.method in REPEATABLE, False):
            connection = connection or await self._new(request.origin, patience)
            connection.bound(window, largest)
            try:
                await connection.ask(
                    sent, bodiless=bodiless, patience=patience, deadline=deadline, accepts=accepts
                )
            except BaseException as error:
                self._drop(connection)  # it may have ended before it was known here
                doubtful = isinstance(error, BadHead if connection.reused else Unanswered)
                if not (repeatable and doubtful):
                    raise
                connection = None
            else:
                return connection
        raise AssertionError("the second try returns or raises")

    def release(self, connection: Connection) -> None:
        """End an exchange. Its connection is kept only if all of the answer was read and more may follow."""
        origin, now = self._open.get(connection), asyncio.get_running_loop().time()
        if not connection.finish() or origin is None or self._strays(origin, now) >= STRAYS:
            self._drop(connection)
            return
        self._idle.setdefault(origin, []).append(connection)
        self._resting[connection] = now + KEPT
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
            if connection.is_quiet():
                return connection
            self._drop(connection)
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
        if connection.stray:
            self._note_stray(origin, asyncio.get_running_loop().time())
        self._tell_of_room()

    def _note_stray(self, origin: Origin, now: float) -> None:
        strays = self._strays(origin, now) + 1
        self._strayed.pop(origin, None)
        while len(self._strayed) >= STRAYED_MAX:
            del self._strayed[next(iter(self._strayed))]
        self._strayed[origin] = (strays, now + STRAYS_KEPT)

    def _strays(self, origin: Origin, now: float) -> int:
        strays, until = self._strayed.get(origin, (0, 0.0))
        return strays if until > now else 0

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
