"""Registrations of site owners that are not complete.

Databases that were made when the core had this table have it already.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None


def _text(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def _ascii(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="ascii", collation="ascii_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "registrations",
        sa.Column("secret", _ascii(64), primary_key=True),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("kind", _ascii(16), nullable=False),
        sa.Column("stage", _ascii(16), nullable=False),
        sa.Column("site", _text(2048), nullable=False),
        sa.Column("password", _ascii(255), nullable=False),
        sa.Column("contact", _text(255), nullable=False),
        sa.Column("bandwidth", sa.BigInteger(), nullable=False),
        sa.Column("timeofday", _ascii(168), nullable=False),
        sa.Column("timezone", _ascii(64), nullable=False),
        sa.Column("root", _text(2048), nullable=False),
        sa.Column("address", _ascii(45), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        if_not_exists=True,
    )
    op.create_index("ix_registrations_pid", "registrations", ["pid"], if_not_exists=True)
    op.create_index("registrations_expires", "registrations", ["expires"], if_not_exists=True)


def downgrade() -> None:
    """Drop the table: whoever has not proved anything yet registers again."""
    op.drop_table("registrations")
