"""Content files on this machine (seed 003 section 7 "Filename management").

``CONTENT_DIR/<machineid>/<millions>/<thousands>/<fileid>``: the name is the decimal file id, the
folders are ``fileid // 1,000,000`` and ``fileid // 1,000 % 1,000`` (three digits each at least), so no
folder holds more than a thousand files. Names come from numbers only, never from URLs.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lcc_scrapy.domain.cache import Body
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.machine.disk import on_disk, sync, sync_folder
from lcc_scrapy.machine.group_fsync import GroupFsync

_log = logging.getLogger(__name__)

FOLDER = 1000
"""File ids whose files share a folder."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored content: ``size`` in bytes, ``mtime`` in epoch seconds."""

    size: int
    mtime: float


class ContentAway(OSError):
    """Object storage does not answer as it should; the same call may go through later."""


def relative_path(machineid: int, fileid: int) -> Path:
    """Return where a content file lies below the content folder."""
    return Path(relative_name(machineid, fileid))


def relative_name(machineid: int, fileid: int) -> str:
    """Return the same as text, for those who open one file after the other."""
    return f"{machineid}/{fileid // 1_000_000:03d}/{fileid // 1000 % 1000:03d}/{fileid}"


def highest_fileid(folder: Path) -> int:
    """Return the highest file id below a content folder, whichever machine's; 0 = there is no file."""
    return max(map(_highest_below, _numbered(folder)), default=0)


def _highest_below(machine: Path) -> int:
    for million in reversed(_numbered(machine)):
        for thousand in reversed(_numbered(million)):
            with os.scandir(thousand) as entries:
                fileids = [int(entry.name) for entry in entries if entry.name.isdigit()]
            if fileids:
                return max(fileids)
    return 0


def _numbered(folder: Path) -> list[Path]:
    """Return the subfolders that are called by a number, by rising number."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        found = [Path(entry.path) for entry in entries if entry.is_dir() and entry.name.isdigit()]
        return sorted(found, key=lambda path: int(path.name))
    return []


class ContentFiles:
    """The content folder of one machine. Everything here blocks; call it off the event loop.

    ``worker`` (a number) keeps the unfinished files of several processes apart.
    """

    def __init__(self, folder: Path, machineid: int, worker: int = 0) -> None:
        self.folder = folder
        self.machineid = machineid
        self._home = folder / str(machineid)
        self._unfinished = self._home / "tmp" / str(worker)
        self._known_folders: set[Path] = set()
        self._group_fsync = GroupFsync()

    def prepare(self) -> None:
        """Make the folders and clear what an earlier process left unfinished."""
        try:
            self._unfinished.mkdir(parents=True, exist_ok=True)
            for leftover in self._unfinished.iterdir():
                leftover.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigurationError(f"content folder {self._home}: {error.strerror}") from error

    def path_of(self, fileid: int, machineid: int | None = None) -> Path:
        """Return the path of a content file."""
        return self.folder / relative_path(self.machineid if machineid is None else machineid, fileid)

    def unfinished_path(self, name: str) -> Path:
        """Return where a body may be collected while it arrives; ``name`` is ours, never a URL's."""
        return self._unfinished / name

    def open(self, fileid: int, machineid: int | None = None) -> BinaryIO:
        """Open a content file for reading."""
        return self.path_of(fileid, machineid).open("rb")

    def address(self, fileid: int, machineid: int, size: int, seconds: int) -> None:
        """Return None: a file has no URL."""

    def stat(self, fileid: int) -> Stored:
        """Tell size and time of a content file; raises as ``open`` does."""
        found = self.path_of(fileid).stat()
        return Stored(found.st_size, found.st_mtime)

    def name_of(self, fileid: int) -> str:
        """Return the path of a content file as text."""
        return str(self.path_of(fileid))

    def keep(self, bodies: Sequence[tuple[int, Body]]) -> None:
        """Put bodies at their file ids so that they survive a power cut.

        All of them, or none, with ``NotDurable`` or ``DiskFailed``. A file is written under its own name:
        nobody looks for it before its row is there, and what a crash leaves without a row is removed by the
        next start (``cache/leftovers.py``).
        """
        try:
            with on_disk("content file"):
                self._keep(bodies)
        except BaseException:
            for fileid, _ in bodies:
                with suppress(OSError):
                    self.path_of(fileid).unlink(missing_ok=True)
            raise

    def _keep(self, bodies: Sequence[tuple[int, Body]]) -> None:
        numbers = {fileid // FOLDER for fileid, _ in bodies}
        folders = {number: self.path_of(FOLDER * number).parent for number in numbers}
        for folder in folders.values():
            self._make_folder(folder)
        with self._group_fsync.writing(folders.values(), len(bodies)) as one_by_one:
            for fileid, body in bodies:
                path = f"{folders[fileid // FOLDER]}/{fileid}"
                if body.path:
                    _link(body.path, path)
                else:
                    _write(path, body.to_store, synced=one_by_one)

    def _make_folder(self, folder: Path) -> None:
        if folder in self._known_folders:
            return
        folder.mkdir(parents=True, exist_ok=True)
        for parent in (folder.parent, folder.parent.parent, self.folder):
            sync_folder(parent)  # also when it was there: its maker may have failed or been killed before
        if len(self._known_folders) > 10_000:  # noqa: PLR2004 - only a cache
            self._known_folders.clear()
        self._known_folders.add(folder)

    def remove(self, fileids: Iterable[int]) -> list[int]:
        """Delete content files and return which are gone; one that cannot be deleted stays for later."""
        gone = []
        for fileid in fileids:
            try:
                self.path_of(fileid).unlink(missing_ok=True)
                gone.append(fileid)
            except OSError as error:
                _log.warning("content file %d cannot be deleted: %s", fileid, error.strerror)
        return gone

    def files_from(self, first: int) -> list[int]:
        """Return the ids of the files that lie in the folder of ``first``, from that one on."""
        with suppress(FileNotFoundError), os.scandir(self.path_of(first).parent) as entries:
            found = [int(entry.name) for entry in entries if entry.name.isdigit()]
            return sorted(fileid for fileid in found if fileid >= first)
        return []

    def sync_removals(self, fileid: int) -> None:
        """Let what was removed from the folder of a file stay away after a power cut."""
        folder = self.path_of(fileid).parent
        if folder.exists():
            with on_disk("content folder"):
                sync_folder(folder)

    def all_files(self) -> Iterator[tuple[int, int]]:
        """Yield (file id, size) of every content file here, in rising order of folders."""
        for million in _numbered(self._home):
            for thousand in _numbered(million):
                with os.scandir(thousand) as entries:
                    found = sorted((int(e.name), e.stat().st_size) for e in entries if e.name.isdigit())
                yield from found

    def highest_id(self) -> int:
        """Return the highest file id of all machines' content files; 0 = there is none."""
        return highest_fileid(self.folder)


def _link(body: str, path: str) -> None:
    """Give a finished file a second name; the body keeps its own, in case this settlement fails, too."""
    Path(path).unlink(missing_ok=True)  # of an earlier try whose transaction failed
    os.link(body, path)


def _write(path: str, data: bytes, *, synced: bool) -> None:
    descriptor = _create(path)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if synced:
            sync(descriptor, Path(path))
    finally:
        os.close(descriptor)


def _create(path: str) -> int:
    try:
        return os.open(path, _NEW, 0o666)
    except FileExistsError:
        Path(path).unlink()  # of an earlier try whose transaction failed
        return os.open(path, _NEW, 0o666)
