"""What the dashboard reads of providers, sets, turns, changes and links, in few statements."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, false, func, or_, select

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import EVERYBODY, LongFetch, ProviderSet, StoredTurn
from lcc_scrapy.db.sql.link_bodies import names_any
from lcc_scrapy.db.sql.link_verbs import NO_WORDS
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf, chunks
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.providers import Provider

_LOOKED_AT = 250
"""Documents whose links are read at a time by ``linking_pages``."""

_BODY_MAX = 64 * 1024
"""Deflated bytes of the links of a document; of more it does not look at any."""

FAILURES = "failures"
"""Not a column: the order of a list of providers by their failed fetches."""


@dataclass(frozen=True, slots=True)
class ProviderPage:
    """Which providers are wanted: ordered by a column and then by pid, behind (value, pid) of the last one.

    ``pids`` None = of all; ``state`` and ``search`` empty = whatever they are. ``search`` is a pid, or a
    part of a name or contact (in any case of letters) or of a root. ``FAILURES`` orders by fetches that ended
    in one of the results ``failing`` in spans from ``since`` on; providers without one are left out.
    """

    order: str
    limit: int
    falling: bool = False
    after: tuple[str | int, int] | None = None
    search: str = ""
    state: str = ""
    pids: frozenset[int] | None = None
    since: int = 0
    failing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LinkingPages:
    """Documents that link to a URL, by rising key; ``read`` counts those whose links were looked at.

    ``reached`` is the key behind which to go on, None = these were all.
    """

    keys: list[bytes]
    reached: bytes | None
    read: int


_PROVIDERS = RowsOf(t.pidb, Provider)
_TURNS = RowsOf(t.turns, StoredTurn)
_FETCHES = RowsOf(t.fetches, LongFetch)
_PSETS = RowsOf(t.psets, ProviderSet)
_CACHED = RowsOf(t.lccurl, CachedUrl)
_TOMBSTONES = RowsOf(t.tombstones, Tombstone)


class DashboardRows(OnConnection):
    """What one transaction can ask for the dashboard."""

    def provider_page(self, page: ProviderPage) -> list[Provider]:
        """Return a page of providers, in its order."""
        if page.order == FAILURES:
            return self._failing(page)
        return _PROVIDERS.read(self._c, _cut(_PROVIDERS.select(), page, t.pidb.c[page.order]))

    def last_sets(self, pids: Iterable[int]) -> dict[int, ProviderSet]:
        """Return the newest set of each provider that sent one."""
        s = t.psets.c
        newest = select(func.max(s.psetid)).where(s.pid.in_(sorted(pids))).group_by(s.pid)
        found = _PSETS.by_keys(self._c, list(self._c.execute(newest).scalars()))
        return {one.pid: one for one in found}

    def newest_sets(self, pid: int, limit: int) -> list[ProviderSet]:
        """Return a provider's sets, newest first."""
        s = t.psets.c
        return _PSETS.read(
            self._c, _PSETS.select().where(s.pid == pid).order_by(s.psetid.desc()).limit(limit)
        )

    def turns_of(self, turnkeys: Iterable[str]) -> dict[str, StoredTurn]:
        """Return turns as far as there are any, without locking them."""
        return {row.turnkey: row for row in _TURNS.by_keys(self._c, set(turnkeys))}

    def count_failures(self, pids: Iterable[int], since: int, results: Collection[str]) -> dict[int, int]:
        """Count fetches of providers that ended with one of the results, in spans from then on."""
        query = _failures(since, results).where(t.fetchcounts.c.pid.in_(sorted(pids)))
        return {pid: int(count) for pid, count in self._c.execute(query)}

    def long_fetches(self, turnkeys: Iterable[str]) -> dict[str, LongFetch]:
        """Return the long fetches of turns, as far as there are any."""
        return {one.turnkey: one for one in _FETCHES.by_keys(self._c, set(turnkeys))}

    def busiest_turns(self, owner: str, limit: int) -> list[StoredTurn]:
        """Return the turns of a worker with most URLs waiting, these first, without locking them."""
        c = t.turns.c
        query = _TURNS.select().where(c.owner == owner).order_by(c.waiting.desc(), c.turnkey)
        return _TURNS.read(self._c, query.limit(limit))

    def newest_changes(
        self, upto: int, limit: int, among: int, pids: Collection[int] | None = None
    ) -> list[CachedUrl | Tombstone]:
        """Return the newest documents and tombstones, newest first, of some providers (None = of all).

        ``upto`` is the seq of the newest change; no row is read whose seq is lower by ``among`` or more.
        """
        rows: list[CachedUrl | Tombstone] = []
        for kind in (_CACHED, _TOMBSTONES):
            c = kind.table.c
            query = kind.select().where(c.seq > upto - among, c.seq <= upto)
            if pids is not None:
                query = query.where(c.pid.in_(sorted(pids)))
            rows.extend(kind.read(self._c, query.order_by(c.seq.desc()).limit(limit)))
        return sorted(rows, key=lambda row: -row.seq)[:limit]

    def linking_pages(
        self, urls: Collection[str], pid: int | None, after: bytes, limit: int, most: int
    ) -> LinkingPages:
        """Return which of the next documents behind a key link to one of some URLs.

        At most ``limit`` documents are looked at, of one provider, or (None) of all that have links, and
        about ``most`` bytes of links. A document with very many links is passed over.
        """
        keys = self._next_keys(pid, after, limit)
        found: list[bytes] = []
        words: dict[int, bytes] = {NO_WORDS: b""}
        read = 0
        for part in chunks(keys, _LOOKED_AT):
            for key, number, body in self._bodies(part, words):
                does, length = names_any(body, words[number], urls, most)
                found += [key] if does else []
                read += 1
                most -= length
                if most <= 0:
                    return LinkingPages(found, key, read)
        return LinkingPages(found, keys[-1] if len(keys) == limit else None, read)

    def _failing(self, page: ProviderPage) -> list[Provider]:
        """Return a page of those that have failed fetches; only its own rows are read as a whole."""
        counted = _failures(page.since, page.failing).where(t.fetchcounts.c.pid != EVERYBODY).subquery()
        joined = select(t.pidb.c.pid).join(counted, counted.c.pid == t.pidb.c.pid)
        pids = list(self._c.execute(_cut(joined, page, counted.c.failed)).scalars())
        found = {one.pid: one for one in _PROVIDERS.by_keys(self._c, pids)}
        return [found[pid] for pid in pids]

    def _bodies(self, keys: list[bytes], words: dict[int, bytes]) -> list[tuple[bytes, int, bytes]]:
        """Return key, number of the dictionary and body of documents by rising key; adds to ``words``.

        A dictionary is larger than most bodies, and most of them share one: each is read once.
        """
        c, w = t.links.c, t.linkwords.c
        query = select(c.urlkey, c.words, c.body).where(func.length(c.body) <= _BODY_MAX)
        rows = sorted(
            (bytes(key), int(number), bytes(body)) for key, number, body in self._rows(query, c.urlkey, keys)
        )
        further = {number for _, number, _ in rows} - set(words)
        its = self._rows(select(w.wordsid, w.body), w.wordsid, further)
        words |= {number: bytes(body) for number, body in its}
        return [row for row in rows if row[1] in words]

    def _next_keys(self, pid: int | None, after: bytes, limit: int) -> list[bytes]:
        u, of_links = t.lccurl.c, t.links.c.urlkey
        if pid is None:
            query = select(of_links).where(of_links > after).order_by(of_links)
        else:
            query = select(u.urlkey).where(u.pid == pid, u.urlkey > after).order_by(u.urlkey)
        return [bytes(key) for key in self._c.execute(query.limit(limit)).scalars()]


def rows_in(tx: Tx) -> DashboardRows:
    """Return the rows that the dashboard looks at in a transaction."""
    return DashboardRows.over(tx)


def _failures(since: int, results: Collection[str]) -> Any:
    """Return the query for providers with their failed fetches."""
    c = t.fetchcounts.c
    which = and_(c.begun >= since, c.result.in_(sorted(results)))
    return select(c.pid, func.sum(c.count).label("failed")).where(which).group_by(c.pid)


def _cut(query: Any, page: ProviderPage, column: Any) -> Any:
    """Return the query for one page of what a query for providers gives, in the order of a column."""
    ordered = column.desc() if page.falling else column.asc()
    return query.where(*_conditions(page, column)).order_by(ordered, t.pidb.c.pid).limit(page.limit)


def _conditions(page: ProviderPage, column: Any) -> list[Any]:
    p = t.pidb.c
    conditions: list[Any] = []
    if page.pids is not None:
        conditions.append(p.pid.in_(sorted(page.pids)) if page.pids else false())
    if page.state:
        conditions.append(p.state == page.state)
    if page.search:
        conditions.append(_found(page.search))
    if page.after is not None:
        value, pid = page.after
        behind = column < value if page.falling else column > value
        conditions.append(or_(behind, and_(column == value, p.pid > pid)))
    return conditions


def _found(text: str) -> Any:
    """Return the condition that a provider has this number, or this text in its name or contact or a root."""
    p, r = t.pidb.c, t.proots.c
    rooted = select(r.pid).where(r.root.contains(text, autoescape=True))
    texts = [func.lower(column).contains(text.lower(), autoescape=True) for column in (p.name, p.contact)]
    number = [p.pid == int(text)] if text.isascii() and text.isdigit() and len(text) < 19 else []  # noqa: PLR2004 - of a BIGINT
    return or_(*number, *texts, p.pid.in_(rooted))
