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
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from crawling import running, tables
from crawling.command_line import CHECKOUT, parser
from crawling.filling import fill, path_of
from crawling.lcc import Lcc, database, no_mariadb, no_postgresql
from crawling.running import Failed
from crawling.site import Site
from web import web

from lcc_scrapy.dashboard import people
from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import EVERYBODY, Fetched, ProviderSet
from lcc_scrapy.db.sql.rows import RowsOf
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.users import Role, User
from lcc_scrapy.login.passwords import hash_password

HEADINGS = ("database", "page", "ms: median", "longest", "KB", "n")
MOST_MS, MOST_KB = 100, 100
SETS = 3
PASSWORD = "correct horse battery"
MISSING = {"mariadb": no_mariadb, "postgresql": no_postgresql}
COUNTS = (("stored", 0), ("unchanged", 304), ("failed", 404), ("retrying", 503))
HELD = 120


def pages_of(providers: int, docid: str) -> dict[str, str]:
    """Return the pages, by what they are; ``docid`` is that of some document."""
    listed, middle = "/dashboard/providers", providers // 2
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


def some_docid(url: str) -> str:
    """Return a document of some provider."""
    store = SqlStore(url)
    with store.read() as tx:
        found = tx.documents(b"\x80", 1)[0].docid
    store.close()
    return found


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
    paths = pages_of(given.providers, some_docid(lcc.database_url))
    took: dict[str, list[tuple[float, int]]] = {name: [] for name in paths}
    with web(lcc) as port:
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
