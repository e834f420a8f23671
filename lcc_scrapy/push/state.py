r"""The state file: what the LCC was told of a site the last time it accepted a set.

A text file of the lines of `pipe`, between a header and an end mark with a digest::

    <state version="1" id="…" base="…" set="…" lcc="…" pid="7" urlprefix="http://…/" seq="12"/>
    <url curl="a.html" mimetype="text/html" len="12" mtime="1700000000" md5="…"/>
    <end count="1" sha256="…"/>

``lcccpstate`` writes ``STATE.pending``; ``lcccp`` makes it ``STATE`` once the set is accepted. A crash in
between leaves the old state, and the set is sent again under the same id; until then, what differs
in the two is in doubt (`doubt`): its lines have no len, mtime and md5, so that they equal nothing, and
those that the LCC may not have at all are marked ``new="yes"``. Beside them:
``STATE.lock`` (flock) and ``STATE.wanted`` (the reason for which the LCC wants a full set).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b, sha256
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from lcc_scrapy.push import pipe
from lcc_scrapy.push.command import Status, Stop
from lcc_scrapy.wire.messages import Url
from lcc_scrapy.wire.writing import element

VERSION = "1"


class Damaged(Exception):
    """A state file that is cut short, changed by hand, or of another version."""


@dataclass(frozen=True)
class Header:
    """What a state belongs to. Empty ``lcc``, ``pid`` and ``urlprefix`` mean: not bound yet.

    ``id`` names this state and its set; ``base`` is the id of the state it follows; ``set`` is the digest
    of the set; ``seq`` is the number of the last login, 0 = not known. ``revision`` is the LCC's when what
    is refused was judged (`refusals`); ``unlisted``: "yes" when a login since had more errors than it listed.
    """

    id: str = ""
    base: str = ""
    set: str = ""
    lcc: str = ""
    pid: str = ""
    urlprefix: str = ""
    seq: int = 0
    revision: str = ""
    unlisted: str = ""

    def write(self) -> bytes:
        """Write the first line of a state file."""
        return (element("state", {"version": VERSION, **asdict(self)}) + "\n").encode()

    @classmethod
    def read(cls, raw: bytes) -> Header:
        """Read the first line of a state file; raises `Damaged`."""
        try:
            name, found = pipe.parse_element(raw)
            if name != "state":
                raise Damaged("it does not begin as a state file")
            if found.pop("version", "") != VERSION:
                raise Damaged(f"it is not of version {VERSION}")
            seq = int(found.pop("seq", "0"))
            return cls(**found, seq=seq)
        except (ValueError, TypeError):
            raise Damaged("its header cannot be read") from None


def key_of(attributes: Mapping[str, str]) -> bytes:
    """Return 16 bytes that stand for the key of a URL: curl and mimetype (seed 003 section 4)."""
    mimetype = attributes.get("mimetype", "").partition(";")[0].strip().lower()
    return blake2b(f"{attributes.get('curl', '')}\0{mimetype}".encode(), digest_size=16).digest()


class Reader:
    """A state file, read once from its beginning and checked against its end mark."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.header = Header.read(file.readline(pipe.LINE_MAX))

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, line) of every URL; raises `Damaged` at the end when something is missing."""
        digest, offset = sha256(), self._file.tell()
        for count, line in enumerate(self._file):
            if line.startswith(b"<end "):
                _check_end(line, count, digest.hexdigest(), more=bool(self._file.readline(1)))
                return
            yield offset, line
            digest.update(line)
            offset += len(line)
        raise Damaged("it is cut short")


def _check_end(line: bytes, count: int, digest: str, *, more: bool) -> None:
    if line != _end(count, digest) or more:
        raise Damaged("its contents and its end mark do not match")


def _end(count: int, digest: str) -> bytes:
    return (element("end", {"count": count, "sha256": digest}) + "\n").encode()


def attributes_in(line: bytes) -> dict[str, str]:
    """Return the attributes of one line of a state file; raises `Damaged`."""
    try:
        return pipe.parse_element(line)[1]
    except pipe.BadLine:
        raise Damaged("a line cannot be read") from None


class StateFile:
    """A state file by its path, with the files beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pending = path.with_name(path.name + ".pending")
        self._wanted = path.with_name(path.name + ".wanted")
        self._lock = path.with_name(path.name + ".lock")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the state for oneself; raises `Stop` (75) when another run has it."""
        with self._opened_lock() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Stop(
                    Status.TRY_LATER, f"{self.path} is in use by another run; try again later"
                ) from None
            yield

    def _opened_lock(self) -> BinaryIO:
        try:
            return self._lock.open("ab")
        except OSError as error:
            raise Stop(Status.BAD_INPUT, f"{self._lock} cannot be written: {error.strerror}") from None

    @contextmanager
    def opened(self, *, pending: bool = False) -> Iterator[Reader | None]:
        """Open the state (or the pending one) for reading; None when there is none. Raises `Damaged`."""
        try:
            file = (self.pending if pending else self.path).open("rb")
        except FileNotFoundError:
            yield None
            return
        with file:
            yield Reader(file)

    def header(self, *, pending: bool = False) -> Header | None:
        """Return the header of the state (or the pending one); None when there is none. Raises `Damaged`."""
        with self.opened(pending=pending) as reader:
            return reader.header if reader else None

    def checked_pending(self) -> Header | None:
        """Return the header of the pending state after reading all of it; raises `Damaged`."""
        with self.opened(pending=True) as reader:
            if reader is None:
                return None
            for _ in reader.lines():
                pass
            return reader.header

    def write(self, header: Header, lines: Iterable[bytes]) -> None:
        """Replace the state; the lines may come out of it."""
        _write(self.path, header, lines)

    def write_pending(self, header: Header, lines: Iterable[bytes]) -> None:
        """Put the next state on disk, to be committed later."""
        _write(self.pending, header, lines)

    def commit(
        self,
        header: Header,
        without: Collection[bytes] = frozenset(),
        over: Callable[[Iterator[bytes]], Iterator[bytes]] = lambda lines: lines,
    ) -> None:
        """Make the pending state the state, under this header, less the URLs with these keys.

        What was in doubt among them stays so. ``over`` gets the lines, and yields them as they are to be.
        """
        with self.opened(pending=True) as reader:
            if reader is None:
                raise Damaged("there is no pending state")
            lines: Iterator[bytes] = (line for _, line in reader.lines())
            if without:
                lines = chain(_without(lines, without), self._in_doubt(without))
            self.write(header, over(lines))
        self.pending.unlink()

    def _in_doubt(self, keys: Collection[bytes]) -> Iterator[bytes]:
        """Yield what the state says of URLs with these keys that the LCC may have; a damaged one: nothing."""
        with suppress(Damaged), self.opened() as reader:
            for _, line in reader.lines() if reader else ():
                attributes = attributes_in(line)
                if key_of(attributes) in keys:
                    yield pipe.write(Url({**pipe.unmarked(attributes), pipe.NEW: "yes"}))

    def note_login(self, seq: int, unlisted: str = "") -> None:
        """Record the number of a login that changed nothing else, and that it did not list all errors."""
        with self.opened() as reader:
            if reader is not None:
                header = replace(reader.header, seq=seq, unlisted=unlisted or reader.header.unlisted)
                self.write(header, (line for _, line in reader.lines()))

    def pending_lines(self) -> Iterator[bytes]:
        """Yield the lines of the pending state; raises `Damaged`."""
        with self.opened(pending=True) as reader:
            for _, line in reader.lines() if reader else ():
                yield line

    def wish(self) -> str:
        """Return why the LCC wants a full set; empty when it does not."""
        try:
            return self._wanted.read_text("utf-8").strip() or "not said"
        except FileNotFoundError:
            return ""

    def record_full_set_request(self, reason: str) -> None:
        """Remember that the LCC wants a full set: the next run of lcccpstate makes one."""
        self._wanted.write_text(f"{reason or 'not said'}\n", "utf-8")

    def forget_full_set_request(self) -> None:
        """The LCC does not want a full set (any more)."""
        self._wanted.unlink(missing_ok=True)


def _without(lines: Iterable[bytes], keys: Collection[bytes]) -> Iterator[bytes]:
    return (line for line in lines if key_of(attributes_in(line)) not in keys)


def _write(target: Path, header: Header, lines: Iterable[bytes]) -> None:
    """Replace a file as a whole: whoever looks sees the old one or the new one, also after a crash."""
    temporary = target.with_name(target.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            _write_lines(file, header, lines)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


def _write_lines(file: BinaryIO, header: Header, lines: Iterable[bytes]) -> None:
    digest, count = sha256(), 0
    file.write(header.write())
    for line in lines:
        file.write(line)
        digest.update(line)
        count += 1
    file.write(_end(count, digest.hexdigest()))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
