"""Content files on this machine (seed 003 section 7 "Filename management").

``CONTENT_DIR/<machineid>/<millions>/<thousands>/<fileid>``: the name is the decimal file id, the
folders are ``fileid // 1,000,000`` and ``fileid // 1,000 % 1,000`` (three digits each at least), so no
folder holds more than a thousand files. Names come from numbers only, never from URLs.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from lcc_scrapy.content.durable import sync_folder
from lcc_scrapy.domain.cache import Body
from lcc_scrapy.domain.errors import ConfigurationError, NotDurable

_log = logging.getLogger(__name__)


def relative_path(machineid: int, fileid: int) -> Path:
    """Return where a content file lies below the content folder."""
    return Path(str(machineid), f"{fileid // 1_000_000:03d}", f"{fileid // 1000 % 1000:03d}", str(fileid))


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

    def keep(self, bodies: Sequence[tuple[int, Body]]) -> None:
        """Put bodies at their file ids so that they survive a power cut; all of them or ``NotDurable``."""
        try:
            folders = {self._keep_one(fileid, body) for fileid, body in bodies}
            for folder in folders:
                sync_folder(folder)
        except OSError as error:
            raise NotDurable(f"content file: {error}") from error

    def _keep_one(self, fileid: int, body: Body) -> Path:
        target = self.path_of(fileid)
        self._make_folder(target.parent)
        if body.path:
            target.unlink(missing_ok=True)  # of an earlier try whose transaction failed
            target.hardlink_to(body.path)  # the body keeps its own name, in case this one fails too
        else:
            self._write(fileid, body.data or b"").replace(target)
        return target.parent

    def _write(self, fileid: int, data: bytes) -> Path:
        path = self.unfinished_path(str(fileid))
        with path.open("wb", buffering=0) as file:
            _write_all(file.fileno(), data)
            os.fsync(file.fileno())
        return path

    def _make_folder(self, folder: Path) -> None:
        if folder in self._known_folders:
            return
        folder.mkdir(parents=True, exist_ok=True)
        for parent in (folder.parent, folder.parent.parent, self.folder):
            sync_folder(parent)  # whoever made the folder may have ended before its name was on disk
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

    def all_files(self) -> Iterator[tuple[int, int]]:
        """Yield (file id, size) of every content file here, in rising order of folders."""
        for million in _numbered(self._home):
            for thousand in _numbered(million):
                with os.scandir(thousand) as entries:
                    found = sorted((int(e.name), e.stat().st_size) for e in entries if e.name.isdigit())
                yield from found


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
