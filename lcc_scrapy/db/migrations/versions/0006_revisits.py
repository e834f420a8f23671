"""Adaptive revisits: what is known of the changes of found URLs; which links need not be taken again."""

from typing import Any

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql

revision = "0006"
down_revision = "0005"


def _ascii(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="ascii", collation="ascii_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def upgrade() -> None:
    """Add the columns; what was visited before is due, since nobody knows of its changes.

    MariaDB and MySQL commit each statement: what an interrupted upgrade did there is left out at the next.
    """
    for name in ("answered", "every", "due"):
        _add_column("spidered", _number(name, sa.BigInteger()))
    _add_column("spidered", _number("changes", sa.Integer()))
    op.execute("UPDATE spidered SET answered = visited WHERE code = 0")
    op.execute("UPDATE spidered SET due = visited")
    op.create_index("spidered_due", "spidered", ["pid", "due", "furlkey"], if_not_exists=True)
    _add_column("scans", sa.Column("rules", _ascii(64), nullable=False, server_default=""))
    _add_column("scans", _number("taken", sa.BigInteger()))
    _add_column("pidb", sa.Column("revisit", _ascii(64), nullable=False, server_default=""))


def _number(name: str, type_: "sa.types.TypeEngine[int]") -> "sa.Column[int]":
    return sa.Column(name, type_, nullable=False, server_default=sa.text("0"))


def _add_column(table: str, column: "sa.Column[Any]") -> None:
    if context.is_offline_mode() or column.name not in {
        one["name"] for one in sa.inspect(op.get_bind()).get_columns(table)
    }:
        op.add_column(table, column)


def downgrade() -> None:
    """Take the columns away."""
    op.drop_index("spidered_due", "spidered")
    for name in ("answered", "every", "changes", "due"):
        op.drop_column("spidered", name)
    for name in ("rules", "taken"):
        op.drop_column("scans", name)
    op.drop_column("pidb", "revisit")
