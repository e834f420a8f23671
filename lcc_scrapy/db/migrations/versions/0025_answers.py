"""The answer that a document came with stands in its row.

What an interrupted upgrade did on MariaDB and MySQL, which commit each statement, is left out at the next.
"""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql

revision = "0025"
down_revision = "0024"

_MYSQL = frozenset({"mysql", "mariadb"})
_COLUMNS = {
    "status_line": "answer_line",
    "headers": "answer_headers",
    "peer": "answer_peer",
    "answered": "answer_time",
}
"""Names in ``lccmeta``, and in ``lccurl``: queries that join the two name them without their tables."""


def _text(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


_LONG = sa.Text().with_variant(
    mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)
_KEY = sa.LargeBinary(16).with_variant(mysql.BINARY(16), "mysql", "mariadb")


def _columns(names: Iterable[str], *, nullable: bool) -> list[sa.Column[Any]]:
    types: tuple[Any, ...] = (_text(255), _LONG, _text(64), sa.BigInteger())
    return [sa.Column(name, kind, nullable=nullable) for name, kind in zip(names, types, strict=True)]


def upgrade() -> None:
    """Move the answers; their table becomes a view, for whoever reads it."""
    look = None if context.is_offline_mode() else sa.inspect(op.get_bind())
    there = {one["name"] for one in look.get_columns("lccurl")} if look else set()
    for column in _columns(_COLUMNS.values(), nullable=True):
        if column.name not in there:
            op.add_column("lccurl", column)
    if look is None or "lccmeta" in look.get_table_names():
        _copy()
        op.drop_table("lccmeta")
    options = "OR REPLACE SQL SECURITY INVOKER " if _kind() in _MYSQL else ""
    named = ", ".join(f"{here} AS {there}" for there, here in _COLUMNS.items())
    op.execute(
        f"CREATE {options}VIEW lccmeta AS SELECT urlkey, {named} FROM lccurl"  # noqa: S608
        " WHERE answer_headers IS NOT NULL"
    )


def downgrade() -> None:
    """Give the answers their table back."""
    op.execute("DROP VIEW lccmeta")
    key = sa.Column("urlkey", _KEY, primary_key=True)
    op.create_table("lccmeta", key, *_columns(_COLUMNS, nullable=False))
    op.execute(
        f"INSERT INTO lccmeta (urlkey, {', '.join(_COLUMNS)})"  # noqa: S608
        f" SELECT urlkey, {', '.join(_COLUMNS.values())} FROM lccurl WHERE answer_headers IS NOT NULL"
    )
    for name in _COLUMNS.values():
        op.drop_column("lccurl", name)


def _kind() -> str:
    return str(context.get_context().dialect.name)


def _copy() -> None:
    if _kind() in _MYSQL:
        values = ", ".join(f"lccurl.{here} = lccmeta.{there}" for there, here in _COLUMNS.items())
        op.execute(f"UPDATE lccurl JOIN lccmeta USING (urlkey) SET {values}")  # noqa: S608
        return
    op.execute(
        f"UPDATE lccurl SET ({', '.join(_COLUMNS.values())}) ="  # noqa: S608
        f" (SELECT {', '.join(_COLUMNS)} FROM lccmeta WHERE lccmeta.urlkey = lccurl.urlkey)"
    )
