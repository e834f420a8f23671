"""How many documents a second `lcc annotate` annotates, from the feed to ACIs on disk, with its processors.

python bench/annotation_engine.py                        # 3 and 1,000 profiles, processors for all CPUs
python bench/annotation_engine.py --profiles 3 --pages 500 --processors 1

The documents are those of `make corpora`, or made up; profiles are those of bench/annotate.py. Compare with
the pages a second of bench/crawl.py on the same machine: the engine has to keep up with a crawl.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from itertools import count, cycle, islice
from pathlib import Path

from annotate import made_up, pages_of, profiles_of, vocabulary
from export import put

from lcc_scrapy.annotation import queueing
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.providers import Provider

SITE = "http://www.example.org/"


def lcc(data: Path, *words: str) -> str:
    """Run a command; returns what it said to stderr."""
    command = [sys.executable, "-m", "lcc_scrapy.cli.main", *words]
    environment = {**os.environ, "LCC_DATA_DIR": str(data)}
    done = subprocess.run(command, env=environment, cwd=data.parent, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"lcc {' '.join(words)} failed: {done.stderr}")
    return done.stderr


def files_of(folder: Path, most: int, scratch: Path) -> list[Path]:
    """Return pages, as many as are wanted: real ones, again and again, or made-up ones."""
    real = [path for path in sorted(folder.rglob("*.html")) if path.is_file()]
    if not real:
        scratch.mkdir()
        for number, body in enumerate(made_up(20)):
            (scratch / f"{number}.html").write_bytes(body)
        real = sorted(scratch.iterdir())
    return list(islice(cycle(real), most))


def fill(data: Path, files: list[Path], profiles: int, words: list[str]) -> None:
    """Make an LCC whose feed has documents that were not annotated yet, and profiles for them."""
    lcc(data, "init")
    store = SqlStore(f"sqlite:///{data / 'lcc.sqlite'}")
    content = ContentFiles(data / "content", 1)
    content.prepare()
    with store.begin() as tx:
        tx.insert_provider(Provider(7, "a hash"), [SITE])
        queueing.begin(tx)
        urds = tx.add_urds(profiles_of(profiles, words))
        tx.note_run([urd.revision for urd in urds], None)
    numbers = count(1)
    for start in range(0, len(files), 500):
        put(store, content, [(next(numbers), path) for path in files[start : start + 500]])
    store.close()


def run(given: argparse.Namespace, profiles: int, words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "lcc-data"
        files = files_of(given.folder, given.pages, Path(name) / "pages")
        fill(data, files, profiles, words)
        size = sum(path.stat().st_size for path in files) / len(files)
        options = ["--processors", str(given.processors)] if given.processors else []
        begun = time.perf_counter()
        said = lcc(data, "annotate", "--only", "engine", "--once", *options)
        seconds = time.perf_counter() - begun
    found = re.search(r"annotated (\d+) documents, (\d+) ACIs.* at most (\d+) waiting, ([\d.]+) s", said)
    assert found, said
    pages, acis, peak, cpu = int(found[1]), int(found[2]), int(found[3]), float(found[4])
    assert pages == len(files), said
    print(
        f"{profiles:>7,} profiles: {pages / seconds:6.0f} documents/s of {size / 1000:.1f} kB with start and end;"
        f" {1000 * cpu / pages:.2f} ms of processor CPU each; {acis} ACIs, at most {peak} waiting",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--profiles", nargs="+", type=int, default=[3, 1000], metavar="N")
    parser.add_argument("--pages", type=int, default=3000, help="documents to annotate (3000)")
    parser.add_argument("--processors", type=int, default=0, help="0 = as LCC_AE_PROCESSORS")
    parser.add_argument("--folder", type=Path, default=Path(".corpora"))
    given = parser.parse_args()
    words = vocabulary(pages_of(given.folder, 20), given.folder)
    for profiles in given.profiles:
        run(given, profiles, words)


if __name__ == "__main__":
    main()
