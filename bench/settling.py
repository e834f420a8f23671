"""What it costs to make fetched pages durable: content files, then their rows, in groups.

Beside the settling of the LCC stand the plainest thing that keeps the same promise (files written, one
syncfs, rows by ``executemany`` in one transaction) and the disk itself (one large file, an fsync for each
group). All is done in one thread, as in service. ``busy`` adds a thread that computes all the time, as the
event loop does in a crawl at full speed, and tells how much of that one's time a page takes. The ways that
end with ``-child`` settle in a settling process: microseconds are then those of its crawl.

    python bench/settling.py
    python bench/settling.py --sizes 200000 --providers 64 --ways sqlite disk --rounds 3

Every measurement is a process of its own in a folder of its own; the ways take turns. The folders go at the
end: some file systems make files slowly for a while after many were deleted.
"""

import argparse
import ctypes
import hashlib
import json
import os
import resource
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from statistics import median

from crawling import running
from crawling.command_line import parsed, parser
from crawling.lcc import database

from lcc_scrapy.cache.file_ids import FileIds
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.db import schema
from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import SetPart, StoredTurn
from lcc_scrapy.db.sql.rows import RowsOf
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.cache import Answer, Body
from lcc_scrapy.domain.entries import furlkey, namehashes, urlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.queue import QueuedUrl, Served, Ticket
from lcc_scrapy.queue.committing import Commits, Committer, Holder
from lcc_scrapy.queue.group_commit import COMMIT_PAGES
from lcc_scrapy.queue.settlement import STORED
from lcc_scrapy.queue.settling_process.messages import Beginning
from lcc_scrapy.queue.settling_process.parent import SettlingProcess

CHILD = "-child"
WAYS = ("sqlite", "mariadb", "sqlite-child", "mariadb-child", "plain", "disk")
OWNER = "bench/0"
TOKEN = 7
HEADERS = json.dumps(
    [
        ["Server", "nginx/1.22.1"],
        ["Date", "Sat, 21 Nov 2026 22:00:00 GMT"],
        ["Content-Type", "text/html; charset=utf-8"],
        ["Content-Length", "8192"],
        ["Last-Modified", "Sat, 21 Nov 2026 21:00:00 GMT"],
        ["Connection", "keep-alive"],
        ["ETag", '"6a1f2e3d-2000"'],
        ["Accept-Ranges", "bytes"],
    ]
)
NOW = 1_800_000_000

Commit = Callable[[Sequence[Served]], None]


def pages(count: int, providers: int, size: int) -> Iterator[Served]:
    """Yield what a crawl has fetched: one page of each provider after the other."""
    for number in range(count):
        pid = number % providers + 1
        url = f"http://h{pid}.example/folder{number % 97}/document-{number:08d}.html"
        key = urlkey(pid, url, "text/html")
        row = QueuedUrl(
            key, pid, url, "text/html", "", url, url, 1_700_000_000, None, None, "", pid, number + 1,
            "fetch", 1, 0, 0,
        )  # fmt: skip
        data = os.urandom(size)
        digests = hashlib.md5(data, usedforsecurity=False).hexdigest(), hashlib.sha256(data).hexdigest()
        answer = Answer(
            200, url, "text/html", "utf-8", '"6a1f2e3d-2000"', "Sat, 21 Nov 2026 21:00:00 GMT", HEADERS,
            "HTTP/1.1 200 OK", "192.0.2.1", NOW,
        )  # fmt: skip
        yield Served(Ticket(row, str(pid), TOKEN), answer, Body(size, *digests, data=data))


def fill(store: SqlStore, served: Sequence[Served], providers: int) -> None:
    """Let the pages wait, and their turns be leased, as they are when they have been fetched."""
    each = -(-len(served) // providers)
    with store.begin() as tx:
        connection = tx._c  # type: ignore[attr-defined]  # noqa: SLF001 - by the short way
        pids = range(1, providers + 1)
        RowsOf(t.pidb, Provider).insert(connection, [Provider(pid, "", nurlproc=each) for pid in pids])
        RowsOf(t.turns, StoredTurn).insert(
            connection, [StoredTurn(str(pid), OWNER, TOKEN, waiting=each, arrivals=1) for pid in pids]
        )
        tx.insert_queued([one.ticket.row for one in served])
        RowsOf(t.qpsdb, SetPart).insert(connection, [SetPart(pid, "", pid, -1, 0, each) for pid in pids])


# --- the ways ----------------------------------------------------------------------------------------


def by_lcc(store: SqlStore, folder: Path, child: SettlingProcess | None = None) -> Commit:
    content, fileids, policy = ContentFiles(folder / "content", 1), FileIds(store, 1, OWNER), QueuePolicy()
    content.prepare()

    holder = Holder(OWNER, 1, fileids.token)
    commits: Committer = Commits(store, content, holder)
    if child is not None:
        url = store.url.render_as_string(hide_password=False)
        child.begin(Beginning(url, str(folder / "content"), holder))
        commits = child

    def commit(batch: Sequence[Served]) -> None:
        settled = commits.commit(fileids.number(batch), NOW, policy)
        assert all(one.result == STORED for one in settled)

    return commit


def plainly(connection: sqlite3.Connection, folder: Path) -> Commit:
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA journal_mode=TRUNCATE")
    (folder / "content").mkdir()
    home = os.open(folder / "content", os.O_RDONLY)
    syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    columns = t.lccurl.columns.keys()
    rows = f"insert into lccurl ({','.join(columns)}) values ({','.join('?' * len(columns))})"
    numbers = iter(range(1, 1 << 60))

    def commit(batch: Sequence[Served]) -> None:
        cached = []
        for one, number in zip(batch, numbers, strict=False):
            descriptor = os.open(str(number), os.O_WRONLY | os.O_CREAT, 0o666, dir_fd=home)
            os.write(descriptor, one.body.data or b"")
            os.close(descriptor)
            cached.append(as_row(one, number))
        assert syncfs(home) == 0
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(rows, cached)
        connection.executemany("delete from qdb where urlkey=?", [(one.ticket.row.urlkey,) for one in batch])
        connection.execute("COMMIT")

    return commit


def as_row(one: Served, number: int) -> tuple[object, ...]:
    row, answer, body = one.ticket.row, one.answer, one.body
    return (
        row.urlkey, row.pid, row.curl, row.mimetype, row.subtype, row.burl, row.furl, row.mtime, row.len,
        row.md5, row.timeofday, answer.answered, 1, number, body.length, body.md5, body.sha256,
        answer.served_type, answer.served_charset, "", answer.final_url, answer.etag, answer.last_modified,
        answer.answered, "push", number, row.psetid, 0, 0, 0, 0, 0, furlkey(row.pid, row.furl),
        *namehashes(row.curl, row.furl), answer.status_line, answer.headers, answer.peer, answer.answered,
    )  # fmt: skip


def to_disk(folder: Path) -> Commit:
    descriptor = os.open(folder / "file", os.O_WRONLY | os.O_CREAT, 0o666)

    def commit(batch: Sequence[Served]) -> None:
        for one in batch:
            os.write(descriptor, one.body.data or b"")
        os.fsync(descriptor)

    return commit


# --- one measurement ---------------------------------------------------------------------------------


class Loop(threading.Thread):
    """Stands for the event loop: computes and talks to sockets without an end, and counts what it did."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.units = 0
        self._here, self._there = socket.socketpair()

    def run(self) -> None:
        while True:
            for number in range(40):
                hash((number, str(number), str(number * number)))
            self._here.send(b"x" * 1000)
            self._there.recv(2000)
            self.units += 1

    def rate(self, seconds: float) -> float:
        before = self.units
        time.sleep(seconds)
        return (self.units - before) / seconds


def measure(commit: Commit, served: Sequence[Served], batch: int, *, busy: bool) -> dict[str, float]:
    """Settle all pages; returns pages and bytes per second, and microseconds per page."""
    loop, free = Loop(), 0.0
    if busy:
        loop.start()
        free = loop.rate(1.0)
    units, before = loop.units, resource.getrusage(resource.RUSAGE_THREAD)
    begun, slowest = time.perf_counter(), 0.0
    for start in range(0, len(served), batch):
        at = time.perf_counter()
        commit(served[start : start + batch])
        slowest = max(slowest, time.perf_counter() - at)
    took = time.perf_counter() - begun
    after, units = resource.getrusage(resource.RUSAGE_THREAD), loop.units - units
    micro = 1e6 / len(served)
    return {
        "pages/s": len(served) / took,
        "MB/s": sum(one.body.length for one in served) / took / 1e6,
        "user µs": (after.ru_utime - before.ru_utime) * micro,
        "system µs": (after.ru_stime - before.ru_stime) * micro,
        "slowest ms": slowest * 1e3,
        "loop µs": max(0.0, took - units / free) * micro if busy else 0.0,
    }


def one(way: str, folder: Path, given: argparse.Namespace, *, busy: bool) -> dict[str, float]:
    size, providers = given.sizes[0], given.providers[0]
    served = list(pages(given.pages or count_for(size), providers, size))
    if way == "disk":
        return measure(to_disk(folder), served, given.batch, busy=busy)
    (folder / "lcc-data").mkdir()
    child = SettlingProcess() if way.endswith(CHILD) else None
    with closing(child) if child else nullcontext(), database(database_of(way), folder) as url:
        schema.upgrade(url)
        store = SqlStore(url)
        fill(store, served, providers)
        commit = by_lcc(store, folder, child)
        if way == "plain":
            store.close()
            (folder / "content").rename(folder / "unused")
            commit = plainly(sqlite3.connect(folder / "lcc-data/lcc.sqlite", check_same_thread=False), folder)
        return measure(commit, served, given.batch, busy=busy)


def database_of(way: str) -> str:
    return "mariadb" if way.startswith("mariadb") else "sqlite"


def count_for(size: int) -> int:
    return 8000 if size < 50_000 else 2000


# --- all of them -------------------------------------------------------------------------------------


def rounds(given: argparse.Namespace, scratch: Path) -> dict[tuple[str, str], list[dict[str, float]]]:
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for number in range(given.rounds):
        for size in given.sizes:
            for providers in given.providers:
                for busy in (False, True):
                    for way in given.ways:
                        if way == "disk" and (busy or providers != given.providers[0]):
                            continue
                        folder = scratch / f"{number}-{size}-{providers}-{busy:d}-{way}"
                        folder.mkdir()
                        words = [
                            "--one", way, "--scratch", str(folder), "--batch", str(given.batch), "--pages",
                            str(given.pages), "--sizes", str(size), "--providers", str(providers),
                        ]  # fmt: skip
                        command = [sys.executable, __file__, *words, *(["--busy"] if busy else [])]
                        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                        case = f"{size} bytes, {providers} providers{', busy' if busy else ''}"
                        found.setdefault((case, way), []).append(json.loads(done.stdout))
    return found


def show(found: dict[tuple[str, str], list[dict[str, float]]]) -> None:
    print(f"load {os.getloadavg()[0]:.1f}; medians (lowest to highest)")
    for (case, way), results in sorted(found.items()):
        cells = []
        for name in results[0]:
            values = sorted(result[name] for result in results)
            if values[-1]:
                cells.append(f"{name} {median(values):,.0f} ({values[0]:,.0f}-{values[-1]:,.0f})")
        print(f"{case:36s} {way:8s} {'  '.join(cells)}")


def main() -> None:
    """Measure everything, or one thing in this process."""
    options = parser(__doc__, "--scratch")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    options.add_argument("--sizes", nargs="+", type=int, default=[8192, 200_000], help="bytes of a page")
    options.add_argument("--providers", nargs="+", type=int, default=[64, 1000])
    options.add_argument("--batch", type=int, default=COMMIT_PAGES, help="pages settled together")
    options.add_argument("--pages", type=int, default=0, help="pages in all (default: by size)")
    options.add_argument("--one", choices=WAYS, help=argparse.SUPPRESS)
    options.add_argument("--busy", action="store_true", help=argparse.SUPPRESS)
    given = parsed(options)
    if given.one:
        print(json.dumps(one(given.one, given.scratch, given, busy=given.busy)))
        return
    with running.scratch(given.scratch) as folder:
        show(rounds(given, folder))


if __name__ == "__main__":
    main()
