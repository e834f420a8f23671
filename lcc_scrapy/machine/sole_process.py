"""That a program runs once on a data directory: a lock file, which the kernel frees when its process ends."""

import fcntl
import os
from pathlib import Path

_MODE = 0o640


class SoleProcess:
    """The lock of one name in a folder, held from ``take`` until ``release`` or the end of the process."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.lock"
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Take the lock if it is free; tells whether this process has it."""
        if self._descriptor is not None:
            return True
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
