"""Workers tell of the longest job of their store thread."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0013"
down_revision = "0012"

_NAME = sa.String(64).with_variant(
    mysql.VARCHAR(64, charset="ascii", collation="ascii_bin"), "mysql", "mariadb"
)


def upgrade() -> None:
    """Add the columns."""
    zero, empty = sa.text("0"), sa.text("''")
    op.add_column("workers", sa.Column("job_ms", sa.BigInteger(), nullable=False, server_default=zero))
    op.add_column("workers", sa.Column("job", _NAME, nullable=False, server_default=empty))


def downgrade() -> None:
    """Drop the columns."""
    op.drop_column("workers", "job")
    op.drop_column("workers", "job_ms")
