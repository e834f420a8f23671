"""Bytes of the headers kept with a document, which count against the space quota."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the column; headers of documents that are there count when they are fetched again."""
    op.add_column("lccurl", sa.Column("head_len", sa.Integer(), nullable=False, server_default=sa.text("0")))


def downgrade() -> None:
    """Take the column away, and what was counted by it."""
    counted = "SELECT COALESCE(SUM(head_len), 0) FROM lccurl WHERE lccurl.pid = pidb.pid"
    op.execute(sa.text(f"UPDATE pidb SET spaceused = spaceused - ({counted})"))  # noqa: S608
    op.drop_column("lccurl", "head_len")
