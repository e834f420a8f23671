"""Many rows in few statements, in the words of the driver: nothing is compiled for each row.

SQLite gets several rows in one statement, because every row of its ``executemany`` offers the interpreter's
lock to the event loop, and may have to wait for it. PyMySQL joins rows by itself, psycopg does not wait for
each.

All names are those of our tables; values go as parameters, the numbers of ``add`` as digits.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from sqlalchemy import Connection

Row = tuple[Any, ...]

AT_ONCE = (32, 4, 1)
"""Rows of one statement on SQLite: few different texts, so that it keeps them prepared."""

CASES = 100
"""Rows that one statement of ``add`` looks for, each of them in a list."""

TUPLES = (1, 8, 100)
"""Tuples that one statement names: few different texts, so that connections keep them prepared."""

NOBODY = -1
"""The provider of tuples that only fill a statement up."""

REPLACE, ADD = "NEW", "OLD + NEW"
_VALUE = re.compile(r"\b(?P<which>NEW|OLD)(?:\.(?P<column>\w+))?")
_LOCK = {"sqlite": ""}
"""Where a writer has the whole database to itself."""
PRIMARY = "PRIMARY"
"""How MariaDB calls the index of the primary key."""

MYSQL = frozenset({"mysql", "mariadb"})


def insert(
    connection: Connection,
    table: str,
    names: tuple[str, ...],
    rows: Sequence[Row],
    *,
    keys: tuple[str, ...] = (),
    changes: Mapping[str, str] | None = None,
) -> None:
    """Add rows, the columns of ``names`` in order.

    With ``changes``, a row whose ``keys`` are there is changed: each column named to an expression of the
    values OLD and NEW of itself (``REPLACE``, ``ADD``) or, as in NEW.waiting, of another column.
    """
    if not rows:
        return
    kind = connection.dialect.name
    tail = _otherwise(kind, table, keys, tuple(changes.items())) if changes else ""
    if kind != "sqlite":
        connection.exec_driver_sql(_insert(kind, table, names, 1) + tail, list(rows))
        return
    for part in _parts(rows):
        values = tuple(chain.from_iterable(part))
        connection.exec_driver_sql(_insert(kind, table, names, len(part)) + tail, values)


def select(
    connection: Connection,
    table: str,
    names: tuple[str, ...],
    key: str,
    keys: Sequence[Any],
    *,
    lock: bool = False,
    also: str = "",
) -> Sequence[Row]:
    """Return the rows with these keys as the driver gives them; ``lock`` them in order, by primary key.

    ``also`` is another condition that they have to meet, if one is given.
    """
    kind = connection.dialect.name
    # MariaDB would read a small table as a whole, and wait for rows of others that it only passes
    index = f" FORCE INDEX ({PRIMARY})" if lock and kind in MYSQL else ""
    tail = f" ORDER BY {key}{_LOCK.get(kind, ' FOR UPDATE')}" if lock else ""
    which = f"{_among(kind, key, keys)}{also and f' AND {also}'}"
    statement = f"{select_from(connection, table, names)}{index} WHERE {which}{tail}"
    return connection.exec_driver_sql(statement, tuple(keys)).fetchall()


def select_from(connection: Connection, table: str, names: tuple[str, ...]) -> str:
    """Begin a statement that reads these columns."""
    kind = connection.dialect.name
    return f"SELECT {', '.join(_quoted(kind, name) for name in names)} FROM {table}"


def delete(
    connection: Connection,
    table: str,
    key: str,
    keys: Sequence[Any],
    also: str = "",
    *,
    index: str = PRIMARY,
) -> None:
    """Remove the rows with these keys, as far as they match another condition, if one is given.

    ``index`` is the one of the key.
    """
    kind = connection.dialect.name
    which = f"{_among(kind, key, keys)}{also and f' AND {also}'}"
    rows = f"{table} USING {table} FORCE INDEX ({index})" if kind in MYSQL else table  # as in ``select``
    connection.exec_driver_sql(f"DELETE FROM {rows} WHERE {which}", tuple(keys))


def where_any(connection: Connection, condition: str, tuples: Collection[Row]) -> Iterator[tuple[str, Row]]:
    """Yield conditions that hold where ``condition`` does for one of some tuples, each with its values.

    In ``condition``, "?" stands for a value; the first one of a tuple is a provider. Each tuple is a range
    of an index. To make an expression of each would cost more than to ask.
    """
    one, rest = condition.replace("?", _mark(connection.dialect.name)), list(tuples)
    while rest:
        part, rest = rest[: TUPLES[-1]], rest[TUPLES[-1] :]
        size = next(size for size in TUPLES if len(part) <= size)
        part += [(NOBODY, *part[-1][1:])] * (size - len(part))
        yield f"({' OR '.join([f'({one})'] * size)})", tuple(chain.from_iterable(part))


def _among(kind: str, key: str, keys: Sequence[Any]) -> str:
    return f"{key} IN ({','.join([_mark(kind)] * len(keys))})"


def add(connection: Connection, table: str, key: str, deltas: Mapping[int, Mapping[str, int]]) -> None:
    """Add to columns of the rows with these (whole) numbers as keys."""
    changed = sorted((number, row) for number, row in deltas.items() if any(row.values()))
    for start in range(0, len(changed), CASES):
        part = changed[start : start + CASES]
        names = sorted({name for _, row in part for name in row if row[name]})
        sums = ", ".join(f"{name} = {name} + {_sum(key, name, part)}" for name in names)
        numbers = ",".join(f"{number:d}" for number, _ in part)
        connection.exec_driver_sql(f"UPDATE {table} SET {sums} WHERE {key} IN ({numbers})")


def _sum(key: str, name: str, rows: Sequence[tuple[int, Mapping[str, int]]]) -> str:
    cases = " ".join(f"WHEN {number:d} THEN {row[name]:d}" for number, row in rows if row.get(name))
    return f"CASE {key} {cases} ELSE 0 END"


def _parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    start = 0
    for size in AT_ONCE:
        while len(rows) - start >= size:
            yield rows[start : start + size]
            start += size


@lru_cache(maxsize=256)
def _insert(kind: str, table: str, names: tuple[str, ...], count: int) -> str:
    columns = ", ".join(_quoted(kind, name) for name in names)
    values = f"({', '.join([_mark(kind)] * len(names))})"
    return f"INSERT INTO {table} ({columns}) VALUES {', '.join([values] * count)}"


@lru_cache(maxsize=256)
def _otherwise(kind: str, table: str, keys: tuple[str, ...], changes: tuple[tuple[str, str], ...]) -> str:
    changed = ", ".join(f"{_quoted(kind, name)} = {_spelt(kind, table, name, how)}" for name, how in changes)
    if kind in MYSQL:
        return f" ON DUPLICATE KEY UPDATE {changed}"
    return f" ON CONFLICT ({', '.join(_quoted(kind, key) for key in keys)}) DO UPDATE SET {changed}"


def _spelt(kind: str, table: str, name: str, expression: str) -> str:
    def column(match: re.Match[str]) -> str:
        quoted = _quoted(kind, match["column"] or name)
        if match["which"] == "OLD":
            return f"{table}.{quoted}"
        return f"VALUES({quoted})" if kind in MYSQL else f"excluded.{quoted}"

    return _VALUE.sub(column, expression)


def _mark(kind: str) -> str:
    return "?" if kind == "sqlite" else "%s"


def _quoted(kind: str, name: str) -> str:
    return f"`{name}`" if kind in MYSQL else f'"{name}"'
