"""A whole database as it was at one moment, read page by page."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Select, Table, and_, func, or_, select

from lcc_scrapy.db.closed import CLOSED
from lcc_scrapy.db.sql.sequences import last_number
from lcc_scrapy.db.sql.sessions import permit_silence
from lcc_scrapy.db.sql.store import READING, SqlStore, plain_errors
from lcc_scrapy.db.tables import lccinfo

PAGE = 1000
"""Rows in memory at a time."""

Row = dict[str, Any]


class Snapshot:
    """All rows of ``tables``, seen through one transaction. Why a database is closed is no part of it."""

    def __init__(self, connection: Connection, tables: Sequence[Table]) -> None:
        self._c = connection
        self.tables = tables

    def total(self) -> int:
        """Count the rows of all tables."""
        return sum(map(self.count, self.tables))

    def count(self, table: Table) -> int:
        """Count the rows of a table."""
        return int(self._c.execute(_select(table, func.count())).scalar_one())

    def pages(self, table: Table) -> Iterator[list[Row]]:
        """Yield the rows of a table by rising primary key, as columns by name."""
        page = first = _select(table, *table.columns).order_by(*table.primary_key).limit(PAGE)
        while rows := [row._asdict() for row in self._c.execute(page)]:
            yield rows
            page = first.where(_behind(table, rows[-1]))

    def last_number(self, table: Table) -> int:
        """Return the last number that the database gave to a row of a table, 0 = none."""
        return last_number(self._c, table)


@contextmanager
def snapshot(store: SqlStore, tables: Sequence[Table]) -> Iterator[Snapshot]:
    """See a database as it is now, for as long as it takes.

    On SQLite with a rollback journal, writers wait meanwhile.
    """
    with plain_errors("the database cannot be read"), store.engine.connect() as connection:
        connection.execution_options(**{READING: True})
        if connection.dialect.name != "sqlite":
            connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            permit_silence(connection)
            yield Snapshot(connection, tables)


def _select(table: Table, *what: Any) -> "Select[Any]":
    rows = select(*what).select_from(table)
    return rows.where(table.c.name != CLOSED) if table is lccinfo else rows


def _behind(table: Table, row: Row) -> Any:
    """Return what selects the rows after one; row values compared as such keep MariaDB from its index."""
    key = list(table.primary_key)
    return or_(
        *(
            and_(*(column == row[column.name] for column in key[:place]), key[place] > row[key[place].name])
            for place in range(len(key))
        )
    )
