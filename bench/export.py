"""How fast `lcc export` writes, against `tar czf` on the same files, and in how much memory.

python bench/export.py                       # the documents of `make corpora`
python bench/export.py --docroot /usr/share/doc --repeat 3
python bench/export.py --data-dir lcc-data --formats tar.gz   # an LCC that a crawl has filled
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from hashlib import md5, sha256
from pathlib import Path
from statistics import median

from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.cache import Body, CachedUrl, UrlMeta
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.queue.unit_of_work import UnitOfWork

SITE = "http://www.example.org/"
TYPES = {".html": "text/html", ".css": "text/css", ".png": "image/png", ".js": "text/javascript"}
FORMATS = ("tar.gz", "zip", "jsonl", "parquet", "warc")
PAGE = 500


def fill(folder: Path, data: Path, files: list[Path]) -> None:
    """Put files into a fresh LCC."""
    run(folder, data, "init")
    store = SqlStore(f"sqlite:///{data / 'lcc.sqlite'}")
    content = ContentFiles(data / "content", 1)
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
        batch = UnitOfWork(tx, [7], [], 1_800_000_000, QueuePolicy())
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


def run(folder: Path, data: Path, *words: str) -> tuple[float, float, float]:
    """Run a command; returns its seconds, those of CPU time (of its children too), its peak memory in MB."""
    environment = {**os.environ, "LCC_DATA_DIR": str(data)}
    command = words if words[0] == "tar" else (sys.executable, "-m", "lcc_scrapy.cli.main", *words)
    began = time.perf_counter()
    child = subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(words)} failed")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main() -> None:
    """Measure and print."""
    given = options()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = given.data_dir.resolve() if given.data_dir else filled(folder, given)
        files = [path for path in (data / "content").rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files) / 1e6
        jobs = {"tar czf": ("tar", "czf", "files.tgz", "-C", str(data), "content")}
        jobs |= {form: ("export", "--format", form, "--force", "-o", f"x.{form}") for form in given.formats}
        print(
            f"{len(files)} documents, {size:.0f} MB;"
            f" `lcc status` alone takes {run(folder, data, 'status')[2]:.0f} MB of memory"
        )
        runs: dict[str, list[tuple[float, float, float]]] = {what: [] for what in jobs}
        for _ in range(given.repeat):  # in turns, so that a slow minute is everybody's
            for what, words in jobs.items():
                runs[what].append(run(folder, data, *words))
    tar, tar_cpu = (median(one[which] for one in runs["tar czf"]) for which in range(2))
    load = os.getloadavg()[0]
    print(f"medians of {given.repeat}, in turns, on {os.cpu_count()} processors with a load of {load:.1f}:")
    for what, told in runs.items():
        seconds, cpu, memory = (median(one[which] for one in told) for which in range(3))
        spread = " ".join(f"{one[0]:.1f}" for one in told)
        print(
            f"{what:8} {size / seconds:7.1f} MB/s {tar / seconds:6.2f} x tar czf"
            f"  {cpu:5.1f} s of CPU {tar_cpu / cpu:5.2f} x  {memory:6.0f} MB of memory   ({spread} s)"
        )


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    corpus = Path(__file__).parents[1] / ".corpora/python3.11-doc/usr/share/doc/python3.11/html"
    parser.add_argument("--docroot", type=Path, default=corpus)
    parser.add_argument("--data-dir", type=Path, help="an LCC that is there, instead of one that is filled")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--copies", type=int, default=3, help="how often every file is stored")
    parser.add_argument("--formats", nargs="+", default=list(FORMATS), choices=FORMATS)
    return parser.parse_args()


def filled(folder: Path, given: argparse.Namespace) -> Path:
    """Return the data directory of a fresh LCC with the files of the docroot."""
    files = [path for path in sorted(given.docroot.resolve().rglob("*")) if path.is_file()] * given.copies
    data = folder / "lcc-data"
    fill(folder, data, files)
    return data


if __name__ == "__main__":
    main()
