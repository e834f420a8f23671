"""How long the pages of the dashboard take, and how large they are, with very many providers and documents.

A real `lcc web` on loopback, one client, an operator who is signed in; each provider has sets, and counts of
fetches of the last hour. Milliseconds are those that the client waits.

    python bench/dashboard.py --providers 10000 --documents 100
    python bench/dashboard.py --database sqlite mariadb postgresql
"""

import argparse
import dataclasses
import http.client
import re
import time
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from crawling import running, tables
from crawling.command_line import CHECKOUT, parser
from crawling.filling import fill, path_of
from crawling.lcc import Lcc, database, no_mariadb, no_postgresql
from crawling.running import Failed
from crawling.site import Site
from sqlalchemy import select
from web import web

from lcc_scrapy.apps.exports.indexers.fts5 import Fts5
from lcc_scrapy.apps.exports.interface import Item
from lcc_scrapy.content.files import relative_name
from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import EVERYBODY, DocumentLink, Fetched, ProviderSet
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.link_bodies import grown, packed
from lcc_scrapy.db.sql.rows import RowsOf
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.users import Role, User
from lcc_scrapy.feed.store_feed import head_of
from lcc_scrapy.login import people
from lcc_scrapy.login.passwords import hash_password

HEADINGS = ("database", "page", "ms: median", "longest", "KB", "n")
MOST_MS, MOST_KB = 100, 100
SETS = 3
PASSWORD = "correct horse battery"
MISSING = {"mariadb": no_mariadb, "postgresql": no_postgresql}
COUNTS = (("stored", 0), ("unchanged", 304), ("failed", 404), ("retrying", 503))
HELD = 120
LINKS = 42
"""Of a page, as Python's documentation has on average."""


def pages_of(providers: int, row: CachedUrl) -> dict[str, str]:
    """Return the pages, by what they are; ``row`` is some document."""
    listed, middle = "/dashboard/providers", providers // 2
    docid, to = row.docid, urlencode({"url": row.furl})
    return {
        "overview": "/dashboard",
        "workers": "/dashboard/workers",
        "providers": listed,
        "by failed fetches": f"{listed}?order=failures&falling=1",
        "by queue": f"{listed}?order=nurlproc&falling=1",
        "from the middle": f"{listed}?order=pid&value={middle}&after={middle}",
        "search": f"{listed}?q=p{middle}/",
        "one provider": f"{listed}/{middle}",
        "held removals": f"{listed}/1/confirm-removals",
        "one URL": f"/dashboard/urls?url={docid}",
        "its content": f"/dashboard/urls/{docid}/content",
        "links to it": f"/dashboard/urls/links-to?{to}&pid={row.pid}",
        "links to it, of all": f"/dashboard/urls/links-to?{to}",
        "links to no URL": "/dashboard/urls/links-to?url=http://never.example/",
        "search, many": "/dashboard/search?q=often",
        "search, few": "/dashboard/search?q=often+seldom7",
        "changes": "/dashboard/changes",
        "audit log": "/dashboard/audit",
    }


def fill_more(url: str, providers: int) -> None:
    """Add sets, counts of fetches, held removals of provider 1, an operator."""
    store, now = SqlStore(url), int(time.time())
    with store.begin() as tx:
        first = tx.take("psetid", SETS * providers)
        rows = [
            ProviderSet(
                first + n, n % providers + 1, 1, "", "", full=False, received=9, phase="absorbed", progress=9
            )
            for n in range(SETS * providers)
        ]
        connection = tx._c  # type: ignore[attr-defined]  # noqa: SLF001 - many rows by the short way
        RowsOf(t.psets, ProviderSet).insert(connection, rows)
    for span in range(145):
        with store.begin() as tx:
            tx.count_fetches({Fetched(EVERYBODY, *one): 1000 for one in COUNTS}, now - now % 600 - 600 * span)
    for span in range(3):
        with store.begin() as tx:
            tx.count_fetches(
                {Fetched(pid, *one): pid % 9 + 1 for pid in range(1, providers + 1) for one in COUNTS},
                now - 600 * span,
            )
    with store.begin() as tx:
        held = [dataclasses.replace(row, held=1) for row in tx.cached_of(1, b"", HELD)]
        tx.update_cached(held)
        tx.update_provider(1, {"heldremovals": len(held)})
    store.close()
    add_operator(url)


def add_operator(url: str) -> None:
    """Add the operator who looks at the pages."""
    store = SqlStore(url)
    people.add(store, User("otto", Role.OPERATOR, "", hash_password(PASSWORD), int(time.time())))
    store.close()


def some_document(url: str) -> CachedUrl:
    """Return a document of some provider."""
    store = SqlStore(url)
    with store.read() as tx:
        found = tx.documents(b"\x80", 1)[0]
    store.close()
    return found


def fill_links(url: str, to: str) -> None:
    """Let all documents have links of a site, one page of a hundred to a URL."""
    menu = [f"http://www.example.org/section-{n}/index.html" for n in range(LINKS - 1)]
    store = SqlStore(url)
    with store.begin() as tx:
        words = grown(b"", [[DocumentLink(one, "a") for one in menu]])
        made = tx._c.execute(t.linkwords.insert().values(pid=1, body=words))  # type: ignore[attr-defined]  # noqa: SLF001
        number = made.inserted_primary_key[0]
    kinds = [f"http://www.example.org/article-{n}.html" for n in range(99)]
    bodies = [packed([DocumentLink(one, "a") for one in (*menu, kind)], words) for kind in (to, *kinds)]
    after = b""
    while after is not None:
        with store.begin() as tx:
            connection = tx._c  # type: ignore[attr-defined]  # noqa: SLF001 - many rows by the short way
            query = select(t.lccurl.c.urlkey).where(t.lccurl.c.urlkey > after)
            found = connection.execute(query.order_by(t.lccurl.c.urlkey).limit(20_000)).scalars()
            keys = list(map(bytes, found))
            rows = [(key, number, bodies[key[-1] * 100 // 256]) for key in keys]
            many.insert(connection, t.links.name, ("urlkey", "words", "body"), rows)
        after = keys[-1] if keys else None
    store.close()


def write_index(url: str, path: Path, count: int) -> None:
    """Write the index of the first documents: a hundred words of each, one in every text, one in a few."""
    store, index = SqlStore(url), Fts5(path)
    with store.read() as tx:
        head, rows = head_of(tx), tx.documents(b"", count)
    for number, row in enumerate(rows):
        words = " ".join(f"w{number * place % 5000}" for place in range(1, 98))
        index.document(Item(row, {}, ""), BytesIO(f"often {words} seldom{number % 1000}".encode()))
    index.commit(str(head))
    index.close()
    store.close()


class Client:
    """An operator's browser, on one connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        form = urlencode({"name": "otto", "password": PASSWORD})
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", "/dashboard/sign-in", form, kind)
        answer = self._connection.getresponse()
        answer.read()
        found = re.match("[^;]+", answer.headers.get("Set-Cookie", ""))
        if answer.status != http.HTTPStatus.SEE_OTHER or not found:
            raise Failed(f"signing in: {answer.status}")
        self.cookie = found[0]
        self._headers = {"Cookie": self.cookie}

    def get(self, path: str) -> tuple[float, int]:
        """Get a page; return seconds and bytes."""
        begun = time.perf_counter()
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        size = len(answer.read())
        if answer.status != http.HTTPStatus.OK:
            raise Failed(f"{path}: {answer.status}")
        return time.perf_counter() - begun, size


def measure(lcc: Lcc, kind: str, given: argparse.Namespace) -> list[tuple[str, ...]]:
    """Fill an LCC and get its pages, in turns."""
    lcc.command("init")
    with Site(lcc.folder / "site", [1000]) as site:
        fill(lcc.environment | path_of(CHECKOUT), site, given.providers, 2, given.documents)
    fill_more(lcc.database_url, given.providers)
    row = some_document(lcc.database_url)
    fill_links(lcc.database_url, row.furl)
    index = lcc.folder / "search.db"
    write_index(lcc.database_url, index, given.indexed)
    page = lcc.folder / "lcc-data" / "content" / relative_name(row.fetched_machineid, row.fetched_fileid)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("<p>Some words of a page.\n" * 20_000)
    paths = pages_of(given.providers, row)
    took: dict[str, list[tuple[float, int]]] = {name: [] for name in paths}
    with web(lcc, LCC_SEARCH_INDEX=str(index)) as port:
        client = Client(port)
        for path in paths.values():
            client.get(path)  # what is done once is done now
        for _ in range(given.times):
            for name, path in paths.items():
                took[name].append(client.get(path))
    return [_row(kind, name, seen) for name, seen in took.items()]


def _row(kind: str, name: str, seen: Sequence[tuple[float, int]]) -> tuple[str, ...]:
    times = [1000 * seconds for seconds, _ in seen]
    size = max(size for _, size in seen) / 1000
    return kind, name, f"{median(times):.0f}", f"{max(times):.0f}", f"{size:.0f}", str(len(seen))


def main() -> None:
    """Measure and print."""
    options = parser(__doc__, "--markdown", "--scratch")
    options.add_argument("--database", nargs="+", choices=("sqlite", *MISSING), default=["sqlite"])
    options.add_argument("--providers", type=int, default=10_000)
    options.add_argument("--documents", type=int, default=10, help="of each provider")
    options.add_argument("--indexed", type=int, default=100_000, help="documents of the full-text index")
    options.add_argument("--times", type=int, default=9, help="that each page is asked for")
    given = options.parse_args()
    rows: list[tuple[str, ...]] = []
    for kind in given.database:
        if kind in MISSING and (reason := MISSING[kind]()):
            print(f"not measured: {reason}")
            continue
        with running.scratch(given.scratch) as folder, database(kind, Path(folder)) as url:
            rows += measure(Lcc(Path(folder), url), kind, given)
    documents = given.providers * given.documents
    title = f"{given.providers:,} providers, {documents:,} documents; {MOST_MS} ms and {MOST_KB} KB at most"
    tables.show(title, HEADINGS, rows, given.markdown)


if __name__ == "__main__":
    main()
