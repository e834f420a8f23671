"""What intake costs, each step beside the plainest thing that does the same work, interleaved.

* reading: the UNS's codec against a bare expat parser over the same stream;
* spooling: checked entries into a durable spool file against one ``write`` and ``fsync`` of as many bytes;
* absorbing: a spooled set into SQLite against ``executemany`` of as many rows with the same index.

``python bench/intake.py [--urls N] [--rounds N]`` prints medians and the ratio of medians.
"""

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from xml.parsers import expat

from lcc_scrapy.domain.entries import Declared, EntryRules, UrlEntry, read_entry
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.storage import schema
from lcc_scrapy.storage.intake import Intake
from lcc_scrapy.storage.spooled import open_spooled
from lcc_scrapy.storage.sql import SqlStore
from lcc_scrapy.uns.codec import Codec
from lcc_scrapy.uns.spool import SpoolFolder
from lcc_scrapy.uns.spoolfile import SpoolHeader

PREFIX = "http://www.example.org/"
PIECE = 65536


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
        self.rules = EntryRules(("text/*",), (Root.parse(PREFIX),), PREFIX)
        self.round = 0

    def read(self) -> None:
        codec = Codec()
        count = sum(len(codec.feed(self.stream[at : at + PIECE])) for at in range(0, len(self.stream), PIECE))
        assert count == self.urls + 3

    def read_and_check(self) -> None:
        codec = Codec()
        for at in range(0, len(self.stream), PIECE):
            for message in codec.feed(self.stream[at : at + PIECE]):
                attributes = getattr(message, "attributes", None)
                if attributes is not None:
                    read_entry(attributes, self.rules)

    def bare_expat(self) -> None:
        parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler = lambda *_: None
        parser.Parse(b"<stream>", False)
        for at in range(0, len(self.stream), PIECE):
            parser.Parse(self.stream[at : at + PIECE], False)

    def spool(self) -> None:
        folder = SpoolFolder(self._fresh("spool"))
        folder.lock()
        folder.recover()
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

    def absorb(self) -> None:
        url = f"sqlite:///{self._fresh('absorb') / 'lcc.sqlite'}"
        schema.upgrade(url)
        store = SqlStore(url)
        with store.begin() as tx:
            tx.insert_provider(Provider(1, ""), [PREFIX])
        intake = Intake(store, open_spooled(self.spooled), QueuePolicy())
        while not intake.step(1).finished:
            pass
        intake.close()
        store.close()

    def bare_sqlite(self) -> None:
        connection = sqlite3.connect(self._fresh("bare") / "x.sqlite")
        connection.execute(
            "create table q (k blob primary key, u text, m integer, l integer, d text, s integer, p integer)"
        )
        connection.execute("create index i on q (s, p)")
        rows = [
            (os.urandom(16), e.curl, 1, e.declared.length, e.declared.md5, 1, n)
            for n, e in enumerate(self.entries)
        ]
        connection.executemany("insert into q values (?, ?, ?, ?, ?, ?, ?)", rows)
        connection.commit()
        connection.close()

    def _fresh(self, name: str) -> Path:
        self.round += 1
        folder = self.folder / f"{name}-{self.round}"
        folder.mkdir()
        return folder


def seconds(work: Callable[[], None]) -> float:
    """Time one run."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--urls", type=int, default=50_000)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        bench = Bench(Path(folder), chosen.urls)
        bench.spool()
        pairs = {
            "read": (bench.read, bench.bare_expat),
            "read and check": (bench.read_and_check, bench.bare_expat),
            "spool durably": (bench.spool, bench.bare_write),
            "absorb (SQLite)": (bench.absorb, bench.bare_sqlite),
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in pairs}
        for _ in range(chosen.rounds):
            for name, (ours, bare) in pairs.items():
                times[name].append((seconds(ours), seconds(bare)))
    print(f"{chosen.urls} URLs, n={chosen.rounds}, medians; load {os.getloadavg()[0]:.1f}")
    print(f"{'step':18}{'URLs/s':>12}{'bare/s':>12}{'ours/bare time':>16}{'range':>16}")
    for name, runs in times.items():
        ours, bare = median(run[0] for run in runs), median(run[1] for run in runs)
        ratios = sorted(run[0] / run[1] for run in runs)
        spread = f"{ratios[0]:.1f}-{ratios[-1]:.1f}"
        print(
            f"{name:18}{chosen.urls / ours:12,.0f}{chosen.urls / bare:12,.0f}{ours / bare:16.1f}{spread:>16}"
        )


if __name__ == "__main__":
    main()
