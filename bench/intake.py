"""What intake costs, each step beside the plainest thing that does the same work, interleaved.

* reading, and checking: the UNS's codec and its rules against a bare expat parser over the same stream;
* accepting: all of this, and a durable spool file, against the same; ``bench/uns.py`` does it over TCP;
* spooling: checked entries into a durable spool file against one ``write`` and ``fsync`` of as many bytes;
* absorbing: a spooled set into SQLite, and with ``--mariadb`` into MariaDB, against ``executemany`` of as
  many rows into a table with one index. ``--waiting`` URLs wait already; on SQLite each round begins with
  as many, on MariaDB the queue grows from round to round unless that is 0.

``python bench/intake.py [--urls N] [--rounds N] [--waiting N] [--mariadb URL] [--only WORD]`` prints
medians, the ratio of medians, and the processor time of ours for a URL, which other work on the machine
changes less. The MariaDB URL names a server (``mysql+pymysql://root@127.0.0.1/``); a database of its own is
made there, and dropped.
"""

import argparse
import gc
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from xml.parsers import expat

import sqlalchemy

from lcc_scrapy.db import schema
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.arrivals import keys_of, new_rows
from lcc_scrapy.domain.entries import Declared, UrlEntry
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.domain.runs import EntryRun
from lcc_scrapy.intake.absorbing import Intake
from lcc_scrapy.intake.open_sets import STEP
from lcc_scrapy.intake.spooled import SpooledFile
from lcc_scrapy.uns.codec import Codec, Malformed
from lcc_scrapy.uns.ports import Login
from lcc_scrapy.uns.spool import SpoolFolder
from lcc_scrapy.uns.spool_file import SpoolHeader
from lcc_scrapy.uns.url_validator import UrlValidator
from lcc_scrapy.wire.messages import InitAccepted, Message, Quota, SetStart, Url, UrlRun

PREFIX = "http://www.example.org/"
FILLED_AT_ONCE = 20_000
PIECE = 16 * 1024
"""Bytes that the UNS reads at a time within a set."""


def stream(urls: int) -> bytes:
    """Return a login and a set as they come over the wire."""
    elements = b"".join(
        b'<url c="dir%d/page%d.html" mimetype="text/html" len="%d" mtime="1700000000" md5="%032x"/>\n'
        % (n % 97, n, 1000 + n % 5000, n)
        for n in range(urls)
    )
    init = (
        b'<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="1" passwd="x"/></lococa:init>'
    )
    return (
        init
        + b'<lococa:set set="partial" urlprefix="'
        + PREFIX.encode()
        + b'">'
        + elements
        + b"</lococa:set>"
    )


def entries(urls: int) -> list[UrlEntry]:
    """Return the entries of the same set."""
    made = []
    for n in range(urls):
        url = f"{PREFIX}dir{n % 97}/page{n}.html"
        made.append(
            UrlEntry(
                url,
                "text/html",
                furl=url,
                burl=url,
                declared=Declared(1700000000, 1000 + n % 5000, f"{n:032x}"),
            )
        )
    return made


class Bench:
    """One set in a scratch folder, and the ways to handle it."""

    def __init__(self, folder: Path, urls: int) -> None:
        self.folder = folder
        self.urls = urls
        self.stream = stream(urls)
        self.entries = entries(urls)
        self.login = Login(1, InitAccepted(1, "", ("text/*",), Quota()), (Root.parse(PREFIX),))
        self.round = 0

    def read(self) -> None:
        urls = 0
        for message in self._messages():
            urls += len(message) if isinstance(message, UrlRun) else isinstance(message, Url)
        assert urls == self.urls

    def read_and_check(self) -> None:
        assert sum(len(one) if isinstance(one, EntryRun) else 1 for one in self._checked()) == self.urls

    def accept(self) -> None:
        folder = self._folder()
        writer = folder.begin(SpoolHeader(1, 1, 0), time.time())
        for checked in self._checked():
            if isinstance(checked, EntryRun):
                writer.add_run(checked)
            else:
                writer.add(checked)
        writer.commit()
        folder.unlock()

    def _messages(self) -> Iterator[Message | Malformed]:
        codec = Codec()
        for at in range(0, len(self.stream), PIECE):
            yield from codec.feed(self.stream[at : at + PIECE])

    def _checked(self) -> Iterator[UrlEntry | EntryRun]:
        judge = UrlValidator(self.login, SetStart(full=False, urlprefix=PREFIX))
        for message in self._messages():
            if isinstance(message, UrlRun):
                run = judge.judge_run(message)
                assert run is not None
                yield run
            elif isinstance(message, Url):
                entry, _ = judge.judge(message)
                assert entry is not None
                yield entry

    def bare_expat(self) -> None:
        parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler = lambda *_: None
        parser.Parse(b"<stream>", False)
        for at in range(0, len(self.stream), PIECE):
            parser.Parse(self.stream[at : at + PIECE], False)

    def spool(self) -> None:
        folder = self._folder()
        writer = folder.begin(SpoolHeader(1, 1, 0), time.time())
        for entry in self.entries:
            writer.add(entry)
        self.spooled = writer.commit()
        folder.unlock()

    def bare_write(self) -> None:
        with (self._fresh("plain") / "file").open("wb") as file:
            file.write(os.urandom(1) * self.spooled.stat().st_size)
            file.flush()
            os.fsync(file.fileno())

    def prepare_sqlite(self, waiting: int) -> None:
        """Make a database in which URLs wait, to be copied for each round."""
        self.filled = self._fresh("filled") / "lcc.sqlite"
        schema.upgrade(f"sqlite:///{self.filled}")
        store = SqlStore(f"sqlite:///{self.filled}")
        fill(store, waiting)
        store.close()

    def absorb_sqlite(self) -> float:
        copy = self._fresh("absorb") / "lcc.sqlite"
        shutil.copy(self.filled, copy)
        store = SqlStore(f"sqlite:///{copy}")
        took = self._absorb(store)
        store.close()
        shutil.rmtree(copy.parent)
        return took

    def prepare_mariadb(self, server: str, waiting: int) -> None:
        """Make a database of our own on a server, in which URLs wait."""
        url = sqlalchemy.make_url(server)
        self.name = f"lcc_bench_{os.getpid()}"
        self.server = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
        with self.server.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {self.name}")
            connection.exec_driver_sql(
                f"CREATE TABLE {self.name}.bare (k BINARY(16) PRIMARY KEY, u VARCHAR(2048), m INT, l BIGINT,"
                " d VARCHAR(32), s BIGINT, p BIGINT, KEY (s, p))"
            )
        address = url.set(database=self.name).render_as_string(hide_password=False)
        schema.upgrade(address)
        self.mariadb = SqlStore(address)
        self.waiting = waiting
        fill(self.mariadb, waiting)

    def drop_mariadb(self) -> None:
        self.mariadb.close()
        with self.server.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {self.name}")
        self.server.dispose()

    def absorb_mariadb(self) -> float:
        if not self.waiting:
            with self.mariadb.engine.begin() as connection:
                connection.exec_driver_sql("TRUNCATE TABLE qdb")
        return self._absorb(self.mariadb)

    def _absorb(self, store: SqlStore) -> float:
        """Absorb the set as that of another provider each time; in steps as long as the absorber's."""
        self.round += 1
        pid = 100 + self.round
        with store.begin() as tx:
            tx.insert_provider(Provider(pid, ""), [PREFIX])
        begun = time.perf_counter()
        spooled = SpooledFile(self.spooled)
        spooled.pid = pid
        intake = Intake(store, spooled, QueuePolicy())
        finished = False
        while not finished:
            until = time.perf_counter() + STEP
            finished = intake.step(1, lambda _, until=until: time.perf_counter() < until).finished
        intake.close()
        return time.perf_counter() - begun

    def bare_sqlite(self) -> float:
        connection = sqlite3.connect(self._fresh("bare") / "x.sqlite")
        connection.execute(
            "create table q (k blob primary key, u text, m integer, l integer, d text, s integer, p integer)"
        )
        connection.execute("create index i on q (s, p)")
        begun = time.perf_counter()
        connection.executemany("insert into q values (?, ?, ?, ?, ?, ?, ?)", self._bare_rows())
        connection.commit()
        took = time.perf_counter() - begun
        connection.close()
        return took

    def bare_mariadb(self) -> float:
        begun = time.perf_counter()
        connection = self.server.raw_connection()
        connection.cursor().executemany(
            f"INSERT INTO {self.name}.bare VALUES (%s, %s, %s, %s, %s, %s, %s)", self._bare_rows()
        )
        connection.commit()
        connection.close()
        return time.perf_counter() - begun

    def _bare_rows(self) -> list[tuple[object, ...]]:
        return [
            (os.urandom(16), e.curl, 1, e.declared.length, e.declared.md5, 1, n)
            for n, e in enumerate(self.entries)
        ]

    def _folder(self) -> SpoolFolder:
        folder = SpoolFolder(self._fresh("spool"))
        folder.lock()
        folder.recover()
        return folder

    def _fresh(self, name: str) -> Path:
        self.round += 1
        folder = self.folder / f"{name}-{self.round}"
        folder.mkdir()
        return folder


def fill(store: SqlStore, waiting: int) -> None:
    """Let URLs of one provider wait."""
    with store.begin() as tx:
        tx.insert_provider(Provider(1, ""), [PREFIX])
    for start in range(0, waiting, FILLED_AT_ONCE):
        count = min(FILLED_AT_ONCE, waiting - start)
        urls = (f"{PREFIX}waiting/{number}" for number in range(start, start + count))
        records = [("u", url, "text/html", url, url, "", None, 1, "0" * 32, "") for url in urls]
        numbered = zip(range(count), keys_of(1, records), records, strict=True)
        with store.begin() as tx:
            tx.append_new({(1, 1 + start // FILLED_AT_ONCE): new_rows(1, numbered, by_furl=False)})


def seconds(work: Callable[[], float | None]) -> tuple[float, float]:
    """Time one run, unless it says itself how long it took; the processor's time too."""
    begun, used = time.perf_counter(), time.process_time()
    took = work()
    return took or time.perf_counter() - begun, time.process_time() - used


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--urls", type=int, default=50_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--waiting", type=int, default=0, metavar="N")
    options.add_argument("--mariadb", metavar="URL")
    options.add_argument("--only", default="", metavar="WORD", help="steps that have this in their names")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        bench = Bench(Path(folder), chosen.urls)
        bench.spool()
        pairs: dict[str, tuple[Callable[[], float | None], Callable[[], float | None]]] = {
            "read": (bench.read, bench.bare_expat),
            "read and check": (bench.read_and_check, bench.bare_expat),
            "accept durably": (bench.accept, bench.bare_expat),
            "spool durably": (bench.spool, bench.bare_write),
            "absorb (SQLite)": (bench.absorb_sqlite, bench.bare_sqlite),
            "absorb (MariaDB)": (bench.absorb_mariadb, bench.bare_mariadb),
        }
        pairs = {name: pair for name, pair in pairs.items() if chosen.only in name}
        if not chosen.mariadb:
            pairs.pop("absorb (MariaDB)", None)
        if "absorb (SQLite)" in pairs:
            bench.prepare_sqlite(chosen.waiting)
        if "absorb (MariaDB)" in pairs:
            bench.prepare_mariadb(chosen.mariadb, chosen.waiting)
        gc.collect()
        gc.freeze()  # what the bench itself keeps is not to be looked through for garbage
        try:
            times = measure(pairs, chosen.rounds)
        finally:
            if "absorb (MariaDB)" in pairs:
                bench.drop_mariadb()
    waiting = f", {chosen.waiting} waiting" if chosen.waiting else ""
    print(f"{chosen.urls} URLs{waiting}, n={chosen.rounds}, medians; load {os.getloadavg()[0]:.1f}")
    print(f"{'step':18}{'URLs/s':>12}{'bare/s':>12}{'ours/bare time':>16}{'range':>16}{'CPU us/URL':>12}")
    for name, runs in times.items():
        ours, bare = median(run[0] for run in runs), median(run[1] for run in runs)
        ratios = sorted(run[0] / run[1] for run in runs)
        spread = f"{ratios[0]:.1f}-{ratios[-1]:.1f}"
        used = 1e6 * median(run[2] for run in runs) / chosen.urls
        print(
            f"{name:18}{chosen.urls / ours:12,.0f}{chosen.urls / bare:12,.0f}{ours / bare:16.1f}{spread:>16}"
            f"{used:12.1f}"
        )


def measure(
    pairs: dict[str, tuple[Callable[[], float | None], Callable[[], float | None]]], rounds: int
) -> dict[str, list[tuple[float, float, float]]]:
    """Return seconds of ours, of the bare one, and of the processor for ours, of each round."""
    times: dict[str, list[tuple[float, float, float]]] = {name: [] for name in pairs}
    for _ in range(rounds):
        for name, (ours, bare) in pairs.items():
            took, used = seconds(ours)
            times[name].append((took, seconds(bare)[0], used))
    return times


if __name__ == "__main__":
    main()
