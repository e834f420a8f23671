"""Lists an FTP server: its own ls-lR.gz where that is fresh, else LIST -lR, else directory by directory.

Seed 004 "The Mirror Tracker robot". What LIST -lR leaves out (some servers know no -R, or end it at some
depth) is asked for directory by directory: by MLSD, or by LIST where a server has no MLSD.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO

from lcc_scrapy.apps.tracker import mlsd
from lcc_scrapy.apps.tracker.effort import CannotScan
from lcc_scrapy.apps.tracker.entries import Directory, Entry, Held, Kind, Path, empty, is_name, of_entries
from lcc_scrapy.apps.tracker.ftp import Ftp, Refused, Reply
from lcc_scrapy.apps.tracker.listed import Known, Listed, Unchanged
from lcc_scrapy.apps.tracker.spool import Spool, Text
from lcc_scrapy.apps.tracker.waiting import Marked, Step, Waiting

READY_MADE: tuple[Path, ...] = ((), (b"pub",))
"""Where a listing that the server made itself may lie, below the base (seed 004)."""

LINE_MAX = 8192
_NAME = b"ls-lR.gz"
_STAMP = re.compile(r"([0-9]{14})(?:\.[0-9]{1,9})?")
_DIGITS = re.compile(r"[0-9]{1,18}")
_CUT = re.compile(rb"truncat", re.IGNORECASE)
_UNKNOWN = frozenset({500, 501, 502, 504})
_SLOT = 8
_NEVER = object()


@dataclass(frozen=True, slots=True)
class ReadyMade:
    """An ls-lR.gz: below which folder, when it was made (as MDTM says), and its bytes."""

    below: Path
    made: str
    size: int

    @property
    def validator(self) -> str:
        """What is different when the file is."""
        return f"{b'/'.join(self.below).decode()} {self.made} {self.size}"

    def is_fresh(self, now: float, fresh: float) -> bool:
        """Tell whether it is no older than ``fresh`` seconds; nor may it be newer than now by more."""
        try:
            made = datetime.strptime(self.made, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
        except ValueError:
            return False
        return abs(now - made) <= fresh


@dataclass(slots=True)
class FtpListing:
    """One scan. ``base`` is the absolute path where it begins; ``new_file`` makes files without a name."""

    ftp: Ftp
    base: bytes
    known: Known
    now: float
    new_file: Callable[[], IO[bytes]]
    spool: Spool = field(init=False)
    _by_mlsd: bool = True
    _waiting: Waiting = field(default_factory=Waiting)
    _one: IO[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.spool = Spool(self.new_file())
        self._one = self.new_file()

    async def run(self) -> Listed | Unchanged:
        """List the server; raises ``CannotScan``."""
        found = await self._ready_made()
        if found is not None:
            return await self._take_ready_made(found)
        return await self._recursive() or await self._walked()

    def place(self, path: Path) -> bytes:
        """Return the absolute path of what lies below the base."""
        return b"/".join((self.base.rstrip(b"/"), *path)) or b"/"

    # --- a listing that the server made ------------------------------------------------------------

    async def _ready_made(self) -> ReadyMade | None:
        for below in READY_MADE:
            place = self.place((*below, _NAME))
            made = _STAMP.fullmatch(await self.ftp.told(b"MDTM " + place))
            size = _DIGITS.fullmatch(await self.ftp.told(b"SIZE " + place)) if made else None
            if made is None or size is None:
                continue
            found = ReadyMade(below, made[1], int(size[0]))
            if found.size and found.is_fresh(self.now, self.ftp.effort.limits.fresh):
                return found
        return None

    async def _take_ready_made(self, found: ReadyMade) -> Listed | Unchanged:
        if self.known == Known("ls-lR.gz", found.validator):
            return Unchanged("ls-lR.gz", found.validator)
        most = self.ftp.effort.limits.most_bytes
        text = Text(self.new_file(), packed=True, most=most, below=found.below)
        await self.ftp.retrieve(b"RETR " + self.place((*found.below, _NAME)), text.file.write)
        if text.file.tell() != found.size:
            raise CannotScan(f"ls-lR.gz has {found.size} bytes, and {text.file.tell()} came")
        return Listed("ls-lR.gz", (text,), found.validator)

    # --- LIST -lR ------------------------------------------------------------------------------------

    async def _recursive(self) -> Listed | None:
        """List all at once, and then what was left out; None = the server does not do that."""
        text = Text(self.new_file())
        try:
            await self.ftp.control.done(b"CWD " + self.place(()))
            reply = await self.ftp.retrieve(b"LIST -lR", text.file.write)
        except Refused:
            return None
        if _is_cut(reply):
            return None
        missing = await asyncio.to_thread(_missing, text)
        if missing is None:
            return None
        await self._walk(missing)
        return Listed("list", (text, self.spool))

    # --- directory by directory ----------------------------------------------------------------------

    async def _walked(self) -> Listed:
        root = await self._unique_of_base()
        if not await self._look_at(Step((), (root,) if root else ())):
            raise CannotScan(f"the server does not list {self.place(()).decode(errors='backslashreplace')}")
        await self._go_on()
        return Listed("mlsd" if self._by_mlsd else "list", (self.spool,))

    async def _walk(self, paths: list[Path]) -> None:
        for path in paths:
            await self._look_at(Step(path))
            await self._go_on()

    async def _go_on(self) -> None:
        while (step := self._waiting.next()) is not None:
            await self._look_at(step)

    async def _look_at(self, step: Step) -> bool:
        """List one directory; tells whether the server does. One that it refuses to list stays unknown."""
        self.ftp.effort.enter(0, len(step.path))
        if any(b"\r" in name or b"\n" in name for name in step.path):
            return False  # no command can name it
        if not (await self._by_facts(step) or await self._by_list(step)):
            return False
        await asyncio.to_thread(self._take_one, step)
        return True

    async def _by_facts(self, step: Step) -> bool:
        """Have the lines of a directory written to the file of one; tells whether the server sends them."""
        if not self._by_mlsd:
            return False
        try:
            await self._receive(b"MLSD " + self.place(step.path))
        except Refused as refused:
            self._by_mlsd = refused.reply.code not in _UNKNOWN
            return False
        return True

    async def _by_list(self, step: Step) -> bool:
        if self._by_mlsd:
            return False
        with suppress(Refused):
            await self.ftp.control.done(b"CWD " + self.place(step.path))
            await self._receive(b"LIST")
            return True
        return False

    async def _receive(self, command: bytes) -> None:
        self._one.seek(0)
        self._one.truncate()
        await self.ftp.retrieve(command, self._one.write)

    def _take_one(self, step: Step) -> None:
        """Read the file of one directory, which may be large: in a thread."""
        if self._by_mlsd:
            directory, further = _read_facts(step, _lines(self._one))
        else:
            directory = next(iter(Text(self._one)), empty(()))._replace(path=step.path)
            further = [(name, None) for name in directory.dirs if is_name(name)]
        self.ftp.effort.enter(_count(directory), len(step.path))
        self.spool.write(directory)
        self._waiting.add(step, further)

    async def _unique_of_base(self) -> bytes:
        with suppress(Refused):
            reply = await self.ftp.control.ask(b"MLST " + self.place(()))
            for text in reply.lines if reply.good else ():
                line = mlsd.parsed(text.strip(b" "))
                if line is not None and line.unique:
                    return line.unique
        return b""


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file from its beginning; raises ``CannotScan`` for one without end."""
    file.seek(0)
    while line := file.readline(LINE_MAX + 2):
        text = line.removesuffix(b"\n")
        if len(text) > LINE_MAX:
            raise CannotScan(f"a listing with a line of more than {LINE_MAX} bytes")
        yield text.removesuffix(b"\r")


def _read_facts(step: Step, lines: Iterator[bytes]) -> tuple[Directory, list[Marked]]:
    """Return a directory, and those of its subdirectories that are no loops, each with its mark."""
    further: list[Marked] = []
    read = _Facts(step, further)
    made = of_entries(step.path, read.entries(lines))
    return made._replace(sound=made.sound and read.sound), further


@dataclass(slots=True)
class _Facts:
    """The lines of one directory. A mark is what a directory is on the server (``unique``)."""

    step: Step
    further: list[Marked]
    sound: bool = True

    def entries(self, lines: Iterator[bytes]) -> Iterator[Entry]:
        """Yield what lines name; one that cannot be read makes the directory unsound."""
        for text in lines:
            line = mlsd.parsed(text) if text else None
            if line is None:
                self.sound = self.sound and not text
            elif not (line.is_itself or line.is_device):
                yield self._entry(line)

    def _entry(self, line: mlsd.Line) -> Entry:
        above, entry = self.step.above, line.entry(self.step.path)
        if entry.kind is Kind.DIR and line.unique and line.unique in above:
            return Entry(entry.path, Kind.LINK, target=_up(above, line.unique))
        if entry.kind is Kind.DIR and is_name(line.name):
            self.further.append((line.name, line.unique))
        return entry


def _up(above: tuple[bytes, ...], unique: bytes) -> bytes:
    """Return where a link leads that is the directory itself (".") or one above it."""
    return b"/".join([b".."] * (len(above) - 1 - above.index(unique))) or b"."


def _missing(listing: Text) -> list[Path] | None:
    """Return the directories that a listing names and does not list; None = it is no listing."""
    waiting: dict[Path, None] = {}
    empty, held = True, Held()
    for one in listing:
        empty = False
        if waiting.pop(one.path, _NEVER) is None:
            held.drop(*_weight(one.path))
        for name in filter(is_name, one.dirs):
            path = (*one.path, name)
            held.add(*(_weight(path) if path not in waiting else (0, 0)))
            waiting[path] = None
    return None if empty else list(waiting)


def _weight(path: Path) -> tuple[int, int]:
    return 1, len(path) * _SLOT + len(path[-1])


def _count(directory: Directory) -> int:
    return len(directory.files) + len(directory.dirs) + len(directory.links)


def _is_cut(reply: Reply) -> bool:
    return any(_CUT.search(line) for line in reply.lines)
