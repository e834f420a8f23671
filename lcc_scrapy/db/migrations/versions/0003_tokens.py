"""Content users over the network: their tokens, the cursors that are kept for them, and what is counted."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0003"
down_revision = "0002"


def _text(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def _ascii(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="ascii", collation="ascii_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "tokens",
        sa.Column("digest", _ascii(64), primary_key=True),
        sa.Column("label", _text(64), nullable=False),
        sa.Column("scopes", _ascii(64), nullable=False),
        sa.Column("providers", _ascii(1000), nullable=False),
        sa.Column("mimetypes", _ascii(1000), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "cursors",
        sa.Column("owner", _text(64), primary_key=True),
        sa.Column("name", _ascii(64), primary_key=True),
        sa.Column("cursor", _ascii(1000), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "tallies",
        sa.Column("name", _ascii(64), primary_key=True),
        sa.Column("value", sa.BigInteger(), nullable=False),
    )


def downgrade() -> None:
    """Take the tables away."""
    op.drop_table("tallies")
    op.drop_table("cursors")
    op.drop_table("tokens")
