"""The mirror tracker: domains, servers, the directories of these with their identities, and rules of scans.

Databases that were made when the core had these tables have them already.
"""

from typing import Any

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None

_MYSQL = frozenset({"mysql", "mariadb"})


def _exact(width: int, charset: str) -> sa.types.TypeEngine[str]:
    collation = {"ascii": "ascii_bin", "utf8mb4": "utf8mb4_bin"}[charset]
    theirs = mysql.VARCHAR(width, charset=charset, collation=collation)
    return sa.String(width).with_variant(theirs, "mysql", "mariadb")


def _bytes(width: int) -> sa.types.TypeEngine[bytes]:
    return sa.LargeBinary(width).with_variant(sa.VARBINARY(width), "mysql", "mariadb")


def _key() -> sa.types.TypeEngine[bytes]:
    return sa.LargeBinary(16).with_variant(sa.BINARY(16), "mysql", "mariadb")


def _number(name: str) -> sa.Column[int]:
    type_ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column(name, type_, primary_key=True, autoincrement=False)


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in names]


def _col(name: str, type_: sa.types.TypeEngine[Any], *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, type_, nullable=null)


def upgrade() -> None:
    """Add the tables, and the view of what is shown."""
    _servers()
    _rules()
    _directories()
    begin = "CREATE OR REPLACE VIEW"
    dialect = context.get_context().dialect.name
    if dialect in _MYSQL:
        begin = "CREATE OR REPLACE SQL SECURITY INVOKER VIEW"
    elif dialect == "sqlite":
        begin = "CREATE VIEW IF NOT EXISTS"
    op.execute(
        f"{begin} tr_digests AS"  # noqa: S608
        " SELECT d.dirid, h.domain, h.url, d.parent, d.name, d.md5, d.sha, h.scanned"
        " FROM tr_dir d JOIN tr_host h ON h.hostid = d.hostid"
        " AND d.dirid >= h.first AND d.dirid < h.first + h.dirs"
    )


def _servers() -> None:
    op.create_table(
        "tr_domain",
        sa.Column("domain", _exact(63, "ascii"), primary_key=True),
        *_numbers("created"),
        _col("peer", _exact(2048, "utf8mb4")),
        *_numbers("generation"),
        _col("validator", _exact(255, "utf8mb4")),
        *_numbers("checked"),
        _col("error", _exact(255, "utf8mb4")),
        _col("owner", _exact(64, "utf8mb4")),
        *_numbers("claimed"),
        if_not_exists=True,
    )
    op.create_table(
        "tr_host",
        _number("hostid"),
        _col("domain", _exact(63, "ascii")),
        _col("url", _exact(2048, "utf8mb4")),
        _col("site", _exact(300, "ascii")),
        *_numbers("created", "first", "dirs", "files", "links", "digests", "unsound", "scanned"),
        _col("adapter", _exact(16, "ascii")),
        _col("validator", _exact(255, "utf8mb4")),
        *_numbers("due"),
        _col("owner", _exact(64, "utf8mb4")),
        *_numbers("claimed"),
        _col("failures", sa.Integer()),
        _col("error", _exact(255, "utf8mb4")),
        if_not_exists=True,
    )
    indexes = {"domain": ["domain", "hostid"], "site": ["site"], "due": ["due"], "claimed": ["claimed"]}
    for index, columns in indexes.items():
        op.create_index(f"tr_host_{index}", "tr_host", columns, if_not_exists=True)


def _rules() -> None:
    op.create_table(
        "tr_rules",
        _number("hostid"),
        *_numbers("every"),
        _col("timeofday", _exact(168, "ascii")),
        _col("timezone", _exact(64, "ascii")),
        *_numbers("bandwidth"),
        _col("private", sa.Boolean()),
        if_not_exists=True,
    )


def _directories() -> None:
    op.create_table("tr_load", _number("first"), *_numbers("dirs", "claimed"), if_not_exists=True)
    op.create_table(
        "tr_dir",
        _number("dirid"),
        *_numbers("hostid", "parent", "first"),
        _col("dirs", sa.Integer()),
        _col("name", _bytes(255)),
        _col("md5", _key(), null=True),
        _col("sha", _key(), null=True),
        _col("tag", sa.Integer(), null=True),
        if_not_exists=True,
    )
    op.create_index("tr_dir_tag", "tr_dir", ["tag"], if_not_exists=True)
    for table, name, width in (("tr_link", "target", 4095), ("tr_hash", "digest", 64)):
        op.create_table(
            table,
            sa.Column("dirid", sa.BigInteger(), primary_key=True, autoincrement=False),
            sa.Column("name", _bytes(255), primary_key=True),
            _col(name, _bytes(width)),
            if_not_exists=True,
            sqlite_with_rowid=False,
        )


def downgrade() -> None:
    """Drop them."""
    op.execute("DROP VIEW IF EXISTS tr_digests")
    for table in ("tr_hash", "tr_link", "tr_dir", "tr_load", "tr_rules", "tr_host", "tr_domain"):
        op.drop_table(table)
