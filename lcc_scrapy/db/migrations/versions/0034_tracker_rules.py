"""How servers of the mirror tracker may be scanned."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0034"
down_revision = "0033"


def _ascii(width: int) -> sa.types.TypeEngine[str]:
    theirs = mysql.VARCHAR(width, charset="ascii", collation="ascii_bin")
    return sa.String(width).with_variant(theirs, "mysql", "mariadb")


def upgrade() -> None:
    """Add the table and an index; what an interrupted upgrade left on MariaDB or MySQL is good."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "tr_rules",
        sa.Column("hostid", number, primary_key=True, autoincrement=False),
        sa.Column("every", sa.BigInteger(), nullable=False),
        sa.Column("timeofday", _ascii(168), nullable=False),
        sa.Column("timezone", _ascii(64), nullable=False),
        sa.Column("bandwidth", sa.BigInteger(), nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        if_not_exists=True,
    )
    op.create_index("tr_host_claimed", "tr_host", ["claimed"], if_not_exists=True)


def downgrade() -> None:
    """Drop them."""
    op.drop_index("tr_host_claimed", "tr_host")
    op.drop_table("tr_rules")
