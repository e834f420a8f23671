"""Writing a spool file: nothing counts until ``commit`` has returned."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from lcc_scrapy.domain.entries import Operation, UrlEntry
from lcc_scrapy.domain.errors import DiskFailed, NotDurable, SetTooLarge
from lcc_scrapy.domain.runs import EntryRun
from lcc_scrapy.machine.disk import FolderSync, on_disk, sync
from lcc_scrapy.uns.spool_file import (
    SpoolFooter,
    SpoolHeader,
    content_kind,
    footer_line,
    header_line,
    record_line,
    record_lines,
    sealed,
)

PART_SUFFIX = ".part"
PER_FILE = 4096
"""Bytes that a file counts for beside its content: its last block, its name, its place in memory."""
_FLUSH_RECORDS = 500


class SpoolWriter:
    """One set on its way to disk; a failure is ``NotDurable`` or ``DiskFailed`` and leaves no file behind.

    ``claim(n)`` is asked before ``n`` more bytes are written and raises ``NotDurable`` when the folder is
    full; with a negative ``n`` it gets bytes back. ``largest`` bytes is what may ever be claimed for one
    set; a larger one is ``SetTooLarge``. ``sync_names`` makes names in its folder durable, for many at once.
    """

    def __init__(
        self,
        final: Path,
        header: SpoolHeader,
        claim: Callable[[int], None],
        largest: int,
        sync_names: FolderSync,
    ) -> None:
        self.path = final
        self._part = final.with_name(final.name + PART_SUFFIX)
        self._ask = claim
        self._largest = largest
        self._sync_names = sync_names
        self._claimed = 0
        self._lines: list[str] = []
        self._waiting = 0
        self._counts: Counter[Operation] = Counter()
        self._digest = sha256()
        self._content = sha256(content_kind(header))
        self._size = 0
        self._descriptor = -1
        self._claim(PER_FILE)
        with self._or_nothing():
            self._descriptor = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._write(header_line(header))

    def add(self, entry: UrlEntry) -> None:
        """Append one entry."""
        self._append(record_line(entry), entry.operation, 1)

    def add_run(self, run: EntryRun) -> None:
        """Append the entries of a run."""
        self._append(record_lines(run), run.operation, len(run))

    def _append(self, lines: str, operation: Operation, count: int) -> None:
        self._lines.append(lines)
        self._counts[operation] += count
        self._waiting += count
        if self._waiting >= _FLUSH_RECORDS:
            self._flush()

    def finish(self, unreadable: int = 0) -> Path:
        """Write the end mark without making anything durable; return the file for a dry run to read."""
        self._flush()
        counts = self._counts
        footer = SpoolFooter(
            updates=counts[Operation.UPDATE],
            removals=counts[Operation.REMOVE],
            present=counts[Operation.PRESENT],
            unreadable=unreadable,
            bytes=self._size,
            content=self._content.hexdigest(),
        )
        self._write(footer_line(sealed(footer, self._digest)))
        return self._part

    def commit(self, unreadable: int = 0) -> Path:
        """Make the set durable under its final name and return that. Blocks: call it in a thread."""
        self.finish(unreadable)
        with self._or_nothing():
            sync(self._descriptor, self._part)
            self._close()
            if self.path.exists():
                raise FileExistsError(f"{self.path} is there already")
            self._part.rename(self.path)
            try:
                self._sync_names()
            except BaseException:
                self._remove(self.path)
                raise
        return self.path

    def drop(self) -> None:
        """Forget the set and remove its file. May be called at any time before ``commit`` is."""
        self._close()
        self._remove(self._part)
        if self._claimed:
            self._ask(-self._claimed)
            self._claimed = 0
        self._lines.clear()

    def _flush(self) -> None:
        data = "".join(self._lines).encode()
        self._lines.clear()
        self._waiting = 0
        self._content.update(data)
        self._write(data)

    def _write(self, data: bytes) -> None:
        with self._or_nothing():
            self._claim(len(data))
            left = memoryview(data)
            while left:
                left = left[os.write(self._descriptor, left) :]
        self._digest.update(data)
        self._size += len(data)

    @contextmanager
    def _or_nothing(self) -> Iterator[None]:
        try:
            with on_disk("spool file"):
                yield
        except (NotDurable, DiskFailed):
            self.drop()
            raise

    def _claim(self, size: int) -> None:
        if self._claimed + size > self._largest:
            raise SetTooLarge(
                f"set larger than the {self._largest} bytes that one provider may have in the spool"
            )
        self._ask(size)
        self._claimed += size

    @staticmethod
    def _remove(path: Path) -> None:
        """Remove what can be removed; the next recovery takes what is left of an unfinished file."""
        with suppress(OSError):
            path.unlink(missing_ok=True)

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):  # also where none is open
            os.close(descriptor)
