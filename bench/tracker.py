"""The mirror tracker: what it costs to sum up a large listing, to load it, and to look replicas up.

Two servers list the same tree, but for a tenth of the deepest directories: so look-ups have to walk. CPU
seconds are of this process; rates are by the clock.

    python bench/tracker.py                         # 10,000,000 entries in 500,000 directories
    python bench/tracker.py --directories 2000      # small
"""

import argparse
import gzip
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from lcc_scrapy.apps.tracker.exchange import export
from lcc_scrapy.apps.tracker.listings import read
from lcc_scrapy.apps.tracker.loading import CLAIM, Scan, counted, show, stage
from lcc_scrapy.apps.tracker.lookup import look_up
from lcc_scrapy.apps.tracker.registry import Registry
from lcc_scrapy.apps.tracker.rules.tracked import Place, url_of
from lcc_scrapy.apps.tracker.summing import Summary, summed
from lcc_scrapy.db import schema
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.machine.garbage_collection import collect_seldom

PIECE = 1 << 18
FILES, BELOW, DEPTH = 19, 8, 7
"""Files and subdirectories of one directory, and levels: with its own entry, each has twenty entries."""

SEED = 17


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--directories", type=int, default=500_000)
    parser.add_argument("--lookups", type=int, default=2000)
    given = parser.parse_args()
    collect_seldom()
    with tempfile.TemporaryDirectory(prefix="lcc-tracker-") as folder:
        database = Path(folder) / "lcc.sqlite"
        store = SqlStore(f"sqlite:///{database}")
        schema.upgrade(store.url)
        Registry(store).add_domain("org", int(time.time()))
        for number in range(2):
            listing = Path(folder) / f"ls-lR.{number}"
            write(listing, given.directories, SEED + number)
            summary = _sum(listing)
            places = _places(summary, random.Random(SEED), given.lookups)
            _load(store, database, number, summary)
            del summary
        _look_up(store, places)
        _export(store, listing, Path(folder))
        store.close()


def _sum(listing: Path) -> Summary:
    began = time.process_time()
    summary = summed(read(pieces(listing)))
    took = time.process_time() - began
    totals = summary.totals
    entries = totals.dirs + totals.files
    size = listing.stat().st_size / 1e6
    print(f"listing: {entries:,} entries in {totals.dirs:,} directories, {size:.0f} MB")
    print(f"parsed and summed: {took:.2f} CPU s, {entries / took:,.0f} entries/s, peak {_peak():.0f} MB")
    return summary


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _load(store: SqlStore, database: Path, number: int, summary: Summary) -> None:
    host = Registry(store).add_server(f"ftp://ftp{number}.example.org/", "org", int(time.time()))
    counts, before = counted(summary), database.stat().st_size
    cpu, began = time.process_time(), time.perf_counter()
    staged = stage(store, host.hostid, summary.rows(), counts, lambda: time.time() + CLAIM)
    with store.begin() as tx:
        show(tx, Scan(host.hostid, int(time.time()), "ls-lR"), staged)
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    size = (database.stat().st_size - before) / counts.dirs
    print(
        f"loaded: {counts.dirs / took:,.0f} directories/s ({counts.dirs / cpu:,.0f} by CPU time),"
        f" {size:.1f} bytes a directory, peak {_peak():.0f} MB"
    )


def _look_up(store: SqlStore, places: list[Place]) -> None:
    """Look up directories and files at random, and print how long that took."""
    took, cpu, steps, found = [], time.process_time(), 0, 0
    for place in places:
        began = time.perf_counter()
        result = look_up(store, place)
        took.append(time.perf_counter() - began)
        steps += len(result.steps)
        found += bool(result.replicas)
    cpu = (time.process_time() - cpu) / len(places)
    took.sort()
    middle, late = took[len(took) // 2], took[int(len(took) * 0.99)]
    print(
        f"look-up: p50 {middle * 1e3:.2f} ms, p99 {late * 1e3:.2f} ms, {cpu * 1e3:.2f} CPU ms;"
        f" {steps / len(places):.1f} steps each, {found} of {len(places)} have replicas"
    )


def _export(store: SqlStore, listing: Path, folder: Path) -> None:
    """Print what the exchange saves, as the seed does: listings, then files; compressed and not."""
    with gzip.open(folder / "ls-lR.gz", "wb", 6) as packed:
        for piece in pieces(listing):
            packed.write(piece)
    cpu = time.process_time()
    made = export(store, "org", folder, int(time.time()))
    cpu = time.process_time() - cpu
    print(
        f"exchange of {made.directories:,} directories ({cpu:.1f} CPU s):"
        f" listings {2 * listing.stat().st_size / 1e6:.1f} MB,"
        f" compressed {2 * (folder / 'ls-lR.gz').stat().st_size / 1e6:.1f} MB; files, compressed: "
        + ", ".join(f"{one.name} {one.bytes / 1e6:.2f} MB" for one in made.files)
    )


def _places(summary: Summary, chosen: random.Random, count: int) -> list[Place]:
    places = []
    for _ in range(count):
        node, path = summary.root, []
        while node.nodes and chosen.random() > 1 / (2 * DEPTH):
            node = chosen.choice(list(node.nodes.values()))
            path.append(node.name)
        if chosen.random() > 1 / 2:
            places.append(Place.parse(url_of("ftp://ftp0.example.org", (*path, b"x.gz"), is_directory=False)))
        else:
            places.append(Place.parse(url_of("ftp://ftp0.example.org", tuple(path), is_directory=True)))
    return places


def pieces(path: Path) -> Iterator[bytes]:
    """Yield a file piece by piece."""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def write(path: Path, directories: int, seed: int) -> None:
    """Write a listing, depth first; of two seeds, a tenth of the deepest directories differ."""
    with path.open("wb") as file:
        for one in blocks(".", 0, [directories - 1], seed):
            file.write(one)


def blocks(path: str, depth: int, left: list[int], seed: int) -> Iterator[bytes]:
    """Yield the block of a directory and those below it."""
    count = min(left[0], BELOW) if depth < DEPTH else 0
    left[0] -= count
    here = left[0] * DEPTH + depth
    names = [f"pkg-{depth}{number}-{here % 977}" for number in range(count)]
    differs = seed if depth == DEPTH and here % 10 == 0 else 0
    lines = [f"drwxr-xr-x    2 ftp      ftp          4096 Mar 03 12:00 {name}\n" for name in names]
    for number in range(FILES):
        size = (here * 31 + number * 7919 + differs) % 9_000_000
        when = f"Jan {number % 28 + 1:02d}  20{number % 20:02d}"
        name = f"lib{number:02d}-{here % 89}.{number}.tar.gz"
        lines.append(f"-rw-r--r--    1 ftp      ftp      {size:>8} {when} {name}\n")
    yield f"{path}:\n{''.join(lines)}\n".encode()
    for name in names:
        yield from blocks(f"{path}/{name}", depth + 1, left, seed)


if __name__ == "__main__":
    main()
