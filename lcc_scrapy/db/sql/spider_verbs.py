"""Verbs about what spiders found, and how far they looked."""

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

from sqlalchemy import bindparam, delete, func, select, update

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import Scan, Spidered
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.cache_verbs import CACHED
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf, chunks
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.entries import Origin, furlkey
from lcc_scrapy.domain.queue import FETCH

_SPIDERED = RowsOf(t.spidered, Spidered)
_SCANS = RowsOf(t.scans, Scan)
_OF_VISITS = ("visited", "code", "answered", "every", "changes", "due")
_END_VISIT = (
    update(t.spidered)
    .where(t.spidered.c.furlkey == bindparam("key"))
    .values({name: bindparam(name) for name in _OF_VISITS})
)
_LOCATE = update(t.qdb).where(t.qdb.c.id == bindparam("key")).values(furlkey=bindparam("lies_at"))


class SpiderVerbs(OnConnection):
    """Verbs about what spiders found, and how far they looked."""

    def cached_at(
        self, furlkeys: Iterable[bytes], *, renditions: bool = False
    ) -> dict[bytes, list[CachedUrl]]:
        """Return the documents that are fetched from these URLs, by furlkey; if any.

        ``renditions``: also what a browser made of them.
        """
        c = t.lccurl.c
        found: dict[bytes, list[CachedUrl]] = {}
        query = select(c.furlkey, *CACHED.columns).order_by(c.furlkey, c.urlkey)
        if not renditions:
            query = query.where(c.origin != Origin.RENDERED.value)
        for lies_at, rows in groupby(self._rows(query, c.furlkey, furlkeys), lambda row: bytes(row[0])):
            found[lies_at] = [CachedUrl(*row[1:]) for row in rows]
        return found

    def present_at(self, furlkeys: Iterable[bytes]) -> set[bytes]:
        """Return those of these URLs from which a document is fetched, or something waits to be."""
        wanted = set(furlkeys)
        present = {
            bytes(lies_at)
            for part in chunks(wanted)
            for (lies_at,) in many.select(self._c, t.lccurl.name, ("furlkey",), "furlkey", part)
        }
        waiting = (
            row
            for part in chunks(wanted - present)
            for row in many.select(self._c, t.qdb.name, ("furlkey", "operation"), "furlkey", part)
        )
        return present | {bytes(lies_at) for lies_at, operation in waiting if operation == FETCH}

    def locate(self, pid: int, after: int, upto: int) -> None:
        """Let ``waiting_at`` know of a provider's rows that wait, by their numbers (``reach_waiting``).

        Those that ``append_new`` was given without ``furlkey`` are not known to it.
        """
        c = t.qdb.c
        lost = select(c.id, c.furl).where(c.pid == pid, c.id > after, c.id <= upto, c.furlkey.is_(None))
        rows = self._c.execute(lost).all()
        if rows:
            self._c.execute(_LOCATE, [{"key": key, "lies_at": furlkey(pid, furl)} for key, furl in rows])

    def waiting_at(self, furlkeys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return those of these URLs from which something waits to be fetched, each with a key of that."""
        c = t.qdb.c
        query = select(c.furlkey, c.urlkey).where(c.operation == FETCH)
        return {bytes(lies_at): bytes(key) for lies_at, key in self._rows(query, c.furlkey, furlkeys)}

    def spidered(self, furlkeys: Iterable[bytes]) -> dict[bytes, Spidered]:
        """Return what spiders found among these URLs."""
        return {row.furlkey: row for row in _SPIDERED.by_keys(self._c, furlkeys)}

    def insert_spidered(self, rows: Sequence[Spidered]) -> None:
        """Add URLs that are new to spiders."""
        _SPIDERED.insert(self._c, rows)

    def spidered_of(self, pid: int, after: bytes, limit: int) -> list[Spidered]:
        """Return what spiders found at a provider's behind ``after``, by rising ``furlkey``."""
        c = t.spidered.c
        query = _SPIDERED.select().where(c.pid == pid, c.furlkey > after)
        return _SPIDERED.read(self._c, query.order_by(c.furlkey).limit(limit))

    def delete_spidered(self, furlkeys: Sequence[bytes]) -> None:
        """Forget that spiders found these URLs."""
        self._change(delete(t.spidered), t.spidered.c.furlkey, furlkeys)

    def visit_again(self, furlkeys: Sequence[bytes]) -> None:
        """Note that visits of these URLs are to come."""
        self._change(update(t.spidered).values(visited=0, due=0), t.spidered.c.furlkey, furlkeys)

    def visited(self, rows: Sequence[Spidered]) -> None:
        """Note of URLs that spiders know how their last visits ended, and when the next ones are due."""
        ended = [{"key": row.furlkey, **{name: getattr(row, name) for name in _OF_VISITS}} for row in rows]
        if ended:
            self._c.execute(_END_VISIT, ended)

    def due(self, pid: int, upto: int, limit: int) -> list[Spidered]:
        """Return a provider's URLs that were due at ``upto`` or before, earliest first."""
        c = t.spidered.c
        query = _SPIDERED.select().where(c.pid == pid, c.due > 0, c.due <= upto)
        return _SPIDERED.read(self._c, query.order_by(c.due, c.furlkey).limit(limit))

    def overdue(self, pid: int, before: int, limit: int) -> list[Spidered]:
        """Return a provider's URLs that were last visited before ``before``, oldest visits first."""
        c = t.spidered.c
        query = _SPIDERED.select().where(c.pid == pid, c.visited > 0, c.visited < before)
        return _SPIDERED.read(self._c, query.order_by(c.visited, c.furlkey).limit(limit))

    def count_spidered(self, pid: int) -> int:
        """Count the URLs that spiders found at a provider's."""
        query = select(func.count()).select_from(t.spidered).where(t.spidered.c.pid == pid)
        return int(self._c.execute(query).scalar_one())

    def scan(self, pid: int) -> Scan | None:
        """Return how far a provider's documents were looked through for links."""
        return next(iter(_SCANS.by_keys(self._c, [pid])), None)

    def scanned(self, pids: Collection[int]) -> set[int]:
        """Return those of the providers whose documents are looked through for links."""
        parts = (many.select(self._c, t.scans.name, ("pid",), "pid", part) for part in chunks(pids))
        return {pid for part in parts for (pid,) in part}

    def put_scan(self, scan: Scan) -> None:
        """Note it."""
        _SCANS.replace(self._c, [scan])
