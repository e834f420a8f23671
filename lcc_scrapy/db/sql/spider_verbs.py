"""Verbs about links, what spiders found, and how far they looked."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, select, tuple_, update

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import DocumentLink, Ownership, Scan, Spidered
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.cache_verbs import CACHED
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf, chunks
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.directives import NOBODY
from lcc_scrapy.domain.entries import furlkey
from lcc_scrapy.domain.queue import FETCH

_SPIDERED = RowsOf(t.spidered, Spidered)
_OWNERS = RowsOf(t.owners, Ownership)
_SCANS = RowsOf(t.scans, Scan)
_OF_LINKS = ("urlkey", "position", "url", "relation", "nofollow")
_OF_VISITS = ("visited", "code", "answered", "every", "changes", "due")
_END_VISIT = (
    update(t.spidered)
    .where(t.spidered.c.furlkey == bindparam("key"))
    .values({name: bindparam(name) for name in _OF_VISITS})
)
_LOCATE = update(t.qdb).where(t.qdb.c.id == bindparam("key")).values(furlkey=bindparam("lies_at"))
_ANY_OWNER = select(t.owners.c.furlkey).limit(1)
_BY_NAME = func.row_number().over(partition_by=t.owners.c.furlkey, order_by=t.owners.c.owner)
_NAMED = (
    select(t.owners.c.furlkey, t.owners.c.owner, _BY_NAME.label("place"))
    .where(t.owners.c.furlkey.in_(bindparam("keys", expanding=True)), t.owners.c.owner != NOBODY)
    .subquery()
)
_FIRST_OWNERS = (
    select(_NAMED.c.furlkey, _NAMED.c.owner)
    .where(_NAMED.c.place <= bindparam("most"))
    .order_by(_NAMED.c.furlkey, _NAMED.c.place)
)
PAIRS = 300
"""Pairs per statement."""


class SpiderVerbs(OnConnection):
    """Verbs about links, what spiders found, and how far they looked."""

    def put_links(self, links: Mapping[bytes, Sequence[DocumentLink]]) -> None:
        """Set the links of documents, in the order of their pages."""
        self._change(delete(t.links), t.links.c.urlkey, links)
        rows = [
            (key, number, one.url, one.relation, one.nofollow)
            for key, found in links.items()
            for number, one in enumerate(found)
        ]
        many.insert(self._c, t.links.name, _OF_LINKS, rows)

    def links_of(self, key: bytes) -> list[DocumentLink]:
        """Return the links of a document, in the order of the page."""
        c = t.links.c
        query = select(c.url, c.relation, c.nofollow).where(c.urlkey == key).order_by(c.position)
        return [DocumentLink(*row) for row in self._c.execute(query)]

    def cached_at(self, furlkeys: Iterable[bytes]) -> dict[bytes, list[CachedUrl]]:
        """Return the documents that are fetched from these URLs, by furlkey; if any."""
        c = t.lccurl.c
        found: dict[bytes, list[CachedUrl]] = {}
        query = select(c.furlkey, *CACHED.columns).order_by(c.furlkey, c.urlkey)
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

    def has_owners(self) -> bool:
        """Tell whether anybody has an interest in any URL."""
        return self._c.execute(_ANY_OWNER).first() is not None

    def owners_of(self, furlkeys: Iterable[bytes]) -> dict[bytes, list[Ownership]]:
        """Return who has an interest in these URLs, as far as somebody has, by owner."""
        c = t.owners.c
        found: dict[bytes, list[Ownership]] = {}
        for part in chunks(furlkeys):
            for row in _OWNERS.read(self._c, _OWNERS.select().where(c.furlkey.in_(part))):
                found.setdefault(row.furlkey, []).append(row)
        return {key: sorted(rows, key=attrgetter("owner")) for key, rows in found.items()}

    def first_owners(self, furlkeys: Iterable[bytes], limit: int) -> dict[bytes, list[str]]:
        """Return the names of who has an interest in these URLs, by name, ``limit`` of each at most.

        Those whose name is empty are nobody.
        """
        found: dict[bytes, list[str]] = {}
        for part in chunks(furlkeys):
            for key, owner in self._c.execute(_FIRST_OWNERS, {"keys": part, "most": limit}):
                found.setdefault(bytes(key), []).append(owner)
        return found

    def owners_behind(self, key: bytes, after: str, limit: int) -> list[str]:
        """Return the names of who has an interest in a URL, those behind a name; "" = from the first on."""
        c = t.owners.c
        query = select(c.owner).where(c.furlkey == key, c.owner > after).order_by(c.owner)
        return list(self._c.execute(query.limit(limit)).scalars())

    def ownerships(self, pairs: Iterable[tuple[bytes, str]]) -> dict[tuple[bytes, str], Ownership]:
        """Return the interests among these pairs of furlkey and owner."""
        found: dict[tuple[bytes, str], Ownership] = {}
        for part in chunks(pairs, PAIRS):
            rows = _OWNERS.read(self._c, _OWNERS.select().where(_among(part)))
            found |= {(row.furlkey, row.owner): row for row in rows}
        return found

    def put_owners(self, rows: Sequence[Ownership]) -> None:
        """Add or replace interests."""
        for part in chunks(((row.furlkey, row.owner) for row in rows), PAIRS):
            self._c.execute(delete(t.owners).where(_among(part)))
        _OWNERS.insert(self._c, rows)

    def let_dig(self, furlkeys: Iterable[bytes]) -> None:
        """Make interests in these URLs due where they go on to what is linked there."""
        c = t.owners.c
        self._change(update(t.owners).where(c.reach > 0).values(due=True), c.furlkey, furlkeys)

    def to_dig(self, pid: int, limit: int) -> list[Ownership]:
        """Return interests in a provider's URLs that are due, by furlkey."""
        c = t.owners.c
        query = _OWNERS.select().where(c.pid == pid, c.due.is_(True))
        return _OWNERS.read(self._c, query.order_by(c.furlkey, c.owner).limit(limit))

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


def _among(pairs: Sequence[tuple[bytes, str]]) -> ColumnElement[bool]:
    """Return the condition on ``owners``; MariaDB looks rows up by its first half."""
    c = t.owners.c
    return and_(c.furlkey.in_(list({key for key, _ in pairs})), tuple_(c.furlkey, c.owner).in_(pairs))
