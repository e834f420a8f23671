"""Numbers that the database itself gives to rows (autoincrement): read, and raised after a copy.

A number is never given twice, also when the row that had it is gone: so a copy has to take over where
its source stands, not only the rows that are left.
"""

import re

from sqlalchemy import Column, Connection, Function, Table, func, select, text

_MARIADB_NEXT = re.compile(r"\bAUTO_INCREMENT=(\d+)")


def last_number(connection: Connection, table: Table) -> int:
    """Return the last number given to a row of a table; 0 = none, or its rows get none."""
    column = table.autoincrement_column
    if column is None:
        return 0
    highest = connection.execute(select(func.coalesce(func.max(column), 0))).scalar_one()
    return max(int(highest), _noted(connection, column))


def raise_last_number(connection: Connection, table: Table, number: int) -> None:
    """Give only numbers above ``number`` to the next rows of a table."""
    column = table.autoincrement_column
    if column is None or number <= _noted(connection, column):
        return
    if connection.dialect.name == "sqlite":
        _raise_on_sqlite(connection, table, number)
    elif connection.dialect.name == "postgresql":
        connection.execute(select(func.setval(_sequence_of(column), number)))
    else:
        connection.execute(text(f"ALTER TABLE {table.name} AUTO_INCREMENT = {number + 1:d}"))


def _noted(connection: Connection, column: "Column[int]") -> int:
    """Return what the database has noted beside the rows, 0 = nothing yet."""
    notes = {"sqlite": _noted_by_sqlite, "postgresql": _noted_by_postgresql}
    return notes.get(connection.dialect.name, _noted_by_mariadb)(connection, column)


def _noted_by_sqlite(connection: Connection, column: "Column[int]") -> int:
    query = text("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = :name")
    return int(connection.execute(query, {"name": column.table.name}).scalar_one())


def _raise_on_sqlite(connection: Connection, table: Table, number: int) -> None:
    if not table.dialect_options["sqlite"]["autoincrement"]:
        return  # SQLite looks at the rows that are there, and nothing else can tell it more
    values = {"name": table.name, "number": number}
    connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), values)
    connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :number)"), values)


def _noted_by_mariadb(connection: Connection, column: "Column[int]") -> int:
    """Read the table's own definition: the information schema of MySQL is a day behind."""
    shown = connection.execute(text(f"SHOW CREATE TABLE {column.table.name}")).one()[1]
    found = _MARIADB_NEXT.search(shown)
    return int(found[1]) - 1 if found else 0


def _noted_by_postgresql(connection: Connection, column: "Column[int]") -> int:
    name = connection.execute(select(_sequence_of(column))).scalar_one()
    value, used = connection.execute(text(f"SELECT last_value, is_called FROM {name}")).one()  # noqa: S608 - PostgreSQL's own name
    return int(value) if used else int(value) - 1


def _sequence_of(column: "Column[int]") -> "Function[str]":
    return func.pg_get_serial_sequence(column.table.name, column.name)
