"""Earlier contents of documents."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0005"
down_revision = "0004"

_KEY = sa.LargeBinary(16).with_variant(mysql.BINARY(16), "mysql", "mariadb")


def _text(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def _ascii(width: int) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset="ascii", collation="ascii_bin")
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "versions",
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("urlkey", _KEY, nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("replaced_time", sa.BigInteger(), nullable=False),
        sa.Column("fetched_time", sa.BigInteger(), nullable=False),
        sa.Column("fetched_machineid", sa.Integer(), nullable=False),
        sa.Column("fetched_fileid", sa.BigInteger(), nullable=False),
        sa.Column("fetched_len", sa.BigInteger(), nullable=False),
        sa.Column("fetched_md5", _ascii(32), nullable=False),
        sa.Column("sha256", _ascii(64), nullable=False),
        sa.Column("served_type", _text(127), nullable=False),
        sa.Column("served_charset", _text(64), nullable=False),
        sa.Column("file_encoding", _ascii(16), nullable=False),
        sa.Column("final_url", _text(2048), nullable=False),
        sa.Column("etag", _text(255), nullable=False),
        sa.Column("last_modified", _text(64), nullable=False),
    )
    op.create_index("versions_key", "versions", ["urlkey"])
    op.create_index("versions_pid", "versions", ["pid", "urlkey", "replaced_time"])
    op.create_index("versions_file", "versions", ["fetched_machineid", "fetched_fileid"])


def downgrade() -> None:
    """Drop the table; ``lcc verify --repair`` frees the files."""
    op.drop_table("versions")
