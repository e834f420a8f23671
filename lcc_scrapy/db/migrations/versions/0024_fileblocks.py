"""Which process of which machine holds which block of file ids."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0024"
down_revision = "0023"

_TEXT = sa.String(64).with_variant(
    mysql.VARCHAR(64, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)


def upgrade() -> None:
    """Add the table: blocks that were taken before are in it no more than those that were used up."""
    op.create_table(
        "fileblocks",
        sa.Column("machineid", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("block", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("owner", _TEXT, nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
    )


def downgrade() -> None:
    """Drop the table; what kills leave is for `lcc verify --repair` again."""
    op.drop_table("fileblocks")
