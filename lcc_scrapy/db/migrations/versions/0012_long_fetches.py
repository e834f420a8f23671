"""Workers tell of fetches that take long, and of how many are paced, for `lcc explain` and `lcc status`."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0012"
down_revision = "0011"

_KEY = sa.LargeBinary(16).with_variant(mysql.BINARY(16), "mysql", "mariadb")


def _text(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def upgrade() -> None:
    """Make the table, and the column of workers."""
    op.add_column("workers", sa.Column("paced", sa.Integer(), nullable=False, server_default=sa.text("0")))
    op.create_table(
        "fetches",
        sa.Column("turnkey", _text(64), primary_key=True),
        sa.Column("owner", _text(64), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("urlkey", _KEY, nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("paced", sa.BigInteger(), nullable=False),
        sa.Column("transferred", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
    )
    op.create_index("fetches_owner", "fetches", ["owner"])


def downgrade() -> None:
    """Drop the table and the column."""
    op.drop_table("fetches")
    op.drop_column("workers", "paced")
