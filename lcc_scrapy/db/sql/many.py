"""Many rows in few statements, in the words of the driver: nothing is compiled for each row.

Statements come in few sizes, so that a connection prepares each once and uses it again. On SQLite they are
also what spares the interpreter's lock: each row of its ``executemany`` would offer it to the event loop.

All names are those of our tables; values go as parameters, the numbers of ``add`` as digits.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar

from sqlalchemy import Connection

Row = tuple[Any, ...]
Item = TypeVar("Item")

ROWS = (256, 16, 1)
"""Rows of one statement with constants: as many as possible, then what is left over."""

SQLITE_ROWS = (64, 8, 1)
"""Rows of every statement that adds some on SQLite: longer ones take longer for each row."""

IN_SQLITE = "INSERT OR FAIL"
"""A row that is there already fails as ever. But SQLite need not be able to take back the rows before it in
the same statement, for which it would copy each page it touches: the transaction takes them back."""

KEYS = (1, 8, 64, 1000)
"""Keys of a question; where there are fewer, the last one is asked for again."""

CASES = 100
"""Rows that one statement of ``add`` looks for, each of them in a list."""

TUPLES = (1, 8, 100)
"""Tuples that one statement names."""

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
    constants: Mapping[str, str | int] | None = None,
) -> None:
    """Add rows, the columns of ``names`` in order; those of ``constants`` are the same in all of them.

    With ``changes``, a row whose ``keys`` are there is changed: each column named to an expression of the
    values OLD and NEW of itself (``REPLACE``, ``ADD``) or, as in NEW.waiting, of another column.
    """
    kind = connection.dialect.name
    tail = otherwise(kind, table, keys, changes)
    # other drivers join rows by themselves, up to the bytes of a statement, but not beside literals
    sizes = SQLITE_ROWS if kind == "sqlite" else ROWS if constants else (1,)
    same = tuple((constants or {}).items())
    for size, parts in _in_sizes(rows, sizes):
        statement = _insert(kind, table, names, same, size, fails=not changes) + tail
        connection.exec_driver_sql(statement, [tuple(chain.from_iterable(part)) for part in parts])


def select(
    connection: Connection,
    table: str,
    names: tuple[str, ...],
    key: str,
    keys: Sequence[Any],
    *,
    lock: bool = False,
    skip: bool = False,
    also: str = "",
) -> Sequence[Row]:
    """Return the rows with these keys as the driver gives them; ``lock`` them in order, by primary key.

    ``skip`` leaves out those that somebody else has locked. ``also`` is another condition that they have to
    meet, if one is given.
    """
    kind = connection.dialect.name
    # MariaDB would read a small table as a whole, and wait for rows of others that it only passes
    index = f" FORCE INDEX ({PRIMARY})" if lock and kind in MYSQL else ""
    tail = f" ORDER BY {key}{_LOCK.get(kind, ' FOR UPDATE')}" if lock else ""
    if skip and kind != "sqlite":
        tail += " SKIP LOCKED"
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
    one = condition.replace("?", _mark(connection.dialect.name))
    for part in filled(list(tuples), TUPLES, lambda last: (NOBODY, *last[1:])):
        yield f"({' OR '.join([f'({one})'] * len(part))})", tuple(chain.from_iterable(part))


def filled(
    items: Sequence[Item], sizes: Sequence[int], filler: Callable[[Item], Item]
) -> Iterator[list[Item]]:
    """Cut items into lists of some sizes (rising), the last one filled up with what ``filler`` makes."""
    for start in range(0, len(items), sizes[-1]):
        part = list(items[start : start + sizes[-1]])
        size = next(size for size in sizes if len(part) <= size)
        yield part + [filler(part[-1])] * (size - len(part))


def known(connection: Connection, tables: Sequence[str], column: str, keys: Sequence[bytes]) -> set[bytes]:
    """Return those of the keys that are in a column of one of the tables at least; it needs an index."""
    return {
        bytes(row[0])
        for asked in filled(keys, KEYS, lambda key: key)
        for question in _questions(connection.dialect.name, tables, column, len(asked))
        for row in connection.exec_driver_sql(question, tuple(asked))
    }


def _questions(kind: str, tables: Sequence[str], column: str, size: int) -> list[str]:
    """Return one question for SQLite, which would make an index of each list that is asked for by ``IN``."""
    if kind != "sqlite":
        places = ", ".join(["%s"] * size)
        return [f"SELECT {column} FROM {name} WHERE {column} IN ({places})" for name in tables]
    places = ", ".join(["(?)"] * size)
    there = " OR ".join(f"EXISTS (SELECT 1 FROM {name} WHERE {column} = column1)" for name in tables)
    return [f"SELECT column1 FROM (VALUES {places}) WHERE {there}"]


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


def _in_sizes(rows: Sequence[Row], sizes: Sequence[int]) -> Iterator[tuple[int, list[Sequence[Row]]]]:
    """Cut rows into parts, as many as possible of each size."""
    start = 0
    for size in sizes:
        upto = start + (len(rows) - start) // size * size
        if upto > start:
            yield size, [rows[at : at + size] for at in range(start, upto, size)]
        start = upto


@lru_cache(maxsize=256)
def _insert(
    kind: str,
    table: str,
    names: tuple[str, ...],
    constants: tuple[tuple[str, str | int], ...],
    count: int,
    *,
    fails: bool,
) -> str:
    literals = [str(one) if isinstance(one, int) else f"'{one}'" for _, one in constants]
    values = f"({', '.join([_mark(kind)] * len(names) + literals)})"
    head = insert_into(kind, table, (*names, *dict(constants)), fails=fails)
    return f"{head} VALUES {', '.join([values] * count)}"


def insert_into(kind: str, table: str, names: Sequence[str], *, fails: bool = False) -> str:
    """Begin a statement that adds rows; ``fails``: it changes none that are there."""
    verb = IN_SQLITE if kind == "sqlite" and fails else "INSERT"
    return f"{verb} INTO {table} ({', '.join(_quoted(kind, name) for name in names)})"


def otherwise(kind: str, table: str, keys: Sequence[str], changes: Mapping[str, str] | None) -> str:
    """End a statement that adds rows: how those are changed whose keys are there, if at all."""
    return _otherwise(kind, table, tuple(keys), tuple(changes.items())) if changes else ""


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
