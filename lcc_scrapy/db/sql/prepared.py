"""Rows that are brought to the database before what all workers share is locked, but for some numbers.

Most of the work of adding rows is to put values into the driver's words. MariaDB is sent text that was made
before. PostgreSQL has the rows in a temporary table by then. SQLite has one writer: nobody else waits there.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from lcc_scrapy.db.sql import many

STATEMENT = 1_000_000
"""Characters of a statement from which on no further row joins it: MariaDB takes 16 MB at once."""

Numbers = tuple[int, ...]


class Prepared:
    """Rows of ``names``, of which the first is the key and the ``late`` last ones are not known yet.

    ``label`` tells apart what is prepared for one table in a transaction. ``changes`` are those of
    ``many.insert`` for rows that are there; without them such a row is an error.
    """

    def __init__(
        self,
        connection: Connection,
        table: str,
        names: tuple[str, ...],
        late: int,
        rows: Sequence[many.Row],
        *,
        label: str,
        changes: dict[str, str] | None = None,
    ) -> None:
        self._c, self._table, self._names, self._late = connection, table, names, late
        self._rows, self._changes = rows, changes
        self._kind = connection.dialect.name
        self._copied = f"prepared_{table}_{label}"
        self._texts: list[str] = []
        if not rows:
            return
        if self._kind in many.MYSQL:
            self._texts = list(self._said())
        elif self._kind == "postgresql":
            self._copy()

    def write(self, numbers: Sequence[Numbers]) -> None:
        """Write the rows, with the numbers that each of them was still lacking."""
        if not self._rows:
            return
        if self._kind in many.MYSQL:
            self._write_texts(numbers)
        elif self._kind == "postgresql":
            self._write_copied(numbers)
        else:
            rows = [(*row, *late) for row, late in zip(self._rows, numbers, strict=True)]
            keys = self._names[:1]
            many.insert(self._c, self._table, self._names, rows, keys=keys, changes=self._changes)

    def _tail(self) -> str:
        return many.otherwise(self._kind, self._table, self._names[:1], self._changes)

    # --- MariaDB ---------------------------------------------------------------------------------

    def _said(self) -> Iterator[str]:
        """Yield each row as text, without its end."""
        cursor = self._c.connection.cursor()
        begin = f"({'%s, ' * len(self._rows[0])}"
        for row in self._rows:
            yield cursor.mogrify(begin, row)
        cursor.close()

    def _write_texts(self, numbers: Sequence[Numbers]) -> None:
        part: list[str] = []
        size = 0
        for text, late in zip(self._texts, numbers, strict=True):
            part.append(f"{text}{', '.join(map(str, late))})")
            size += len(text)
            if size > STATEMENT:
                self._insert_texts(part)
                part, size = [], 0
        if part:
            self._insert_texts(part)

    def _insert_texts(self, texts: Sequence[str]) -> None:
        head = many.insert_into(self._kind, self._table, self._names)
        statement = f"{head} VALUES {', '.join(texts)}{self._tail()}"
        self._c.exec_driver_sql(statement, execution_options={"no_parameters": True})

    # --- PostgreSQL ------------------------------------------------------------------------------

    def _copy(self) -> None:
        columns = self._columns(self._names[: -self._late])
        same = f"SELECT {columns} FROM {self._table} LIMIT 0"  # noqa: S608 - names of ours
        copied = f"CREATE TEMPORARY TABLE IF NOT EXISTS {self._copied} ON COMMIT DELETE ROWS AS {same}"
        self._c.exec_driver_sql(copied)
        cursor: Any = self._c.connection.cursor()
        with _wrapped(self._c), cursor, cursor.copy(f"COPY {self._copied} ({columns}) FROM STDIN") as copying:
            for row in self._rows:
                copying.write_row(row)

    def _write_copied(self, numbers: Sequence[Numbers]) -> None:
        key, late = self._columns(self._names[:1]), self._columns(self._names[-self._late :])
        arrays = ", ".join(["%s::bytea[]", *["%s::bigint[]"] * self._late])
        statement = (
            f"WITH taken AS (DELETE FROM {self._copied} RETURNING *) "  # noqa: S608 - names of ours
            f"{many.insert_into(self._kind, self._table, self._names)} SELECT {self._columns(self._names)} "
            f"FROM taken JOIN unnest({arrays}) AS late ({key}, {late}) USING ({key}){self._tail()}"
        )
        values = ([row[0] for row in self._rows], *map(list, zip(*numbers, strict=True)))
        self._c.exec_driver_sql(statement, values)

    def _columns(self, names: Sequence[str]) -> str:
        return ", ".join(f'"{name}"' for name in names)


@contextmanager
def _wrapped(connection: Connection) -> Iterator[None]:
    """Raise errors of the driver as those of SQLAlchemy, as where it executes a statement."""
    driver: Any = connection.dialect.loaded_dbapi
    try:
        yield
    except driver.Error as error:
        raise DBAPIError.instance(None, None, error, driver.Error, dialect=connection.dialect) from error
