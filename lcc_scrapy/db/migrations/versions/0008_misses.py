"""Changes that were not pushed: what is counted of them, and what providers may miss."""

import time

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0008"
down_revision = "0007"

_KEY = sa.LargeBinary(16).with_variant(mysql.BINARY(16), "mysql", "mariadb")
_COLUMNS = ("fallback", "fallingback", "countedsince")


def upgrade() -> None:
    """Make the tables; the changes that providers pushed so far were not counted."""
    now = sa.text(str(int(time.time())))
    op.add_column("pidb", sa.Column("fallback", sa.Double(), nullable=False, server_default=sa.text("0")))
    op.add_column("pidb", sa.Column("fallingback", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("pidb", sa.Column("countedsince", sa.BigInteger(), nullable=False, server_default=now))
    op.create_table(
        "misses",
        sa.Column("pid", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("day", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("pushed", sa.BigInteger(), nullable=False),
        sa.Column("sampled", sa.BigInteger(), nullable=False),
        sa.Column("missed", sa.BigInteger(), nullable=False),
        sa.Column("watched", sa.BigInteger(), nullable=False),
    )
    op.create_index("misses_day", "misses", ["day"])
    op.create_table(
        "suspects",
        sa.Column("urlkey", _KEY, primary_key=True),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("found", sa.BigInteger(), nullable=False),
    )
    op.create_index("suspects_pid", "suspects", ["pid", "found"])


def downgrade() -> None:
    """Drop the tables and columns."""
    op.drop_table("suspects")
    op.drop_table("misses")
    for name in _COLUMNS:
        op.drop_column("pidb", name)
