"""Spidering: links of documents, what spiders found, how far they looked; rows by their fetch URL."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql

revision = "0004"
down_revision = "0003"

PAGE = 1000
"""Rows that are given their key in one statement."""

_KEY = sa.LargeBinary(16).with_variant(mysql.BINARY(16), "mysql", "mariadb")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_WITH_FURLKEY = ("qdb", "lccurl")


def _ascii(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="ascii", collation="ascii_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def _url() -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(2048, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.String(2048).with_variant(exact, "mysql", "mariadb")


def upgrade() -> None:
    """Make the tables, and give every row the key of its fetch URL.

    MariaDB and MySQL commit each statement: what an interrupted upgrade did there is left out at the next.
    """
    op.create_table(
        "links",
        sa.Column("urlkey", _KEY, primary_key=True),
        sa.Column("position", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("url", _url(), nullable=False),
        sa.Column("relation", _ascii(32), nullable=False),
        sa.Column("nofollow", sa.Boolean(), nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "spidered",
        sa.Column("furlkey", _KEY, primary_key=True),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("furl", _url(), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("parent", _KEY, nullable=True),
        sa.Column("found", sa.BigInteger(), nullable=False),
        sa.Column("visited", sa.BigInteger(), nullable=False),
        sa.Column("code", sa.Integer(), nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "scans",
        sa.Column("pid", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("terms", _ascii(64), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("pages", sa.BigInteger(), nullable=False),
        sa.Column("urls", sa.BigInteger(), nullable=False),
        if_not_exists=True,
    )
    _add_column("workers", sa.Column("pid", sa.BigInteger(), nullable=False, server_default=sa.text("0")))
    op.create_index("spidered_visits", "spidered", ["pid", "visited", "furlkey"], if_not_exists=True)
    for table in _WITH_FURLKEY:
        _add_furlkey(table)


def _add_column(table: str, column: "sa.Column[Any]") -> None:
    if context.is_offline_mode() or column.name not in {
        one["name"] for one in sa.inspect(op.get_bind()).get_columns(table)
    }:
        op.add_column(table, column)


def _add_furlkey(table: str) -> None:
    _add_column(table, sa.Column("furlkey", _KEY, nullable=True))
    if context.is_offline_mode():
        op.execute(f"-- here the upgrade gives every row of {table} the key of its fetch URL")
    else:
        _fill(table)
    op.create_index(f"ix_{table}_furlkey", table, ["furlkey"], if_not_exists=True)


def _fill(table: str) -> None:
    connection = op.get_bind()
    rows = sa.table(table, *map(sa.column, ("urlkey", "pid", "furl", "furlkey")))
    filling = sa.update(rows).where(rows.c.urlkey == sa.bindparam("key"))
    for page in _pages(connection, rows):
        connection.execute(
            filling.values(furlkey=sa.bindparam("value")),
            [{"key": key, "value": _furlkey(pid, furl)} for key, pid, furl in page],
        )


def _pages(connection: sa.Connection, rows: sa.TableClause) -> Iterator[list[tuple[bytes, int, str]]]:
    first = sa.select(rows.c.urlkey, rows.c.pid, rows.c.furl).order_by(rows.c.urlkey).limit(PAGE)
    page = first
    while found := [(bytes(key), int(pid), str(furl)) for key, pid, furl in connection.execute(page)]:
        yield found
        page = first.where(rows.c.urlkey > found[-1][0])


def _furlkey(pid: int, furl: str) -> bytes:
    """Return what ``domain.entries.furlkey`` returned when this was written: a migration stays as it is."""
    return sha256(f"{pid}\0{furl}".encode("utf-8", "surrogatepass")).digest()[:16]


def downgrade() -> None:
    """Take tables and columns away."""
    for table in _WITH_FURLKEY:
        op.drop_index(f"ix_{table}_furlkey", table)
        op.drop_column(table, "furlkey")
    op.drop_column("workers", "pid")
    for table in ("scans", "spidered", "links"):
        op.drop_table(table)
