"""Sets may overtake those of earlier logins that take too long; what they name is kept until these are in."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0011"
down_revision = "0010"

_KEY = sa.LargeBinary(16).with_variant(mysql.BINARY(16), "mysql", "mariadb")
_STAGE = sa.String(8).with_variant(
    mysql.VARCHAR(8, charset="ascii", collation="ascii_bin"), "mysql", "mariadb"
)


def upgrade() -> None:
    """Make the table; logins that are noted may bring a set yet."""
    op.add_column("logins", sa.Column("stage", _STAGE, nullable=False, server_default=sa.text("'open'")))
    op.add_column("logins", sa.Column("overtaken", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "overtaking",
        sa.Column("urlkey", _KEY, primary_key=True),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("connseq", sa.BigInteger(), nullable=False),
    )
    op.create_index("overtaking_pid", "overtaking", ["pid", "urlkey"])


def downgrade() -> None:
    """Drop the table and the columns."""
    op.drop_table("overtaking")
    for name in ("stage", "overtaken"):
        op.drop_column("logins", name)
