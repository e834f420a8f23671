"""The sink of a body that arrives: memory first, a temporary content file when it is large."""

import hashlib
import io
import os
import weakref
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.content.stored import decoded, encoder
from lcc_scrapy.domain.cache import Body, LazyBody
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.machine.disk import on_disk, sync

LARGE = 64_000
"""Bytes of a body up to which its digests are left to the settling process, for whose commits others wait."""

_numbers = count(1)


class TooLarge(LccError):
    """The body is larger than it may be."""


class Sink:
    """Collects one body. ``memory`` and ``limit`` in bytes of the decoded body.

    ``write`` only takes bytes. ``work`` makes digests of them, compresses them with ``coding`` (empty = none)
    and writes a large body to its file. That takes 2.5 µs for a KB, and may wait for the disk: much of it
    (``behind``) is for another thread. What is in memory is kept as it came, too, for those who look at it
    before it is stored.

    ``come`` bounds what is transferred as well, for there are codings that decode to nothing.
    """

    def __init__(self, content: ContentFiles, memory: int, limit: int, coding: str = "") -> None:
        self._content = content
        self._memory = memory
        self._limit = limit
        self._coding = coding
        self._encoder = encoder(coding) if coding else None
        self._parts: list[bytes] = []
        self._worked = 0
        self.behind = 0
        """Bytes that were written and not worked on yet."""
        self._packed: list[bytes] = []
        self._file: BinaryIO | None = None
        self._path: Path | None = None
        self._length = 0
        self._arrived = 0
        self._digests: list[Any] = []

    def leave_memory(self, kept: int) -> None:
        """Let a body that is to wait keep no more than so many bytes in memory; raises as ``on_disk`` does.

        One that is small enough for memory is read back in the end.
        """
        if self._file is not None or self._length > kept:
            self.work()
            with on_disk("content file"):
                self._spill()

    @property
    def blocks(self) -> bool:
        """Tell whether finishing the body waits for the disk."""
        return self._file is not None or self._length > self._memory

    def come(self, size: int) -> None:
        """Count bytes as transferred, before they are decoded; raises ``TooLarge``."""
        self._arrived = self._within_limit(self._arrived + size)

    def write(self, chunk: bytes) -> None:
        """Take the next bytes; raises ``TooLarge``."""
        self._length = self._within_limit(self._length + len(chunk))
        self._parts.append(chunk)
        self.behind += len(chunk)

    def work(self) -> None:
        """Work on what was written since the last time; raises as ``on_disk`` does. Blocks."""
        self._digests = self._digests or [hashlib.md5(usedforsecurity=False), hashlib.sha256()]
        for chunk in self._parts[self._worked :]:
            for digest in self._digests:
                digest.update(chunk)
            if self._encoder is not None:
                self._packed.append(self._encoder.compress(chunk))
        self._worked, self.behind = len(self._parts), 0
        if self._file is not None or self._length > self._memory:
            with on_disk("content file"):
                self._spill()

    def _within_limit(self, length: int) -> int:
        if length > self._limit:
            raise TooLarge(f"more than {self._limit} bytes")
        return length

    def _spill(self) -> None:
        if self._file is None:
            self._path = self._content.unfinished_path(f"body-{os.getpid()}-{next(_numbers)}")
            self._file = self._path.open("wb")
        self._file.writelines(self._packed if self._coding else self._parts)
        self._parts, self._packed, self._worked = [], [], 0

    def finish(self) -> Body:
        """Return the complete body; one in a file is on disk by then, and the file lives as long as it."""
        if not (self._worked or self._coding or self.blocks or self._length > LARGE):
            return LazyBody(b"".join(self._parts))
        self.work()
        md5, sha256 = (digest.hexdigest() for digest in self._digests)
        if self._encoder is not None:
            self._packed.append(self._encoder.flush())
        if self._file is None or self._path is None:
            return self._in_memory(b"".join(self._parts), b"".join(self._packed), md5, sha256)
        with on_disk("content file"):
            self._file.writelines(self._packed)
            self._file.flush()
            if self._length <= self._memory:
                return self._read_back(self._file, self._path, md5, sha256)
            sync(self._file.fileno(), self._path)
            self._file.close()
        body = Body(self._length, md5, sha256, path=str(self._path), encoding=self._coding)
        weakref.finalize(body, Path(body.path).unlink, missing_ok=True)
        return body

    def _read_back(self, file: BinaryIO, path: Path, md5: str, sha256: str) -> Body:
        """Make a body in memory of one that was in its file only while it waited."""
        file.close()
        stored = path.read_bytes()
        path.unlink()
        if not self._coding:
            return self._in_memory(stored, b"", md5, sha256)
        with decoded(io.BytesIO(stored), self._coding) as content:
            return self._in_memory(content.read(), stored, md5, sha256)

    def _in_memory(self, data: bytes, packed: bytes, md5: str, sha256: str) -> Body:
        """Make a body that fits into memory; one that does not become smaller is stored as it came."""
        if not self._coding or len(packed) >= len(data):
            return Body(self._length, md5, sha256, data=data)
        return Body(self._length, md5, sha256, data=data, encoding=self._coding, packed=packed)

    def discard(self) -> None:
        """Forget an incomplete body."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
