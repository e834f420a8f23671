"""Questions about the first rows of many queues, many in one statement: a round trip is most of their cost.

A queue is what waits of one provider under one mask. Each part of a statement is one search in the index
``qdb_order``; databases that were asked for all queues by ``IN`` would read every row of them.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection

from lcc_scrapy.db.sql.many import MYSQL, NOBODY, filled
from lcc_scrapy.domain.queue import DUE

SIZES = (1, 8, 50)
"""Queues that one statement asks for: few different texts, so that they are kept prepared."""

_OF_QUEUE = "pid = {mark} AND timeofday = {mark}"
_ORDER = "{behind} ORDER BY psetid, position LIMIT {mark}"
ORDERED = f"{_OF_QUEUE} AND not_before = 0 AND {_ORDER}"
RETRIES = f"{_OF_QUEUE} AND not_before = {DUE:d} AND {_ORDER}"
"""For (pid, mask, *place, limit): the first rows behind a place, as ``behind`` writes it, in queue order.

Those of the second have tried before, and may again.
"""

ASIDE = f"{_OF_QUEUE} AND not_before > {{mark}} ORDER BY not_before LIMIT 1"
"""For (pid, mask, moment): the row that is due first after that, of those set aside."""

MASKS = "pid = {mark} AND timeofday > {mark} ORDER BY timeofday LIMIT 1"
FIRST_MASKS = "pid = {mark} AND timeofday >= {mark} ORDER BY timeofday LIMIT 1"
"""For (pid, mask): a row with the next mask; the first one may be empty."""


def place(connection: Connection, psetid: int, position: int) -> tuple[int, ...]:
    """Return the parameters of ``behind`` for a place."""
    return (psetid, psetid, position) if connection.dialect.name in MYSQL else (psetid, position)


def read(
    connection: Connection, names: Sequence[str], condition: str, queues: Sequence[tuple[Any, ...]]
) -> Iterable[Sequence[Any]]:
    """Yield the columns ``names`` of all queues' rows that meet a condition, in no order between queues."""
    for part in filled(queues, SIZES, lambda last: (NOBODY, *last[1:])):
        values = tuple(value for queue in part for value in queue)
        statement = _text(connection.dialect.name, tuple(names), condition, len(part))
        yield from connection.exec_driver_sql(statement, values).fetchall()


@lru_cache(maxsize=64)
def _text(kind: str, names: tuple[str, ...], condition: str, size: int) -> str:
    mark = "?" if kind == "sqlite" else "%s"
    # MariaDB does not search an index by row values, the others do not by alternatives
    behind = (
        f"(psetid > {mark} OR psetid = {mark} AND position > {mark})"
        if kind in MYSQL
        else f"(psetid, position) > ({mark}, {mark})"
    )
    quote = "`" if kind in MYSQL else '"'
    columns = ", ".join(f"{quote}{name}{quote}" for name in names)
    one = f"SELECT {columns} FROM qdb WHERE {condition.format(mark=mark, behind=behind)}"  # noqa: S608
    if kind == "sqlite":
        return " UNION ALL ".join([f"SELECT * FROM ({one})"] * size)  # noqa: S608
    return " UNION ALL ".join([f"({one})"] * size)
