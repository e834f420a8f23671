"""Group fsync: one syncfs(2) instead of an fsync(2) for each file, where it can be trusted.

An error of syncfs must be as reliable as one of fsync. Linux reports a failed write to every descriptor
that was open before (since 5.8), and a failure of the file system's journal (since 5.17). File systems on
local disks keep to that. For others it is not known, so there each file is synced.

A syncfs also waits for what other programs have written to the same disk. A few files are not worth that;
and when it takes long, files are synced one by one for a while.
"""

import ctypes
import os
import platform
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lcc_scrapy.machine.disk import named_failure, sync

FEW = 8
"""Files up to which each is synced by itself."""

SLOW = 2.0
"""Seconds after which others are thought to write a lot to the disk."""

SPARED = 60.0
"""Seconds for which files are then synced one by one."""

_LINUX = (5, 17)
_LOCAL = frozenset({0xEF53, 0x58465342, 0x9123683E})
"""ext4, XFS, btrfs, as statfs(2) numbers them."""

_libc = ctypes.CDLL(None, use_errno=True)


def reports_all(release: str) -> bool:
    """Tell whether the syncfs of a kernel, named as ``uname -r`` does, reports every error."""
    numbers = release.partition("-")[0].split(".")[:2]
    return all(map(str.isdecimal, numbers)) and tuple(map(int, numbers)) >= _LINUX


_TRUSTED = hasattr(_libc, "syncfs") and platform.system() == "Linux" and reports_all(platform.release())


class GroupFsync:
    """Decides how the files of a group become durable. ``clock`` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._spared_until = 0.0

    @contextmanager
    def writing(self, folders: Collection[Path], count: int) -> Iterator[bool]:
        """Write ``count`` files to existing folders inside of this; they and their names last when it ends.

        Gives whether the writer has to sync each file itself. Raises as ``disk.sync`` does.
        """
        with ExitStack() as held:
            descriptors = {folder: _held(held, folder) for folder in folders}
            one_by_one = count <= FEW or self._clock() < self._spared_until
            one_by_one = one_by_one or not all(map(_is_trusted, descriptors.values()))
            yield one_by_one
            if one_by_one:
                for folder, descriptor in descriptors.items():
                    sync(descriptor, folder)
                return
            disks = {
                os.fstat(descriptor).st_dev: (descriptor, folder)
                for folder, descriptor in descriptors.items()
            }
            for descriptor, folder in disks.values():
                self._sync_disk(descriptor, folder)

    def _sync_disk(self, descriptor: int, folder: Path) -> None:
        begun = self._clock()
        with named_failure("syncfs", folder):
            syncfs(descriptor)
        if self._clock() - begun > SLOW:
            self._spared_until = self._clock() + SPARED


def _held(stack: ExitStack, folder: Path) -> int:
    """Open a folder; an error that comes up from now on is told to this descriptor."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    stack.callback(os.close, descriptor)
    return descriptor


def syncfs(descriptor: int) -> None:
    """Make everything durable that is on the disk of an open file."""
    if _libc.syncfs(descriptor):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _is_trusted(descriptor: int) -> bool:
    """Tell whether a syncfs of an open file's disk says all that fsyncs of its files would."""
    if not _TRUSTED:
        return False
    answer = ctypes.create_string_buffer(256)
    if _libc.fstatfs(descriptor, answer):
        return False
    return ctypes.c_long.from_buffer(answer).value in _LOCAL
