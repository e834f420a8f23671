"""Writing what has to last: which errors of a disk may be tried again, and which may not.

After a failed fsync(2) the kernel may have dropped what was to be written and call the next one a success
(Rebello and others, "Can Applications Recover from fsync Failures?", USENIX ATC 2020): it is never
repeated. A disk without room is no such failure, as long as what did not fit is written anew.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Condition

from lcc_scrapy.domain.errors import DiskFailed, DiskFull, NotDurable

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
FAILING = frozenset({errno.EIO, errno.EROFS, errno.ENXIO, errno.ENODEV, errno.EUCLEAN})
"""What a disk says that will not write the next time either; a broken file system goes read-only."""


@contextmanager
def on_disk(what: str) -> Iterator[None]:
    """Turn an ``OSError`` into ``DiskFull``, ``DiskFailed`` or, when it is not the disk's, ``NotDurable``."""
    try:
        yield
    except OSError as error:
        kind = DiskFull if error.errno in NO_ROOM else DiskFailed if error.errno in FAILING else NotDurable
        raise kind(f"{what}: {error}") from error


def sync(descriptor: int, path: Path) -> None:
    """Make the content of an open file durable; raises ``DiskFailed``, or ``OSError`` for want of room."""
    with named_failure("fsync", path):
        os.fsync(descriptor)


@contextmanager
def named_failure(call: str, path: Path) -> Iterator[None]:
    """Turn an error of fsync or syncfs into ``DiskFailed``, but for want of room."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        raise DiskFailed(f"{call} of {path}: {error.strerror}") from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, which a sync of the files does not; raises as ``sync`` does."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync(descriptor, folder)
    finally:
        os.close(descriptor)


class FolderSync:
    """``sync_folder`` of one folder for many threads at once: those who wait share the next call.

    Names that were there before the call are durable after it; when a sync fails, all who shared it fail.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn = Condition()
        self._running = False
        self._begun = self._done = self._failed = 0
        self._error: Exception | None = None

    def __call__(self) -> None:
        """Return when names in the folder are durable; blocks."""
        with self._turn:
            mine = self._begun + 1  # one that has begun may have looked before our name was there
            while self._done < mine and self._running:
                self._turn.wait()
            if self._done < mine:
                self._sync()
            if self._failed >= mine and self._error is not None:
                raise self._error

    def _sync(self) -> None:
        self._begun += 1
        self._running, number = True, self._begun
        self._turn.release()
        error: Exception | None = None
        try:
            sync_folder(self._folder)
        except (OSError, DiskFailed) as failure:
            error = failure
        finally:
            self._turn.acquire()
            self._running, self._done = False, number
            if error is not None:
                self._failed, self._error = number, error
            self._turn.notify_all()


def make_folders(folder: Path) -> None:
    """Make a folder and those above it that are missing, with names that last; raises as ``sync`` does.

    One that exists is left alone.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in missing:
        sync_folder(one.parent)
