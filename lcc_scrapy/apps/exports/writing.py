"""Writes what a reader of the feed gives as one export."""

import io
import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, Protocol, TypeVar

from lcc_scrapy.apps.exports.interface import Export, ExportFormat, Item, NoText
from lcc_scrapy.content.decoding import BadCoding
from lcc_scrapy.domain.cache import CachedUrl, UrlMeta
from lcc_scrapy.domain.directives import Owners
from lcc_scrapy.domain.selection import Change
from lcc_scrapy.feed.content import ContentGone, ContentLost
from lcc_scrapy.feed.names import name_of
from lcc_scrapy.feed.reader import Reading
from lcc_scrapy.feed.row_formats import Record, record
from lcc_scrapy.feed.text import PageText

_IN_MEMORY = 1 << 20
_SMALL = 256 * 1024
Open = Callable[[CachedUrl], IO[bytes]]
Read = Callable[[CachedUrl], PageText]
P = TypeVar("P")


class Answering(Protocol):
    """What knows the answers that rows came with."""

    def answers(self, rows: Sequence[CachedUrl]) -> dict[bytes, UrlMeta]:
        """Return them by key, as far as they are known."""


@dataclass(slots=True)
class Written:
    """What an export holds; ``changed`` counts documents that changed meanwhile: the next one has them.

    ``textless`` counts those that hold no text, where the format is about text.
    """

    documents: int = 0
    removals: int = 0
    changed: int = 0
    textless: int = 0
    size: int = 0


class Writing:
    """One export. ``opened`` opens contents as ``ContentUser.open`` does; ``read`` tells their texts, or
    None when nobody wants them.

    Memory does not grow with what is exported; the manifest waits in a temporary file.
    """

    def __init__(
        self, out: IO[bytes], form: ExportFormat, feed: Answering, opened: Open, read: Read | None = None
    ) -> None:
        self.written = Written()
        self._form = form
        self._export: Export = form.make(out)
        self._feed = feed
        self._open = opened
        self._read = read

    def run(self, reader: Reading[P], progress: Callable[[int], object]) -> P:
        """Write everything; returns the position from which the next export goes on.

        Raises ``StartOver``, ``ContentLost`` or ``ContentElsewhere``: what was written is worth nothing.
        """
        with closing(self._export), tempfile.SpooledTemporaryFile(_IN_MEMORY) as manifest:
            for page in reader.pages():
                answers, owners = self._answers(page), reader.owners(page)
                for change in page:
                    self._change(change, answers, owners, manifest)
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

    def _change(
        self, change: Change, answers: dict[bytes, UrlMeta], owners: Owners, manifest: IO[bytes]
    ) -> None:
        one = record(change, lambda *_: "", owners)
        if isinstance(change, CachedUrl):
            name = name_of(change)
            one["path"], one["file_encoding"] = name, None  # in an export it is decoded
            try:
                text = self._read(change) if self._read else None
                self._document(Item(change, one, name, answers.get(change.urlkey), text))
            except ContentGone:
                self.written.changed += 1
                return
            except NoText:
                self.written.textless += 1
                self._export.departure(one)
        else:
            self.written.removals += 1
            self._export.departure(one)
        manifest.write(_line(one))

    def _document(self, item: Item) -> None:
        with self._open(item.row) as stored:
            content = measured(stored, item.row)
            self._export.document(item, content)
            content.read(1)  # for formats that ask for no more than was promised
        self.written.documents += 1
        self.written.size += item.row.fetched_len

    def _last(self, position: object) -> Record:
        written = self.written
        return {
            "op": "end",
            "cursor": str(position),
            "documents": written.documents,
            "removals": written.removals,
        }


def measured(stored: IO[bytes], row: CachedUrl) -> IO[bytes]:
    """Return a content of exactly the length that its row tells; anything else is damaged.

    Raises ``ContentLost``, here (a small one is read at once) or while it is read.
    """
    content = Measured(stored, row)
    return io.BytesIO(content.readall()) if row.fetched_len <= _SMALL else io.BufferedReader(content)


class Measured(io.RawIOBase):
    """A content of exactly the length that its row tells."""

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
        data = self._take(len(target))
        target[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        """Return everything that is left, in one piece."""
        return b"".join(iter(partial(self._take, self._left), b""))

    def _take(self, size: int) -> bytes:
        try:
            data = self._stored.read(min(size, self._left))
            if not data and (self._left or self._stored.read(1)):
                raise self._damaged("has not the length that it should have")
        except BadCoding as error:
            raise self._damaged(f"does not decode ({error})") from error
        self._left -= len(data)
        return data

    def _damaged(self, how: str) -> ContentLost:
        return ContentLost(f"the content of document {self._row.docid} {how}: run `lcc verify --repair`")


_encoded = json.JSONEncoder(ensure_ascii=False).encode


def _line(one: Record) -> bytes:
    return (_encoded(one) + "\n").encode("utf-8", "backslashreplace")
