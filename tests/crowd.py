"""A crowd of providers, written straight into a store as intake and settling would leave them."""

from collections.abc import Iterator

from sqlalchemy import insert, text

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import SetPart, StoredTurn, TurnDelta
from lcc_scrapy.db.sql.rows import RowsOf
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.queue import QueuedUrl

AT_ONCE = 500


def fill(store: SqlStore, pids: range, *, urls: int, documents: int, now: int, confirmed: int = 0) -> None:
    """Write providers, each with ``urls`` that wait and ``documents``; sets have the numbers of providers."""
    for some in _portions(pids, AT_ONCE):
        with store.begin() as tx:
            connection = tx._c
            made = [
                Provider(pid, "", nurlproc=urls, fileused=documents, created=now, confirmed=confirmed)
                for pid in some
            ]
            RowsOf(t.pidb, Provider).insert(connection, made)
            connection.execute(insert(t.proots), [{"pid": pid, "root": root(pid)} for pid in some])
            tx.insert_queued([waiting(pid, number) for pid in some for number in range(urls)])
            tx.insert_cached([stored(pid, number, now) for pid in some for number in range(documents)])
            if urls:
                RowsOf(t.qpsdb, SetPart).insert(
                    connection, [SetPart(pid, "", pid, -1, 0, urls) for pid in some]
                )
                RowsOf(t.turns, StoredTurn).insert(
                    connection, [StoredTurn(str(pid), waiting=urls, arrivals=1) for pid in some]
                )


def _portions(pids: range, size: int) -> Iterator[range]:
    for start in range(0, len(pids), size):
        yield pids[start : start + size]


def root(pid: int) -> str:
    return f"http://h{pid}.example.org/"


def waiting(pid: int, number: int) -> QueuedUrl:
    url = f"{root(pid)}new-{number}.html"
    key = urlkey(pid, url, "text/html")
    return QueuedUrl(
        key, pid, url, "text/html", "", url, url, None, None, None, "", pid, number + 1, "fetch", 1, 0, 0
    )


def stored(pid: int, number: int, now: int) -> CachedUrl:
    url, seq = f"{root(pid)}{number}.html", pid * 100_000 + number
    return CachedUrl(
        urlkey(pid, url, "text/html"), pid, url, "text/html", "", url, url, None, None, None, "", now, 1, seq, 0,
        "0" * 32, "0" * 64, "text/html", "utf-8", "", url, "", "", now, "push", seq, 0, 0, 0,
    )  # fmt: skip


def lengthen(store: SqlStore, pid: int, count: int) -> None:
    """Let so many more URLs of a provider wait, behind those that do (SQLite only: it makes them by itself)."""
    statement = """
        INSERT INTO qdb (urlkey, pid, curl, mimetype, subtype, furl, timeofday, psetid, position, operation,
                         version, tries, not_before, origin, seen)
        WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)
        SELECT randomblob(16), :pid, :root || n, 'text/html', '', :root || n, '', 1000000, n, 'fetch',
               1, 0, 0, 'push', 0 FROM numbers
    """
    with store.begin() as tx:
        tx._c.execute(text(statement), {"count": count, "pid": pid, "root": f"{root(pid)}long-"})
        tx.add_to_parts({(1_000_000, "", pid): count}, {pid: 0})
        tx.add_to_turns({str(pid): TurnDelta(count, arrived=True)})
        tx.add_to_provider(pid, {"nurlproc": count})


def kept(pid: int, number: int) -> str:
    return f"{root(pid)}kept-{number}"


def stock(store: SqlStore, pid: int, count: int) -> None:
    """Give a provider so many more documents like the one that it has (SQLite only: it makes them by itself)."""
    made = {
        "urlkey": "key_of(n)",
        **dict.fromkeys(("curl", "furl"), ":root || n"),
        **dict.fromkeys(("seq", "fetched_fileid"), ":first + n"),
    }
    names = [column.name for column in t.lccurl.columns]
    statement = f"""
        INSERT INTO lccurl ({", ".join(names)})
        WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count),
                       model AS (SELECT * FROM lccurl WHERE pid = :pid LIMIT 1)
        SELECT {", ".join(made.get(name, name) for name in names)} FROM numbers, model
    """
    with store.begin() as tx:
        driver = tx._c.connection.driver_connection
        driver.create_function("key_of", 1, lambda number: urlkey(pid, kept(pid, number), "text/html"))
        said = {"count": count, "pid": pid, "root": kept(pid, 0)[:-1], "first": pid * 10_000_000}
        tx._c.execute(text(statement), said)
        tx.add_to_provider(pid, {"fileused": count})
