"""Lists an rsync server by the rsync program: a child process that gets nothing of ours and is bounded.

It is given an address, not a name, so that it connects where the guard of outgoing connections has looked.
"""

import asyncio
import os
import re
import resource
import shutil
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import IO

from lcc_scrapy.apps.tracker.effort import CannotScan, Effort
from lcc_scrapy.apps.tracker.entries import Entry, Kind, Path, Unlisted, by_directory
from lcc_scrapy.apps.tracker.spool import Spool

LINE_MAX = 32 * 1024
"""Bytes of a line: each byte of a name may take five, and so may those of a link's target."""

SIZE_DIGITS = 20
"""Of a size of 64 bits; Python refuses to read thousands."""

MEMORY = 2 * 1024**3
"""Bytes of address space for the program: it keeps the list of files in memory."""

DESCRIPTORS = 64
COMPLAINTS = 256 * 1024
"""Bytes of what it says on stderr that are looked at."""

PIECE = 64 * 1024
_ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent"}
_PARTIAL = 23
_ESCAPED = re.compile(rb"\\#([0-7]{3})")
_LINE = re.compile(rb"([-dlcbps])[-a-zA-Z]{9}[.+@]? +([0-9]+) \d{4}/\d\d/\d\d \d\d:\d\d:\d\d (.+)", re.DOTALL)
_OPENDIR = re.compile(rb'rsync: (?:\[\w+\] )?opendir "/?')
_HARMLESS = re.compile(rb"rsync(?: error|: read error|: connection unexpectedly)")
_KINDS: Mapping[bytes, Kind] = {b"-": Kind.FILE, b"d": Kind.DIR, b"l": Kind.LINK}
_ARROW = b" -> "


def entries(lines: Iterable[bytes]) -> Iterator[Entry]:
    """Read lines of ``rsync --list-only -8 --no-h``; raises ``Unlisted`` for what is none."""
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is None:
            raise Unlisted(f"this is no line of rsync: {line[:80]!r}")
        letter, size, text = match.groups()
        name, _, target = text.partition(_ARROW) if letter == b"l" else (text, b"", b"")
        path = path_of(b"" if name == b"." else name)
        if letter in _KINDS:
            amount = 0 if letter != b"-" else int(size) if len(size) <= SIZE_DIGITS else -1
            yield Entry(path, _KINDS[letter], amount, target=_plain(target) or b"?")


def path_of(name: bytes) -> Path:
    """Return the path of a name as rsync prints it."""
    return tuple(_plain(name).split(b"/")) if name else ()


def _plain(text: bytes) -> bytes:
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 8) & 255]), text) if b"\\#" in text else text


def command(address: str, port: int, path: str, patience: float) -> list[str]:
    """Return the command that lists a module, or a folder of one; raises ``CannotScan`` without rsync."""
    program = shutil.which("rsync", path=_ENVIRONMENT["PATH"])
    if program is None:
        raise CannotScan("the program rsync is not installed here")
    host = f"[{address}]" if ":" in address else address
    seconds = max(1, round(patience))
    options = ["--list-only", "-rl", "-8", "--no-h", "--no-motd", f"--timeout={seconds}"]
    return [program, *options, f"--contimeout={seconds}", "--", f"rsync://{host}:{port}/{path}"]


async def listed(words: list[str], effort: Effort, new_file: Callable[[], IO[bytes]]) -> Spool:
    """Run rsync to its end, and return what it lists; raises ``CannotScan`` or ``Unlisted``."""
    said = new_file()
    unread = await _run(words, effort, said)
    spool = Spool(new_file(), backwards=True)
    await asyncio.to_thread(_sort, said, unread, spool)
    return spool


def _sort(said: IO[bytes], unread: frozenset[Path], spool: Spool) -> None:
    """Gather directories; those that the server could not read (``unread``) are not listed."""
    said.seek(0)
    for one in by_directory(entries(_lines(said))):
        if one.path not in unread:
            spool.write(one)


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    while line := file.readline(LINE_MAX):
        if not line.endswith(b"\n"):
            raise Unlisted(f"a line of more than {LINE_MAX} bytes, or a cut one")
        yield line[:-1]


async def _run(words: list[str], effort: Effort, file: IO[bytes]) -> frozenset[Path]:
    """Keep what rsync prints; whatever happens, it is gone afterwards. Returns the unreadable directories."""
    effort.ask()
    child = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env=_ENVIRONMENT,
        cwd="/",
        start_new_session=True,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    complaints = asyncio.ensure_future(_read(child.stderr, effort))
    try:
        _bound(child, effort)
        while piece := await effort.patiently(child.stdout.read(PIECE)):
            await effort.take(len(piece))
            file.write(piece)
        said = await effort.patiently(complaints)
        status = await effort.patiently(child.wait())
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # it has children, which hold the pipes
        await _read_away(child.stdout)
        await asyncio.gather(complaints, return_exceptions=True)
        await _read_away(child.stderr)
        await child.wait()
    return _unread(status, said)


def _bound(child: Process, effort: Effort) -> None:
    seconds = int(effort.limits.deadline) + 1
    bounds = {
        resource.RLIMIT_AS: MEMORY,
        resource.RLIMIT_NOFILE: DESCRIPTORS,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: seconds,
    }
    with suppress(ProcessLookupError):
        for bound, most in bounds.items():
            resource.prlimit(child.pid, bound, (most, most))


async def _read(stream: asyncio.StreamReader, effort: Effort) -> bytes:
    """Return the beginning of what is said; all of it counts."""
    kept = b""
    while piece := await stream.read(PIECE):
        await effort.take(len(piece))
        kept += piece[: COMPLAINTS - len(kept)]
    return kept


async def _read_away(stream: asyncio.StreamReader) -> None:
    """Read what nobody wants: asyncio sees the end of a process only behind all that it had written."""
    while await stream.read(PIECE):
        pass


def _unreadable(line: bytes) -> bytes | None:
    """Return the directory that a line says cannot be read; None = the line says something else."""
    begins = _OPENDIR.match(line)
    name, quote, rest = line[begins.end() :].rpartition(b'" (in ') if begins else (b"", b"", b"")
    return name if quote and b") failed: " in rest else None


def _unread(status: int, said: bytes) -> frozenset[Path]:
    """Return the directories that the server could not read; raises ``CannotScan`` for any other failure."""
    if status == 0:
        return frozenset()
    lines = [line for line in said.split(b"\n") if line]
    found = [_unreadable(line) for line in lines]
    others = [line for line, name in zip(lines, found, strict=True) if name is None and b"failed" in line]
    unread = frozenset(path_of(name) for name in found if name is not None)
    if status != _PARTIAL or others or not unread or len(said) >= COMPLAINTS or () in unread:
        why = (lines or [b"nothing said"])[0][:200].decode("utf-8", "backslashreplace")
        raise CannotScan(f"rsync ended with status {status}: {why}")
    return unread
