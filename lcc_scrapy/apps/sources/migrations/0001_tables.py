"""Sources: what sites publish of their changes, and what of it was submitted.

Databases that were made when the core had these tables have them already.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None

_KEY = sa.LargeBinary(16).with_variant(mysql.BINARY(16), "mysql", "mariadb")
_BIG_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_SOURCES = {"pid": ["pid"], "due": ["due"], "callback": ["callback"]}


def _text(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def _ascii(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="ascii", collation="ascii_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def _column(name: str, kind: Any = None) -> sa.Column[Any]:
    return sa.Column(name, kind or sa.BigInteger(), nullable=False)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "sources",
        sa.Column("sourceid", _BIG_KEY, primary_key=True, autoincrement=False),
        _column("pid"),
        _column("kind", _ascii(16)),
        _column("url", _text(2048)),
        _column("every"),
        _column("created"),
        _column("due"),
        _column("owner", _text(64)),
        _column("claimed"),
        _column("failures", sa.Integer()),
        _column("error", _text(255)),
        _column("at"),
        _column("changed"),
        _column("listed"),
        _column("queued"),
        _column("removed"),
        _column("held"),
        _column("refused"),
        _column("callback", _ascii(64)),
        _column("secret", _ascii(64)),
        _column("hub", _text(2048)),
        _column("topic", _text(2048)),
        _column("lease"),
        _column("asked", _ascii(16)),
        if_not_exists=True,
    )
    for name, columns in _SOURCES.items():
        op.create_index(f"sources_{name}", "sources", columns, if_not_exists=True)
    op.create_table(
        "sourcefiles",
        sa.Column("fileid", _BIG_KEY, primary_key=True, autoincrement=False),
        _column("sourceid"),
        _column("url", _text(2048)),
        _column("parent"),
        _column("role", _ascii(16)),
        _column("etag", _text(255)),
        _column("modified", _text(64)),
        _column("told"),
        _column("read"),
        _column("listed"),
        if_not_exists=True,
    )
    op.create_index("sourcefiles_sourceid", "sourcefiles", ["sourceid"], if_not_exists=True)
    op.create_table(
        "sourceurls",
        sa.Column("fileid", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("furlkey", _KEY, primary_key=True),
        _column("stamp"),
        sqlite_with_rowid=False,
        if_not_exists=True,
    )
    op.create_index("sourceurls_furlkey", "sourceurls", ["furlkey"], if_not_exists=True)


def downgrade() -> None:
    """Drop them."""
    for name in ("sourceurls", "sourcefiles", "sources"):
        op.drop_table(name)
