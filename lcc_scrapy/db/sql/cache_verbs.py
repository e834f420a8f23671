"""Verbs about cached documents, the feed, counters and files."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, takewhile
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    case,
    delete,
    func,
    literal_column,
    select,
    update,
)

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import FEED, LAST_KEY, FileBlock, FileToDelete
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.counter_verbs import CounterVerbs
from lcc_scrapy.db.sql.prepared import Prepared
from lcc_scrapy.db.sql.rows import NAMEHASHES, WITH_FURLKEY, RowsOf, chunks, put
from lcc_scrapy.domain.cache import NO_ANSWERS, OUTSIDE_ROOTS, Answers, CachedUrl, Tombstone, UrlMeta
from lcc_scrapy.domain.entries import Origin
from lcc_scrapy.domain.front_moves import Came
from lcc_scrapy.domain.queue import QueuedUrl
from lcc_scrapy.domain.versions import Version

_QUEUED = RowsOf(t.qdb, QueuedUrl, WITH_FURLKEY)
CACHED = RowsOf(t.lccurl, CachedUrl, WITH_FURLKEY)
_META = RowsOf(t.lccmeta, UrlMeta)
_answer_of = attrgetter(*_META.names[1:])
_ANSWER = ("answer_line", "answer_headers", "answer_peer", "answer_time")
_LATE = ("seq", "subtype_seq", "confirmed_seq")
"""The columns that have places in the feed: they are not known before its counter is locked."""
_late_of = attrgetter(*_LATE)
_EARLY = tuple(name for name in CACHED.written if name not in _LATE)
_early_columns = itemgetter(*map(CACHED.written.index, _EARLY))
_TOMBS = RowsOf(t.tombstones, Tombstone, NAMEHASHES)
_VERSIONS = RowsOf(t.versions, Version)
_DOOMED = RowsOf(t.fsmdb, FileToDelete)
_BLOCKS = RowsOf(t.fileblocks, FileBlock)

_B = t.fileblocks.c
_ONE_BLOCK = (_B.machineid == bindparam("machine"), _B.block == bindparam("number"))
"""The whole key: a search for several could wait for rows of others that it only passes."""

_LOCK_BLOCK = _BLOCKS.select().where(*_ONE_BLOCK).with_for_update()
_DROP_BLOCK = delete(t.fileblocks).where(*_ONE_BLOCK)

_KEYED_BY_DOCUMENTS = (t.versions, t.suspects, t.aci)
"""The tables with keys of documents that nothing else of them follows from."""

_REKEYED = 100
"""Keys that one statement changes."""

_PUSHED = Origin.PUSH.value
_RENDERED = Origin.RENDERED.value

_NONE: ColumnElement[int] = literal_column("0")
"""As a parameter it would not tell databases that the index of some rows has all that are asked for."""

_DOCID = re.compile(r"[0-9a-f]{32}")

Named = TypeVar("Named", CachedUrl, QueuedUrl, Tombstone)


class CacheVerbs(CounterVerbs):
    """Verbs about cached documents, the feed, counters and files."""

    def cached(self, keys: Iterable[bytes]) -> dict[bytes, CachedUrl]:
        """Return the cached rows among ``keys``."""
        return {row.urlkey: row for row in CACHED.by_keys(self._c, keys)}

    def insert_cached(self, rows: Sequence[CachedUrl], answers: Answers = NO_ANSWERS) -> None:
        """Add rows, with the answers that they came with."""
        self.prepare_cached(rows, (), answers).write({row.urlkey: row for row in rows})

    def update_cached(self, rows: Sequence[CachedUrl], answers: Answers = NO_ANSWERS) -> None:
        """Replace rows; one without an answer here keeps its own."""
        self.prepare_cached((), rows, answers).write({row.urlkey: row for row in rows})

    def prepare_cached(
        self, inserted: Sequence[CachedUrl], updated: Sequence[CachedUrl], answers: Answers = NO_ANSWERS
    ) -> "PreparedDocuments":
        """Begin to insert and update rows, of which the places in the feed are not known yet."""
        return PreparedDocuments(self._c, inserted, updated, answers)

    def delete_cached(self, keys: Sequence[bytes]) -> None:
        """Remove rows, with their answers and links."""
        CACHED.delete(self._c, keys)
        for part in chunks(keys):
            many.delete(self._c, t.links.name, "urlkey", part)

    def cached_of(self, pid: int, after: bytes, limit: int) -> list[CachedUrl]:
        """Return a provider's rows by rising key."""
        u = t.lccurl.c
        query = CACHED.select().where(u.pid == pid, u.urlkey > after).order_by(u.urlkey).limit(limit)
        return CACHED.read(self._c, query)

    def usage(self, pid: int) -> tuple[int, int]:
        """Count a provider's cached documents and their bytes: what its quota counters should say."""
        u = t.lccurl.c
        files = func.count(case((u.origin != _RENDERED, 1)))
        query = select(files, func.coalesce(func.sum(u.fetched_len + u.head_len), 0)).where(u.pid == pid)
        files, space = self._c.execute(query).one()
        return int(files), int(space)

    def mark_seen(self, keys: Sequence[bytes], psetid: int, now: int) -> None:
        """Note that a full set names these URLs: cached rows are confirmed."""
        self._change(update(t.lccurl).values(seen=psetid, confirmed_time=now), t.lccurl.c.urlkey, keys)
        self._change(update(t.qdb).values(seen=psetid), t.qdb.c.urlkey, keys)

    def release(self, keys: Sequence[bytes]) -> int:
        """End the holds that sets and fetches put on these documents; return how many there were."""
        u = t.lccurl.c
        by_others = u.held.between(1, OUTSIDE_ROOTS - 1)
        return self._change(update(t.lccurl).where(by_others).values(held=0), u.urlkey, keys)

    def name_cached(self, keys: Sequence[bytes], psetid: int) -> int:
        """Note that a set names these URLs; return how many are cached and were not named by it before."""
        u = t.lccurl.c
        return self._change(update(t.lccurl).where(u.seen < psetid).values(seen=psetid), u.urlkey, keys)

    def confirmations(self, pid: int, after: bytes, limit: int) -> list[tuple[bytes, int]]:
        """Return (key, confirmed_time) of a provider's documents by rising key, but renditions."""
        u = t.lccurl.c
        query = select(u.urlkey, u.confirmed_time).where(
            u.pid == pid, u.urlkey > after, u.origin != _RENDERED
        )
        rows = self._c.execute(query.order_by(u.urlkey).limit(limit))
        return [(bytes(key), int(confirmed)) for key, confirmed in rows]

    def reach(self, pid: int, after: bytes, limit: int) -> bytes:
        """Return the key up to which ``limit`` documents of a provider follow; ``LAST_KEY``: all or fewer."""
        u = t.lccurl.c
        last = select(u.urlkey).where(u.pid == pid, u.urlkey > after).order_by(u.urlkey)
        return bytes(self._c.execute(last.offset(limit - 1).limit(1)).scalar() or LAST_KEY)

    def unseen(self, pid: int, psetid: int, after: bytes, upto: bytes, limit: int) -> list[bytes]:
        """Return keys (rising, up to ``upto``) of pushed documents that no set from ``psetid`` on named."""
        u = t.lccurl.c
        keys = select(u.urlkey).where(_pushed(pid, after, upto), u.seen < psetid)
        rows = self._c.execute(keys.order_by(u.urlkey).limit(limit))
        return [bytes(key) for key in rows.scalars()]

    def count_absent(self, pid: int, psetid: int, after: bytes, upto: bytes) -> int:
        """Count what ``unseen`` would return, without documents that ``mark_unfetched`` counted before."""
        u = t.lccurl.c
        absent = select(func.count()).where(_pushed(pid, after, upto), u.seen < psetid, u.seen != -psetid)
        return int(self._c.execute(absent).scalar_one())

    def held(self, pid: int, limit: int, after: bytes = b"") -> list[bytes]:
        """Return keys (rising) whose removal is held."""
        u = t.lccurl.c
        query = select(u.urlkey).where(u.pid == pid, u.held > 0, u.urlkey > after)
        return [bytes(key) for key in self._c.execute(query.order_by(u.urlkey).limit(limit)).scalars()]

    def count_held(self, pid: int) -> int:
        """Count them: what the provider's counter should say."""
        u = t.lccurl.c
        query = select(func.count()).select_from(t.lccurl).where(u.pid == pid, u.held > 0)
        return int(self._c.execute(query).scalar_one())

    def meta(self, key: bytes) -> UrlMeta | None:
        """Return the answer a document came with."""
        return self.metas([key]).get(key)

    def metas(self, keys: Iterable[bytes]) -> dict[bytes, UrlMeta]:
        """Return the answers that these documents came with."""
        return {row.urlkey: row for row in _META.by_keys(self._c, keys)}

    def put_tombstones(self, rows: Sequence[Tombstone]) -> None:
        """Add or replace tombstones."""
        _TOMBS.replace(self._c, rows)

    def delete_tombstones(self, keys: Sequence[bytes]) -> set[bytes]:
        """Remove the tombstones of documents that are back; return the keys that had one."""
        key = ("urlkey",)
        there = (many.select(self._c, t.tombstones.name, key, *key, part) for part in chunks(keys))
        found = {bytes(row[0]) for rows in there for row in rows}
        _TOMBS.delete(self._c, sorted(found))
        return found

    def tombstones(self, keys: Iterable[bytes]) -> dict[bytes, Tombstone]:
        """Return the tombstones among ``keys``."""
        return {row.urlkey: row for row in _TOMBS.by_keys(self._c, keys)}

    def old_tombstones(self, before: int, limit: int) -> list[int]:
        """Return the seqs (rising) of the first tombstones, as far as all are of before ``before``."""
        c = t.tombstones.c
        rising = self._c.execute(select(c.seq, c.removed_time).order_by(c.seq).limit(limit))
        return [int(seq) for seq, _ in takewhile(lambda row: row.removed_time < before, rising.all())]

    def drop_tombstones(self, upto: int) -> None:
        """Remove the tombstones up to a seq."""
        self._c.execute(delete(t.tombstones).where(t.tombstones.c.seq <= upto))

    def changes(
        self, after: int, limit: int, pid: int | None = None, upto: int | None = None
    ) -> list[CachedUrl | Tombstone]:
        """Return documents and tombstones by rising seq, up to one if it is given.

        Nothing with a lower seq than the last one returned appears afterwards.
        """
        rows: list[CachedUrl | Tombstone] = []
        upto = self.peek(FEED) if upto is None else upto
        for kind in (CACHED, _TOMBS):
            c = kind.table.c
            query = kind.select().where(c.seq > after, c.seq <= upto)
            if pid is not None:
                query = query.where(c.pid == pid)
            rows.extend(kind.read(self._c, query.order_by(c.seq).limit(limit)))
        return sorted(rows, key=lambda row: row.seq)[:limit]

    def moved(self, seqs: Sequence[int]) -> dict[int, Came]:
        """Return how changes with these seqs came here from other sub-LCCs, of those that did."""
        names = ("seq", "move", "was")
        found: dict[int, list[tuple[int, int]]] = {}
        for part in chunks(seqs):
            for seq, move, was in many.select(self._c, t.moved.name, names, "seq", part):
                found.setdefault(int(seq), []).append((int(move), int(was)))
        return {seq: tuple(sorted(came)) for seq, came in found.items()}

    def rekey_documents(self, keys: Mapping[bytes, bytes]) -> None:
        """Give what belongs to documents their new keys, by the former ones: versions, suspects and ACIs.

        That they concerned nobody is forgotten: the annotation engine is told of them anew.
        """
        for part in chunks(keys):
            self._c.execute(delete(t.unwanted).where(t.unwanted.c.urlkey.in_(part)))
        for table in _KEYED_BY_DOCUMENTS:
            for part in chunks(keys, _REKEYED):
                self._rekey(table.name, {key: keys[key] for key in part})

    def _rekey(self, table: str, keys: Mapping[bytes, bytes]) -> None:
        """Change keys in one statement; the driver of MariaDB would send one for each row."""
        mark = "?" if self._c.dialect.name == "sqlite" else "%s"
        cast = "::bytea" if self._c.dialect.name == "postgresql" else ""
        cases = f" WHEN {mark} THEN {mark}{cast}" * len(keys)
        places = ",".join([mark] * len(keys))
        statement = f"UPDATE {table} SET urlkey = CASE urlkey{cases} END WHERE urlkey IN ({places})"  # noqa: S608 - names of ours
        self._c.exec_driver_sql(statement, (*chain.from_iterable(keys.items()), *keys))

    def put_moved(self, came: Mapping[int, Came]) -> None:
        """Note how changes came here, by the seqs that they have here."""
        rows = [(seq, move, was) for seq, one in came.items() for move, was in one]
        many.insert(self._c, t.moved.name, ("seq", "move", "was"), rows)

    def confirmed(self, after: int, limit: int, upto: int) -> list[CachedUrl]:
        """Return documents by their places among the confirmations, those behind ``after`` up to ``upto``.

        Nothing with a lower place than the last one returned appears afterwards.
        """
        c = t.lccurl.c.confirmed_seq
        query = CACHED.select().where(c > _NONE, c > after, c <= upto)
        return CACHED.read(self._c, query.order_by(c).limit(limit))

    def find_url(self, url: str) -> tuple[list[CachedUrl], list[QueuedUrl], list[Tombstone]]:
        """Return all that is known of a URL given as curl, fetch URL or docid."""
        return CACHED.named(self._c, url), _QUEUED.named(self._c, url), _TOMBS.named(self._c, url)

    def documents(self, after: bytes, limit: int) -> list[CachedUrl]:
        """Return the rows of all providers by rising key."""
        c = t.lccurl.c.urlkey
        return CACHED.read(self._c, CACHED.select().where(c > after).order_by(c).limit(limit))

    def files_of(self, machineid: int, fileids: Sequence[int]) -> dict[int, CachedUrl]:
        """Return the rows whose content lies in these files."""
        u = t.lccurl.c
        found = {}
        for part in chunks(fileids):
            query = CACHED.select().where(u.fetched_machineid == machineid, u.fetched_fileid.in_(part))
            found.update({row.fetched_fileid: row for row in CACHED.read(self._c, query)})
        return found

    def versions(self, keys: Iterable[bytes]) -> dict[bytes, list[Version]]:
        """Return the earlier contents that are kept of these documents, newest first."""
        c = t.versions.c
        found: dict[bytes, list[Version]] = {}
        for part in chunks(keys):
            query = _VERSIONS.select().where(c.urlkey.in_(part)).order_by(c.seq.desc())
            for row in _VERSIONS.read(self._c, query):
                found.setdefault(row.urlkey, []).append(row)
        return found

    def insert_versions(self, rows: Sequence[Version]) -> None:
        """Add versions."""
        _VERSIONS.insert(self._c, rows)

    def delete_versions(self, seqs: Sequence[int]) -> None:
        """Remove versions."""
        _VERSIONS.delete(self._c, seqs)

    def next_versioned(self, after: int) -> int | None:
        """Return the first provider behind ``after`` of whose documents versions are kept."""
        pid = t.versions.c.pid
        return self._c.execute(select(func.min(pid)).where(pid > after)).scalar()

    def version_times(self, pid: int, after: bytes, limit: int) -> list[tuple[bytes, int]]:
        """Return (key, replaced_time) of versions of a provider's documents by rising key."""
        c = t.versions.c
        query = select(c.urlkey, c.replaced_time).where(c.pid == pid, c.urlkey > after)
        rows = self._c.execute(query.order_by(c.urlkey).limit(limit))
        return [(bytes(key), int(replaced)) for key, replaced in rows]

    def present(self, keys: Sequence[bytes]) -> set[bytes]:
        """Return those of the keys of which a document is there."""
        return many.known(self._c, (t.lccurl.name,), "urlkey", keys)

    def version_files(self, machineid: int, fileids: Sequence[int]) -> set[int]:
        """Return those of the files that hold a version."""
        c = t.versions.c
        query = select(c.fetched_fileid).where(c.fetched_machineid == machineid)
        return {fileid for (fileid,) in self._rows(query, c.fetched_fileid, fileids)}

    def delete_later(self, files: Sequence[FileToDelete]) -> None:
        """Hand files to the delete manager."""
        _DOOMED.insert(self._c, files)

    def files_to_delete(self, machineid: int, now: int, limit: int) -> list[FileToDelete]:
        """Return files that may go now, oldest first."""
        f = t.fsmdb.c
        query = _DOOMED.select().where(f.machineid == machineid, f.not_before <= now)
        return _DOOMED.read(self._c, query.order_by(f.not_before).limit(limit))

    def known_to_delete(self, machineid: int, fileids: Sequence[int]) -> set[int]:
        """Return those of the files that are doomed already."""
        f = t.fsmdb.c
        query = select(f.fileid).where(f.machineid == machineid)
        return {fileid for (fileid,) in self._rows(query, f.fileid, fileids)}

    def forget_deleted(self, machineid: int, fileids: Sequence[int]) -> None:
        """Forget files that are gone."""
        f = t.fsmdb.c
        self._change(delete(t.fsmdb).where(f.machineid == machineid), f.fileid, fileids)

    def put_block(self, block: FileBlock) -> None:
        """Add a block of file ids, or give one to somebody else."""
        put(self._c, t.fileblocks, _BLOCKS.as_dict(block))

    def blocks_of(self, machineid: int) -> list[FileBlock]:
        """Return the blocks of a machine by rising number."""
        return _BLOCKS.read(self._c, _BLOCKS.select().where(_B.machineid == machineid).order_by(_B.block))

    def lock_blocks(self, machineid: int, numbers: Iterable[int]) -> dict[int, FileBlock]:
        """Return those of these blocks that are there, and keep others from locking or changing them."""
        found = (
            _BLOCKS.read(self._c, _LOCK_BLOCK, machine=machineid, number=number)
            for number in sorted(set(numbers))
        )
        return {block.block: block for one in found for block in one}

    def drop_blocks(self, machineid: int, numbers: Iterable[int]) -> None:
        """Forget blocks."""
        for number in sorted(numbers):
            self._c.execute(_DROP_BLOCK, {"machine": machineid, "number": number})


class PreparedDocuments:
    """Documents that are all but written: see ``Prepared``.

    One that is updated without an answer keeps its own.
    """

    def __init__(
        self,
        connection: Connection,
        inserted: Sequence[CachedUrl],
        updated: Sequence[CachedUrl],
        answers: Answers,
    ) -> None:
        self._parts: list[tuple[Prepared, list[bytes]]] = []
        for label, rows, are_there in (("new", inserted, False), ("changed", updated, True)):
            for answered in (True, False):
                some = [row for row in rows if (row.urlkey in answers) is answered]
                names = (*_EARLY, *_ANSWER, *_LATE) if answered else (*_EARLY, *_LATE)
                changes = dict.fromkeys(names[1:], many.REPLACE) if are_there else None
                early = [_early_of(row, answers) for row in some]
                what = f"{label}_answered" if answered else label
                prepared = Prepared(
                    connection, t.lccurl.name, names, len(_LATE), early, label=what, changes=changes
                )
                self._parts.append((prepared, [row.urlkey for row in some]))

    def write(self, rows: Mapping[bytes, CachedUrl]) -> None:
        """Write them, with their places in the feed as they are in ``rows`` now, by key."""
        for prepared, keys in self._parts:
            prepared.write([_late_of(rows[key]) for key in keys])


def _early_of(row: CachedUrl, answers: Answers) -> many.Row:
    """Return the columns of a row, and of its answer if it has one here, but for those of the feed."""
    early: many.Row = _early_columns(CACHED.in_order(row))
    answer = answers.get(row.urlkey)
    return early if answer is None else (*early, *_answer_of(answer))


def _pushed(pid: int, after: bytes, upto: bytes) -> Any:
    u = t.lccurl.c
    return and_(u.pid == pid, u.urlkey > after, u.urlkey <= upto, u.origin == _PUSHED)
