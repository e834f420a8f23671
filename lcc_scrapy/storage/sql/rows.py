"""Values to rows and back: the columns of a table stand in the order of the fields of its value."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Generic, TypeVar

from sqlalchemy import Column, Connection, Table, bindparam, select

IN_LIST = 1000
"""Keys per statement: far below every database's limit on parameters."""

Value = TypeVar("Value")


def chunks(items: Iterable[Any], size: int = IN_LIST) -> Iterator[list[Any]]:
    """Cut items into lists of at most ``size``."""
    items = items if isinstance(items, list) else list(items)
    for start in range(0, len(items), size):
        yield items[start : start + size]


class RowsOf(Generic[Value]):
    """One table and the frozen dataclass its rows are read into; the first column is the key."""

    def __init__(self, table: Table, value: type[Value]) -> None:
        self.table = table
        self.value = value
        self.names = tuple(field.name for field in fields(value))  # type: ignore[arg-type]
        self.columns: list[Column[Any]] = [table.c[name] for name in self.names]
        self.key: Column[Any] = self.columns[0]
        self._in_order = attrgetter(*self.names)
        self._by_keys = select(*self.columns).where(self.key.in_(bindparam("keys", expanding=True)))
        self._insert = table.insert()
        self._delete = table.delete().where(self.key.in_(bindparam("keys", expanding=True)))
        self._update = table.update().where(self.key == bindparam("b_key"))

    def select(self) -> Any:
        """Return a select of whole rows."""
        return select(*self.columns)

    def read(self, connection: Connection, statement: Any, **parameters: Any) -> list[Value]:
        """Run a select of whole rows."""
        return [self.value(*row) for row in connection.execute(statement, parameters)]

    def by_keys(self, connection: Connection, keys: Iterable[Any]) -> list[Value]:
        """Return the rows of these keys, in no order."""
        return [row for part in chunks(keys) for row in self.read(connection, self._by_keys, keys=part)]

    def as_dict(self, value: Value) -> dict[str, Any]:
        """Return the columns of a value."""
        return {name: getattr(value, name) for name in self.names}

    def insert(self, connection: Connection, values: Sequence[Value]) -> None:
        """Add rows, many in one statement."""
        if not values:
            return
        if connection.dialect.positional:
            statement = str(self._insert.compile(dialect=connection.dialect))
            connection.exec_driver_sql(statement, list(map(self._in_order, values)))
        else:
            connection.execute(self._insert, [self.as_dict(value) for value in values])

    def update(self, connection: Connection, values: Sequence[Value]) -> None:
        """Replace rows by key."""
        if values:
            first = self.names[0]
            rows = [{"b_key": row.pop(first), **row} for row in map(self.as_dict, values)]
            connection.execute(self._update, rows)

    def delete(self, connection: Connection, keys: Sequence[Any]) -> None:
        """Remove rows by key."""
        for part in chunks(keys):
            connection.execute(self._delete, {"keys": part})

    def replace(self, connection: Connection, values: Sequence[Value]) -> None:
        """Add or replace rows by key, on every database alike."""
        self.delete(connection, [getattr(value, self.names[0]) for value in values])
        self.insert(connection, values)


class OnConnection:
    """Something that works inside the transaction of a connection."""

    def __init__(self, connection: Connection) -> None:
        self._c = connection
