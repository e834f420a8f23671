"""When owners of a document changed, and its place among confirmations.

What an interrupted upgrade did on MariaDB and MySQL, which commit each statement, is left out at the next.
"""

import sqlalchemy as sa
from alembic import context, op

revision = "0032"
down_revision = "0031"

_NAMES = ("owners_seq", "confirmed_seq")
_INDEX = "lccurl_confirmed_seq"


def upgrade() -> None:
    """Add the columns; 0 is right for all rows. The index leaves out what was never confirmed, if it can."""
    offline = context.is_offline_mode()
    there = set() if offline else {one["name"] for one in sa.inspect(op.get_bind()).get_columns("lccurl")}
    for name in _NAMES:
        if name not in there:
            op.add_column(
                "lccurl", sa.Column(name, sa.BigInteger(), nullable=False, server_default=sa.text("0"))
            )
    confirmed = sa.text("confirmed_seq > 0")
    op.create_index(
        _INDEX,
        "lccurl",
        ["confirmed_seq"],
        sqlite_where=confirmed,
        postgresql_where=confirmed,
        if_not_exists=True,
    )


def downgrade() -> None:
    """Take both away."""
    op.drop_index(_INDEX, "lccurl")
    for name in _NAMES:
        op.drop_column("lccurl", name)
