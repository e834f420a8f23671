"""The entity tag of the bytes that came in place of what was declared; mismatches of a provider in a row."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0043"
down_revision = "0042"

_TAG = sa.String(255).with_variant(
    mysql.VARCHAR(255, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)


def upgrade() -> None:
    """Add the columns: nothing is known of what came before."""
    op.add_column("qdb", sa.Column("last_etag", _TAG, nullable=False, server_default=""))
    op.add_column("pidb", sa.Column("mismatched", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("pidb", "mismatched")
    op.drop_column("qdb", "last_etag")
