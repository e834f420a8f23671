"""A provider moves from one sub-LCC to another, in steps that may be repeated after a kill. It blocks.

Hold: the front answers 103, and the source lets nobody log in or fetch; wait for what is under way.
Copy: rows and files, in portions; each is one transaction of the target that also notes how far it is.
Flip: the target goes on as the source did, and the front passes the provider on to it.
Remove: the source forgets the provider. That leaves no tombstones: the target tells its documents now.
"""

import hashlib
import io
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from typing import IO, Any, TypeVar

from lcc_scrapy.cache.file_ids import FileIds, lock_blocks_of
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.content.store import ContentStore
from lcc_scrapy.content.stored import decoded
from lcc_scrapy.db.records import CONFIRMED, FEED, LAST_NUMBER, PROVIDERS_CHANGED, SOURCEID, FileToDelete
from lcc_scrapy.db.retrying import repeated
from lcc_scrapy.db.sql.move_verbs import BY_PROVIDER, SET_NUMBERS, SOURCE_NUMBERS, Record
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.cache import ORPHANED, Body, CachedUrl
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.front import FrontError, MoveStep, Moving
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.content import Content
from lcc_scrapy.feed.store_feed import LCC_ID
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.intake.absorbing import PSETID
from lcc_scrapy.machine.disk import sync
from lcc_scrapy.providers.recounting import miscount, put_right
from lcc_scrapy.providers.registration import all_providers, change, find, gone, tell

PORTION = 500
"""Rows of one transaction."""

DOCUMENTS, BYTES = 100, 16_000_000
"""Documents of one transaction, and bytes of their files from which on no further one joins it."""

IN_MEMORY = 4_000_000
"""Bytes of a file from which on it is copied by way of another file."""

LOOK = 0.5
"""Seconds between two looks whether the source is at rest."""

GONE = 60
"""Seconds after the end of its lease for which a worker that says nothing is still waited for."""

_CHUNK = 1 << 20
_DOCUMENTS, _RESUMED = "lccurl", "resumed"
_WORKERS_NAME = "move"
Named = TypeVar("Named", CachedUrl, Version)
Say = Callable[[str], object]


class NotTheSame(LccError):
    """What was copied is not what the source has."""


@dataclass(frozen=True, slots=True)
class Files:
    """Where the target's contents lie, large ones meanwhile, and their ids."""

    content: ContentStore
    unfinished: ContentFiles
    ids: FileIds


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the target is: kept in its ``lccinfo``, written with the rows it speaks of.

    ``psets`` is added to numbers of sets, ``sources`` to those of sources. ``place`` is the key of the last
    row of ``table`` that was copied, None = none was; ``seq`` the source's seq of the last document.
    """

    number: int
    psets: int
    sources: int
    table: str = ""
    place: list[Any] | None = None
    seq: int = 0

    @classmethod
    def read(cls, tx: Tx, pid: int) -> "Progress | None":
        """Return it as the target has it, None = nothing was copied."""
        text = tx.info(_info(pid))
        return cls(*json.loads(text)) if text else None

    def write(self, tx: Tx, pid: int) -> None:
        """Keep it."""
        values = (self.number, self.psets, self.sources, self.table, self.place, self.seq)
        tx.set_info(_info(pid), json.dumps(values))


def _info(pid: int) -> str:
    return f"move:{pid}"


@dataclass(frozen=True, slots=True)
class Mover:
    """Moves providers from one sub-LCC to another; ``contents`` are the source's files."""

    directory: Directory
    source: Store
    target: Store
    contents: Content
    files: Files
    grace: int
    say: Say = print
    now: Callable[[], float] = time.time

    def begin(self, pid: int, source: str, target: str) -> Moving:
        """Begin to move a provider between sub-LCCs with these names; raises ``FrontError``."""
        with self.source.read() as tx:
            provider = find(tx, pid)
        with self.target.read() as tx:
            if tx.provider(pid) is not None:
                raise FrontError(f"sub-LCC {target} has a provider {pid} of its own")
        if provider.turngroup:
            raise FrontError(f"provider {pid} shares a turn: `lcc provider set {pid} --group ''` there first")
        moving = Moving(pid, source, target, provider.state)
        self.directory.hold(moving)
        return moving

    def sizes(self) -> tuple[dict[int, int], int]:
        """Count the URLs of the source's providers that may move, by pid, and those of the target."""
        found = {
            one.pid: one.fileused + one.nurlproc
            for one in all_providers(self.source)
            if not one.turngroup and one.state != State.MOVING
        }
        with self.target.read() as tx:
            totals = tx.totals()
        return found, totals["queued"] + totals["cached"]

    def run(self, moving: Moving) -> None:
        """Go on with a move from where it is, to its end."""
        if moving.step == MoveStep.HOLD:
            moving = self._hold(moving)
        if moving.step == MoveStep.COPY:
            self._copy(moving)
            moving = self._flip(moving)
        self._remove(moving)

    # --- hold ------------------------------------------------------------------------------------

    def _hold(self, moving: Moving) -> Moving:
        repeated(change, self.source, moving.pid, {"state": State.MOVING})
        said = ""
        while why := self._why_busy(moving.pid):
            if why != said:
                self.say(f"waiting: {why}")
                said = why
            time.sleep(LOOK)
        with self.source.begin() as tx:
            tx.change_turn(find(tx, moving.pid).turnkey, {"owner": ""})  # a dead worker could settle late
            source, seq = tx.info(LCC_ID) or "", tx.peek(FEED)
        with self.target.read() as tx:
            target = tx.info(LCC_ID) or ""
        return repeated(self.directory.copying, moving, source, target, seq)

    def _why_busy(self, pid: int) -> str:
        with self.source.read() as tx:
            turn = tx.turn(find(tx, pid).turnkey)
            busy = {one.owner for one in tx.workers() if one.expires + GONE > self.now()}
            logins = tx.earlier_logins({pid: LAST_NUMBER})
        if turn is not None and turn.owner in busy:
            return f"worker {turn.owner} of the source ends its fetch"
        at = ", ".join(sorted({one.uns for one in logins}))
        return f"logins or sets of it are under way in the source, at UNS {at}" if logins else ""

    # --- copy ------------------------------------------------------------------------------------

    def _copy(self, moving: Moving) -> None:
        progress = repeated(self._begin, moving)
        if progress.table == _RESUMED:
            return
        tables = [*BY_PROVIDER, _DOCUMENTS]
        for table in tables[tables.index(progress.table) if progress.table else 0 : -1]:
            progress = progress if progress.table == table else replace(progress, table=table, place=None)
            while (more := repeated(self._copy_some, moving.pid, progress)) is not None:
                progress = more
            self.say(f"{table}: copied")
        words = self._words(moving.pid)
        while (more := repeated(self._copy_documents, moving, progress, words)) is not None:
            progress = more
            self.say(f"documents: copied up to change {progress.seq} of the source")
        self._compare(moving.pid)

    def _begin(self, moving: Moving) -> Progress:
        """Make the provider in the target, at rest; nothing happens if this move has made it."""
        pid = moving.pid
        with self.source.read() as tx:
            (row,) = tx.records_among("pidb", "pid", [pid])[pid]
            psets, sources = tx.span(SET_NUMBERS, pid), tx.span(SOURCE_NUMBERS, pid)
        with self.target.begin() as tx:
            known = Progress.read(tx, pid)
            if known is not None:
                return known
            if tx.provider(pid) is not None:
                raise FrontError(f"sub-LCC {moving.target} has a provider {pid} of its own")
            same = {"state": State.MOVING, "revision": tx.take(PROVIDERS_CHANGED, 1)}
            tx.put_records("pidb", [row | same])
            tx.set_info(gone(pid), "")
            made = Progress(moving.number, _offset(tx, PSETID, psets), _offset(tx, SOURCEID, sources))
            made.write(tx, pid)
            return made

    def _copy_some(self, pid: int, progress: Progress) -> Progress | None:
        """Copy the next rows of a table, None = there were no more."""
        table = progress.table
        with self.source.read() as tx:
            rows = tx.records(table, pid, _key(progress.place), PORTION)
        if not rows:
            return None
        after = replace(progress, place=_place([rows[-1][name] for name in BY_PROVIDER[table]]))
        with self.target.begin() as tx:
            if Progress.read(tx, pid) == after:
                return after  # the answer to an earlier commit was lost
            tx.lock_providers([pid])
            tx.put_records(table, [_changed(table, row, progress) for row in rows])
            after.write(tx, pid)
        return after

    def _words(self, pid: int) -> dict[int, int]:
        """Return the target's numbers of lists of words, by the source's: they were copied in their order."""
        pairs = [
            [int(row["wordsid"]) for row in _all(store, "linkwords", pid)]
            for store in (self.source, self.target)
        ]
        return dict(zip(*pairs, strict=True))

    def _copy_documents(
        self, moving: Moving, progress: Progress, words: Mapping[int, int]
    ) -> Progress | None:
        """Copy the next documents and tombstones with all that belongs to them, None = there were no more."""
        pid = moving.pid
        with ExitStack() as closing:
            with self.source.read() as tx:
                batch = _Batch.read(tx, pid, progress.seq)
            if not batch.rows:
                return None
            bodies = batch.bodies(self.contents, self.files, closing)
            after = replace(progress, table=_DOCUMENTS, place=None, seq=int(batch.rows[-1][1]["seq"]))
            with self.target.begin() as tx:
                if Progress.read(tx, pid) == after:
                    return after
                fileids = [fileid for fileid, _ in bodies]
                lock_blocks_of(tx, self.files.content.machineid, self.files.ids.token, fileids)
                tx.lock_providers([pid])
                self.files.content.keep(bodies)
                batch.write(tx, moving.number, progress, words)
                after.write(tx, pid)
        return after

    def _compare(self, pid: int) -> None:
        """Raise ``NotTheSame`` where one has more rows than the other, of those that nobody clears away."""
        for table in ("proots", "qdb", "linkwords", "spidered", "sources", "lccurl"):
            with self.source.read() as tx:
                there = tx.count_records(table, pid)
            with self.target.read() as tx:
                here = tx.count_records(table, pid)
            if there != here:
                raise NotTheSame(f"{table}: the source has {there} rows of provider {pid}, the target {here}")

    # --- flip and remove -------------------------------------------------------------------------

    def _flip(self, moving: Moving) -> Moving:
        repeated(self._resume, moving)
        flipped = repeated(self.directory.flip, moving)
        self.say(f"sub-LCC {moving.target} has provider {moving.pid} now")
        return flipped

    def _resume(self, moving: Moving) -> None:
        pid = moving.pid
        with self.target.snapshot() as tx:
            found = miscount(tx, find(tx, pid))
        with self.target.begin() as tx:
            tx.lock_providers([pid])
            progress = Progress.read(tx, pid)
            if progress is None or progress.table == _RESUMED:
                return  # an earlier try did it
            replace(progress, table=_RESUMED).write(tx, pid)
            put_right(tx, found)
            tx.update_provider(pid, {"state": moving.state})
            tell(tx, pid)

    def _remove(self, moving: Moving) -> None:
        pid = moving.pid
        removed = 0
        while (count := repeated(self._remove_some, pid)) is not None:
            removed += count
            self.say(f"source: {removed} rows removed")
        repeated(self.directory.end_move, moving, repeated(self._forget_progress, pid))

    def _forget_progress(self, pid: int) -> int:
        """Forget how far the target was; return its newest change."""
        with self.target.begin() as tx:
            tx.set_info(_info(pid), "")
            return tx.peek(FEED)

    def _remove_some(self, pid: int) -> int | None:
        """Remove some rows, or the provider itself when there are none (None)."""
        with self.source.begin() as tx:
            if not tx.lock_providers([pid]):
                return None
            rows = tx.changed_records(pid, 0, PORTION)
            queued = [row.urlkey for row in tx.queued_of(pid, 0, PORTION)]
            if not rows and not queued:
                turnkey = find(tx, pid).turnkey
                for table in BY_PROVIDER:
                    tx.drop_records(table, "pid", [pid])
                tx.delete_provider(pid)
                for table, column, key in (("qpsdb", "pid", pid), ("turns", "turnkey", turnkey)):
                    tx.drop_records(table, column, [key])
                tx.set_info(gone(pid), str(int(self.now())))
                tx.take(PROVIDERS_CHANGED, 1)
                return None
            self._remove_documents(tx, rows)
            tx.delete_queued(queued)
            return len(rows) + len(queued)

    def _remove_documents(self, tx: Tx, rows: Sequence[tuple[str, Record]]) -> None:
        keys = {table: [row["urlkey"] for name, row in rows if name == table] for table, _ in rows}
        documents = keys.get("lccurl", [])
        kept = [one for some in tx.records_among("versions", "urlkey", documents).values() for one in some]
        files = [row for table, row in rows if table == "lccurl"] + kept
        not_before = int(self.now()) + self.grace
        tx.delete_later(
            [
                FileToDelete(row["fetched_machineid"], row["fetched_fileid"], row["fetched_len"], not_before)
                for row in files
            ]
        )
        for table in ("links", "unwanted", "versions", "lccurl"):
            tx.drop_records(table, "urlkey", documents)
        tx.drop_records("tombstones", "urlkey", keys.get("tombstones", []))


def give_up(directory: Directory, source: Store, moving: Moving) -> None:
    """Let a provider stay where it is; raises ``FrontError`` when something was copied."""
    if moving.step != MoveStep.HOLD:
        raise FrontError(f"rows of provider {moving.pid} were copied: run `lcc front move` again to its end")
    repeated(change, source, moving.pid, {"state": moving.state})
    directory.give_up_move(moving.pid)


@dataclass(slots=True)
class _Batch:
    """Documents and tombstones that are copied in one transaction, with the names of their tables."""

    rows: list[tuple[str, Record]]
    versions: dict[bytes, list[Record]]
    beside: dict[str, dict[bytes, list[Record]]]
    came: Mapping[int, Sequence[tuple[int, int]]]

    @classmethod
    def read(cls, tx: Tx, pid: int, after: int) -> "_Batch":
        """Read the next ones of a provider."""
        rows = tx.changed_records(pid, after, DOCUMENTS)
        keys = [row["urlkey"] for _, row in rows]
        beside = {table: tx.records_among(table, "urlkey", keys) for table in ("links", "unwanted")}
        versions = tx.records_among("versions", "urlkey", keys)
        made = cls(rows, versions, beside, {})
        made._shorten()
        made.came = tx.moved([int(row["seq"]) for _, row in made.rows])
        return made

    def _shorten(self) -> None:
        """Leave out what would make the batch too large; a single document may be."""
        size = 0
        for place, (table, row) in enumerate(self.rows):
            files = self._files(table, row)
            size += sum(int(one["fetched_len"]) for one in files)
            if size > BYTES and place:
                del self.rows[place:]
                return

    def _files(self, table: str, row: Record) -> list[Record]:
        return [*self.versions.get(row["urlkey"], ()), row] if table == "lccurl" else []

    def bodies(self, contents: Content, files: Files, closing: ExitStack) -> list[tuple[int, Body]]:
        """Read all files and give them ids of the target; raises ``NotTheSame`` for one that is damaged."""
        found: list[tuple[int, Body]] = []
        used: set[int] = set()
        for table, row in self.rows:
            for one in self._files(table, row):
                kind: type[CachedUrl | Version] = CachedUrl if one is row else Version
                fileid = files.ids.next(used)
                found.append((fileid, _body(contents, _value(kind, one), files, fileid, closing)))
                one["fetched_machineid"], one["fetched_fileid"] = files.content.machineid, fileid
        return found

    def write(self, tx: Tx, number: int, progress: Progress, words: Mapping[int, int]) -> None:
        """Write everything, with places in the target's feed."""
        links = [row for some in self.beside["links"].values() for row in some]
        tx.put_records("links", [{**row, "words": words.get(int(row["words"]), 0)} for row in links])
        confirmed = [row for table, row in self.rows if table == "lccurl" and row["confirmed_seq"]]
        first = tx.take(CONFIRMED, len(confirmed)) if confirmed else 0
        for place, row in enumerate(confirmed):
            row["confirmed_seq"] = first + place
        numbered = [
            (name, one)
            for table, row in self.rows
            for name, one in (*(("versions", old) for old in self._files(table, row)[:-1]), (table, row))
        ]
        was = {id(row): int(row["seq"]) for _, row in numbered}
        for seq, (table, row) in enumerate(numbered, tx.take(FEED, len(numbered))):
            _renumber(table, row, seq, progress)
        for table in ("versions", "lccurl", "tombstones"):
            tx.put_records(table, [row for name, row in numbered if name == table])
        changes = [row for table, row in numbered if table != "versions"]
        unwanted = self.beside["unwanted"]
        tx.put_records(
            "unwanted",
            [{"urlkey": row["urlkey"], "seq": row["seq"]} for row in changes if row["urlkey"] in unwanted],
        )
        tx.put_moved(
            {int(row["seq"]): [*self.came.get(was[id(row)], ()), (number, was[id(row)])] for row in changes}
        )


def _offset(tx: Tx, counter: str, span: tuple[int, int]) -> int:
    """Take as many numbers as there are in a span; return what leads from the old ones to these."""
    lowest, highest = span
    return tx.take(counter, highest - lowest + 1) - lowest


def _renumber(table: str, row: Record, seq: int, progress: Progress) -> None:
    row["seq"] = seq
    if table != "lccurl":
        return
    for name in ("subtype_seq", "owners_seq"):
        row[name] = seq if row[name] else 0
    row["seen"] = progress.psets + row["seen"] if row["seen"] else 0
    row["held"] = progress.psets + row["held"] if 0 < row["held"] < ORPHANED else row["held"]


def _changed(table: str, row: Record, progress: Progress) -> Record:
    """Return a row as the target has it: numbers that an LCC gives out are its own."""
    if table in {"proots", "urlerrors", "linkwords"}:
        return {name: value for name, value in row.items() if name != BY_PROVIDER[table][0]}
    if table == "psets":
        return row | {"psetid": row["psetid"] + progress.psets}
    if table == "qdb":
        seen = row["seen"] + progress.psets if row["seen"] else 0
        own = {name: value for name, value in row.items() if name != "id"}
        return own | {"psetid": row["psetid"] + progress.psets, "seen": seen}
    if table == "sources":
        own = {"sourceid": row["sourceid"] + progress.sources, "owner": "", "claimed": 0}
        return row | own | {"lease": 0, "asked": ""}  # a hub is told where the target is
    return row


def _body(contents: Content, row: CachedUrl | Version, files: Files, fileid: int, closing: ExitStack) -> Body:
    """Return the body of a file as it is stored, when its digest is right."""
    if row.fetched_len <= IN_MEMORY:
        with contents.open(row) as stream:
            stored = stream.read()
        _check(io.BytesIO(stored), row)
        return Body(row.fetched_len, row.fetched_md5, row.sha256, stored)
    path = files.unfinished.unfinished_path(f"{_WORKERS_NAME}-{fileid}")
    with contents.open(row) as stream, path.open("wb") as copy:
        shutil.copyfileobj(stream, copy, _CHUNK)
        copy.flush()
        sync(copy.fileno(), path)
    closing.callback(path.unlink, missing_ok=True)
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


def _all(store: Store, table: str, pid: int) -> Iterator[Record]:
    place: list[Any] | None = None
    while True:
        with store.read() as tx:
            rows = tx.records(table, pid, place, PORTION)
        yield from rows
        if len(rows) < PORTION:
            return
        place = [rows[-1][name] for name in BY_PROVIDER[table]]


def _place(key: Sequence[Any]) -> list[Any]:
    """Return a key as JSON can hold it."""
    return [{"hex": bytes(part).hex()} if isinstance(part, bytes | memoryview) else part for part in key]


def _key(place: Sequence[Any] | None) -> list[Any] | None:
    if place is None:
        return None
    return [bytes.fromhex(part["hex"]) if isinstance(part, dict) else part for part in place]
