"""Verbs about logins whose sets may still come, and about the UNSes at which they are."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import and_, delete, func, or_, select, update

from lcc_scrapy.storage import tables as t
from lcc_scrapy.storage.records import OpenLogin, Uns
from lcc_scrapy.storage.sql.rows import OnConnection, RowsOf, chunks

_LOGINS = RowsOf(t.logins, OpenLogin)
_UNSES = RowsOf(t.unses, Uns)

PAIRS = 100
"""Logins named in one statement: each is a range of the primary key."""


class LoginVerbs(OnConnection):
    """Verbs about logins whose sets may still come, and about the UNSes at which they are."""

    def insert_login(self, login: OpenLogin) -> None:
        _LOGINS.insert(self._c, [login])

    def login(self, pid: int, connseq: int) -> OpenLogin | None:
        query = _LOGINS.select().where(_is(pid, connseq))
        return next(iter(_LOGINS.read(self._c, query)), None)

    def earlier_logins(self, logins: Mapping[int, int]) -> dict[int, OpenLogin]:
        found = (self._earlier(part) for part in chunks(logins.items(), PAIRS))
        return {row.pid: row for rows in found for row in rows}

    def _earlier(self, logins: Sequence[tuple[int, int]]) -> list[OpenLogin]:
        c = t.logins.c
        before = or_(*(and_(c.pid == pid, c.connseq < connseq) for pid, connseq in logins))
        lowest = select(c.pid, func.min(c.connseq).label("connseq")).where(before, c.passed.is_(False))
        first = lowest.group_by(c.pid).subquery()
        query = _LOGINS.select().join(first, and_(c.pid == first.c.pid, c.connseq == first.c.connseq))
        return _LOGINS.read(self._c, query)

    def logins_of(self, uns: str, after: tuple[int, int], limit: int) -> list[OpenLogin]:
        c, (pid, connseq) = t.logins.c, after
        behind = or_(c.pid > pid, and_(c.pid == pid, c.connseq > connseq))
        query = _LOGINS.select().where(c.uns == uns, behind).order_by(c.pid, c.connseq)
        return _LOGINS.read(self._c, query.limit(limit))

    def pass_over(self, pid: int, before: int, uns: str) -> int:
        c = t.logins.c
        waited_for = and_(c.pid == pid, c.connseq < before, c.uns == uns, c.passed.is_(False))
        return self._c.execute(update(t.logins).where(waited_for).values(passed=True)).rowcount

    def drop_login(self, pid: int, connseq: int) -> None:
        self._c.execute(delete(t.logins).where(_is(pid, connseq)))

    def put_uns(self, uns: Uns) -> None:
        _UNSES.replace(self._c, [uns])

    def unses(self) -> list[Uns]:
        return _UNSES.read(self._c, _UNSES.select().order_by(t.unses.c.uns))


def _is(pid: int, connseq: int) -> Any:
    return and_(t.logins.c.pid == pid, t.logins.c.connseq == connseq)
