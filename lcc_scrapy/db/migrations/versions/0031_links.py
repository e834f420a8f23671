"""The links of a document are one deflated row; what owners asked for, and withdrawals of that.

On MariaDB and MySQL, which commit each statement, an interrupted upgrade goes on behind the last document
whose links were converted. The new table takes the place of the old one when all of them were.
"""

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql

revision = "0031"
down_revision = "0030"

PAGE = 200
"""Documents whose links are converted at a time."""

_MYSQL = frozenset({"mysql", "mariadb"})
_KEY = sa.LargeBinary(16).with_variant(mysql.BINARY(16), "mysql", "mariadb")
_LONG = sa.LargeBinary().with_variant(mysql.MEDIUMBLOB(), "mysql", "mariadb")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_NO_WORDS = 0
_WORDS_MAX = 16 * 1024
_WORDS_KEPT = 1000
"""Providers whose dictionaries are kept in memory; a further one of those forgotten is made anew."""

_OLD = sa.table("links", *map(sa.column, ("urlkey", "position", "url", "relation", "nofollow")))
_NEW = sa.table("links_rebuilt", *map(sa.column, ("urlkey", "words", "body")))
_WORDS = sa.table("linkwords", *map(sa.column, ("wordsid", "pid", "body")))
_CACHED = sa.table("lccurl", *map(sa.column, ("urlkey", "pid")))

_Link = tuple[str, str, bool]
_Links = dict[bytes, list[_Link]]


def upgrade() -> None:
    """Convert links, and note what was asked for: of what is there, nobody knows, so all of it counts."""
    _upgrade_links()
    if context.is_offline_mode() or not _has("owners", "asked"):
        op.add_column(
            "owners", sa.Column("asked", sa.Integer(), nullable=False, server_default=sa.text("-1"))
        )
    op.execute("UPDATE owners SET asked = reach WHERE asked < reach")
    op.create_index("owners_owner", "owners", ["owner", "pid", "furlkey"], if_not_exists=True)
    op.create_table(
        "withdrawals",
        sa.Column("owner", _exact(64, "utf8mb4"), primary_key=True),
        sa.Column("changes", sa.BigInteger(), nullable=False),
        if_not_exists=True,
    )

    _make_irrelevant()


def _make_irrelevant() -> None:
    op.create_table(
        "irrelevant",
        sa.Column("urlkey", _KEY, primary_key=True),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("furl", _exact(2048, "utf8mb4"), nullable=False),
        sa.Column("etag", _exact(255, "utf8mb4"), nullable=False),
        sa.Column("last_modified", _exact(64, "utf8mb4"), nullable=False),
        sa.Column("sha256", _exact(64, "ascii"), nullable=False),
        sa.Column("terms", _exact(64, "ascii"), nullable=False),
        sa.Column("dropped", sa.BigInteger(), nullable=False),
        sa.Column("furlkey", _KEY, nullable=False),
        if_not_exists=True,
    )
    op.create_index("irrelevant_furlkey", "irrelevant", ["furlkey"], if_not_exists=True)
    op.create_index("irrelevant_pid", "irrelevant", ["pid", "urlkey"], if_not_exists=True)
    op.create_table(
        "unwanted",
        sa.Column("urlkey", _KEY, primary_key=True),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        if_not_exists=True,
    )


def _upgrade_links() -> None:
    op.create_table(
        "linkwords",
        sa.Column("wordsid", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("body", _LONG, nullable=False),
        if_not_exists=True,
        sqlite_autoincrement=True,
    )
    op.create_index("ix_linkwords_pid", "linkwords", ["pid"], if_not_exists=True)
    if context.is_offline_mode():
        _make()
        op.execute("-- here the upgrade converts the links of every document")
        op.drop_table("links")
    elif _has("links", "position"):
        _make()
        _convert()
        op.drop_table("links")
    if context.is_offline_mode() or _has("links_rebuilt", "body"):
        op.rename_table("links_rebuilt", "links")


def _make() -> None:
    op.create_table(
        "links_rebuilt",
        sa.Column("urlkey", _KEY, nullable=False),
        sa.Column("words", sa.BigInteger(), nullable=False),
        sa.Column("body", _LONG, nullable=False),
        sa.PrimaryKeyConstraint("urlkey", name="links_words_pkey"),
        if_not_exists=True,
    )


def _has(table: str, column: str) -> bool:
    found = sa.inspect(op.get_bind())
    return found.has_table(table) and column in {one["name"] for one in found.get_columns(table)}


# --- conversion -------------------------------------------------------------------------------------


def _convert() -> None:
    connection = op.get_bind()
    progress: Callable[[int, int], None] = context.config.attributes.get("progress") or (lambda *_: None)
    done = int(connection.execute(sa.select(sa.func.count()).select_from(_NEW)).scalar_one())
    total = done
    words: dict[int, tuple[int, bytes]] = {}
    for links in _pages(connection):
        _convert_some(connection, links, words)
        if connection.dialect.name in _MYSQL:
            connection.exec_driver_sql("COMMIT")
        done, total = done + len(links), max(total, done + len(links))
        progress(done, total)


def _convert_some(connection: sa.Connection, links: _Links, words: dict[int, tuple[int, bytes]]) -> None:
    whose = sa.select(_CACHED.c.urlkey, _CACHED.c.pid).where(_CACHED.c.urlkey.in_(list(links)))
    pids = {bytes(key): int(pid) for key, pid in connection.execute(whose)}
    for pid in set(pids.values()) - words.keys():
        while len(words) >= _WORDS_KEPT:
            words.pop(next(iter(words)))
        words[pid] = _make_words(connection, pid, [links[key] for key in links if pids.get(key) == pid])
    rows = []
    for key, found in links.items():  # those of no document are garbage
        if key in pids:
            number, body = words[pids[key]]
            rows.append({"urlkey": key, "words": number, "body": _packed(found, body)})
    if rows:
        connection.execute(_NEW.insert(), rows)


def _pages(connection: sa.Connection) -> Iterator[_Links]:
    last = sa.select(_NEW.c.urlkey).order_by(_NEW.c.urlkey.desc()).limit(1)
    after = bytes(connection.execute(last).scalar() or b"")
    while True:
        keys = sa.select(_OLD.c.urlkey).distinct().where(_OLD.c.urlkey > after)
        found = [bytes(key) for (key,) in connection.execute(keys.order_by(_OLD.c.urlkey).limit(PAGE))]
        if not found:
            return
        yield _links_between(connection, found[0], found[-1])
        after = found[-1]


def _links_between(connection: sa.Connection, first: bytes, last: bytes) -> _Links:
    c = _OLD.c
    query = sa.select(c.urlkey, c.url, c.relation, c.nofollow).where(c.urlkey.between(first, last))
    links: _Links = {}
    for key, url, relation, nofollow in connection.execute(query.order_by(c.urlkey, c.position)):
        links.setdefault(bytes(key), []).append((str(url), str(relation), bool(nofollow)))
    return links


# --- how links are stored; as the code did when this was written: a migration stays as it is ----------


def _make_words(connection: sa.Connection, pid: int, documents: list[list[_Link]]) -> tuple[int, bytes]:
    body = _words_of(documents)
    if not body:
        return _NO_WORDS, b""
    connection.execute(_WORDS.insert().values(pid=pid, body=body))
    newest = sa.select(sa.func.max(_WORDS.c.wordsid)).where(_WORDS.c.pid == pid)
    return int(connection.execute(newest).scalar_one()), body


def _words_of(documents: list[list[_Link]]) -> bytes:
    counted = Counter(url for links in documents for url in sorted({one[0] for one in links}))
    room, words = _WORDS_MAX, []
    for url, _ in counted.most_common():
        word = json.dumps(url)[1:-1]
        room -= len(word) + 3
        if room < 0:
            break
        words.append(word)
    return '","'.join(reversed(words)).encode("ascii")


def _packed(links: list[_Link], words: bytes) -> bytes:
    kinds = groupby((relation, int(nofollow)) for _, relation, nofollow in links)
    runs = [(*kind, sum(1 for _ in run)) for kind, run in kinds]
    text = json.dumps([[url for url, _, _ in links], runs], separators=(",", ":")).encode("ascii")
    if words:
        deflate = zlib.compressobj(6, zlib.DEFLATED, -15, 8, zlib.Z_DEFAULT_STRATEGY, words)
    else:
        deflate = zlib.compressobj(6, zlib.DEFLATED, -15, 8)
    return deflate.compress(text) + deflate.flush()


def downgrade() -> None:
    """Go back to an empty table of the earlier form; spiders read pages again, as after other rules."""
    for table in ("unwanted", "irrelevant", "withdrawals"):
        op.drop_table(table)
    op.drop_index("owners_owner", "owners")
    op.drop_column("owners", "asked")
    op.drop_table("links")
    op.drop_table("linkwords")
    op.create_table(
        "links",
        sa.Column("urlkey", _KEY, primary_key=True),
        sa.Column("position", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("url", _exact(2048, "utf8mb4"), nullable=False),
        sa.Column("relation", _exact(32, "ascii"), nullable=False),
        sa.Column("nofollow", sa.Boolean(), nullable=False),
    )
    op.execute("UPDATE scans SET rules = '', taken = 0")


def _exact(width: int, charset: str) -> sa.types.TypeEngine[str]:
    collation = {"ascii": "ascii_bin", "utf8mb4": "utf8mb4_bin"}[charset]
    theirs = mysql.VARCHAR(width, charset=charset, collation=collation)
    return sa.String(width).with_variant(theirs, "mysql", "mariadb")
