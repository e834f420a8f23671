"""A disk that keeps what POSIX says it must, and of the rest as much or as little as it likes.

A file's content is safe once an fsync that began after the write has ended; a name is safe once its folder
has been synced, however well its file is. What is not safe is pending, and may survive a cut or not, in any
combination, down to single sectors. That goes further than any file system that is in use.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path, PurePosixPath

from tests.faults.powercut.trace import NOT_MODELLED, Call

SECTOR = 512


class Loss(Enum):
    """What becomes of that which nobody synced."""

    ALL = "nothing of it survives"
    TORN = "some of it survives, sector by sector"
    DATA = "names and sizes survive, data does not"


class Unmodelled(AssertionError):
    """The run did something to its data whose fate in a power cut is not known here."""


@dataclass(eq=False, slots=True)
class Write:
    """Bytes at an offset; ``at`` is the line of the record where the call ended."""

    at: int
    offset: int
    data: bytes

    def apply(self, content: bytearray) -> None:
        self.extend(content)
        content[self.offset : self.offset + len(self.data)] = self.data

    def extend(self, content: bytearray) -> None:
        """Let the file be as long as it would be, without the data."""
        content.extend(bytes(max(0, self.offset + len(self.data) - len(content))))

    def sectors(self) -> Iterable["Write"]:
        """Cut it where sectors end."""
        start = 0
        while start < len(self.data):
            end = start + SECTOR - (self.offset + start) % SECTOR
            yield Write(self.at, self.offset + start, self.data[start:end])
            start = end


@dataclass(eq=False, slots=True)
class Resize:
    """A file cut off, or made longer with zeros."""

    at: int
    size: int

    def apply(self, content: bytearray) -> None:
        del content[self.size :]
        content.extend(bytes(self.size - len(content)))


@dataclass(eq=False, slots=True)
class File:
    """``safe`` is what is on disk for certain."""

    safe: bytearray = field(default_factory=bytearray)
    pending: list[Write | Resize] = field(default_factory=list)

    def sync(self, began: int) -> None:
        for change in self.pending:
            if change.at < began:
                change.apply(self.safe)
        self.pending = [change for change in self.pending if change.at >= began]

    def now(self) -> bytes:
        """Return the content as programs see it."""
        content = bytearray(self.safe)
        for change in self.pending:
            change.apply(content)
        return bytes(content)

    def after(self, cut: "Cut") -> bytes:
        content = bytearray(self.safe)
        for change in self.pending:
            if cut.loss is Loss.DATA:
                (change.extend if isinstance(change, Write) else change.apply)(content)
            elif cut.loss is Loss.TORN:
                pieces = change.sectors() if isinstance(change, Write) else [change]
                for piece in pieces:
                    if cut.spares(piece):
                        piece.apply(content)
        return bytes(content)


@dataclass(eq=False, slots=True)
class Enter:
    """A name comes to stand for a file or folder."""

    at: int
    folder: "Folder"
    name: str
    what: "File | Folder"

    def apply(self, names: "dict[str, File | Folder]") -> None:
        names[self.name] = self.what


@dataclass(eq=False, slots=True)
class Leave:
    """A name goes; in a rename ``to`` is the other half, and no file system loses both names."""

    at: int
    folder: "Folder"
    name: str
    to: Enter | None = None

    def apply(self, names: "dict[str, File | Folder]") -> None:
        names.pop(self.name, None)


@dataclass(eq=False, slots=True)
class Folder:
    """``now`` are the names that programs see, ``safe`` those that are on disk for certain."""

    now: "dict[str, File | Folder]" = field(default_factory=dict)
    safe: "dict[str, File | Folder]" = field(default_factory=dict)
    pending: list[Enter | Leave] = field(default_factory=list)

    def change(self, change: Enter | Leave) -> None:
        change.apply(self.now)
        self.pending.append(change)

    def sync(self, began: int) -> None:
        done = [change for change in self.pending if change.at < began]
        self.pending = [change for change in self.pending if change.at >= began]
        for change in done:
            if isinstance(change, Leave) and change.to is not None:
                change.to.folder.settle(change.to)
            change.apply(self.safe)

    def settle(self, change: Enter) -> None:
        if change in self.pending:
            self.pending.remove(change)
            change.apply(self.safe)

    def after(self, cut: "Cut") -> "dict[str, File | Folder]":
        names = dict(self.safe)
        for change in self.pending:
            if cut.spares(change):
                change.apply(names)
        return names


class Cut:
    """One power cut: decides, once for each pending change, whether it survives."""

    def __init__(self, loss: Loss, chance: random.Random) -> None:
        self.loss = loss
        self._chance = chance
        self._share = chance.choice((0.1, 0.5, 0.9))
        self._spared: dict[int, bool] = {}

    def spares(self, change: Write | Resize | Enter | Leave) -> bool:
        if self.loss is not Loss.TORN:
            return self.loss is Loss.DATA
        if isinstance(change, Leave) and change.to is not None and change.to in change.to.folder.pending:
            return self.spares(change.to)
        if isinstance(change, Write):  # a sector, asked about once
            return self._chance.random() < self._share
        return self._spared.setdefault(id(change), self._chance.random() < self._share)


class Disk:
    """The disk below a folder that exists and is safe; calls about anything outside ``data`` in it are ignored.

    ``lazily`` tells of the path of an fsync whether it is to do nothing: that is what would survive if the
    program had not called it.
    """

    def __init__(self, data: Path, lazily: Callable[[str], bool] = lambda _path: False) -> None:
        self.data = str(data)
        self.parent = Folder()
        self.writes = self.syncs = 0
        self._lazily = lazily
        self._offsets: dict[tuple[str, str], int | None] = {}
        """Where ``write`` goes on, by descriptor and path; None = at the end."""

    # --- what is where ---------------------------------------------------------------------------

    def _has(self, path: str) -> bool:
        return path == self.data or path.startswith(self.data + "/")

    def _folder_of(self, path: str) -> tuple[Folder, str]:
        *way, name = PurePosixPath(path).relative_to(PurePosixPath(self.data).parent).parts
        folder = self.parent
        for step in way:
            found = folder.now[step]
            assert isinstance(found, Folder), path
            folder = found
        return folder, name

    def _find(self, path: str) -> File | Folder | None:
        folder, name = self._folder_of(path)
        return folder.now.get(name)

    def _file(self, path: str) -> File:
        found = self._find(path)
        if not isinstance(found, File):
            raise Unmodelled(f"a change to {path}, which is not a file that was seen to be made")
        return found

    # --- what happens ----------------------------------------------------------------------------

    def apply(self, call: Call) -> None:
        """Let a call take effect."""
        if call.name in NOT_MODELLED and call.is_about(self.data):
            raise Unmodelled(f"{call.name}: what it does is lost or kept by rules of its own")
        handler = getattr(self, f"_{_SAME.get(call.name, call.name)}", None)
        if handler is not None:
            handler(call)

    def _openat(self, call: Call) -> None:
        index = 1 if call.name == "openat" else 0
        path = call.path(index)
        flags = "O_CREAT|O_TRUNC" if call.name == "creat" else call.args[index + 1]
        if not self._has(path):
            return
        self._offsets[call.opened(), path] = None if "O_APPEND" in flags else 0
        if "O_TMPFILE" in flags:
            raise Unmodelled(f"a file without a name in {path}")
        folder, name = self._folder_of(path)
        if "O_CREAT" in flags and name not in folder.now:
            folder.change(Enter(call.ended, folder, name, File()))
        elif "O_TRUNC" in flags:
            self._file(path).pending.append(Resize(call.ended, 0))

    def _mmap(self, call: Call) -> None:
        path = call.descriptor(4)[1] if "<" in call.args[4] else ""
        shared = "MAP_SHARED" in call.args[3] and "PROT_WRITE" in call.args[2]
        if (
            shared and self._has(path) and not path.endswith("-shm")
        ):  # SQLite makes that one anew after a crash
            raise Unmodelled(f"{path} is written through memory")

    def _lseek(self, call: Call) -> None:
        if self._has(call.descriptor(0)[1]) and self._offsets.get(call.descriptor(0), 0) is not None:
            self._offsets[call.descriptor(0)] = call.result

    def _write(self, call: Call) -> None:
        where = call.descriptor(0)
        if not self._has(where[1]) or where[1].endswith(" (deleted)"):
            return
        if where not in self._offsets:
            raise Unmodelled(f"a write to {where} which was not seen to be opened")
        file = self._file(where[1])
        offset = self._offsets[where]
        self._change(file, call, len(file.now()) if offset is None else offset)
        if offset is not None:
            self._offsets[where] = offset + call.result

    def _pwrite64(self, call: Call) -> None:
        if self._has(call.descriptor(0)[1]):
            self._change(self._file(call.descriptor(0)[1]), call, call.number(3))

    def _change(self, file: File, call: Call, offset: int) -> None:
        self.writes += 1
        file.pending.append(Write(call.ended, offset, call.text(1)[: call.result]))

    def _ftruncate(self, call: Call) -> None:
        if self._has(call.descriptor(0)[1]):
            self._file(call.descriptor(0)[1]).pending.append(Resize(call.ended, call.number(1)))

    def _fallocate(self, call: Call) -> None:
        where = call.descriptor(0)[1]
        if not self._has(where):
            return
        if call.number(1):
            raise Unmodelled(f"fallocate of {where} with flags")
        file, end = self._file(where), call.number(2) + call.number(3)
        if end > len(file.now()):
            file.pending.append(Resize(call.ended, end))

    def _truncate(self, call: Call) -> None:
        if self._has(call.path(0)):
            self._file(call.path(0)).pending.append(Resize(call.ended, call.number(1)))

    def _fsync(self, call: Call) -> None:
        path = call.descriptor(0)[1]
        above = path == str(PurePosixPath(self.data).parent)
        found = self.parent if above else self._find(path) if self._has(path) else None
        if found is not None and not self._lazily(path):
            self.syncs += 1
            found.sync(call.began)

    def _syncfs(self, call: Call) -> None:
        if self._has(call.descriptor(0)[1]):
            self.syncs += 1
            self._sync_all(self.parent, PurePosixPath(self.data).parent, call.began)

    def _sync_all(self, what: File | Folder, path: PurePosixPath, began: int) -> None:
        if not self._lazily(str(path)):
            what.sync(began)
        for name, inside in what.now.items() if isinstance(what, Folder) else ():
            self._sync_all(inside, path / name, began)

    def _mkdir(self, call: Call) -> None:
        path = call.path(1 if call.name == "mkdirat" else 0)
        if self._has(path):
            folder, name = self._folder_of(path)
            folder.change(Enter(call.ended, folder, name, Folder()))

    def _unlink(self, call: Call) -> None:
        path = call.path(1 if call.name == "unlinkat" else 0)
        if self._has(path):
            folder, name = self._folder_of(path)
            folder.change(Leave(call.ended, folder, name))

    def _link(self, call: Call) -> None:
        old, new = (call.path(1), call.path(3)) if call.name == "linkat" else (call.path(0), call.path(1))
        if self._has(new):
            folder, name = self._folder_of(new)
            folder.change(Enter(call.ended, folder, name, self._file(old)))

    def _rename(self, call: Call) -> None:
        old, new = (call.path(0), call.path(1)) if call.name == "rename" else (call.path(1), call.path(3))
        if not self._has(old) and not self._has(new):
            return
        source, before = self._folder_of(old)
        target, after = self._folder_of(new)
        enter = Enter(call.ended, target, after, source.now[before])
        target.change(enter)
        source.change(Leave(call.ended, source, before, enter))

    # --- what is left ----------------------------------------------------------------------------

    def lay_out(self, target: Path, cut: Cut | None = None) -> None:
        """Write what a cut leaves (None = no cut) to a folder of the real disk."""
        _lay_out(self.parent, target, cut)

    def pending(self) -> int:
        """Return how many changes could be lost now."""
        return _pending(self.parent)


def _lay_out(folder: Folder, target: Path, cut: Cut | None) -> None:
    target.mkdir(exist_ok=True)
    for name, what in (folder.after(cut) if cut else folder.now).items():
        if isinstance(what, Folder):
            _lay_out(what, target / name, cut)
        else:
            (target / name).write_bytes(what.after(cut) if cut else what.now())


def _pending(folder: Folder) -> int:
    below = (
        _pending(what) if isinstance(what, Folder) else len(what.pending) for what in folder.now.values()
    )
    return len(folder.pending) + sum(below)


_SAME = {
    "open": "openat", "creat": "openat", "writev": "write", "pwritev": "pwrite64", "fdatasync": "fsync",
    "mkdirat": "mkdir", "unlinkat": "unlink", "rmdir": "unlink", "linkat": "link",
    "renameat": "rename", "renameat2": "rename",
}  # fmt: skip
