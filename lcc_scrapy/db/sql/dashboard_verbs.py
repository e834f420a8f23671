"""Verbs about users of the dashboard, their sessions, the audit log, and lists of providers."""

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import and_, delete, false, func, insert, or_, select

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import EVERYBODY, FAILURES, ProviderPage, ProviderSet, StoredTurn
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf, put
from lcc_scrapy.domain.audit import AuditEntry
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.users import Session, User

_USERS = RowsOf(t.users, User)
_SESSIONS = RowsOf(t.sessions, Session)
_AUDIT = RowsOf(t.audit, AuditEntry)
_PROVIDERS = RowsOf(t.pidb, Provider)
_TURNS = RowsOf(t.turns, StoredTurn)
_PSETS = RowsOf(t.psets, ProviderSet)


class DashboardVerbs(OnConnection):
    """Verbs about users of the dashboard, their sessions, the audit log, and lists of providers."""

    def user(self, name: str) -> User | None:
        """Return a user."""
        return next(iter(_USERS.by_keys(self._c, [name])), None)

    def users(self) -> list[User]:
        """Return all users by name."""
        return _USERS.read(self._c, _USERS.select().order_by(t.users.c.name))

    def put_user(self, user: User) -> None:
        """Add or replace a user."""
        put(self._c, t.users, _USERS.as_dict(user))

    def delete_user(self, name: str) -> None:
        """Remove a user with its sessions."""
        self.end_sessions(name)
        _USERS.delete(self._c, [name])

    def insert_session(self, session: Session) -> None:
        """Begin a session."""
        _SESSIONS.insert(self._c, [session])

    def session(self, digest: str) -> Session | None:
        """Return a session."""
        return next(iter(_SESSIONS.by_keys(self._c, [digest])), None)

    def sessions(self, digests: Iterable[str]) -> dict[str, Session]:
        """Return those of several sessions that there are."""
        return {one.digest: one for one in _SESSIONS.by_keys(self._c, set(digests))}

    def sessions_of(self, name: str) -> list[Session]:
        """Return the sessions of a name, newest first."""
        s = t.sessions.c
        query = _SESSIONS.select().where(s.name == name).order_by(s.created.desc(), s.digest)
        return _SESSIONS.read(self._c, query)

    def end_session(self, digest: str) -> None:
        """End a session."""
        _SESSIONS.delete(self._c, [digest])

    def end_sessions(self, name: str) -> None:
        """End all sessions of a user."""
        self._c.execute(delete(t.sessions).where(t.sessions.c.name == name))

    def forget_sessions(self, before: int) -> None:
        """Remove the sessions that ended before then."""
        self._c.execute(delete(t.sessions).where(t.sessions.c.expires < before))

    def add_audit(self, entry: AuditEntry) -> None:
        """Add an entry to the audit log; the database numbers it."""
        row = _AUDIT.as_dict(entry)
        del row["entryid"]
        self._c.execute(insert(t.audit).values(**row))

    def audits(
        self, before: int, limit: int, pids: Collection[int] | None = None, who: str = ""
    ) -> list[AuditEntry]:
        """Return entries below a number, newest first: of some providers (None = of all), of one user."""
        a = t.audit.c
        query = _AUDIT.select().where(a.entryid < before)
        if pids is not None:
            query = query.where(a.pid.in_(sorted(pids)))
        if who:
            query = query.where(a.who == who)
        return _AUDIT.read(self._c, query.order_by(a.entryid.desc()).limit(limit))

    def forget_audits(self, before: int, limit: int = 1000) -> int:
        """Remove some of the entries older than ``before``; return how many."""
        a = t.audit.c
        old = list(self._c.execute(select(a.entryid).where(a.at < before).limit(limit)).scalars())
        _AUDIT.delete(self._c, old)
        return len(old)

    def provider_page(self, page: ProviderPage) -> list[Provider]:
        """Return a page of providers, in its order."""
        if page.order == FAILURES:
            return self._failing(page)
        return _PROVIDERS.read(self._c, _cut(_PROVIDERS.select(), page, t.pidb.c[page.order]))

    def _failing(self, page: ProviderPage) -> list[Provider]:
        """Return a page of those that have failed fetches; only its own rows are read as a whole."""
        counted = _failures(page.since, page.failing).where(t.fetchcounts.c.pid != EVERYBODY).subquery()
        joined = select(t.pidb.c.pid).join(counted, counted.c.pid == t.pidb.c.pid)
        pids = list(self._c.execute(_cut(joined, page, counted.c.failed)).scalars())
        found = {one.pid: one for one in _PROVIDERS.by_keys(self._c, pids)}
        return [found[pid] for pid in pids]

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
