"""Rows are found by the hashes of their URLs; every row that is there gets them."""

import json
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from typing import Any
from zlib import crc32

import sqlalchemy as sa
from alembic import context, op

revision = "0010"
down_revision = "0009"

PAGE = 1000
"""Rows that are read, and given their hashes, at a time."""

_TABLES = {"qdb": "urlkey", "lccurl": "urlkey", "tombstones": "urlkey", "urlerrors": "errorid"}
"""The tables, and their keys."""

Row = tuple[Any, str, str]
"""(key, curl, furl)"""


def upgrade() -> None:
    """Add the columns, fill them in bounded portions, and make the indexes.

    MariaDB and MySQL commit each statement that changes a table: what an interrupted upgrade did there is
    left out at the next.
    """
    progress = context.config.attributes.get("progress", lambda _done, _total: None)
    done = 0
    for table, key in _TABLES.items():
        _add_columns(table)
        if context.is_offline_mode():
            op.execute(f"-- here the upgrade gives every row of {table} the hashes of its URLs")
        else:
            done = _fill(table, key, done, progress)
        op.create_index(f"{table}_curlhash", table, ["curlhash"], if_not_exists=True)
        known = sa.text("furlhash IS NOT NULL")
        op.create_index(
            f"{table}_furlhash",
            table,
            ["furlhash"],
            sqlite_where=known,
            postgresql_where=known,
            if_not_exists=True,
        )


def _add_columns(table: str) -> None:
    offline = context.is_offline_mode()
    there = set() if offline else {one["name"] for one in sa.inspect(op.get_bind()).get_columns(table)}
    if "curlhash" not in there:
        op.add_column(
            table, sa.Column("curlhash", sa.BigInteger(), nullable=False, server_default=sa.text("0"))
        )
    if "furlhash" not in there:
        op.add_column(table, sa.Column("furlhash", sa.BigInteger(), nullable=True))


def _fill(table: str, key: str, done: int, progress: Callable[[int, int], None]) -> int:
    """Fill a table; returns how many rows are done in all tables."""
    connection = op.get_bind()
    total = done + int(connection.execute(sa.text(f"SELECT COUNT(*) FROM {table}")).scalar_one())  # noqa: S608
    write = _write_mysql if connection.dialect.name in {"mysql", "mariadb"} else _write
    for page in _pages(connection, table, key):
        write(connection, table, key, [(number, *_hashes(curl, furl)) for number, curl, furl in page])
        done += len(page)
        progress(done, total)
    return done


def _pages(connection: sa.Connection, table: str, key: str) -> Iterator[list[Row]]:
    names = ("attributes", "url") if table == "urlerrors" else ("curl", "furl")
    rows = sa.table(table, *map(sa.column, (key, *names)))
    by = rows.c[key]
    page = first = sa.select(by, *(rows.c[name] for name in names)).order_by(by).limit(PAGE)
    while found := connection.execute(page).all():
        last = None
        read: list[Row] = []
        for last, curl, furl in found:
            read.append((last, _submitted(curl, furl) if table == "urlerrors" else curl, furl))
        yield read
        page = first.where(by > last)


def _submitted(attributes: str, url: str) -> str:
    """Return the conceptual URL of an error, which stands in what was submitted."""
    return str(json.loads(attributes).get("curl", url))


def _write(connection: sa.Connection, table: str, key: str, rows: Sequence[tuple[Any, ...]]) -> None:
    mark = "?" if connection.dialect.paramstyle == "qmark" else "%s"
    connection.exec_driver_sql(
        f"UPDATE {table} SET curlhash = {mark}, furlhash = {mark} WHERE {key} = {mark}",  # noqa: S608
        [(curlhash, furlhash, number) for number, curlhash, furlhash in rows],
    )


def _write_mysql(connection: sa.Connection, table: str, key: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write all in one statement: PyMySQL would send one for each row."""
    values = " UNION ALL ".join(
        ["SELECT %s AS k, %s AS c, %s AS f", *["SELECT %s, %s, %s"] * (len(rows) - 1)]
    )
    connection.exec_driver_sql(
        f"UPDATE {table} JOIN ({values}) AS found ON {table}.{key} = found.k"  # noqa: S608
        f" SET {table}.curlhash = found.c, {table}.furlhash = found.f",
        tuple(chain.from_iterable(rows)),
    )


def _hashes(curl: str, furl: str) -> tuple[int, int | None]:
    """Return what ``domain.entries.namehashes`` returned when this was written, which stays here."""
    return _hash(curl), None if furl == curl else _hash(furl)


def _hash(url: str) -> int:
    name = url.encode("utf-8", "surrogatepass")
    folder = crc32(name[: name.rfind(b"/") + 1]) - (1 << 31)
    return folder << 32 | int.from_bytes(blake2b(name, digest_size=4).digest(), "big")


def downgrade() -> None:
    """Take the columns away."""
    for table in _TABLES:
        for name in ("curlhash", "furlhash"):
            op.drop_index(f"{table}_{name}", table)
            op.drop_column(table, name)
