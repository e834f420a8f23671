"""How many bytes a URL takes in each table and index, as the LCC grows.

Writes rows as a crawl leaves them, through the verbs of the product: a document with its answer for each URL,
and for one of ten also a waiting URL, a failure, links, a page of a spider, a tombstone. Real URLs arrive in
no order of their keys, and so do these. Contents are not written.

    python bench/capacity.py                                            # SQLite, 10,000 and 100,000 documents
    python bench/capacity.py --database postgresql --at 100000 1000000
"""

import time
from collections.abc import Iterator, Mapping
from hashlib import md5

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.lcc import Lcc, database
from sqlalchemy import Connection, Engine, inspect

from lcc_scrapy.db.records import FEED, DocumentLink, LastOutcome, Spidered
from lcc_scrapy.db.sql.store import SqlStore, make_engine
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.cache import CachedUrl, Tombstone, UrlMeta
from lcc_scrapy.domain.entries import furlkey, urlkey
from lcc_scrapy.domain.queue import QueuedUrl

HTML, NOW = "text/html", 1_800_000_000
OF_A_PROVIDER = 10_000
"""Documents of one provider."""
ONE_OF = 10
"""Which share of the URLs also has a row in the tables beside ``lccurl``."""
AT_ONCE = 20_000
LINKS = 30
HEADERS = (
    '[["Server","nginx/1.22.1"],["Date","Fri, 15 Jan 2027 08:00:00 GMT"],'
    '["Content-Type","text/html; charset=utf-8"],["Content-Length","31415"],'
    '["Last-Modified","Thu, 14 Jan 2027 07:00:00 GMT"],["ETag","\\"69a7f1d2-7ab7\\""],'
    '["Cache-Control","max-age=300"],["Vary","Accept-Encoding"],["Strict-Transport-Security","max-age=31536000"]]'
)
HEADINGS = ("table or index", "rows", "MB", "bytes per row")
KINDS = ("sqlite", "mariadb", "postgresql")
BESIDE = ("qdb", "outcomes", "links", "spidered", "tombstones")

_SIZES = {
    "sqlite": "select s.name, m.tbl_name, sum(s.pgsize) from dbstat s join sqlite_master m on m.name = s.name"
    " group by s.name",
    "mysql": "select case index_name when 'PRIMARY' then table_name else index_name end, table_name,"
    " stat_value * @@innodb_page_size from mysql.innodb_index_stats"
    " where stat_name = 'size' and database_name = database()",
    "postgresql": "select c.relname, coalesce(t.relname, c.relname), pg_relation_size(c.oid)"
    " + coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0) from pg_class c"
    " left join pg_index i on i.indexrelid = c.oid left join pg_class t on t.oid = i.indrelid"
    " where c.relkind in ('r', 'i') and c.relnamespace = 'public'::regnamespace",
}
"""(name, its table, bytes) of tables and indexes; in MariaDB the primary key is the table itself."""


def url_of(number: int) -> tuple[int, str]:
    """Return the provider and the URL (72 characters) of a document."""
    pid = number // OF_A_PROVIDER + 1
    return pid, f"http://www.site{pid:05d}.example/news/2027/01/{number:08d}-a-title-of-words.html"


def document(number: int, seq: int) -> CachedUrl:
    """Return the row of a document."""
    pid, url = url_of(number)
    digest = md5(url.encode(), usedforsecurity=False).hexdigest()
    return CachedUrl(
        urlkey(pid, url, HTML), pid, url, HTML, "", url, url, NOW, 31_415, digest, "", NOW + number // 100, 1,
        number + 1, 31_415, digest, digest * 2, HTML, "utf-8", "", url, '"69a7f1d2-7ab7"',
        "Thu, 14 Jan 2027 07:00:00 GMT", NOW, seq=seq, head_len=len(HEADERS),
    )  # fmt: skip


def write(tx: Tx, first: int, count: int) -> None:
    """Put documents and what stands beside them."""
    seq = tx.take(FEED, count)
    rows = [document(first + n, seq + n) for n in range(count)]
    metas = {row.urlkey: UrlMeta(row.urlkey, "HTTP/1.1 200 OK", HEADERS, "192.0.2.17", NOW) for row in rows}
    tx.insert_cached(rows, metas)
    some = rows[::ONE_OF]
    tx.insert_queued([_waiting(row) for row in some])
    tx.put_outcomes(
        [LastOutcome(r.urlkey, r.pid, 404, "Not Found", NOW, curl=r.curl, mimetype=HTML) for r in some]
    )
    tx.insert_spidered([Spidered(furlkey(r.pid, r.furl), r.pid, r.furl, 3, None, NOW) for r in some])
    for pid, links in _links(some).items():
        tx.put_links(links, pid)
    gone = tx.take(FEED, len(some))
    tx.put_tombstones([_gone(row, gone + n) for n, row in enumerate(some)])


def _waiting(row: CachedUrl) -> QueuedUrl:
    return QueuedUrl(
        row.urlkey, row.pid, row.curl, HTML, "", row.burl, row.furl, row.mtime, row.len, row.md5, "", row.pid,
        row.fetched_fileid, "fetch", 1, 0, 0,
    )  # fmt: skip


def _gone(row: CachedUrl, seq: int) -> Tombstone:
    url = row.curl + "?gone"
    return Tombstone(urlkey(row.pid, url, HTML), row.pid, url, HTML, url, "fetched: 404 Not Found", NOW, seq)


def _links(rows: list[CachedUrl]) -> Mapping[int, dict[bytes, list[DocumentLink]]]:
    found: dict[int, dict[bytes, list[DocumentLink]]] = {}
    for row in rows:
        near = (url_of(row.fetched_fileid + 37 * n)[1] for n in range(LINKS))
        found.setdefault(row.pid, {})[row.urlkey] = [DocumentLink(url, "a") for url in near]
    return found


def sizes(engine: Engine) -> Iterator[tuple[str, str, int, int]]:
    """Give name, table, rows of the table and bytes of each table and index that has rows here."""
    kind = engine.dialect.name
    with engine.connect() as connection:
        if kind == "mysql":
            connection.exec_driver_sql("analyze table " + ", ".join(inspect(engine).get_table_names())).all()
        found = connection.exec_driver_sql(_SIZES[kind].replace("%", "%%")).all()
        rows = {name: _count(connection, name) for name in ("lccurl", *BESIDE)}
    for name, table, size in sorted(found):
        if rows.get(table):
            yield name, table, rows[table], int(size)


def _count(connection: Connection, table: str) -> int:
    return int(connection.exec_driver_sql(f"select count(*) from {table}").scalar_one())


def lines(engine: Engine) -> Iterator[tuple[str, ...]]:
    """Give the rows of the table, each database table with the sum of its indexes first."""
    found = list(sizes(engine))
    for table in ("lccurl", *BESIDE):
        mine = [one for one in found if one[1] == table]
        if mine:
            total = sum(size for *_, size in mine)
            yield (f"**{table}**", f"{mine[0][2]:,}", f"{total / 1e6:,.1f}", f"{total / mine[0][2]:,.0f}")
        for name, _, rows, size in mine:
            yield (name, "", f"{size / 1e6:,.1f}", f"{size / rows:,.0f}")


def main() -> None:
    """Fill and print."""
    options = parser(__doc__, "--markdown", "--scratch")
    options.add_argument("--database", choices=KINDS, default="sqlite")
    options.add_argument("--at", type=int, nargs="+", default=[10_000, 100_000], help="documents, rising")
    given = parsed(options)
    with running.scratch(given.scratch) as folder, database(given.database, folder) as url:
        Lcc(folder, url).command("init")
        store, engine, done, begun = SqlStore(url), make_engine(url), 0, time.monotonic()
        for goal in given.at:
            while done < goal:
                with store.begin() as tx:
                    write(tx, done, count := min(AT_ONCE, goal - done))
                done += count
            took = time.monotonic() - begun
            title = f"{given.database}, {done:,} documents, filled in {took:,.0f} s"
            tables.show(title, HEADINGS, list(lines(engine)), given.markdown)
        store.close()
        engine.dispose()


if __name__ == "__main__":
    main()
