"""Many rows to a statement, and many keys to a question, in the driver's own way.

Statements come in few sizes, so that a connection prepares each once and uses it again.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import Connection, Table

ROWS = (256, 16, 1)
"""Rows of a statement: as many as possible, then what is left over."""

SQLITE_ROWS = (64, 8, 1)
"""The same where a statement need not travel: longer ones take longer for each row."""

IN_SQLITE = "INSERT OR FAIL"
"""A row that is there already fails as ever. But SQLite need not be able to take back the rows before it in
the same statement, for which it would copy each page it touches: the transaction takes them back."""

KEYS = (1, 8, 64, 1000)
"""Keys of a question; where there are fewer, the last one is asked for again."""


def append(
    connection: Connection,
    table: Table,
    names: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
    constants: Mapping[str, str | int],
) -> None:
    """Add rows with values for the columns ``names``; those of ``constants`` are the same in all of them."""
    columns = ", ".join([*names, *constants])
    literals = [str(one) if isinstance(one, int) else f"'{one}'" for one in constants.values()]
    row = f"({', '.join([_mark(connection)] * len(names) + literals)})"
    verb, sizes = (IN_SQLITE, SQLITE_ROWS) if connection.dialect.name == "sqlite" else ("INSERT", ROWS)
    for size, parts in _in_sizes(rows, sizes):
        places = ", ".join([row] * size)
        statement = f"{verb} INTO {table.name} ({columns}) VALUES {places}"
        connection.exec_driver_sql(statement, [tuple(chain.from_iterable(part)) for part in parts])


def among(connection: Connection, tables: Sequence[Table], column: str, keys: Sequence[bytes]) -> set[bytes]:
    """Return those of the keys that are in a column of one of the tables at least; it needs an index."""
    found: set[bytes] = set()
    for start in range(0, len(keys), KEYS[-1]):
        part = keys[start : start + KEYS[-1]]
        size = next(size for size in KEYS if len(part) <= size)
        asked = (*part, *[part[-1]] * (size - len(part)))
        for question in _questions(connection, [table.name for table in tables], column, size):
            found.update(bytes(row[0]) for row in connection.exec_driver_sql(question, asked))
    return found


def _questions(connection: Connection, tables: Sequence[str], column: str, size: int) -> list[str]:
    """Return one question for SQLite, which would make an index of each list that is asked for by ``IN``."""
    mark = _mark(connection)
    if connection.dialect.name != "sqlite":
        places = ", ".join([mark] * size)
        return [f"SELECT {column} FROM {name} WHERE {column} IN ({places})" for name in tables]  # noqa: S608
    places = ", ".join([f"({mark})"] * size)
    there = " OR ".join(f"EXISTS (SELECT 1 FROM {name} WHERE {column} = column1)" for name in tables)  # noqa: S608
    return [f"SELECT column1 FROM (VALUES {places}) WHERE {there}"]  # noqa: S608


def _in_sizes(rows: Sequence[Any], sizes: Sequence[int]) -> Iterator[tuple[int, list[Sequence[Any]]]]:
    """Cut rows into parts, as many as possible of each size."""
    start = 0
    for size in sizes:
        upto = start + (len(rows) - start) // size * size
        if upto > start:
            yield size, [rows[at : at + size] for at in range(start, upto, size)]
        start = upto


def _mark(connection: Connection) -> str:
    return "?" if connection.dialect.paramstyle == "qmark" else "%s"
