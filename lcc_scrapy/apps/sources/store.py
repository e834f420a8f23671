"""Sources as rows: what sites publish of their changes, and what of it was submitted."""

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from sqlalchemy import delete, or_, select, update

from lcc_scrapy.apps.sources import tables as t
from lcc_scrapy.apps.sources.rules import CLAIM, Kind, Role, Source, SourceFile
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf, chunks
from lcc_scrapy.db.tx import Tx

_SOURCES = RowsOf(t.sources, Source)
_FILES = RowsOf(t.sourcefiles, SourceFile)
_OTHERS = t.sources.alias().c  # made once: columns of an alias refer to each other
_OF_URLS = ("fileid", "furlkey", "stamp")
KEYS = 100
"""Keys of URLs that one statement changes."""


class SourceRows(OnConnection):
    """What one transaction can do with sources, their files, and the URLs that these listed."""

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
        c = t.sources.c
        of_site = _OTHERS.kind != Kind.REDIS.value
        running = select(_OTHERS.pid).where(_OTHERS.claimed > now, _OTHERS.owner != "", of_site)
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

    def relist(self, places: Mapping[bytes, bytes]) -> None:
        """Let files list URLs under their new ``furlkey`` instead of the former one."""
        for part in chunks(places, KEYS):
            rows = many.select(self._c, t.sourceurls.name, _OF_URLS, "furlkey", part)
            self._c.execute(delete(t.sourceurls).where(t.sourceurls.c.furlkey.in_(part)))
            moved = [(fileid, places[bytes(key)], stamp) for fileid, key, stamp in rows]
            keys, changes = _OF_URLS[:2], {"stamp": many.REPLACE}
            many.insert(self._c, t.sourceurls.name, _OF_URLS, moved, keys=keys, changes=changes)

    def remove_some(self, pid: int, limit: int) -> bool:
        """Forget some of what is kept of a provider, its sources at the end; True = more is left."""
        s, f, u = t.sources.c, t.sourcefiles.c, t.sourceurls.c
        its = select(f.fileid).join(t.sources, s.sourceid == f.sourceid).where(s.pid == pid)
        fileids = list(self._c.execute(its.order_by(f.fileid).limit(limit)).scalars())
        some = select(u.fileid, u.furlkey).where(u.fileid.in_(fileids)).order_by(u.fileid, u.furlkey)
        urls = self._c.execute(some.limit(limit)).all()
        for fileid, rows in groupby(urls, itemgetter(0)):
            self.delete_source_urls(fileid, [bytes(key) for _, key in rows])
        if len(urls) == limit:
            return True
        _FILES.delete(self._c, fileids)
        if len(fileids) == limit:
            return True
        self._c.execute(delete(t.sources).where(s.pid == pid))
        return False


def rows_in(tx: Tx) -> SourceRows:
    """Return the rows of this app in a transaction."""
    return SourceRows.over(tx)
