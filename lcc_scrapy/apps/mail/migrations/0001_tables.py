"""What providers were told by mail.

Databases that were made when the core had this table have it already.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None


def _text(width: int, charset: str = "utf8mb4") -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset=charset, collation=f"{charset}_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def upgrade() -> None:
    """Add the table: nobody was told anything yet."""
    op.create_table(
        "mailstates",
        sa.Column("pid", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.Column("wanted", _text(32, "ascii"), nullable=False),
        sa.Column("wanted_at", sa.BigInteger(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("held_at", sa.BigInteger(), nullable=False),
        sa.Column("refused", _text(255), nullable=False),
        sa.Column("off", sa.Boolean(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.BigInteger(), nullable=False),
        if_not_exists=True,
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("mailstates")
