"""What URLs were submitted with, for the errors that their provider is told; types of single providers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0016"
down_revision = "0015"

_LONG = sa.Text().with_variant(
    mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)
_PATTERNS = sa.String(1024).with_variant(
    mysql.VARCHAR(1024, charset="ascii", collation="ascii_bin"), "mysql", "mariadb"
)


def upgrade() -> None:
    """Add the columns; of URLs that wait already, what was made of it is told, as before."""
    for table in ("qdb", "urlerrors"):
        op.add_column(table, sa.Column("sent", _LONG, nullable=True))
    op.add_column("pidb", sa.Column("mimetypes", _PATTERNS, nullable=False, server_default=""))


def downgrade() -> None:
    """Drop the columns."""
    for table in ("qdb", "urlerrors"):
        op.drop_column(table, "sent")
    op.drop_column("pidb", "mimetypes")
