"""Documents and tombstones that go from one LCC to another, with their files and all that belongs to them.

They are read from the source in batches; each is written in one transaction of the target. Content users are
told of them there: each gets a place in the target's feed, and the place that it had in the source's
(``domain/front_moves.py``).
"""

import hashlib
import io
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from typing import IO, Any

from lcc_scrapy.cache.file_ids import FileIds, lock_blocks_of
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.content.store import ContentStore
from lcc_scrapy.content.stored import decoded
from lcc_scrapy.db.records import CONFIRMED, FEED
from lcc_scrapy.db.sql.link_verbs import NO_WORDS
from lcc_scrapy.db.sql.move_verbs import Record
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.cache import ORPHANED, Body, CachedUrl
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.front_moves import Came
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.content import Content
from lcc_scrapy.machine.disk import sync

DOCUMENTS, BYTES = 100, 16_000_000
"""Documents of one transaction, and bytes of their files from which on no further one joins it."""

IN_MEMORY = 256_000
"""Bytes of a file from which on it is copied by way of another file."""

DOCUMENT = "lccurl"
_CHUNK = 1 << 20


class NotTheSame(LccError):
    """What was copied is not what the source has."""


@dataclass(frozen=True, slots=True)
class Files:
    """Where the target's contents lie, large ones meanwhile, and their ids."""

    content: ContentStore
    unfinished: ContentFiles
    ids: FileIds

    def lock(self, tx: Tx, bodies: Sequence[tuple[int, Body]]) -> None:
        """Lock the blocks of new files until their rows are there: nobody takes them for leftovers."""
        lock_blocks_of(tx, self.content.machineid, self.ids.token, [fileid for fileid, _ in bodies])


@dataclass(frozen=True, slots=True)
class Numbers:
    """What becomes of numbers that the source gave out.

    ``psets`` is added to those of sets; ``words`` has the target's lists of words, by the source's; ``move``
    is the number of the move.
    """

    move: int
    psets: int
    words: Mapping[int, int]

    def pset(self, number: int) -> int:
        """Return the target's number of a set; 0 = none."""
        return number + self.psets if number else 0

    def linked(self, rows: Iterable[Record]) -> list[Record]:
        """Return rows of links as the target has them."""
        return [
            {**row, "words": self.words[int(row["words"])] if row["words"] != NO_WORDS else NO_WORDS}
            for row in rows
        ]


@dataclass(slots=True)
class Batch:
    """Documents, or tombstones, that are written in one transaction."""

    table: str
    rows: list[Record]
    versions: Mapping[bytes, list[Record]] = field(default_factory=dict)
    links: Mapping[bytes, list[Record]] = field(default_factory=dict)
    unwanted: Mapping[bytes, list[Record]] = field(default_factory=dict)
    came: Mapping[int, Came] = field(default_factory=dict)

    @classmethod
    def read(cls, tx: Tx, table: str, pid: int, after: Sequence[Any] | None) -> "Batch":
        """Read the next ones of a provider behind a key of ``TOLD``."""
        made = cls(table, tx.records(table, pid, after, DOCUMENTS))
        if table == DOCUMENT:
            made.versions = tx.records_among("versions", "urlkey", [row["urlkey"] for row in made.rows])
            made._shorten()
            made.links = tx.records_among("links", "urlkey", [row["urlkey"] for row in made.rows])
        made.unwanted = tx.records_among("unwanted", "urlkey", [row["urlkey"] for row in made.rows])
        made.came = tx.moved([int(row["seq"]) for row in made.rows])
        return made

    def _shorten(self) -> None:
        """Leave out what would make the batch too large; a single document may be."""
        size = 0
        for place, row in enumerate(self.rows):
            size += sum(int(one["fetched_len"]) for one in self._files(row))
            if size > BYTES and place:
                del self.rows[place:]
                return

    def _files(self, row: Record) -> list[Record]:
        return [*self.versions.get(row["urlkey"], ()), row] if self.table == DOCUMENT else []

    def bodies(self, contents: Content, files: Files, closing: ExitStack) -> list[tuple[int, Body]]:
        """Read all files and give them ids of the target; raises ``NotTheSame`` for one that is damaged."""
        found: list[tuple[int, Body]] = []
        used: set[int] = set()
        for row in self.rows:
            for one in self._files(row):
                kind: type[CachedUrl | Version] = CachedUrl if one is row else Version
                fileid = files.ids.next(used)
                found.append((fileid, _body(contents, _value(kind, one), files, fileid, closing)))
                one["fetched_machineid"], one["fetched_fileid"] = files.content.machineid, fileid
        return found

    def write(self, tx: Tx, numbers: Numbers) -> None:
        """Write everything, with places in the target's feed."""
        tx.put_records("links", numbers.linked(row for some in self.links.values() for row in some))
        self._confirm(tx)
        was = [int(row["seq"]) for row in self.rows]
        told = [one for row in self.rows for one in (*self._files(row)[:-1], row)]
        for seq, one in enumerate(told, tx.take(FEED, len(told))):
            one["seq"] = seq
        for row in self.rows if self.table == DOCUMENT else ():
            _renumber(row, numbers)
        tx.put_records("versions", [one for row in self.rows for one in self._files(row)[:-1]])
        tx.put_records(self.table, self.rows)
        unwanted = [row for row in self.rows if row["urlkey"] in self.unwanted]
        tx.put_records("unwanted", [{"urlkey": row["urlkey"], "seq": row["seq"]} for row in unwanted])
        tx.put_moved(
            {
                int(row["seq"]): [*self.came.get(old, ()), (numbers.move, old)]
                for row, old in zip(self.rows, was, strict=True)
            }
        )

    def _confirm(self, tx: Tx) -> None:
        confirmed = [row for row in self.rows if row.get("confirmed_seq")]
        first = tx.take(CONFIRMED, len(confirmed)) if confirmed else 0
        for place, row in enumerate(confirmed):
            row["confirmed_seq"] = first + place


def _renumber(row: Record, numbers: Numbers) -> None:
    for name in ("subtype_seq", "owners_seq"):
        row[name] = row["seq"] if row[name] else 0
    row["seen"] = numbers.pset(row["seen"])
    row["held"] = numbers.pset(row["held"]) if row["held"] < ORPHANED else row["held"]


def _body(contents: Content, row: CachedUrl | Version, files: Files, fileid: int, closing: ExitStack) -> Body:
    """Return the body of a file as it is stored, when its digest is right."""
    if row.fetched_len <= IN_MEMORY:
        with contents.open(row) as stream:
            stored = stream.read()
        _check(io.BytesIO(stored), row)
        return Body(row.fetched_len, row.fetched_md5, row.sha256, stored)
    path = files.unfinished.unfinished_path(f"move-{fileid}")
    with contents.open(row) as stream, path.open("wb") as copy:
        closing.callback(path.unlink, missing_ok=True)
        shutil.copyfileobj(stream, copy, _CHUNK)
        copy.flush()
        sync(copy.fileno(), path)
    with path.open("rb") as stream:
        _check(stream, row)
    return Body(row.fetched_len, row.fetched_md5, row.sha256, path=str(path))


def _check(stored: IO[bytes], row: CachedUrl | Version) -> None:
    digest = hashlib.sha256()
    with decoded(stored, row.file_encoding) as stream:
        while data := stream.read(_CHUNK):
            digest.update(data)
    if digest.hexdigest() != row.sha256:
        raise NotTheSame(f"the content of document {row.docid} is damaged: run `lcc verify --repair` there")


def _value(kind: type[CachedUrl | Version], row: Record) -> CachedUrl | Version:
    return kind(**{one.name: row[one.name] for one in fields(kind)})
