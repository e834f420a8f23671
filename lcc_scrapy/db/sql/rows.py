"""Values to rows and back: the columns of a table stand in the order of the fields of its value."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from operator import attrgetter
from typing import Any, Generic, Self, TypeVar

from sqlalchemy import Boolean, Column, ColumnElement, Connection, Table, bindparam, select

from lcc_scrapy.db.sql import many
from lcc_scrapy.domain.entries import furlkey, namehash
from lcc_scrapy.domain.values import quickly_made

_DOCID = re.compile("[0-9a-f]{32}")
IN_LIST = 1000
"""Keys per statement: far below every database's limit on parameters."""

Value = TypeVar("Value")

Derived = Mapping[str, Callable[[Any], object]]

NAMEHASHES: Derived = {
    "curlhash": lambda row: namehash(row.curl),
    "furlhash": lambda row: None if row.furl == row.curl else namehash(row.furl),
}
"""The columns by which rows are found that were written under a name (``domain.entries.namehash``)."""

_NAMES = attrgetter("curl", "furl")

WITH_FURLKEY: Derived = {**NAMEHASHES, "furlkey": lambda row: furlkey(row.pid, row.furl)}
"""The derived columns of ``qdb`` and ``lccurl``."""


def chunks(items: Iterable[Any], size: int = IN_LIST) -> Iterator[list[Any]]:
    """Cut items into lists of at most ``size``."""
    items = items if isinstance(items, list) else list(items)
    for start in range(0, len(items), size):
        yield items[start : start + size]


class RowsOf(Generic[Value]):
    """One table and the frozen dataclass its rows are read into; the first column is the key.

    ``derived`` columns are written from the other ones, by name, and not read.
    """

    def __init__(
        self,
        table: Table,
        value: type[Value],
        derived: Mapping[str, Callable[[Value], object]] | None = None,
    ) -> None:
        self.table = table
        self.value = value
        self.names = tuple(field.name for field in fields(value))  # type: ignore[arg-type]
        self.columns: list[Column[Any]] = [table.c[name] for name in self.names]
        self.key: Column[Any] = self.columns[0]
        self._derived = dict(derived or {})
        self.written = (*self.names, *self._derived)
        self._of_value = attrgetter(*self.names)
        self._key_of = attrgetter(self.names[0])
        self._booleans = [n for n, column in enumerate(self.columns) if isinstance(column.type, Boolean)]
        self.changes = dict.fromkeys(self.written[1:], many.REPLACE)
        self._update = table.update().where(self.key == bindparam("b_key"))

    @cached_property
    def _make(self) -> Callable[..., Value]:
        """Return what makes values; not before one is read: a command reads few tables."""
        return quickly_made(self.value)

    @cached_property
    def _index(self) -> str:
        """Return the name of the index that has the key alone, or first."""
        if self.key.primary_key:
            return many.PRIMARY
        return next(str(one.name) for one in self.table.indexes if next(iter(one.columns)) is self.key)

    def select(self) -> Any:
        """Return a select of whole rows."""
        return select(*self.columns)

    def make(self, row: Sequence[Any]) -> Value:
        """Return the value of a row that has the columns ``names`` as the driver gives them."""
        return self._make(*(self._with_booleans(row) if self._booleans else row))

    def read(self, connection: Connection, statement: Any, **parameters: Any) -> list[Value]:
        """Run a select of whole rows."""
        return [self._make(*row) for row in connection.execute(statement, parameters)]

    def by_keys(
        self, connection: Connection, keys: Iterable[Any], *, lock: bool = False, skip: bool = False
    ) -> list[Value]:
        """Return the rows of these keys, in no order; ``lock`` them, by rising key, and have them in that.

        ``skip`` leaves out those that somebody else has locked.
        """
        parts = chunks(sorted(keys) if lock else keys)
        key = self.names[0]
        return [row for part in parts for row in self._among(connection, key, part, lock=lock, skip=skip)]

    def matching(
        self, connection: Connection, condition: str, tuples: Collection[many.Row], also: str = ""
    ) -> list[Value]:
        """Return the rows that meet a condition for one of some tuples (``many.where_any``), in no order.

        ``also`` is what they all have to meet, if anything is given.
        """
        what = f"{many.select_from(connection, self.table.name, self.names)} WHERE {also and f'{also} AND '}"
        return [
            self.make(row)
            for which, values in many.where_any(connection, condition, tuples)
            for row in connection.exec_driver_sql(f"{what}{which}", values)
        ]

    def _among(
        self,
        connection: Connection,
        column: str,
        keys: list[Any],
        *,
        lock: bool = False,
        skip: bool = False,
    ) -> list[Value]:
        rows = many.select(connection, self.table.name, self.names, column, keys, lock=lock, skip=skip)
        make = self._make
        return [make(*row) for row in (map(self._with_booleans, rows) if self._booleans else rows)]

    def _with_booleans(self, row: Sequence[Any]) -> list[Any]:
        """Return a row as it should be where the database has no type for what is true or false."""
        values = list(row)
        for place in self._booleans:
            values[place] = bool(values[place])
        return values

    def named(self, connection: Connection, url: str) -> list[Value]:
        """Return the rows of a URL given as curl, fetch URL or docid; the table has ``NAMEHASHES``.

        Each index has a question of its own: databases use one of them at a time.
        """
        hashed = namehash(url)
        which: list[tuple[str, object]] = [("curlhash", hashed), ("furlhash", hashed)]
        if _DOCID.fullmatch(url):
            which.append(("urlkey", bytes.fromhex(url)))
        rows = (row for column, key in which for row in self._among(connection, column, [key]))
        found = {self._key_of(row): row for row in rows}
        # another name may have the same hash
        return [row for key, row in found.items() if url in {*_NAMES(row), key.hex()}]

    def as_dict(self, value: Value) -> dict[str, Any]:
        """Return the columns of a value."""
        row = {name: getattr(value, name) for name in self.names}
        return row | {name: derive(value) for name, derive in self._derived.items()}

    def in_order(self, value: Value) -> many.Row:
        """Return the columns of a value as they are written, the derived ones last."""
        return (*self._of_value(value), *(derive(value) for derive in self._derived.values()))

    def insert(self, connection: Connection, values: Sequence[Value]) -> None:
        """Add rows, many in one statement."""
        many.insert(connection, self.table.name, self.written, list(map(self.in_order, values)))

    def update(self, connection: Connection, values: Sequence[Value]) -> None:
        """Replace rows by key."""
        if values:
            first = self.names[0]
            rows = [{"b_key": row.pop(first), **row} for row in map(self.as_dict, values)]
            connection.execute(self._update, rows)

    def delete(self, connection: Connection, keys: Sequence[Any]) -> None:
        """Remove rows by key."""
        for part in chunks(keys):
            many.delete(connection, self.table.name, self.names[0], part, index=self._index)

    def replace(self, connection: Connection, values: Sequence[Value]) -> None:
        """Add rows, or replace those with the same key, which alone is the primary key; many at once."""
        rows = list(map(self.in_order, values))
        keys = (self.names[0],)
        many.insert(connection, self.table.name, self.written, rows, keys=keys, changes=self.changes)


def put(connection: Connection, table: Table, row: Mapping[str, Any]) -> None:
    """Add a row, or change the one with its primary key.

    One statement: of several who do so at the same time, nobody fails.
    """
    keys = tuple(column.name for column in table.primary_key)
    changes = {name: many.REPLACE for name in row if name not in keys}
    many.insert(connection, table.name, tuple(row), [tuple(row.values())], keys=keys, changes=changes)


class OnConnection:
    """Something that works inside the transaction of a connection."""

    def __init__(self, connection: Connection) -> None:
        self._c = connection

    @classmethod
    def over(cls, other: "OnConnection") -> Self:
        """Return what works inside the same transaction: an app's rows over the core's ``Tx``."""
        return cls(other._c)  # noqa: SLF001 - one of ours

    def _rows(self, query: Any, column: ColumnElement[Any], keys: Iterable[Any]) -> Iterator[Any]:
        """Yield the rows of a select in which a column is among ``keys``."""
        for part in chunks(keys):
            yield from self._c.execute(query.where(column.in_(part)))

    def _change(self, statement: Any, column: ColumnElement[Any], keys: Iterable[Any]) -> int:
        """Update or delete rows in which a column is among ``keys``; return how many."""
        return sum(self._c.execute(statement.where(column.in_(part))).rowcount for part in chunks(keys))
