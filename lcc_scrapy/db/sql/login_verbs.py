"""Verbs about logins whose sets may still come, and about the UNSes at which they are."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import and_, bindparam, or_, select, update

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import Login, OpenLogin, Overtaking, Uns
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf

_LOGINS = RowsOf(t.logins, OpenLogin)
_UNSES = RowsOf(t.unses, Uns)
_OVERTAKING = RowsOf(t.overtaking, Overtaking)
_MARK = (
    update(t.logins)
    .where(t.logins.c.pid == bindparam("of"), t.logins.c.connseq == bindparam("number"))
    .values(stage=bindparam("now"))
)
_APART = "pid, uns, stage, overtaken"
_EARLIER = (
    f"SELECT {_APART}, min(connseq) AS first, min(at) AS at FROM logins"  # noqa: S608
    f" WHERE {{}} AND NOT passed GROUP BY {_APART}"
)

_IS, _BEFORE = "pid = ? AND connseq = ?", "pid = ? AND connseq < ?"
"""Conditions of ``many.where_any``: both are ranges of the primary key."""


class LoginVerbs(OnConnection):
    """Verbs about logins whose sets may still come, and about the UNSes at which they are."""

    def insert_logins(self, logins: Sequence[OpenLogin]) -> None:
        """Note logins whose sets may come."""
        _LOGINS.insert(self._c, logins)

    def logins(self, logins: Collection[Login]) -> dict[Login, OpenLogin]:
        """Return those of some logins whose set may come or waits in a spool."""
        return {(row.pid, row.connseq): row for row in _LOGINS.matching(self._c, _IS, logins)}

    def earlier_logins(self, logins: Mapping[int, int]) -> list[OpenLogin]:
        """Return the earliest such login of each provider (pid: connseq) before the one given.

        One for each UNS, stage, and whether it was overtaken. Those that were passed over do not count.
        """
        found = (
            OpenLogin(row.pid, row.first, row.uns, row.at, stage=row.stage, overtaken=bool(row.overtaken))
            for which, values in many.where_any(self._c, _BEFORE, logins.items())
            for row in self._c.exec_driver_sql(_EARLIER.format(which), values)
        )
        return sorted(found, key=lambda row: (row.pid, row.connseq))

    def mark_logins(self, stages: Mapping[Login, str]) -> None:
        """Note the stages of logins."""
        rows = [{"of": pid, "number": connseq, "now": stage} for (pid, connseq), stage in stages.items()]
        if rows:
            self._c.execute(_MARK, rows)

    def overtake(self, pid: int, connseq: int) -> None:
        """Note that a set is absorbed before those of all earlier logins of its provider."""
        c = t.logins.c
        earlier = and_(c.pid == pid, c.connseq < connseq, c.overtaken.is_(False))
        self._c.execute(update(t.logins).where(earlier).values(overtaken=True))

    def put_overtaking(self, rows: Sequence[Overtaking]) -> None:
        """Keep the keys that such a set names, or replace those with the same key."""
        _OVERTAKING.replace(self._c, rows)

    def named_later(self, keys: Sequence[bytes], connseq: int) -> set[bytes]:
        """Return those of the keys that sets of later logins named that were absorbed already."""
        return {row.urlkey for row in _OVERTAKING.by_keys(self._c, keys) if row.connseq > connseq}

    def overtaking(self, pid: int, connseq: int, after: bytes, limit: int) -> list[bytes]:
        """Return such keys of a provider, by rising key."""
        c = t.overtaking.c
        query = select(c.urlkey).where(c.pid == pid, c.connseq > connseq, c.urlkey > after)
        return list(self._c.execute(query.order_by(c.urlkey).limit(limit)).scalars())

    def forget_overtaking(self, limit: int) -> int:
        """Forget keys of providers of whom no login is overtaken; return how many (all of them if fewer)."""
        c = t.overtaking.c
        overtaken = select(t.logins.c.pid).where(t.logins.c.overtaken.is_(True))
        over = select(c.urlkey).where(c.pid.not_in(overtaken)).limit(limit)
        keys = list(self._c.execute(over).scalars())
        _OVERTAKING.delete(self._c, keys)
        return len(keys)

    def logins_of(self, uns: str, after: tuple[int, int], limit: int) -> list[OpenLogin]:
        """Return the logins at a UNS by rising (pid, connseq)."""
        c, (pid, connseq) = t.logins.c, after
        behind = or_(c.pid > pid, and_(c.pid == pid, c.connseq > connseq))
        query = _LOGINS.select().where(c.uns == uns, behind).order_by(c.pid, c.connseq)
        return _LOGINS.read(self._c, query.limit(limit))

    def pass_over(self, pid: int, before: int, uns: str) -> int:
        """Let nobody wait any more for a provider's logins before ``before`` at a UNS; return how many."""
        c = t.logins.c
        waited_for = and_(c.pid == pid, c.connseq < before, c.uns == uns, c.passed.is_(False))
        return self._c.execute(update(t.logins).where(waited_for).values(passed=True)).rowcount

    def drop_logins(self, logins: Collection[Login]) -> None:
        """Forget logins: they brought no set, or their sets were absorbed."""
        for which, values in many.where_any(self._c, _IS, logins):
            self._c.exec_driver_sql(f"DELETE FROM logins WHERE {which}", values)  # noqa: S608

    def put_uns(self, uns: Uns) -> None:
        """Add or replace a UNS."""
        _UNSES.replace(self._c, [uns])

    def unses(self) -> list[Uns]:
        """Return all UNSes that ever gave a sign of life, by id."""
        return _UNSES.read(self._c, _UNSES.select().order_by(t.unses.c.uns))
