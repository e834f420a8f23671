"""An FTP server that says what a test wants it to say, however wrong."""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

Data = bytes | Callable[[asyncio.StreamWriter], object]


@dataclass
class LittleFtp:
    """``data`` is what LIST, MLSD and RETR send, by the whole command or its word; ``replies`` are other answers.

    ``silent_at``: a command that is never answered; ``commands`` were heard.
    ``sessions`` gets when each session began, and when its last command but QUIT came (monotonic clock).
    """

    data: dict[str, Data] = field(default_factory=dict)
    replies: dict[str, str | bytes] = field(default_factory=dict)
    greeting: bytes = b"220 hello\r\n"
    end: bytes = b"226 done\r\n"
    silent_at: str = ""
    commands: list[str] = field(default_factory=list)
    sessions: list[list[float]] | None = None
    port: int = 0
    _open: list[asyncio.Server | asyncio.StreamWriter] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(300)
        self._loop.close()

    @property
    def url(self) -> str:
        return f"ftp://127.0.0.1:{self.port}/"

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(300)

    async def _close(self) -> None:
        for one in (self._server, *self._open):
            if isinstance(one, asyncio.Server):
                one.close()
        for _ in range(3):  # a task that is cancelled before it began leaves its accepted socket open
            await asyncio.sleep(0)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in self._open:
            if isinstance(one, asyncio.StreamWriter):
                one.transport.abort()
        for _ in range(3):
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.append(writer)
        session = [time.monotonic()] * 2
        if self.sessions is not None:
            self.sessions.append(session)
        try:
            await self._talk(reader, writer, session)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    async def _talk(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, session: list[float]
    ) -> None:
        if self.silent_at == "connect":
            await asyncio.sleep(3600)
        writer.write(self.greeting)
        while line := await reader.readline():
            command = line.decode("latin-1").strip()
            word = command.split(" ")[0]
            self.commands.append(command)
            if word != "QUIT":  # for which no client waits, so that it may be read much later
                session[1] = time.monotonic()
            if word == self.silent_at:
                await asyncio.sleep(3600)
            await self._answer(command, word, writer)
            await writer.drain()

    async def _answer(self, command: str, word: str, writer: asyncio.StreamWriter) -> None:
        said = self.replies.get(command, self.replies.get(word))
        if said is not None:
            writer.write(said if isinstance(said, bytes) else f"{said}\r\n".encode())
        elif word in {"EPSV", "PASV"}:
            await self._listen(word, writer)
        elif word in {"LIST", "MLSD", "RETR"}:
            await self._send(self.data.get(command, self.data.get(word)), writer)
        else:
            usual = {
                "USER": "331 password",
                "PASS": "230 in",
                "TYPE": "200 ok",
                "CWD": "250 ok",
                "QUIT": "221 bye",
            }
            writer.write(f"{usual.get(word, '502 unknown')}\r\n".encode())

    async def _listen(self, word: str, writer: asyncio.StreamWriter) -> None:
        self._came = self._loop.create_future()

        async def came(_reader, data_writer):
            self._open.append(data_writer)
            if not self._came.done():
                self._came.set_result(data_writer)

        listener = await asyncio.start_server(came, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        epsv = f"229 passive (|||{port}|)"
        pasv = f"227 passive (127,0,0,1,{port // 256},{port % 256})"
        writer.write(f"{epsv if word == 'EPSV' else pasv}\r\n".encode())
        self._listener = listener
        self._open.append(listener)

    async def _send(self, data: Data | None, writer: asyncio.StreamWriter) -> None:
        if data is None:
            writer.write(b"550 no\r\n")
            return
        writer.write(b"150 here\r\n")
        data_writer = await self._came
        self._listener.close()
        try:
            if isinstance(data, bytes):
                data_writer.write(data)
                await data_writer.drain()
            else:
                await data(data_writer)
            data_writer.close()
        except ConnectionError:
            pass
        writer.write(self.end)
