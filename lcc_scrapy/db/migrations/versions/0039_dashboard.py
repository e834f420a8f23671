"""Users of the dashboard, their sessions, and the audit log."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0039"
down_revision = "0036"


def _text(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def _ascii(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="ascii", collation="ascii_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "users",
        sa.Column("name", _ascii(64), primary_key=True),
        sa.Column("role", _ascii(16), nullable=False),
        sa.Column("providers", _ascii(1000), nullable=False),
        sa.Column("password", _ascii(255), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", _ascii(64), primary_key=True),
        sa.Column("name", _ascii(64), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column(
            "entryid",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            primary_key=True,
            autoincrement=True,
        ),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("who", _text(64), nullable=False),
        sa.Column("place", _ascii(16), nullable=False),
        sa.Column("action", _ascii(32), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("detail", _text(255), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_sessions_name", "sessions", ["name"])
    op.create_index("ix_sessions_expires", "sessions", ["expires"])
    op.create_index("ix_audit_at", "audit", ["at"])
    op.create_index("audit_pid", "audit", ["pid", "entryid"])


def downgrade() -> None:
    """Drop them."""
    op.drop_table("audit")
    op.drop_table("sessions")
    op.drop_table("users")
