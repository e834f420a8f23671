"""Writes what a reader of the feed gives as one export."""

import io
import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import IO, Any

from lcc_scrapy.domain.cache import CachedUrl, UrlMeta
from lcc_scrapy.users.content import ContentGone, ContentLost
from lcc_scrapy.users.cursor import Position
from lcc_scrapy.users.exports.interface import Export, ExportFormat, Item
from lcc_scrapy.users.exports.names import name_of
from lcc_scrapy.users.feed import Feed, Reader
from lcc_scrapy.users.formats import Record, record
from lcc_scrapy.users.selection import Change

_IN_MEMORY = 1 << 20
Open = Callable[[CachedUrl], IO[bytes]]


@dataclass(slots=True)
class Written:
    """What an export holds; ``changed`` counts documents that changed meanwhile: the next one has them."""

    documents: int = 0
    removals: int = 0
    changed: int = 0
    size: int = 0


class Writing:
    """One export. ``opened`` opens contents as ``ContentUser.open`` does.

    Memory does not grow with what is exported; the manifest waits in a temporary file.
    """

    def __init__(self, out: IO[bytes], form: ExportFormat, feed: Feed, opened: Open) -> None:
        self.written = Written()
        self._form = form
        self._export: Export = form.make(out)
        self._feed = feed
        self._open = opened

    def run(self, reader: Reader, progress: Callable[[int], object]) -> Position:
        """Write everything; returns the position from which the next export goes on.

        Raises ``StartOver``, ``ContentLost`` or ``ContentElsewhere``: what was written is worth nothing.
        """
        with closing(self._export), tempfile.SpooledTemporaryFile(_IN_MEMORY) as manifest:
            for page in reader.pages():
                answers = self._answers(page)
                for change in page:
                    self._change(change, answers, manifest)
                    progress(change.seq)
            last = self._last(reader.position)
            manifest.write(_line(last))
            size = manifest.tell()
            manifest.seek(0)
            self._export.end(manifest, size, last)
        return reader.position

    def _answers(self, page: Sequence[Change]) -> dict[bytes, UrlMeta]:
        rows = [change for change in page if isinstance(change, CachedUrl)]
        return self._feed.answers(rows) if self._form.answers else {}

    def _change(self, change: Change, answers: dict[bytes, UrlMeta], manifest: IO[bytes]) -> None:
        one = record(change, lambda *_: "")
        if isinstance(change, CachedUrl):
            one["path"] = name_of(change)
            try:
                self._document(Item(change, one, name_of(change), answers.get(change.urlkey)))
            except ContentGone:
                self.written.changed += 1
                return
        else:
            self.written.removals += 1
            self._export.departure(one)
        manifest.write(_line(one))

    def _document(self, item: Item) -> None:
        with self._open(item.row) as stored:
            content = io.BufferedReader(_Measured(stored, item.row))
            self._export.document(item, content)
            content.read(1)  # for formats that ask for no more than was promised
        self.written.documents += 1
        self.written.size += item.row.fetched_len

    def _last(self, position: Position) -> Record:
        written = self.written
        return {
            "op": "end",
            "cursor": str(position),
            "documents": written.documents,
            "removals": written.removals,
        }


class _Measured(io.RawIOBase):
    """A content of exactly the length that its row tells; anything else is damaged."""

    def __init__(self, stored: IO[bytes], row: CachedUrl) -> None:
        self._stored = stored
        self._row = row
        self._left = row.fetched_len

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or a part of it; 0 = the end."""
        target = memoryview(buffer).cast("B")
        data = self._stored.read(min(len(target), self._left))
        if not data and (self._left or self._stored.read(1)):
            raise ContentLost(
                f"the content of document {self._row.docid} has not the length that it should have:"
                " run `lcc verify --repair`"
            )
        target[: len(data)] = data
        self._left -= len(data)
        return len(data)


def _line(one: Record) -> bytes:
    return (json.dumps(one, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
