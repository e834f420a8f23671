"""Verbs about sources: what sites publish of their changes, and what of it was submitted."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import delete, or_, select, update

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf, chunks
from lcc_scrapy.domain.sources import CLAIM, Kind, Role, Source, SourceFile

_SOURCES = RowsOf(t.sources, Source)
_FILES = RowsOf(t.sourcefiles, SourceFile)
_OF_URLS = ("fileid", "furlkey", "stamp")


class SourceVerbs(OnConnection):
    """Verbs about sources, their files, and the URLs that these listed."""

    def source(self, sourceid: int) -> Source | None:
        """Return a source."""
        return next(iter(_SOURCES.by_keys(self._c, [sourceid])), None)

    def sources(self, pid: int | None = None) -> list[Source]:
        """Return the sources of a provider, or all, by number."""
        query = _SOURCES.select() if pid is None else _SOURCES.select().where(t.sources.c.pid == pid)
        return _SOURCES.read(self._c, query.order_by(t.sources.c.sourceid))

    def due_sources(self, now: int, limit: int) -> list[Source]:
        """Return sources that were due at ``now`` (epoch seconds), earliest first."""
        c = t.sources.c
        query = _SOURCES.select().where(c.due <= now).order_by(c.due, c.sourceid)
        return _SOURCES.read(self._c, query.limit(limit))

    def startable_sources(self, now: int, limit: int) -> list[Source]:
        """Return due sources of providers of which none is run now, earliest first.

        Keys of Redis do not count, and may always start: nothing is asked of their provider's site.
        """
        c, other = t.sources.c, t.sources.alias().c
        of_site = other.kind != Kind.REDIS.value
        running = select(other.pid).where(other.claimed > now, other.owner != "", of_site)
        may_start = or_(c.kind == Kind.REDIS.value, c.pid.not_in(running))
        query = _SOURCES.select().where(c.due <= now, may_start).order_by(c.due, c.sourceid)
        return _SOURCES.read(self._c, query.limit(limit))

    def wake_sources(self, now: int) -> None:
        """Make due what a clock that was ahead has put off: it was looked at, or claimed, in the future.

        It is due after ``CLAIM``: whoever runs it at this moment says so before.
        """
        c = t.sources.c
        ahead = or_(c.at > now + CLAIM, c.claimed > now + 2 * CLAIM)
        query = select(c.sourceid).where(ahead, c.due > now + CLAIM)
        for numbers in chunks(self._c.execute(query).scalars().all()):
            self._c.execute(update(t.sources).where(c.sourceid.in_(numbers)).values(due=now + CLAIM))

    def source_called_back(self, callback: str) -> Source | None:
        """Return the source whose callback has this name; "" is nobody's."""
        query = _SOURCES.select().where(t.sources.c.callback == callback)
        return next(iter(_SOURCES.read(self._c, query)), None) if callback else None

    def put_source(self, source: Source) -> None:
        """Add or replace a source."""
        _SOURCES.replace(self._c, [source])

    def delete_source(self, sourceid: int) -> None:
        """Forget a source, its files and their URLs."""
        self.delete_source_files([one.fileid for one in self.source_files(sourceid)])
        _SOURCES.delete(self._c, [sourceid])

    def source_files(self, sourceid: int) -> list[SourceFile]:
        """Return the files of a source, by number."""
        c = t.sourcefiles.c
        return _FILES.read(self._c, _FILES.select().where(c.sourceid == sourceid).order_by(c.fileid))

    def put_source_files(self, files: Sequence[SourceFile]) -> None:
        """Add or replace files."""
        _FILES.replace(self._c, files)

    def delete_source_files(self, fileids: Sequence[int]) -> None:
        """Forget files and their URLs."""
        for fileid in fileids:
            self._c.execute(delete(t.sourceurls).where(t.sourceurls.c.fileid == fileid))
        _FILES.delete(self._c, fileids)

    def source_urls(self, fileid: int, after: bytes, limit: int) -> list[tuple[bytes, int]]:
        """Return (furlkey, stamp) of the URLs of a file behind a key, by rising key."""
        c = t.sourceurls.c
        query = select(c.furlkey, c.stamp).where(c.fileid == fileid, c.furlkey > after)
        rows = self._c.execute(query.order_by(c.furlkey).limit(limit))
        return [(bytes(key), stamp) for key, stamp in rows]

    def source_stamps(self, fileid: int, keys: Collection[bytes]) -> dict[bytes, int]:
        """Return the stamps of those of the URLs that a file has."""
        c = t.sourceurls.c
        query = select(c.furlkey, c.stamp).where(c.fileid == fileid)
        return {bytes(key): stamp for key, stamp in self._rows(query, c.furlkey, sorted(keys))}

    def put_source_urls(self, fileid: int, stamps: Mapping[bytes, int]) -> None:
        """Note URLs of a file, or their new stamps."""
        rows = [(fileid, key, stamp) for key, stamp in sorted(stamps.items())]
        keys, changes = _OF_URLS[:2], {"stamp": many.REPLACE}
        many.insert(self._c, t.sourceurls.name, _OF_URLS, rows, keys=keys, changes=changes)

    def delete_source_urls(self, fileid: int, keys: Collection[bytes]) -> None:
        """Forget URLs of a file."""
        c = t.sourceurls.c
        for part in chunks(sorted(keys)):
            self._c.execute(delete(t.sourceurls).where(c.fileid == fileid, c.furlkey.in_(part)))

    def listed_elsewhere(self, fileid: int, keys: Collection[bytes]) -> set[bytes]:
        """Return those of the URLs that another file lists which names all of its part."""
        u, f = t.sourceurls.c, t.sourcefiles.c
        query = select(u.furlkey).join(t.sourcefiles, f.fileid == u.fileid)
        query = query.where(u.fileid != fileid, f.role == Role.LIST.value)
        return {bytes(row[0]) for row in self._rows(query, u.furlkey, sorted(keys))}
