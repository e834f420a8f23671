"""Workers tell why they hand out no URL."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0035"
down_revision = "0032"

_TEXT = sa.String(255).with_variant(
    mysql.VARCHAR(255, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)


def upgrade() -> None:
    """Add the column."""
    op.add_column("workers", sa.Column("idle", _TEXT, nullable=False, server_default=sa.text("''")))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("workers", "idle")
