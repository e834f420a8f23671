"""Verbs about content users, their tokens and named cursors, and about what the metrics tell."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import and_, delete, func, select, update

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import Fetched, Ledger
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf, put
from lcc_scrapy.domain.named_cursors import NamedCursor
from lcc_scrapy.domain.tokens import Token

_TOKENS = RowsOf(t.tokens, Token)
_CURSORS = RowsOf(t.cursors, NamedCursor)


class UserVerbs(OnConnection):
    """Verbs about content users, their tokens and named cursors, and about what the metrics tell."""

    def tally(self, counts: Mapping[str, int]) -> None:
        """Count things that happened; nothing but the metrics rests on that."""
        rows = sorted(counts.items())  # in one order, so that no two wait for each other
        names, changes = ("name", "value"), {"value": many.ADD}
        many.insert(self._c, t.tallies.name, names, rows, keys=names[:1], changes=changes)

    def tallies(self) -> dict[str, int]:
        """Return how often each has happened."""
        rows = self._c.execute(select(t.tallies.c.name, t.tallies.c.value))
        return {name: int(value) for name, value in rows}

    def count_fetches(self, counts: Mapping[Fetched, int], begun: int) -> None:
        """Add to what is counted of fetches in the span of time that began then (epoch seconds)."""
        rows = sorted((pid, begun, result, code, count) for (pid, result, code), count in counts.items())
        names = ("pid", "begun", "result", "code", "count")
        many.insert(self._c, t.fetchcounts.name, names, rows, keys=names[:4], changes={"count": many.ADD})

    def fetch_counts(self, since: int, pid: int) -> dict[tuple[str, int], int]:
        """Return how often each (result, code) of a provider was counted in spans from then on."""
        c = t.fetchcounts.c
        query = select(c.result, c.code, func.sum(c.count)).where(c.pid == pid, c.begun >= since)
        rows = self._c.execute(query.group_by(c.result, c.code))
        return {(result, code): int(count) for result, code, count in rows}

    def fetch_spans(self, since: int, pid: int) -> dict[tuple[int, str], int]:
        """Return how often each (beginning of a span, result) of a provider was counted from then on."""
        c = t.fetchcounts.c
        query = select(c.begun, c.result, func.sum(c.count)).where(c.pid == pid, c.begun >= since)
        return {
            (begun, result): int(count)
            for begun, result, count in self._c.execute(query.group_by(c.begun, c.result))
        }

    def forget_fetch_counts(self, before: int, limit: int = 1000) -> int:
        """Remove some of what was counted in spans that began before then; return how many rows."""
        c = t.fetchcounts.c
        begun = self._c.execute(select(func.min(c.begun)).where(c.begun < before)).scalar()
        if begun is None:
            return 0
        pids = list(self._c.execute(select(c.pid).where(c.begun == begun).limit(limit)).scalars())
        return int(self._c.execute(delete(t.fetchcounts).where(c.begun == begun, c.pid.in_(pids))).rowcount)

    def ledger(self) -> dict[str, Ledger]:
        """Return what the providers of each state have together."""
        p = t.pidb.c
        sums = [func.coalesce(func.sum(column), 0) for column in (p.fileused, p.spaceused, p.heldremovals)]
        rows = self._c.execute(select(p.state, func.count(), *sums).group_by(p.state))
        return {state: Ledger(*map(int, numbers)) for state, *numbers in rows}

    def insert_token(self, token: Token) -> None:
        """Let a token be known."""
        _TOKENS.insert(self._c, [token])

    def token(self, digest: str) -> Token | None:
        """Return what is known of a token."""
        return next(iter(_TOKENS.by_keys(self._c, [digest])), None)

    def tokens(self) -> list[Token]:
        """Return all tokens, oldest first."""
        c = t.tokens.c
        return _TOKENS.read(self._c, _TOKENS.select().order_by(c.created, c.digest))

    def note_token_use(self, digest: str, now: int) -> None:
        """Note when a token was used last; it stays as it is when a later use was noted."""
        c = t.tokens.c
        self._c.execute(update(t.tokens).where(c.digest == digest, c.used < now).values(used=now))

    def delete_token(self, digest: str) -> None:
        """Forget a token."""
        _TOKENS.delete(self._c, [digest])

    def named_cursors(self, owner: str | None = None, limit: int = 1000) -> list[NamedCursor]:
        """Return the cursors of an owner, or of all, by owner and name."""
        c = t.cursors.c
        query = _CURSORS.select() if owner is None else _CURSORS.select().where(c.owner == owner)
        return _CURSORS.read(self._c, query.order_by(c.owner, c.name).limit(limit))

    def put_named_cursor(self, cursor: NamedCursor) -> None:
        """Add or replace a cursor."""
        put(self._c, t.cursors, _CURSORS.as_dict(cursor))

    def delete_named_cursor(self, owner: str, name: str) -> bool:
        """Forget a cursor; tells whether there was one."""
        return bool(self._c.execute(delete(t.cursors).where(_is(owner, name))).rowcount)


def _is(owner: str, name: str) -> Any:
    return and_(t.cursors.c.owner == owner, t.cursors.c.name == name)
