"""Waits for failing hosts: one for each host of a turn, and no longer one for the whole turn."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0044"
down_revision = "0043"

_LONG = sa.Text().with_variant(
    mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)


def _text(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def upgrade() -> None:
    """Make the table. A turn that waits now does so to the end of its wait, and then begins afresh."""
    op.create_table(
        "failinghosts",
        sa.Column("turnkey", _text(64), primary_key=True),
        sa.Column("host", _text(300), primary_key=True),
        sa.Column("not_before", sa.Double(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("wait", sa.Double(), nullable=False),
        sa.Column("blamed", _LONG, nullable=False),
    )
    op.drop_column("turns", "failing_since")
    op.drop_column("turns", "failures")


def downgrade() -> None:
    """Make the columns again, and drop the table: waits of hosts are forgotten."""
    op.add_column("turns", sa.Column("failures", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("turns", sa.Column("failing_since", sa.Double(), nullable=False, server_default="0"))
    op.drop_table("failinghosts")
