"""The mirror tracker's exchange: how large listings are, and the files that trackers exchange instead.

The seed (004, "The Digest Exchange") has 100 MB of compressed listings, 50 and 25 MB of files, and 7 and 2 MB
compressed. Here are a folder of this machine, the archive that its apt lists (``apt-cache dumpavail``), and
the listing that ``bench/tracker.py`` makes.

    python bench/exchange.py                                # /usr
    python bench/exchange.py --svg docs/exchange-sizes.svg
    python bench/exchange.py --folder /usr/share/doc --directories 2000
"""

import argparse
import gzip
import os
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from tracker import SEED, pieces, write

from lcc_scrapy.apps.tracker.exchange import export
from lcc_scrapy.apps.tracker.listings import read
from lcc_scrapy.apps.tracker.loading import Scan, load
from lcc_scrapy.apps.tracker.registry import Registry
from lcc_scrapy.db import schema
from lcc_scrapy.db.sql.store import SqlStore


@dataclass(frozen=True)
class Sizes:
    """Bytes: of a listing and compressed, of digest and link files and compressed."""

    what: str
    directories: int
    listing: int
    packed: int
    digests: int
    links: int
    packed_digests: int
    packed_links: int

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        """What is shown, with the bytes of each."""
        return (
            ("listings, compressed", self.packed),
            ("digests and links", self.digests + self.links),
            ("the same, compressed", self.packed_digests + self.packed_links),
        )


THE_SEED = Sizes("the authors, 2000", 0, 0, 100_000_000, 50_000_000, 25_000_000, 7_000_000, 2_000_000)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("/usr"))
    parser.add_argument("--directories", type=int, default=100_000, help="of the generated listing")
    parser.add_argument("--svg", type=Path, help="write a graph here")
    given = parser.parse_args()
    found = [THE_SEED]
    with tempfile.TemporaryDirectory(prefix="lcc-exchange-") as name:
        listing = Path(name) / "ls-lR"
        _list(given.folder, listing)
        found.append(measured(f"{given.folder} of one machine", listing, Path(name)))
        if shutil.which("apt-cache"):
            listing.write_bytes(b"".join(_pool()))
            found.append(measured("the archive of a distribution", listing, Path(name)))
        write(listing, given.directories, SEED)
        found.append(measured("a generated listing", listing, Path(name)))
    for one in found[1:]:
        _print(one)
    if given.svg:
        given.svg.write_text(graph(found), encoding="utf-8")


def _list(folder: Path, listing: Path) -> None:
    with listing.open("wb") as file:
        words = ["ls", "-lR", "."]
        environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
        subprocess.run(
            words, cwd=folder, stdout=file, stderr=subprocess.DEVNULL, env=environment, check=False
        )


def _pool() -> Iterable[bytes]:
    """Yield a listing of the packages that apt knows, by their names and sizes in the archive."""
    files: dict[str, dict[str, str]] = defaultdict(dict)
    place = ""
    with subprocess.Popen(["apt-cache", "dumpavail"], stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        for line in asking.stdout:
            field, _, value = line.rstrip("\n").partition(": ")
            if field == "Filename":
                place = value
            elif field == "Size":
                folder, _, name = place.rpartition("/")
                files[folder][name] = value
    below: dict[str, set[str]] = defaultdict(set)
    for folder in list(files):
        while folder:
            above, _, name = folder.rpartition("/")
            below[above].add(name)
            folder = above  # noqa: PLW2901
    yield from _blocks("", files, below)


def _blocks(folder: str, files: dict[str, dict[str, str]], below: dict[str, set[str]]) -> Iterable[bytes]:
    lines = [f"drwxr-xr-x 2 ftp ftp     4096 Mar 03 12:00 {name}\n" for name in sorted(below[folder])]
    lines += [
        f"-rw-r--r-- 1 ftp ftp {int(size):>8} Jan {int(size) % 28 + 1:02d}  2023 {name}\n"
        for name, size in sorted(files[folder].items())
    ]
    yield f"./{folder}:\n{''.join(lines)}\n".encode() if folder else f".:\n{''.join(lines)}\n".encode()
    for name in sorted(below[folder]):
        yield from _blocks(f"{folder}/{name}" if folder else name, files, below)


def measured(what: str, listing: Path, folder: Path) -> Sizes:
    """Load a listing and export what it has."""
    database = folder / "lcc.sqlite"
    store = SqlStore(f"sqlite:///{database}")
    schema.upgrade(store.url)
    registry = Registry(store)
    registry.add_domain("org", int(time.time()))
    host = registry.add_server("ftp://ftp.example.org/", "org", int(time.time()))
    load(store, Scan(host.hostid, int(time.time()), "ls-lR"), read(pieces(listing)))
    made = export(store, "org", folder, int(time.time()))
    store.close()
    database.unlink()
    digests, links = (_unpacked(folder / one.name) for one in made.files[:2])
    sizes = listing.stat().st_size, _packed(listing), digests, links
    return Sizes(what, made.directories, *sizes, made.files[0].bytes, made.files[1].bytes)


def _packed(path: Path) -> int:
    words = ["gzip", "-6", "-c", str(path)]
    return len(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)


def _unpacked(path: Path) -> int:
    with gzip.open(path, "rb") as file:
        return sum(len(piece) for piece in iter(lambda: file.read(1 << 18), b""))


def _print(one: Sizes) -> None:
    def shown(size: int) -> str:
        return f"{size / 1e6:.2f}"

    of_all = 100 * (one.packed_digests + one.packed_links) / one.packed
    print(
        f"{one.what}: {one.directories:,} directories, listing {shown(one.listing)} MB,"
        f" compressed {shown(one.packed)} MB;"
        f" digests {shown(one.digests)} MB, links {shown(one.links)} MB;"
        f" compressed {shown(one.packed_digests)} and {shown(one.packed_links)} MB: {of_all:.0f} %"
    )


WIDTH, LABEL, BAR, LINE = 720, 190, 440, 18


def graph(found: Iterable[Sizes]) -> str:
    """Return bars of each, in per cent of the compressed listings, as SVG."""
    rows, top = [], 34
    for one in found:
        rows.append(f'<text x="8" y="{top}" font-weight="bold">{escape(one.what)}</text>')
        for name, size in one.parts:
            top += LINE
            share = 100 * size / one.packed
            length = min(share, 150) / 150 * BAR
            label = f"{size / 1e6:.1f} MB, {share:.0f} %"
            rows.append(
                f'<text x="8" y="{top}">{name}</text>'
                f'<rect x="{LABEL}" y="{top - 11}" width="{length:.1f}" height="12" fill="#4a7ebb"/>'
                f'<text x="{LABEL + length + 6:.1f}" y="{top}">{label}</text>'
            )
        top += 2 * LINE
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" role="img"'
    style = 'font-family="sans-serif" font-size="12"'
    title = "<title>Sizes of listings and of what trackers exchange instead</title>"
    back = f'<rect width="{WIDTH}" height="{top}" fill="white"/>'
    return "\n".join([f"{head} {style}>{title}{back}", *rows, "</svg>", ""])


if __name__ == "__main__":
    main()
