"""A relay of TCP between a client and a server of this machine, which can be cut."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Relay:
    """A way to a port of 127.0.0.1. When it is cut, connections break, and so does each new one.

    After ``lose_at`` nothing of what a client sends with a word in it arrives, nor anything later of anybody, in
    either direction, and nothing is closed: so a machine looks that has lost its power.
    """

    def __init__(self, to: int) -> None:
        self._to = to
        self._cut = False
        self._word = b""
        self.lost = threading.Event()
        self.lost_at = 0.0
        """When it was (monotonic seconds)."""
        self._ways: set[asyncio.WriteTransport] = set()
        self._loop: asyncio.AbstractEventLoop
        self._stopping = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._run(),))
        self.port = 0

    def start(self) -> None:
        """Open the port."""
        self._thread.start()
        self._ready.wait()

    def cut(self) -> None:
        """Let nothing through from now on."""
        self._loop.call_soon_threadsafe(self._break)

    def mend(self) -> None:
        """Let new connections through again."""
        self._loop.call_soon_threadsafe(self._join)

    def lose_at(self, word: bytes) -> None:
        """Lose the client that says this next; ``lost`` and ``lost_at`` tell when."""
        self._word = word

    def stop(self) -> None:
        """Close the port, and end all connections."""
        self.cut()
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = int(server.sockets[0].getsockname()[1])
        self._ready.set()
        await self._stopping.wait()
        server.close()

    def _break(self) -> None:
        self._cut = True
        for way in self._ways:
            way.abort()

    def _join(self) -> None:
        self._cut = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ways = {writer.transport}
        with suppress(OSError):
            answers, server = await asyncio.open_connection("127.0.0.1", self._to)
            ways.add(server.transport)
            if not self._cut:
                self._ways |= ways
                await asyncio.gather(self._pass_on(reader, server), self._pass_on(answers, writer))
        self._ways -= ways
        for way in ways:
            way.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(65_536):
                await self._look_at(piece)
                writer.write(piece)
                await writer.drain()
        await self._look_at(b"")  # a machine that is lost closes nothing
        writer.transport.abort()

    async def _look_at(self, piece: bytes) -> None:
        """Wait for the end where the machine is lost."""
        if self._word and self._word in piece:
            self.lost_at = self.lost_at or time.monotonic()
            self.lost.set()
        if self.lost.is_set():
            await self._stopping.wait()


@contextmanager
def relay(to: int) -> Iterator[Relay]:
    """Run a relay to a port."""
    made = Relay(to)
    made.start()
    try:
        yield made
    finally:
        made.stop()
