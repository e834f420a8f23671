"""Whether a browser renders the pages of a provider."""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"


def upgrade() -> None:
    """Add the column: of nobody's pages yet."""
    op.add_column("pidb", sa.Column("render", sa.String(16), nullable=False, server_default=""))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("pidb", "render")
