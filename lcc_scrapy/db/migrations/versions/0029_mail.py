"""What providers were told by mail.

A table that an interrupted upgrade made on MariaDB and MySQL, which commit each statement, is left as it is.
"""

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql

revision = "0029"
down_revision = "0025"


def _text(width: int, charset: str = "utf8mb4") -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset=charset, collation=f"{charset}_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def upgrade() -> None:
    """Add the table: nobody was told anything yet."""
    if not context.is_offline_mode() and "mailstates" in sa.inspect(op.get_bind()).get_table_names():
        return
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
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("mailstates")
