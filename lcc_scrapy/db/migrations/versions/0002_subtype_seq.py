"""When the subtype of a document changed: who follows the feed with a filter must hear of it."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column; nobody could filter by subtype before, so 0 is right for all rows."""
    op.add_column(
        "lccurl", sa.Column("subtype_seq", sa.BigInteger(), nullable=False, server_default=sa.text("0"))
    )


def downgrade() -> None:
    """Take the column away."""
    op.drop_column("lccurl", "subtype_seq")
