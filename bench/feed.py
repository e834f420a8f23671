"""How fast the feed is read, against a bare SELECT of the same columns in the same order.

python bench/feed.py
python bench/feed.py --database mariadb --documents 1000000
"""

import argparse
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import fields
from statistics import median

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.lcc import LCC, MIMETYPE, Lcc, database
from crawling.running import Failed

from lcc_scrapy.content_user import ContentUser
from lcc_scrapy.db.records import FEED
from lcc_scrapy.db.sql.store import SqlStore, make_engine
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.entries import urlkey

ROOT = "http://www.example.org/"
AT_ONCE = 10_000
NOW = 1_800_000_000
HEADINGS = ("reader", "rows/s", "range", "time, bare SELECT = 1", "range", "n")


def fill(lcc: Lcc, documents: int) -> None:
    """Put rows of documents into an LCC, as settling writes them."""
    store = SqlStore(lcc.database_url)
    for start in range(0, documents, AT_ONCE):
        with store.begin() as tx:
            count = min(AT_ONCE, documents - start)
            seq = tx.take(FEED, count)
            tx.insert_cached([document(start + number, seq + number) for number in range(count)])
    store.close()


def document(number: int, seq: int) -> CachedUrl:
    """Return the row of a document."""
    curl = f"{ROOT}folder{number % 97}/document-{number:08d}.html"
    md5, sha256 = f"{number:032x}", f"{number:064x}"
    return CachedUrl(
        urlkey(7, curl, MIMETYPE), 7, curl, MIMETYPE, "", curl, curl, NOW, 8_000, md5, "", NOW, 1,
        number + 1, 8_000, md5, sha256, MIMETYPE, "utf-8", "", curl, f'"{number:x}-1f40"',
        "Fri, 15 Jan 2027 08:00:00 GMT", NOW, seq=seq,
    )  # fmt: skip


def bare(lcc: Lcc) -> int:
    """Read with the database's own driver; return how many rows."""
    columns = ", ".join(one.name for one in fields(CachedUrl))
    engine = make_engine(lcc.database_url)
    with engine.connect() as connection:
        cursor = connection.connection.cursor()
        cursor.execute(f"select {columns} from lccurl order by seq")
        count = 0
        while rows := cursor.fetchmany(1000):
            count += len(rows)
        cursor.close()
    engine.dispose()
    return count


def content_user(lcc: Lcc) -> int:
    """Read as a program does."""
    with ContentUser(lcc.environment) as user:
        return sum(1 for _ in user.select())


def command(lcc: Lcc) -> int:
    """Read as a script does, the start of the command included."""
    with subprocess.Popen(
        [*LCC, "select", "--format", "jsonl"], env=lcc.environment, cwd=lcc.folder, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        return sum(block.count(b"\n") for block in iter(lambda: process.stdout.read1(1 << 20), b""))


READERS: dict[str, Callable[[Lcc], int]] = {
    "bare SELECT": bare,
    "ContentUser.select()": content_user,
    "lcc select --format jsonl": command,
}


def rounds(lcc: Lcc, documents: int, count: int) -> dict[str, list[float]]:
    """Let all readers read in turns; return seconds."""
    took: dict[str, list[float]] = {name: [] for name in READERS}
    for _ in range(count):
        for name, read in READERS.items():
            begun = time.perf_counter()
            found = read(lcc)
            took[name].append(time.perf_counter() - begun)
            if found != documents:
                raise Failed(f"{name}: {found:,} rows of {documents:,}")
    return took


def row(name: str, mine: list[float], bare: list[float], documents: int) -> tuple[str, ...]:
    ratios = [one / other for one, other in zip(mine, bare, strict=True)]
    slowest, fastest = documents / max(mine), documents / min(mine)
    return (
        name, f"{documents / median(mine):,.0f}", f"{slowest:,.0f}-{fastest:,.0f}",
        f"{median(mine) / median(bare):.1f}", f"{min(ratios):.1f}-{max(ratios):.1f}", str(len(mine)),
    )  # fmt: skip


def main() -> None:
    """Measure and print."""
    given = options()
    with running.scratch(given.scratch) as folder, database(given.database, folder) as url:
        lcc = Lcc(folder, url)
        lcc.command("init")
        lcc.register({7: ROOT})
        fill(lcc, given.documents)
        took = rounds(lcc, given.documents, given.rounds)
    bare = took["bare SELECT"]
    table = [row(name, mine, bare, given.documents) for name, mine in took.items()]
    title = f"feed on {given.database}, {given.documents:,} documents, load {os.getloadavg()[0]:.1f}"
    tables.show(title, HEADINGS, table, given.markdown)


def options() -> argparse.Namespace:
    """Read the command line."""
    options = parser(__doc__, "--database", "--markdown", "--scratch")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--documents", type=int, default=200_000)
    return parsed(options)


if __name__ == "__main__":
    main()
