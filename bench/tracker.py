"""The mirror tracker: what it costs to sum up a large listing, to load it, and to look replicas up.

    python bench/tracker.py                         # 10,000,000 entries in 500,000 directories
    python bench/tracker.py --directories 2000      # small
"""

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from lcc_scrapy.tracker.listings import read
from lcc_scrapy.tracker.summing import summed

PIECE = 1 << 18
FILES = 19
"""Files of one directory: with its own entry, twenty."""


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--directories", type=int, default=500_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lcc-tracker-") as folder:
        listing = Path(folder) / "ls-lR"
        write(listing, given.directories)
        print(f"{listing.stat().st_size / 1e6:.0f} MB of listing")
        began = time.process_time()
        summary = summed(read(pieces(listing)))
        took = time.process_time() - began
        print(f"{took:.2f} CPU s, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB; {summary.totals}")


def pieces(path: Path) -> Iterator[bytes]:
    """Yield a file piece by piece."""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def write(path: Path, directories: int) -> None:
    """Write a listing, depth first: each directory has eight subdirectories while some are left."""
    with path.open("wb") as file:
        left = [directories - 1]
        for one in blocks(".", 0, left):
            file.write(one)


def blocks(path: str, depth: int, left: list[int]) -> Iterator[bytes]:
    """Yield the block of a directory and those below it."""
    count = min(left[0], 8 if depth < 7 else 0)
    left[0] -= count
    seed = left[0]
    names = [f"pkg-{depth}{number}-{seed % 977}" for number in range(count)]
    files = [
        f"-rw-r--r--    1 ftp      ftp      {(seed * 31 + n * 7919) % 9_000_000:>8} Jan {n % 28 + 1:02d}  20{n % 20:02d} lib{n:02d}-{seed % 89}.{n}.tar.gz\n"
        for n in range(FILES)
    ]
    dirs = [f"drwxr-xr-x    2 ftp      ftp          4096 Mar 03 12:00 {name}\n" for name in names]
    yield f"{path}:\n{''.join(dirs + files)}\n".encode()
    for name in names:
        yield from blocks(f"{path}/{name}", depth + 1, left)


if __name__ == "__main__":
    main()
