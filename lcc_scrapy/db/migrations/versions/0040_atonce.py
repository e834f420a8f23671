"""How many fetches a provider permits at a time."""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    """Add the column: nobody has permitted more than one yet."""
    op.add_column("pidb", sa.Column("atonce", sa.SmallInteger(), nullable=False, server_default="1"))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("pidb", "atonce")
