"""What became of fetches, counted for each provider and span of time."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0018"
down_revision = "0017"

_EXACT = mysql.VARCHAR(16, charset="ascii", collation="ascii_bin")
_ASCII = sa.String(16).with_variant(_EXACT, "mysql", "mariadb")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "fetchcounts",
        sa.Column("pid", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("begun", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("result", _ASCII, primary_key=True),
        sa.Column("code", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
    )
    op.create_index("fetchcounts_begun", "fetchcounts", ["begun"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("fetchcounts")
