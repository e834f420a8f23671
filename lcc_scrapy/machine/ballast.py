"""The ballast: a file that holds room on a disk until there is none left otherwise.

SQLite needs room even to delete. All processes of a data directory share one file.
"""

import fcntl
import os
from pathlib import Path

from lcc_scrapy.machine.disk import on_disk, sync, sync_folder

NAME = "ballast"
_DRAFT = "ballast.part"


class Ballast:
    """``size`` bytes in a data directory, 0 = none. Everything here blocks."""

    def __init__(self, folder: Path, size: int) -> None:
        self._path = folder / NAME
        self._draft = folder / _DRAFT
        self.size = size

    @property
    def is_held(self) -> bool:
        """Tell whether the file is there, or there is to be none."""
        return not self.size or self._path.exists()

    def make(self) -> None:
        """Allocate it durably, unless another process does; raises as ``on_disk`` does and leaves nothing.

        What a kill left half made is finished or replaced.
        """
        with on_disk("ballast file"):
            descriptor = os.open(self._draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._fill(descriptor)
            except BlockingIOError:
                return
            finally:
                os.close(descriptor)

    def _fill(self, descriptor: int) -> None:
        try:
            os.posix_fallocate(descriptor, 0, self.size)
            sync(descriptor, self._draft)
            self._draft.replace(self._path)
            sync_folder(self._path.parent)
        except FileNotFoundError:
            return  # another process has just finished it
        except OSError:
            self._draft.unlink(missing_ok=True)
            raise

    def give_up(self) -> bool:
        """Free its room; tell whether there was any."""
        with on_disk("ballast file"):
            try:
                self._path.unlink()
            except FileNotFoundError:
                return False
        return True
