"""Where the content files of each machine are to be had: machines register that themselves."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0021"
down_revision = "0018"

_TEXT = sa.String(255).with_variant(
    mysql.VARCHAR(255, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)


def upgrade() -> None:
    """Add the column: no machine has registered an address yet."""
    op.add_column("machines", sa.Column("address", _TEXT, nullable=False, server_default=""))


def downgrade() -> None:
    """Drop the column; LCC_FILES_MACHINES has to name the machines again."""
    op.drop_column("machines", "address")
