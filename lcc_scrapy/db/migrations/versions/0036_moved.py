"""Rows of a provider that came from another sub-LCC tell which seqs they had there."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "moved",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("move", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("was", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("moved")
