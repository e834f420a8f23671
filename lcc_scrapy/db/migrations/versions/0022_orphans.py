"""What becomes of a provider's orphans, and the index by which what spiders found is read."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0022"
down_revision = "0021"

_WORD = sa.String(16).with_variant(
    mysql.VARCHAR(16, charset="ascii", collation="ascii_bin"), "mysql", "mariadb"
)


def upgrade() -> None:
    """Add the column: what there is stays as it is; and the index."""
    op.add_column("pidb", sa.Column("orphans", _WORD, nullable=False, server_default="keep"))
    op.create_index("spidered_pid", "spidered", ["pid", "furlkey"], if_not_exists=True)


def downgrade() -> None:
    """Drop the index and the column; documents that are held as orphans stay held."""
    op.drop_index("spidered_pid", "spidered")
    op.drop_column("pidb", "orphans")
