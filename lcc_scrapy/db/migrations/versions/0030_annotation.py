"""The annotation engine: interests, documents that wait for it, what it found, and who is told.

What an interrupted upgrade did on MariaDB and MySQL, which commit each statement, is left out at the next.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0030"
down_revision = "0025"


def _exact(width: int, charset: str) -> sa.types.TypeEngine[str]:
    collation = {"ascii": "ascii_bin", "utf8mb4": "utf8mb4_bin"}[charset]
    theirs = mysql.VARCHAR(width, charset=charset, collation=collation)
    return sa.String(width).with_variant(theirs, "mysql", "mariadb")


def _long() -> sa.types.TypeEngine[str]:
    theirs = mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin")
    return sa.Text().with_variant(theirs, "mysql", "mariadb")


def _key() -> sa.types.TypeEngine[bytes]:
    return sa.LargeBinary(16).with_variant(sa.BINARY(16), "mysql", "mariadb")


def _counted(name: str) -> sa.Column[int]:
    type_ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column(name, type_, primary_key=True, autoincrement=True)


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in names]


def _col(name: str, type_: sa.types.TypeEngine[Any], *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, type_, nullable=null)


def upgrade() -> None:
    """Add the tables."""
    _interests()
    _findings()
    _alerts()


def _interests() -> None:
    op.create_table(
        "urd",
        _counted("urdid"),
        _col("owner", _exact(64, "utf8mb4")),
        _col("uri", _exact(2048, "utf8mb4")),
        *_numbers("timing", "lastcheck"),
        _col("port", sa.Integer()),
        _col("protocol", _exact(8, "ascii")),
        _col("method", _exact(8, "ascii")),
        _col("processtype", _exact(16, "ascii")),
        _col("rule", _long()),
        _col("depth", sa.Integer()),
        _col("urgency", sa.SmallInteger()),
        *_numbers("threshold"),
        _col("expires", sa.BigInteger(), null=True),
        *_numbers("revision", "due"),
        _col("run_upto", _key(), null=True),
        *_numbers("urihash"),
        _col("refused", _exact(255, "utf8mb4")),
        if_not_exists=True,
        sqlite_autoincrement=True,
    )
    op.create_index("urd_owner", "urd", ["owner", "urdid"], if_not_exists=True)
    op.create_index("urd_due", "urd", ["due"], if_not_exists=True)
    op.create_index("urd_urgency", "urd", ["urgency", "due"], if_not_exists=True)
    op.create_index("urd_urihash", "urd", ["urihash", "urdid"], if_not_exists=True)
    op.create_index("urd_revision", "urd", ["revision"], unique=True, if_not_exists=True)
    op.create_index("urd_run", "urd", ["run_upto"], if_not_exists=True)
    op.create_table(
        "urd_keyword",
        sa.Column("urdid", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("position", sa.Integer(), primary_key=True, autoincrement=False),
        _col("key", _exact(200, "utf8mb4")),
        _col("weight", sa.Integer()),
        if_not_exists=True,
    )
    op.create_table(
        "removed_urds",
        sa.Column("revision", sa.BigInteger(), primary_key=True, autoincrement=False),
        *_numbers("urdid"),
        if_not_exists=True,
    )


def _findings() -> None:
    op.create_table(
        "aequeue",
        sa.Column("urlkey", _key(), primary_key=True),
        *_numbers("seq", "position", "since"),
        _col("urdids", _long()),
        *_numbers("base"),
        if_not_exists=True,
    )
    op.create_index("aequeue_position", "aequeue", ["position"], unique=True, if_not_exists=True)
    op.create_table(
        "aci",
        sa.Column("urlkey", _key(), primary_key=True),
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("owner", _exact(64, "utf8mb4"), primary_key=True),
        *_numbers("number", "urdid", "pid"),
        _col("extension", _exact(16, "utf8mb4")),
        _col("format", _exact(64, "utf8mb4")),
        *_numbers("relevance", "updatetime", "filesize"),
        _col("uri", _exact(2048, "utf8mb4")),
        _col("urgency", sa.SmallInteger()),
        _col("docbase", _exact(64, "ascii")),
        _col("expired", sa.Boolean()),
        _col("title", _exact(255, "utf8mb4")),
        _col("summary", _exact(2000, "utf8mb4")),
        _col("detail", _long()),
        *_numbers("made"),
        if_not_exists=True,
    )
    op.create_index("aci_number", "aci", ["number"], unique=True, if_not_exists=True)
    op.create_index("aci_owner", "aci", ["owner", "number"], if_not_exists=True)
    op.create_index("aci_expired", "aci", ["expired", "made"], if_not_exists=True)


def _alerts() -> None:
    op.create_table(
        "recipients",
        _counted("recipientid"),
        _col("owner", _exact(64, "utf8mb4")),
        _col("channel", _exact(16, "ascii")),
        _col("address", _exact(2048, "utf8mb4")),
        _col("format", _exact(8, "ascii")),
        _col("digest", sa.Boolean()),
        _col("secret", _exact(64, "ascii")),
        _col("off", sa.Boolean()),
        *_numbers("created"),
        _col("refused", _exact(255, "utf8mb4")),
        _col("tries", sa.Integer()),
        *_numbers("not_before", "due", "deadline"),
        if_not_exists=True,
        sqlite_autoincrement=True,
    )
    op.create_index("recipients_owner", "recipients", ["owner", "recipientid"], if_not_exists=True)
    op.create_index("recipients_due", "recipients", ["channel", "due"], if_not_exists=True)
    op.create_table(
        "alerts",
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("recipientid", sa.BigInteger(), primary_key=True, autoincrement=False),
        _col("state", _exact(16, "ascii")),
        _col("tries", sa.Integer()),
        *_numbers("not_before", "deadline", "sent", "digest"),
        if_not_exists=True,
    )
    op.create_index("alerts_due", "alerts", ["recipientid", "state", "not_before"], if_not_exists=True)
    op.create_index("alerts_deadline", "alerts", ["recipientid", "state", "deadline"], if_not_exists=True)
    op.create_index("alerts_state", "alerts", ["state", "deadline"], if_not_exists=True)


def downgrade() -> None:
    """Drop the tables."""
    for table in ("alerts", "recipients", "aci", "aequeue", "removed_urds", "urd_keyword", "urd"):
        op.drop_table(table)
