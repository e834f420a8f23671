"""Waiting URLs are numbered as they arrive, and read in that order; numbered pages have hashes side by side.

What an interrupted upgrade did on MariaDB and MySQL, which commit each statement, is left out at the next.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from typing import Any
from zlib import crc32

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql

revision = "0023"
down_revision = "0022"

PAGE = 1000
"""Rows that are read, and given their hashes, at a time."""

_TABLES = ("qdb", "lccurl", "tombstones", "outcomes")
_KNOWN = {name: sa.text(f"{name} IS NOT NULL") for name in ("furlhash", "furlkey")}
_KEY = sa.LargeBinary(16).with_variant(mysql.BINARY(16), "mysql", "mariadb")
_MYSQL = frozenset({"mysql", "mariadb"})
_COUNTED_ANEW = (
    "UPDATE psets SET phase = 'keys', counted = 0, absent = 0, unfetched = 0 WHERE phase = 'absent'",
    "UPDATE psets SET progress = 0, upto = NULL WHERE phase IN ('keys', 'removals', 'holds')",
)
"""How far a full set was looked through is told in another way: those that are under way begin it anew."""

Hash = Callable[[str], int]


def upgrade() -> None:
    """Number the rows of the queue, then hash all names anew."""
    if not _has_number():
        _number()
    _look_anew()
    _hash_anew(_hash, {"qdb": "id"})


def downgrade() -> None:
    """Go back to the key as the only one, and to the earlier hashes."""
    _unnumber()
    _look_anew()
    _hash_anew(_earlier_hash, {})


# --- numbers ----------------------------------------------------------------------------------------


def _kind() -> str:
    return str(context.get_context().dialect.name)


def _has_number() -> bool:
    if context.is_offline_mode():
        return False
    return "id" in {one["name"] for one in sa.inspect(op.get_bind()).get_columns("qdb")}


def _number() -> None:
    kind = _kind()
    if kind in _MYSQL:
        op.execute(
            "ALTER TABLE qdb DROP PRIMARY KEY,"
            " ADD COLUMN id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY FIRST,"
            " ADD UNIQUE INDEX qdb_urlkey (urlkey), DROP INDEX qdb_pid, ADD INDEX qdb_pid (pid, id)"
        )
        return
    op.drop_index("qdb_pid", "qdb")
    if kind == "sqlite":
        _rebuild([sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True)], _plain_columns())
    else:
        op.execute("ALTER TABLE qdb DROP CONSTRAINT qdb_pkey")
        op.execute("ALTER TABLE qdb ADD COLUMN id BIGSERIAL PRIMARY KEY")
    op.create_index("qdb_urlkey", "qdb", ["urlkey"], unique=True)
    op.create_index("qdb_pid", "qdb", ["pid", "id"])


def _unnumber() -> None:
    kind = _kind()
    if kind in _MYSQL:
        op.execute(
            "ALTER TABLE qdb DROP INDEX qdb_pid, DROP COLUMN id, DROP INDEX qdb_urlkey,"
            " ADD PRIMARY KEY (urlkey), ADD INDEX qdb_pid (pid, urlkey)"
        )
        return
    op.drop_index("qdb_pid", "qdb")
    op.drop_index("qdb_urlkey", "qdb")
    if kind == "sqlite":
        _, *others = _plain_columns()
        _rebuild([sa.Column("urlkey", _KEY, primary_key=True)], others)
    else:
        op.execute("ALTER TABLE qdb DROP COLUMN id")
        op.execute("ALTER TABLE qdb ADD PRIMARY KEY (urlkey)")
    op.create_index("qdb_pid", "qdb", ["pid", "urlkey"])


def _rebuild(first: list[sa.Column[Any]], others: list[sa.Column[Any]]) -> None:
    """Copy the queue into a table with another key: SQLite can change none; rows stay in their order."""
    names = ", ".join(column.name for column in _plain_columns())
    op.create_table("qdb_rebuilt", *first, *others)
    op.execute(f"INSERT INTO qdb_rebuilt ({names}) SELECT {names} FROM qdb ORDER BY rowid")  # noqa: S608
    op.drop_table("qdb")
    op.rename_table("qdb_rebuilt", "qdb")
    op.create_index("qdb_order", "qdb", ["pid", "timeofday", "not_before", "psetid", "position"])
    op.create_index("ix_qdb_furlkey", "qdb", ["furlkey"], sqlite_where=_KNOWN["furlkey"])
    if context.is_offline_mode():  # else they are made when all rows have their hashes
        _index_hashes("qdb")


def _plain_columns() -> list[sa.Column[Any]]:
    """Return the columns of the queue before this revision, the key first, as SQLite has them."""
    big, url = sa.BigInteger(), sa.String(2048)
    return [
        sa.Column("urlkey", sa.LargeBinary(16), nullable=False),
        sa.Column("pid", big, nullable=False),
        sa.Column("curl", url, nullable=False),
        sa.Column("mimetype", sa.String(127), nullable=False),
        sa.Column("subtype", sa.String(255), nullable=False),
        sa.Column("burl", url),
        sa.Column("furl", url, nullable=False),
        sa.Column("mtime", big),
        sa.Column("len", big),
        sa.Column("md5", sa.String(32)),
        sa.Column("timeofday", sa.String(168), nullable=False),
        sa.Column("psetid", big, nullable=False),
        sa.Column("position", big, nullable=False),
        sa.Column("operation", sa.String(8), nullable=False),
        sa.Column("version", big, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("not_before", big, nullable=False),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("seen", big, nullable=False),
        sa.Column("furlkey", sa.LargeBinary(16)),
        sa.Column("curlhash", big, nullable=False, server_default=sa.text("0")),
        sa.Column("furlhash", big),
        sa.Column("sent", sa.Text()),
    ]


def _look_anew() -> None:
    for statement in _COUNTED_ANEW:
        op.execute(statement)


# --- hashes -----------------------------------------------------------------------------------------


def _hash_anew(hashed: Hash, keys: Mapping[str, str]) -> None:
    """Give every row other hashes, in bounded portions, without indexes; they are made afterwards.

    ``keys`` are those of tables that are not read by ``urlkey``.
    """
    if context.is_offline_mode():
        op.execute("-- here the upgrade hashes the URLs of every row of qdb, lccurl, tombstones and outcomes")
        return
    connection, done = op.get_bind(), 0
    progress = context.config.attributes.get("progress", lambda _done, _total: None)
    total = sum(
        int(connection.execute(sa.text(f"SELECT COUNT(*) FROM {table}")).scalar_one())  # noqa: S608
        for table in _TABLES
    )
    write = _write_mysql if _kind() in _MYSQL else _write
    for table in _TABLES:
        for name in ("curlhash", "furlhash"):
            op.drop_index(f"{table}_{name}", table, if_exists=True)
        by = keys.get(table, "urlkey")
        for page in _pages(connection, table, by):
            rows = [(key, *_hashes(hashed, curl, furl)) for key, curl, furl in page if curl]
            if rows:
                write(connection, table, by, rows)
            done += len(page)
            progress(done, total)
        _index_hashes(table)


def _index_hashes(table: str) -> None:
    known = _KNOWN["furlhash"]
    op.create_index(f"{table}_curlhash", table, ["curlhash"], if_not_exists=True)
    op.create_index(
        f"{table}_furlhash",
        table,
        ["furlhash"],
        sqlite_where=known,
        postgresql_where=known,
        if_not_exists=True,
    )


def _pages(connection: sa.Connection, table: str, by: str) -> Iterator[Sequence[Any]]:
    rows = sa.table(table, *map(sa.column, (by, "curl", "furl"))).c
    page = first = sa.select(rows[by], rows.curl, rows.furl).order_by(rows[by]).limit(PAGE)
    while found := connection.execute(page).all():
        yield found
        page = first.where(rows[by] > found[-1][0])


def _write(connection: sa.Connection, table: str, by: str, rows: Sequence[tuple[Any, ...]]) -> None:
    mark = "?" if connection.dialect.paramstyle == "qmark" else "%s"
    connection.exec_driver_sql(
        f"UPDATE {table} SET curlhash = {mark}, furlhash = {mark} WHERE {by} = {mark}",  # noqa: S608
        [(curlhash, furlhash, key) for key, curlhash, furlhash in rows],
    )


def _write_mysql(connection: sa.Connection, table: str, by: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write all in one statement: PyMySQL would send one for each row."""
    values = " UNION ALL ".join(
        ["SELECT %s AS k, %s AS c, %s AS f", *["SELECT %s, %s, %s"] * (len(rows) - 1)]
    )
    connection.exec_driver_sql(
        f"UPDATE {table} JOIN ({values}) AS found ON {table}.{by} = found.k"  # noqa: S608
        f" SET {table}.curlhash = found.c, {table}.furlhash = found.f",
        tuple(chain.from_iterable(rows)),
    )


def _hashes(hashed: Hash, curl: str, furl: str) -> tuple[int, int | None]:
    return hashed(curl), None if furl == curl else hashed(furl)


def _hash(url: str) -> int:
    """Return what ``domain.entries.namehash`` returned when this was written, which stays here."""
    name = url.encode("utf-8", "surrogatepass")
    begin = name.rfind(b"/") + 1
    number = name[begin:].rstrip(bytes(sorted(set(range(256)) - set(b"0123456789"))))
    near = (crc32(name[:begin]) & 0xFFFF) << 16 | crc32(number[:-3]) & 0xFFFF
    return (near - (1 << 31)) << 32 | _digest(name)


def _earlier_hash(url: str) -> int:
    name = url.encode("utf-8", "surrogatepass")
    folder = crc32(name[: name.rfind(b"/") + 1]) - (1 << 31)
    return folder << 32 | _digest(name)


def _digest(name: bytes) -> int:
    return int.from_bytes(blake2b(name, digest_size=4).digest(), "big")
