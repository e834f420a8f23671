"""Owners: who has an interest in a URL, and how far that goes on from there."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0007"
down_revision = "0006"

_KEY = sa.LargeBinary(16).with_variant(mysql.BINARY(16), "mysql", "mariadb")
_OWNER = sa.String(64).with_variant(
    mysql.VARCHAR(64, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "owners",
        sa.Column("furlkey", _KEY, primary_key=True),
        sa.Column("owner", _OWNER, primary_key=True),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("reach", sa.Integer(), nullable=False),
        sa.Column("due", sa.Boolean(), nullable=False),
        if_not_exists=True,
    )
    op.create_index("owners_due", "owners", ["pid", "due", "furlkey", "owner"], if_not_exists=True)


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("owners")
