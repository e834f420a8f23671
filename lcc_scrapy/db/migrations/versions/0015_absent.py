"""What full sets leave out is counted in portions by key, as far as a set's row says."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0015"
down_revision = "0014"

_KEY = sa.LargeBinary(16).with_variant(mysql.BINARY(16), "mysql", "mariadb")
_COUNTS = ("absent", "unfetched")


def upgrade() -> None:
    """Add the columns, and the index by which a provider's waiting URLs are read by key."""
    op.add_column("psets", sa.Column("upto", _KEY, nullable=True))
    for name in _COUNTS:
        op.add_column("psets", sa.Column(name, sa.BigInteger(), nullable=False, server_default=sa.text("0")))
    op.create_index("qdb_pid", "qdb", ["pid", "urlkey"])


def downgrade() -> None:
    """Let sets that are being counted be counted anew; drop the index and the columns."""
    op.execute(sa.text("UPDATE psets SET phase = 'keys', progress = 0, counted = 0 WHERE phase = 'absent'"))
    op.drop_index("qdb_pid", "qdb")
    for name in (*_COUNTS, "upto"):
        op.drop_column("psets", name)
