"""A passive, anonymous FTP client (RFC 959, 2428, 3659): commands, replies and transfers to here.

Everything that a server says is bounded: lines, replies, silences. Data connections go to the address of the
control connection and nowhere else, whatever address a reply names.
"""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from lcc_scrapy.apps.tracker.effort import CannotScan, Effort
from lcc_scrapy.http.outgoing import NoConnection, Outgoing, Stream

LINE = 8 * 1024
"""Bytes of a line of a reply at most."""

LINES = 1000
"""Lines of one reply at most: greetings of mirrors are long."""

PIECE = 64 * 1024
PRELIMINARIES = 10
"""Preliminary replies before the real one."""

LEAST_PORT = 1024
"""Data ports below it are refused: a server has no data there, but other services may be."""

_PASSWORD = b"lcc-scrapy@"
_CODE = re.compile(rb"([1-5][0-9][0-9])([ -])(.*)", re.DOTALL)
_EXTENDED = re.compile(rb"\((.)\1\1([0-9]{1,5})\1\)")
_PASSIVE = re.compile(rb"[0-9]{1,3}(?:,[0-9]{1,3}){3},([0-9]{1,3}),([0-9]{1,3})")
_FILE_STATUS, _EXTENDED_PASSIVE, _PASSIVE_MODE, _NEED_PASSWORD = 213, 229, 227, 331
_UNAVAILABLE = 421


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered. ``lines`` are without the code of the first and last line."""

    code: int
    lines: tuple[bytes, ...]

    @property
    def good(self) -> bool:
        """Tell whether a command was done (2xx)."""
        return self.code // 100 == 2  # noqa: PLR2004

    @property
    def begun(self) -> bool:
        """Tell whether more replies follow (1xx)."""
        return self.code // 100 == 1

    @property
    def text(self) -> str:
        """The last line, for people."""
        return f"{self.code} {self.lines[-1][:200].decode('utf-8', 'backslashreplace')}".strip()


class Refused(CannotScan):
    """A server refuses a command; ``reply`` says why."""

    def __init__(self, what: str, reply: Reply) -> None:
        super().__init__(f"{what}: the server answers {reply.text!r}")
        self.reply = reply


class Control:
    """One control connection. Commands and names are bytes; a line break in them is refused here."""

    def __init__(self, stream: Stream, effort: Effort) -> None:
        self._reader, self._writer = stream
        self._effort = effort
        self.peer = str(self._writer.get_extra_info("peername")[0])

    async def ask(self, command: bytes) -> Reply:
        """Send a command, and return the reply to it, which may be a preliminary one."""
        if any(byte in command for byte in b"\r\n\0"):
            raise CannotScan(f"a name with a line break cannot be asked for: {command[:100]!r}")
        self._effort.ask()
        self._writer.write(command + b"\r\n")
        with suppress(ConnectionError):  # what the server said before it left is of more use
            await self._effort.patiently(self._writer.drain())
        return await self.reply()

    async def done(self, command: bytes) -> Reply:
        """Send a command that must succeed; raises ``Refused``."""
        reply = await self.ask(command)
        if not reply.good:
            raise Refused(command.split()[0].decode("ascii", "replace"), reply)
        return reply

    async def reply(self) -> Reply:
        """Return the next reply; raises ``CannotScan`` where none comes, or the service ends."""
        first = await self._line()
        match = _CODE.match(first)
        if match is None:
            raise CannotScan(f"this is no FTP: {first[:60]!r}")
        code, more, text = match.groups()
        lines = [text]
        while more == b"-":
            line = await self._line()
            ends = line[:4] == code + b" " or line == code
            lines.append(line[4:] if ends else line)
            if ends:
                break
            if len(lines) > LINES:
                raise CannotScan(f"a reply of more than {LINES} lines")
        await asyncio.sleep(0)  # a server may have sent many replies ahead
        reply = Reply(int(code), tuple(lines))
        if reply.code == _UNAVAILABLE:
            raise Refused("the service ends", reply)
        return reply

    async def _line(self) -> bytes:
        try:
            line = await self._effort.patiently(self._reader.readline())
        except ValueError:
            raise CannotScan(f"a reply with a line of more than {LINE} bytes") from None
        except OSError as error:
            raise CannotScan(f"the control connection broke: {error.strerror or error}") from None
        if not line.endswith(b"\n"):
            raise CannotScan("the server closed the control connection")
        await self._effort.take(len(line))
        return line.rstrip(b"\r\n")

    def close(self) -> None:
        """Say goodbye and close at once."""
        with suppress(OSError):
            self._writer.write(b"QUIT\r\n")
        self._writer.close()


@dataclass(slots=True)
class Ftp:
    """A session. ``private``: addresses that are not public may be connected to."""

    control: Control
    outgoing: Outgoing
    effort: Effort
    private: bool = False
    _extended: bool = True

    @classmethod
    async def begin(
        cls, outgoing: Outgoing, host: str, port: int, effort: Effort, *, private: bool = False
    ) -> "Ftp":
        """Connect and log in anonymously; raises ``CannotScan`` or ``NoConnection``."""
        opening = outgoing.stream(host, port, private=private, unread=LINE)
        control = Control(await effort.patiently(opening), effort)
        made = cls(control, outgoing, effort, private)
        try:
            await made._log_in()
        except BaseException:
            control.close()
            raise
        return made

    async def _log_in(self) -> None:
        greeting = await self.control.reply()
        for _ in range(PRELIMINARIES):
            if not greeting.begun:
                break
            greeting = await self.control.reply()
        if not greeting.good:
            raise Refused("connecting", greeting)
        answer = await self.control.ask(b"USER anonymous")
        if answer.code == _NEED_PASSWORD:
            answer = await self.control.ask(b"PASS " + _PASSWORD)
        if not answer.good:
            raise Refused("anonymous login", answer)
        await self.control.done(b"TYPE I")

    async def told(self, command: bytes) -> str:
        """Return what a server tells about a file (MDTM, SIZE); "" = it refuses, or knows nothing."""
        reply = await self.control.ask(command)
        return reply.lines[-1].decode("latin-1").strip() if reply.code == _FILE_STATUS else ""

    async def retrieve(self, command: bytes, write: Callable[[bytes], object]) -> Reply:
        """Have data sent (RETR, LIST, MLSD), hand its pieces over, and return the last reply.

        Raises ``Refused`` where the server sends nothing or says that it broke off, ``CannotScan``.
        """
        reader, writer = await self._data_connection()
        try:
            reply = await self.control.ask(command)
            if not reply.begun:
                raise Refused(command.split()[0].decode("ascii", "replace"), reply)
            await self._pour(reader, write)
        finally:
            writer.transport.abort()
        for _ in range(PRELIMINARIES):
            reply = await self.control.reply()
            if not reply.begun:
                break
        if not reply.good:
            raise CannotScan(f"the transfer broke off: the server answers {reply.text!r}")
        return reply

    async def _pour(self, reader: asyncio.StreamReader, write: Callable[[bytes], object]) -> None:
        try:
            while piece := await self.effort.patiently(reader.read(PIECE)):
                await self.effort.take(len(piece))
                write(piece)
        except OSError as error:
            raise CannotScan(f"the data connection broke: {error.strerror or error}") from None

    async def _data_connection(self) -> Stream:
        port = await self._passive_port()
        if not LEAST_PORT <= port <= 65535:  # noqa: PLR2004
            raise CannotScan(f"the server names port {port} for data, which is refused")
        opening = self.outgoing.stream(self.control.peer, port, private=self.private, unread=PIECE)
        try:
            return await self.effort.patiently(opening)
        except NoConnection as error:
            raise CannotScan(f"no data connection to {self.control.peer}, port {port}: {error}") from None

    async def _passive_port(self) -> int:
        if self._extended:
            reply = await self.control.ask(b"EPSV")
            match = _EXTENDED.search(reply.lines[-1]) if reply.code == _EXTENDED_PASSIVE else None
            if match is not None:
                return int(match[2])
            self._extended = False
        reply = await self.control.done(b"PASV")
        match = _PASSIVE.search(reply.lines[-1]) if reply.code == _PASSIVE_MODE else None
        if match is None:
            raise CannotScan(f"no passive mode: the server answers {reply.text!r}")
        return int(match[1]) * 256 + int(match[2])

    def close(self) -> None:
        """End the session."""
        self.control.close()
