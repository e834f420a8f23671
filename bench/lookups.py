"""What looking something up takes in a large LCC: ``lcc explain``, ``find``, ``status``, ``provider list``.

A store of ``--urls`` URLs (half of them cached, half waiting) of ``--providers`` providers is filled by bulk
inserts. Then each command is run as a process of its own, in rounds, next to ``lcc --version``: what a
command takes beside that is what it looks up. ``find`` is ``ContentUser``'s, without a process of its own.

``python bench/lookups.py [--urls N] [--providers N] [--rounds N] [--database URL] [--source DIR] [--writer]``

``--database`` names a server (``mysql+pymysql://root@127.0.0.1/``); a database of its own is made there, and
dropped. ``--source`` runs the commands of another working copy, whose schema the store gets then.
``--writer`` keeps somebody at work meanwhile who commits every 50 ms, as a crawl does.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import sqlalchemy

ROWS = 10_000
"""Rows in one statement of the driver."""

MASK = "1" * 24
SITE = "http://www{pid}.example.org/dir{folder}/page{number}.html"


def url(number: int, providers: int) -> tuple[int, str]:
    """Return provider and URL of a row."""
    pid = 1 + number % providers
    return pid, SITE.format(pid=pid, folder=number // providers // 100, number=number)


# --- the store ---------------------------------------------------------------------------------------


def fill(address: str, urls: int, providers: int) -> None:
    """Fill a database, whatever columns its schema has."""
    from lcc_scrapy.db.sql.store import make_engine  # noqa: PLC0415 - of the working copy that is measured

    engine = make_engine(address)
    tables = sqlalchemy.MetaData()
    tables.reflect(engine)
    put(engine, tables.tables["pidb"], (provider(pid, urls // providers) for pid in range(1, providers + 1)))
    roots = (
        {"rootid": pid, "pid": pid, "root": f"http://www{pid}.example.org/"}
        for pid in range(1, providers + 1)
    )
    put(engine, tables.tables["proots"], roots)
    put(engine, tables.tables["qdb"], (waiting(number, providers) for number in range(0, urls, 2)))
    put(engine, tables.tables["lccurl"], (cached(number, providers) for number in range(1, urls, 2)))
    parts = ({"psetid": pid, "timeofday": MASK, "pid": pid, "starttimeslot": 0, "pri": 0,
              "nurls": max(1, urls // 2 // providers)} for pid in range(1, providers + 1))  # fmt: skip
    put(engine, tables.tables["qpsdb"], parts)
    turns = ({"turnkey": str(pid), "owner": "", "token": 0, "priority": 0, "waiting": urls // 2 // providers,
              "look_at": 0.0, "not_before": 0.0, "arrivals": 1}
             for pid in range(1, providers + 1))  # fmt: skip
    put(engine, tables.tables["turns"], turns)
    engine.dispose()


def put(engine: sqlalchemy.Engine, table: sqlalchemy.Table, rows: Iterator[dict[str, object]]) -> None:
    """Add rows; columns that the schema does not have are left out."""
    known = {column.name for column in table.columns}
    with engine.begin() as connection:
        while part := [row for row, _ in zip(rows, range(ROWS), strict=False)]:
            connection.execute(table.insert(), [{n: v for n, v in one.items() if n in known} for one in part])


def provider(pid: int, documents: int) -> dict[str, object]:
    from dataclasses import asdict  # noqa: PLC0415

    from lcc_scrapy.domain.providers import Provider  # noqa: PLC0415

    return {**asdict(Provider(pid, "!", name=f"Provider {pid}", created=1)), "fileused": documents // 2,
            "spaceused": 1000 * documents, "nurlproc": documents // 2}  # fmt: skip


def named(number: int, providers: int) -> dict[str, object]:
    from lcc_scrapy.domain.entries import furlkey, urlkey  # noqa: PLC0415

    try:
        from lcc_scrapy.domain.entries import namehash  # noqa: PLC0415
    except ImportError:

        def namehash(_url: str) -> int:
            return 0

    pid, its = url(number, providers)
    return {
        "urlkey": urlkey(pid, its, "text/html"), "pid": pid, "curl": its, "mimetype": "text/html",
        "subtype": "", "burl": its, "furl": its, "mtime": 1_700_000_000, "len": 1000, "md5": "0" * 32,
        "timeofday": MASK, "origin": "push", "seen": 1, "curlhash": namehash(its), "furlhash": None,
        "furlkey": furlkey(pid, its),
    }  # fmt: skip


def waiting(number: int, providers: int) -> dict[str, object]:
    row = named(number, providers)
    return {**row, "psetid": row["pid"], "position": number, "operation": "fetch", "version": 1, "tries": 0,
            "not_before": 0, "furlkey": None}  # fmt: skip


def cached(number: int, providers: int) -> dict[str, object]:
    return {
        **named(number, providers), "fetched_time": 1_800_000_000, "fetched_machineid": 1,
        "fetched_fileid": number, "fetched_len": 1000, "fetched_md5": "0" * 32, "sha256": "0" * 64,
        "served_type": "text/html", "served_charset": "", "file_encoding": "", "final_url": "", "etag": "",
        "last_modified": "", "confirmed_time": 1_800_000_000, "seq": number, "held": 0, "subtype_seq": 0,
    }  # fmt: skip


# --- measuring ---------------------------------------------------------------------------------------


def commands(urls: int, providers: int) -> dict[str, list[str]]:
    """Return what is run, by name: the last of each list is often a URL far behind in the queue."""
    some = urls // 3 & ~1
    return {
        "--version": ["--version"],
        "explain, waiting": ["explain", url(some, providers)[1]],
        "explain, last in queue": ["explain", url((urls - 1) & ~1, providers)[1]],
        "explain, cached": ["explain", url(some + 1, providers)[1]],
        "explain, unknown": ["explain", url(urls + 1, providers)[1]],
        "status": ["status"],
        "provider list": ["provider", "list"],
        "provider list --json": ["provider", "list", "--json"],
    }


def run(settings: list[str], command: list[str]) -> tuple[float, float]:
    """Run a command; returns seconds, and those of the processor."""
    before, start = os.times(), time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "lcc_scrapy.cli.main", *settings, *command],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - start, spent


def measure(settings: list[str], urls: int, providers: int, rounds: int) -> None:
    asked = commands(urls, providers)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in asked}
    for _ in range(rounds):
        for name, command in asked.items():
            taken[name].append(run(settings, command))
    least = median(one for one, _ in taken["--version"])
    print(f"{'command':<24} {'seconds':>8} {'CPU s':>7} {'beside --version':>17}")
    for name, found in taken.items():
        seconds, spent = median(one for one, _ in found), median(one for _, one in found)
        print(f"{name:<24} {seconds:>8.3f} {spent:>7.3f} {seconds - least:>17.3f}")


def measure_in_process(address: str, urls: int, providers: int, rounds: int) -> None:
    """Print what explanation and search take without the start of a process."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415

    from lcc_scrapy.db.sql.store import SqlStore  # noqa: PLC0415
    from lcc_scrapy.feed.store_feed import StoreFeed  # noqa: PLC0415
    from lcc_scrapy.queue.explanation import Surroundings, explain  # noqa: PLC0415

    store = SqlStore(address)
    around = Surroundings(time.time(), ZoneInfo("UTC"), running=True)
    some = urls // 3 & ~1
    print(f"\n{'in one process':<24} {'seconds':>8}")
    questions = {
        "find, cached": lambda: StoreFeed(store).find(url(some + 1, providers)[1]),
        "explain, waiting": lambda: explain(store, url(some, providers)[1], around),
        "explain, last in queue": lambda: explain(store, url((urls - 1) & ~1, providers)[1], around),
        "explain, unknown": lambda: explain(store, url(urls + 1, providers)[1], around),
    }
    for name, ask in questions.items():
        found = []
        for _ in range(rounds):
            start = time.monotonic()
            ask()
            found.append(time.monotonic() - start)
        print(f"{name:<24} {median(found):>8.4f}")
    store.close()


@contextmanager
def writer(address: str, *, wanted: bool) -> Iterator[None]:
    """Commit a thousand rows at a time meanwhile, as a crawl does."""
    from lcc_scrapy.db.sql.store import make_engine  # noqa: PLC0415

    over = threading.Event()
    engine, waits = make_engine(address), []

    def work() -> None:
        while not over.is_set():
            start = time.monotonic()
            with engine.begin() as connection:
                connection.exec_driver_sql("UPDATE lccurl SET held = 0 WHERE seq <= 2000")
            waits.append(time.monotonic() - start)
            over.wait(0.05)

    thread = threading.Thread(target=work)
    if wanted:
        thread.start()
    yield
    over.set()
    if wanted:
        thread.join()
        print(f"the writer's commits: {len(waits)}, median {median(waits):.3f} s, longest {max(waits):.3f} s")
    engine.dispose()


@contextmanager
def database(server: str, folder: Path) -> Iterator[str]:
    """Make a database; that on a server goes afterwards."""
    if not server:
        yield f"sqlite:///{folder / 'lcc-data' / 'lcc.sqlite'}"
        return
    name = f"lcc_lookups_{os.getpid()}"
    engine = sqlalchemy.create_engine(server)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield f"{server.rstrip('/')}/{name}"
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name}")
    engine.dispose()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--urls", type=int, default=20_000)
    parser.add_argument("--providers", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--database", default="", metavar="URL")
    parser.add_argument("--source", type=Path, metavar="DIR", help="the working copy to measure")
    parser.add_argument("--writer", action="store_true", help="somebody commits meanwhile")
    given = parser.parse_args()
    if given.source:
        sys.path.insert(0, str(given.source))
        os.environ["PYTHONPATH"] = str(given.source)
    with (
        tempfile.TemporaryDirectory(prefix="lcc-lookups-") as folder,
        database(given.database, Path(folder)) as address,
    ):
        os.chdir(folder)
        settings = ["-s", f"LCC_DATA_DIR={folder}/lcc-data", "-s", f"LCC_DATABASE_URL={address}"]
        run(settings, ["init"])
        start = time.monotonic()
        fill(address, given.urls, given.providers)
        print(
            f"{given.urls} URLs of {given.providers} providers, filled in {time.monotonic() - start:.0f} s\n"
        )
        with writer(address, wanted=given.writer):
            measure(settings, given.urls, given.providers, given.rounds)
        measure_in_process(address, given.urls, given.providers, given.rounds)


if __name__ == "__main__":
    main()
