"""A file that keeps a content user's cursor: replaced at once, and used by one process at a time."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, overload

from lcc_scrapy.domain.cursor import BadCursor, Position
from lcc_scrapy.domain.errors import LccError

P = TypeVar("P")


class CursorFile(Generic[P]):
    """The cursor in ``path``, which is this process's alone while the context lasts; ``parse`` reads it.

    The lock is a file beside it (``.lock``), for the cursor file itself is another one after every write;
    after a kill it stays, and does no harm.
    """

    @overload
    def __init__(self: "CursorFile[Position]", path: Path) -> None: ...

    @overload
    def __init__(self, path: Path, parse: Callable[[str], P]) -> None: ...

    def __init__(self, path: Path, parse: Callable[[str], Any] = Position.parse) -> None:
        self._path = path
        self._parse = parse
        self._lock_path = path.with_name(f"{path.name}.lock")
        self._lock = -1

    def __enter__(self) -> Self:
        if not self._path.parent.is_dir():
            raise LccError(f"cursor file {self._path}: there is no folder {self._path.parent}")
        while self._lock < 0:
            descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                raise LccError(f"another process uses the cursor file {self._path}") from None
            if _is_at(descriptor, self._lock_path):
                self._lock = descriptor
            else:
                os.close(descriptor)  # its owner took it away between our two steps
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._lock_path.unlink(missing_ok=True)
        os.close(self._lock)
        self._lock = -1

    def read(self) -> P | None:
        """Return what was kept, None when there is no file yet; raises ``BadCursor``."""
        try:
            parsed: P = self._parse(self._path.read_text(encoding="utf-8", errors="replace"))
        except FileNotFoundError:
            return None
        except BadCursor as error:
            raise BadCursor(f"cursor file {self._path}: {error}; to start over, remove it") from None
        else:
            return parsed

    def write(self, position: P) -> None:
        """Replace the cursor, so that the file never holds half of one and survives a power cut."""
        part = self._path.with_name(f"{self._path.name}.part")
        try:
            with part.open("w", encoding="ascii") as out:
                out.write(f"{position}\n")
                out.flush()
                os.fsync(out.fileno())
            part.replace(self._path)
        finally:
            part.unlink(missing_ok=True)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
