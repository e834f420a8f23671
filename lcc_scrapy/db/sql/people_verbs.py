"""Verbs about people who may sign in, their sessions, and the audit log."""

from collections.abc import Collection, Iterable

from sqlalchemy import delete, insert, select

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf, put
from lcc_scrapy.domain.audit import AuditEntry
from lcc_scrapy.domain.users import Session, User

_USERS = RowsOf(t.users, User)
_SESSIONS = RowsOf(t.sessions, Session)
_AUDIT = RowsOf(t.audit, AuditEntry)


class PeopleVerbs(OnConnection):
    """Verbs about people who may sign in, their sessions, and the audit log."""

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
