"""Fills the queue of an LCC, of this checkout or another: its own code writes the rows.

``python -m crawling.filling DATABASE_URL PORT PROVIDERS URLS DOCUMENTS SIZE`` is run with that checkout first
in PYTHONPATH: URLs that wait and documents, of each provider, as intake and settling would leave them. URLs
are those of ``site.Site`` at a port.
"""

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from crawling.site import Site

BENCH = Path(__file__).resolve().parents[1]
SIZE = 2_000
"""Bytes of a page."""


def path_of(source: Path) -> dict[str, str]:
    """Return the environment in which a checkout's code is found, and this bench's."""
    return {"PYTHONPATH": os.pathsep.join((str(source.resolve()), str(BENCH)))}


def fill(
    environment: Mapping[str, str],
    site: Site,
    providers: int,
    urls: int,
    documents: int = 0,
    *,
    size: int = SIZE,
) -> None:
    """Fill the LCC of an environment: so many providers, each with so many URLs and documents.

    ``size``: bytes of the pages that wait.
    """
    numbers = map(str, (site.port, providers, urls, documents, size))
    command = [sys.executable, "-m", "crawling.filling", environment["LCC_DATABASE_URL"], *numbers]
    subprocess.run(command, env=dict(environment), check=True)


def _write(database_url: str, port: int, providers: int, urls: int, documents: int, *, size: int) -> None:
    from lcc_scrapy.db import tables as t  # noqa: PLC0415
    from lcc_scrapy.db.records import SetPart, StoredTurn  # noqa: PLC0415
    from lcc_scrapy.db.sql.rows import RowsOf  # noqa: PLC0415
    from lcc_scrapy.db.sql.store import SqlStore  # noqa: PLC0415
    from lcc_scrapy.domain.providers import Provider  # noqa: PLC0415 - of the checkout that is measured

    store, now, pids = SqlStore(database_url), int(time.time()), range(1, providers + 1)
    for waiting in _batches(
        (_waiting(pid, port, n, size) for pid in pids for n in range(1, urls + 1)), 20_000
    ):
        with store.begin() as tx:
            tx.insert_queued(waiting)
    numbers = itertools.product(pids, range(documents))
    for stored in _batches((_stored(pid, n, seq, now) for seq, (pid, n) in enumerate(numbers, 1)), 20_000):
        with store.begin() as tx:
            tx.insert_cached(stored)
    for some in _batches(pids, 5_000):
        with store.begin() as tx:
            connection = tx._c  # type: ignore[attr-defined]  # noqa: SLF001 - many rows by the short way
            kept = {"fileused": documents, "spaceused": 1000 * documents, "created": now, "confirmed": now}
            made = [Provider(pid, "", allowprivate=True, nurlproc=urls, **kept) for pid in some]
            RowsOf(t.pidb, Provider).insert(connection, made)
            roots = [{"pid": pid, "root": Site.root_at(str(port), pid)} for pid in some]
            connection.execute(t.proots.insert(), roots)
            RowsOf(t.qpsdb, SetPart).insert(connection, [SetPart(pid, "", pid, -1, 0, urls) for pid in some])
            turns = [StoredTurn(str(pid), waiting=urls, arrivals=1) for pid in some]
            RowsOf(t.turns, StoredTurn).insert(connection, turns)
    with store.begin() as tx:
        tx.take("psetid", providers + 1)
        tx.take("feed", providers * documents + 1)
        tx.take("fileid", providers * documents + 1)
    store.close()


def _batches(items: Iterable, size: int) -> Iterator[list]:  # type: ignore[type-arg]
    iterator = iter(items)
    return iter(lambda: list(itertools.islice(iterator, size)), [])


def _waiting(pid: int, port: int, number: int, size: int) -> object:
    from lcc_scrapy.domain.entries import urlkey  # noqa: PLC0415
    from lcc_scrapy.domain.queue import QueuedUrl  # noqa: PLC0415

    url = f"{Site.root_at(str(port), pid)}{size}/p{pid}/document-{number:07d}.html"
    key = urlkey(pid, url, "text/html")
    return QueuedUrl(
        key, pid, url, "text/html", "", url, url, None, None, None, "", pid, number, "fetch", 1, 0, 0
    )


def _stored(pid: int, number: int, seq: int, now: int) -> object:
    from lcc_scrapy.domain.cache import CachedUrl  # noqa: PLC0415
    from lcc_scrapy.domain.entries import urlkey  # noqa: PLC0415

    url = f"http://h{pid}.example/older-{number:07d}.html"
    return CachedUrl(
        urlkey(pid, url, "text/html"), pid, url, "text/html", "", url, url, None, None, None, "", now, 1, seq,
        1000, "0" * 32, "0" * 64, "text/html", "utf-8", "", url, "", "", now, "push", seq, 1, 0, 0,
    )  # fmt: skip


if __name__ == "__main__":
    _write(sys.argv[1], *map(int, sys.argv[2:-1]), size=int(sys.argv[-1]))
