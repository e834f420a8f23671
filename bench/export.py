"""How fast `lcc export` writes, against `tar czf` on the same files, and in how much memory.

python bench/export.py                       # the documents of `make corpora`
python bench/export.py --docroot /usr/share/doc --repeat 3
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from hashlib import md5, sha256
from pathlib import Path

from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.domain.cache import Body, CachedUrl, UrlMeta
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.storage.batch import Batch
from lcc_scrapy.storage.sql import SqlStore

SITE = "http://www.example.org/"
TYPES = {".html": "text/html", ".css": "text/css", ".png": "image/png", ".js": "text/javascript"}
FORMATS = ("tar.gz", "zip", "jsonl", "warc")
PAGE = 500


def fill(folder: Path, files: list[Path]) -> None:
    """Put files into a fresh LCC."""
    run(folder, "init")
    store = SqlStore(f"sqlite:///{folder / 'lcc-data' / 'lcc.sqlite'}")
    content = ContentFiles(folder / "lcc-data" / "content", 1)
    content.prepare()
    with store.begin() as tx:
        tx.insert_provider(Provider(7, "a hash"), [SITE])
    for start in range(0, len(files), PAGE):
        put(store, content, list(enumerate(files[start : start + PAGE], start + 1)))
    store.close()


def put(store: SqlStore, content: ContentFiles, numbered: list[tuple[int, Path]]) -> None:
    """Store some of them, in one transaction."""
    bodies = {number: path.read_bytes() for number, path in numbered}
    content.keep([(number, Body(len(data), "", "", data=data)) for number, data in bodies.items()])
    with store.begin() as tx:
        batch = Batch(tx, [7], [], 1_800_000_000, QueuePolicy())
        for number, path in numbered:
            row = document(number, path, bodies[number])
            batch.put_cached(row, tell=True)
            headers = f'[["Content-Type", "{row.mimetype}"], ["Server", "bench"]]'
            batch.put_meta(UrlMeta(row.urlkey, "HTTP/1.1 200 OK", headers, "192.0.2.1", 1_800_000_000))
        batch._cached_before.clear()  # noqa: SLF001 - all of it is new
        batch.flush()


def document(number: int, path: Path, data: bytes) -> CachedUrl:
    """Return the row of a file."""
    curl, mimetype = f"{SITE}{number}/{path.name}", TYPES.get(path.suffix, "text/plain")
    digests = md5(data, usedforsecurity=False).hexdigest(), sha256(data).hexdigest()
    return CachedUrl(
        urlkey(7, curl, mimetype), 7, curl, mimetype, "", curl, curl, None, None, None, "", 1_800_000_000, 1,
        number, len(data), *digests, mimetype, "utf-8", "", curl, "", "", 1_800_000_000,
    )  # fmt: skip


def run(folder: Path, *words: str) -> tuple[float, float]:
    """Run a command; returns its seconds and its peak memory in MB."""
    environment = {**os.environ, "LCC_DATA_DIR": str(folder / "lcc-data")}
    command = words if words[0] == "tar" else (sys.executable, "-m", "lcc_scrapy.cli.main", *words)
    began = time.perf_counter()
    child = subprocess.Popen(command, env=environment, cwd=folder, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(words)} failed")
    return time.perf_counter() - began, usage.ru_maxrss / 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    corpus = Path(__file__).parents[1] / ".corpora/python3.11-doc/usr/share/doc/python3.11/html"
    parser.add_argument("--docroot", type=Path, default=corpus)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--copies", type=int, default=3, help="how often every file is stored")
    given = parser.parse_args()
    files = [path for path in sorted(given.docroot.resolve().rglob("*")) if path.is_file()] * given.copies
    size = sum(path.stat().st_size for path in files) / 1e6
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder, files)
        print(
            f"{len(files)} documents, {size:.0f} MB;"
            f" `lcc status` alone takes {run(folder, 'status')[1]:.0f} MB of memory"
        )
        jobs = {"tar czf": ("tar", "czf", "files.tgz", "lcc-data/content/1")}
        jobs |= {form: ("export", "--format", form, "--force", "-o", f"x.{form}") for form in FORMATS}
        best = {what: min(run(folder, *words) for _ in range(given.repeat)) for what, words in jobs.items()}
        for what, (seconds, memory) in best.items():
            ratio = best["tar czf"][0] / seconds
            print(f"{what:8} {size / seconds:7.1f} MB/s {ratio:6.2f} x tar czf  {memory:6.0f} MB of memory")
    print(f"(children so far: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime:.0f} s of CPU)")


if __name__ == "__main__":
    main()
