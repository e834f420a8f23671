"""Verbs for a provider that moves to another LCC: rows as they lie in tables, whatever their columns are."""

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Column, ColumnElement, Table, and_, delete, func, insert, literal, or_, select, tuple_

from lcc_scrapy.db import columns
from lcc_scrapy.db import tables as t
from lcc_scrapy.db.sql.many import MYSQL
from lcc_scrapy.db.sql.rows import OnConnection, chunks
from lcc_scrapy.domain.cache import ORPHANED

Record = dict[str, Any]
"""A row by the names of its columns."""

BY_PROVIDER: Mapping[str, tuple[str, ...]] = {
    "linkwords": ("wordsid",),
    "psets": ("connseq", "psetid"),
    "qdb": ("id",),
    "proots": ("rootid",),
    "urlerrors": ("errorid",),
    "spidered": ("furlkey",),
    "owners": ("due", "furlkey", "owner"),
    "irrelevant": ("urlkey",),
    "misses": ("day",),
    "suspects": ("found", "urlkey"),
    "outcomes": ("state", "at", "urlkey"),
    "fetchcounts": ("begun", "result", "code"),
}
"""The tables with rows of a provider that move, but for numbers of the LCC's own, as they are.

Their keys, with the provider before them, are an index where there may be many rows. Lists of words come
first: what links to others names them by number.
"""

TOLD: Mapping[str, tuple[str, ...]] = {"lccurl": ("urlkey",), "tombstones": ("seq",)}
"""Those whose rows content users are told of: each gets a place in the feed; their keys."""

KEYS = {**BY_PROVIDER, **TOLD}
OF_DOCUMENTS = ("versions", "links", "unwanted", "moved")
"""Those whose rows move with the document that they belong to."""

MADE_ANEW = ("pidb", "qpsdb", "turns", "scans")
LEFT_EMPTY = ("logins", "overtaking", "fetches", "failinghosts")
"""Those in which nothing is needed of a provider that nobody fetches from and that cannot log in."""

OF_THE_LCC = (
    "withdrawals", "fsmdb", "fileblocks", "unses", "workers", "machines", "counters", "lccinfo", "tokens",
    "tallies", "cursors", "urd", "urd_keyword", "removed_urds",
    "aequeue", "aci", "recipients", "alerts", "users", "sessions", "audit",
)  # fmt: skip
"""Those that belong to a machine or an LCC, and stay."""

SET_NUMBERS = (
    ("psets", "psetid"), ("qdb", "psetid"), ("qdb", "seen"), ("lccurl", "seen"), ("lccurl", "held"),
)  # fmt: skip
"""Columns that have numbers of sets, where they have one at all."""


def keys_of(table: Table | str) -> tuple[str, ...]:
    """Return the keys by which a provider's rows in a table are read."""
    if isinstance(table, str):
        return KEYS[table]
    of_an_app: tuple[str, ...] = table.info[columns.KEYS]
    return of_an_app


def _table(one: Table | str) -> Table:
    return t.metadata.tables[one] if isinstance(one, str) else one


class MoveVerbs(OnConnection):
    """Verbs for a provider that moves to another LCC: of the core's tables by name, and of those of apps."""

    def records(self, table: Table | str, pid: int, after: Sequence[Any] | None, limit: int) -> list[Record]:
        """Return rows of a provider in a table that moves, by rising key, behind one if it is given."""
        made = _table(table)
        keys = [made.c[name] for name in keys_of(table)]
        query = select(made).where(made.c.pid == pid).order_by(*keys).limit(limit)
        if after is not None:
            query = query.where(self._behind(keys, after))
        return [dict(row) for row in self._c.execute(query).mappings()]

    def numbers(self, table: str, pid: int) -> list[int]:
        """Return the numbers of all rows of a provider, rising, in one of ``KEYS`` whose keys are such."""
        c = _table(table).c
        key = c[KEYS[table][0]]
        return [int(one) for one in self._c.execute(select(key).where(c.pid == pid).order_by(key)).scalars()]

    def _behind(self, keys: Sequence[Column[Any]], after: Sequence[Any]) -> ColumnElement[bool]:
        """Compare such that each database reads the index from there: as rows, or by alternatives."""
        values = [literal(value, key.type) for key, value in zip(keys, after, strict=True)]
        if len(keys) == 1 or self._c.dialect.name in MYSQL:
            return _one_by_one(keys, values)
        return tuple_(*keys) > tuple_(*values)

    def records_among(self, table: str, column: str, keys: Collection[Any]) -> dict[Any, list[Record]]:
        """Return the rows in which a column is among ``keys``, by its value, in the order of their keys."""
        made = _table(table)
        query = select(made).order_by(made.c[column], *made.primary_key.columns)
        rows = [dict(row._mapping) for row in self._rows(query, made.c[column], keys)]  # noqa: SLF001 - public
        rows.sort(key=itemgetter(column))
        return {key: list(some) for key, some in groupby(rows, itemgetter(column))}

    def put_records(self, table: Table | str, rows: Sequence[Record]) -> None:
        """Add rows."""
        if rows:
            self._c.execute(insert(_table(table)), rows)

    def drop_records(self, table: str, column: str, keys: Collection[Any]) -> None:
        """Remove the rows in which a column is among ``keys``."""
        made = _table(table)
        for part in chunks(keys):
            self._c.execute(delete(made).where(made.c[column].in_(part)))

    def span(self, columns: Sequence[tuple[Table | str, str]], pid: int) -> tuple[int, int]:
        """Return the lowest and the highest number of such columns in a provider's rows; (0, 0) = none."""
        found: list[int] = []
        for table, column in columns:
            c = _table(table).c
            named = c[column].between(1, ORPHANED - 1)
            query = select(func.min(c[column]), func.max(c[column])).where(c.pid == pid, named)
            found += [int(one) for one in self._c.execute(query).one() if one is not None]
        return min(found, default=0), max(found, default=0)

    def count_records(self, table: Table | str, pid: int) -> int:
        """Count the rows of a provider."""
        made = _table(table)
        return int(
            self._c.execute(select(func.count()).select_from(made).where(made.c.pid == pid)).scalar_one()
        )


def _one_by_one(keys: Sequence[Column[Any]], after: Sequence[ColumnElement[Any]]) -> ColumnElement[bool]:
    behind: ColumnElement[bool] = keys[0] > after[0]
    if len(keys) == 1:
        return behind
    return or_(behind, and_(keys[0] == after[0], _one_by_one(keys[1:], after[1:])))
