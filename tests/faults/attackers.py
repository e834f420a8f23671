"""Providers that mean no good: they are slow, or do not listen, or guess at passwords."""

import asyncio
import socket
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from tests.harness import PASSWORD

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]

SET = b'<lococa:set set="partial" urlprefix="http://www.example.org/">'
END = b"</lococa:set>"


def init(pid: object, password: str = PASSWORD) -> bytes:
    return (
        f'<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="{pid}" passwd="{password}"/></lococa:init>'
    ).encode()


async def connect(
    port: int, address: str, receive_buffer: int = 0
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    sock = socket.socket()
    sock.setblocking(False)
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    try:
        sock.bind((address, 0))
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        return await asyncio.open_connection(sock=sock)
    except BaseException:
        sock.close()
        raise


class Siege:
    """Many slow clients; each comes again when it is turned out. ``settled`` counts those in place."""

    def __init__(self, port: int, pids: Sequence[int], clients: int) -> None:
        self._port = port
        self._pids = pids
        self._clients = clients
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._all()), daemon=True)
        self.settled: Counter[str] = Counter()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(300)
        assert not self._thread.is_alive()

    async def _all(self) -> None:
        kinds = [self._silent, self._dripping, self._deaf]
        tasks = [
            asyncio.create_task(self._again_and_again(kinds[number % 3], number))
            for number in range(self._clients)
        ]
        while not self._stop.is_set():
            await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _again_and_again(self, talk: Callable[..., Coroutine[Any, Any, None]], number: int) -> None:
        address = f"127.0.{2 + number // 250}.{1 + number % 250}"
        pid = self._pids[number % len(self._pids)]
        kind = talk.__name__.strip("_")
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await connect(self._port, address, 4096 if kind == "deaf" else 0)
                try:
                    await talk(reader, writer, pid, kind)
                finally:
                    writer.transport.abort()
            await asyncio.sleep(2)

    async def _in_place(self, kind: str, staying: Awaitable[object]) -> None:
        self.settled[kind] += 1
        try:
            await staying
        finally:
            self.settled[kind] -= 1

    async def _silent(self, reader: Any, writer: Any, pid: int, kind: str) -> None:
        writer.write(init(pid)[:40])
        await self._in_place(kind, reader.read())

    async def _dripping(self, reader: Any, writer: Any, pid: int, kind: str) -> None:
        writer.write(init(pid))
        await reader.readuntil(b"</lococa:init_accepted>")
        writer.write(SET)

        async def drip() -> None:
            while not reader.at_eof():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(1)

        await self._in_place(kind, drip())

    async def _deaf(self, _reader: Any, writer: Any, pid: int, kind: str) -> None:
        """Send URLs that are answered with errors, and never read one."""
        writer.transport.pause_reading()
        writer.write(init(pid) + SET)
        errors = b"<url c='a' mimetype='not/accepted'/>" * 1000

        async def go_on() -> None:
            while True:
                writer.write(errors)
                await writer.drain()

        await self._in_place(kind, go_on())


def answer_to(port: int, said: bytes, address: str, *more: bytes) -> str:
    """Talk as an honest provider does; return all that was answered."""
    with socket.create_connection(("127.0.0.1", port), timeout=300, source_address=(address, 0)) as wire:
        wire.sendall(said)
        for piece in more:
            wire.sendall(piece)
        wire.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: wire.recv(65536), b"")).decode()


def push(port: int, pid: int, address: str, urls: int) -> float:
    """Push a set of good URLs and return the seconds until it was accepted."""
    lines = [
        b'<url c="documents/%06d.html" mimetype="text/html" mtime="1700000000" len="5120"/>\n' % number
        for number in range(urls)
    ]
    begun = time.monotonic()
    while 'code="103"' in (answer := answer_to(port, init(pid), address, SET, b"".join(lines), END)):
        print("try again later")
    taken = time.monotonic() - begun
    assert f'<set_accepted received="{urls}"/>' in answer, answer[-500:]
    return taken


class Guessers:
    """``logins`` wrong logins as fast as they go, ``at_once`` at a time; ``answers`` counts the codes."""

    def __init__(
        self, port: int, logins: int, addresses: int, pid_of: Callable[[int], int], at_once: int
    ) -> None:
        self._port = port
        self._logins = logins
        self._addresses = addresses
        self._pid_of = pid_of
        self._at_once = at_once
        self._thread = threading.Thread(target=lambda: asyncio.run(self._all()), daemon=True)
        self.answers: Counter[str] = Counter()
        self.seconds = 0.0

    def start(self) -> None:
        self._thread.start()

    @property
    def busy(self) -> bool:
        return self._thread.is_alive()

    def join(self) -> None:
        self._thread.join(300)
        assert not self.busy

    async def _all(self) -> None:
        begun = time.monotonic()
        room = asyncio.Semaphore(self._at_once)
        await asyncio.gather(*(self._guess(number, room) for number in range(self._logins)))
        self.seconds = time.monotonic() - begun

    async def _guess(self, number: int, room: asyncio.Semaphore) -> None:
        address = f"127.0.4.{1 + number % self._addresses}"
        async with room:
            try:
                reader, writer = await connect(self._port, address)
                writer.write(init(self._pid_of(number), f"guess {number}"))
                writer.write_eof()
                answer = await reader.read()
                writer.close()
            except OSError as error:
                answer = f'code="{error!r}'.encode()
            self.answers[answer.partition(b'code="')[2].partition(b'"')[0].decode() or "nothing"] += 1
