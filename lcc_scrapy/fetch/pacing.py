"""Pacing: a body that runs ahead of its limit waits while it arrives, and holds up nobody meanwhile.

Reading is paused, which holds the site back by TCP; the connection stays. A body of which more than a little
is in memory goes to its temporary file, for many may wait at a time. ``domain/slots.py`` says who gets the
place of a fetch that waits.
"""

import asyncio

from scrapy.exceptions import IgnoreRequest

from lcc_scrapy.app.wiring import Worker
from lcc_scrapy.content.sink import Sink, TooLarge
from lcc_scrapy.http.answer import Answer
from lcc_scrapy.http.connection import Connection
from lcc_scrapy.queue.held_turn import TurnPass

IN_MEMORY = 64_000
"""Bytes of a body that waits for bandwidth which may stay in memory."""

CHECK_EVERY = 2.0
"""Seconds between two looks at whether the limit was raised, the turn was lost or the process stops."""


class FetchAborted(IgnoreRequest):
    """The turn was lost or the process stops: the URL stays in its place. Nothing to settle."""


class Pacer:
    """Charges the bytes of one body, and waits for the bandwidth that they take.

    ``waits``: False for a body that other providers need too, as robots.txt. It is charged all the same: its
    turn waits afterwards.
    """

    def __init__(
        self, worker: Worker, turn: TurnPass | None, connection: Connection, sink: Sink, *, waits: bool = True
    ) -> None:
        self._worker = worker
        self._turn = turn
        self._connection = connection
        self._sink = sink
        self._pause = 0.0
        self._waited = 0.0
        self._waits = waits
        if waits:
            self._expect(_length(connection.answer))

    def _expect(self, length: int) -> None:
        """Give up a body that cannot make it in time, before it takes bandwidth for nothing."""
        needed, deadline = self._worker.manager.expect(self._turn, length), self._worker.config.pace_deadline
        if deadline and needed > deadline:
            raise TooLarge(f"{length} bytes take {needed:.0f} s at the limit of its provider")

    def charge(self, size: int) -> None:
        """Account for bytes transferred; raises ``LeaseLost`` when the turn is no longer ours."""
        self._pause = self._worker.manager.charge(self._turn, size)

    async def rest(self) -> None:
        """Wait as long as what was charged asks for, or until the limit is raised.

        A body that has arrived waits for nothing: its turn does. Raises ``FetchAborted`` when the process
        stops, ``LeaseLost`` when the turn is lost, and ``TooLarge`` when limits have held it up for too long.
        """
        if self._waits and self._pause > 0 and not self._connection.answer.complete:
            self._connection.hold()
            self._sink.leave_memory(IN_MEMORY)
            while self._pause > 0:
                await self._wait(min(self._pause, CHECK_EVERY))
        if self._worker.aborting:
            raise FetchAborted("the process stops")

    async def _wait(self, seconds: float) -> None:
        deadline = self._worker.config.pace_deadline
        if deadline and self._waited >= deadline:
            raise TooLarge(f"limits of bandwidth have held it up for {self._waited:.0f} s")
        await asyncio.sleep(seconds)
        self._waited += seconds
        if self._worker.aborting:
            raise FetchAborted("the process stops")
        self._pause = min(self._pause - seconds, self._worker.manager.charge(self._turn, 0))


def _length(answer: Answer) -> int:
    """Return the length of a body that is to come, 0 where nothing is said of it or nothing is to come."""
    said = "" if answer.complete else answer.field(b"content-length")
    return int(said) if said.isascii() and said.isdigit() else 0
