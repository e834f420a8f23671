"""The longest jobs of the store's thread with a crowd of providers, and what housekeeping costs there.

A crawl (``scrapy crawl lcc_push``) is started on a database that holds many providers, each with some URLs
that wait and some documents, beside an nginx that serves every page. Every job of its store thread is timed:
seconds, and of these the CPU seconds of the thread, which other programs do not change.

    python bench/store_jobs.py                                   # 1,000 providers, SQLite
    python bench/store_jobs.py --providers 10000 --database sqlite mariadb
    python bench/store_jobs.py --providers 10000 --source ../before . --rounds 3

``--source`` names other copies of the project; they take turns. Nothing of it stays.
"""

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from crawling.site import Site, free_port
from safequeue import database

HERE = Path(__file__).resolve()
SHOWN = 12
"""Jobs named one by one."""


# --- in a process of the copy that is measured -----------------------------------------------------------


def fill(url: str, providers: int, urls: int, documents: int, port: int) -> None:
    """Write providers with URLs that wait and documents, as intake and settling would leave them."""
    from lcc_scrapy.domain.providers import Provider  # noqa: PLC0415 - of the copy that is measured
    from lcc_scrapy.storage import tables as t  # noqa: PLC0415
    from lcc_scrapy.storage.records import SetPart, StoredTurn  # noqa: PLC0415
    from lcc_scrapy.storage.sql import SqlStore  # noqa: PLC0415
    from lcc_scrapy.storage.sql.rows import RowsOf  # noqa: PLC0415

    store, now = SqlStore(url), int(time.time())
    seqs = itertools.count(1)
    for pids in _portions(range(1, providers + 1), 500):
        with store.begin() as tx:
            connection = tx._c  # type: ignore[attr-defined]  # noqa: SLF001 - by the short way
            rows = [
                Provider(
                    pid, "", nurlproc=urls, fileused=documents, spaceused=1000 * documents,
                    allowprivate=True, created=now, confirmed=now,
                )
                for pid in pids
            ]  # fmt: skip
            RowsOf(t.pidb, Provider).insert(connection, rows)
            connection.execute(t.proots.insert(), [{"pid": pid, "root": _root(pid, port)} for pid in pids])
            tx.insert_queued([_waiting(pid, port, number) for pid in pids for number in range(urls)])
            tx.insert_cached(
                [_stored(pid, number, next(seqs), now) for pid in pids for number in range(documents)]
            )
            RowsOf(t.qpsdb, SetPart).insert(connection, [SetPart(pid, "", pid, -1, 0, urls) for pid in pids])
            turns = [StoredTurn(str(pid), waiting=urls, arrivals=1) for pid in pids]
            RowsOf(t.turns, StoredTurn).insert(connection, turns)
    with store.begin() as tx:
        tx.take("psetid", providers + 1)
        tx.take("feed", providers * documents + 1)
        tx.take("fileid", providers * documents + 1)


def _portions(items: Any, size: int) -> Iterator[list[int]]:
    items = iter(items)
    return iter(lambda: list(itertools.islice(items, size)), [])


def _root(pid: int, port: int) -> str:
    return f"http://127.1.{pid // 250}.{pid % 250 + 1}:{port}/"


def _waiting(pid: int, port: int, number: int) -> Any:
    from lcc_scrapy.domain.entries import urlkey  # noqa: PLC0415
    from lcc_scrapy.domain.queue import QueuedUrl  # noqa: PLC0415

    url = f"{_root(pid, port)}2000/document-{number:07d}.html"
    return QueuedUrl(
        urlkey(pid, url, "text/html"), pid, url, "text/html", "", url, url, None, None, None, "", pid,
        number + 1, "fetch", 1, 0, 0,
    )  # fmt: skip


def _stored(pid: int, number: int, seq: int, now: int) -> Any:
    from lcc_scrapy.domain.cache import CachedUrl  # noqa: PLC0415
    from lcc_scrapy.domain.entries import urlkey  # noqa: PLC0415

    url = f"http://h{pid}.example/older-{number:07d}.html"
    return CachedUrl(
        urlkey(pid, url, "text/html"), pid, url, "text/html", "", url, url, None, None, None, "", now, 1, seq,
        1000, "0" * 32, "0" * 64, "text/html", "utf-8", "", url, "", "", now, "push", seq, 1, 0, 0,
    )  # fmt: skip


def crawl(report: Path) -> None:
    """Crawl in this process, and report of every job when it ends."""
    from lcc_scrapy.storage import thread as threads  # noqa: PLC0415

    jobs: dict[str, list[float]] = {}

    class Timed(threads.StoreThread):
        def run(self, job: Any, *args: Any) -> Any:
            name = _name_of(job)

            def timed(*args: Any) -> Any:
                began, computed = time.monotonic(), time.thread_time()
                try:
                    return job(*args)
                finally:
                    took, cpu = time.monotonic() - began, time.thread_time() - computed
                    count, longest, most, total = jobs.get(name, [0, 0.0, 0.0, 0.0])
                    jobs[name] = [count + 1, max(longest, took), max(most, cpu), total + cpu]

            return super().run(timed, *args)

    threads.StoreThread = Timed  # type: ignore[misc]
    from scrapy.cmdline import execute  # noqa: PLC0415

    try:
        execute(["scrapy", "crawl", "lcc_push"])
    finally:
        report.write_text(json.dumps(jobs))


def _name_of(job: Any) -> str:
    while hasattr(job, "func"):
        job = job.func
    name = str(getattr(job, "__qualname__", type(job).__qualname__))
    return "Housekeeper (a step)" if name in {"next", "Housekeeper._slice"} else name


# --- one measurement -------------------------------------------------------------------------------------


def measure(source: Path, kind: str, given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Fill, crawl for some seconds, stop."""
    folder.mkdir()
    with ExitStack() as stack:
        site = Site(folder / "site", [2000])
        stack.callback(site.close)
        url = stack.enter_context(database(kind, folder))
        environment = _environment(source, folder, url)

        def run(*words: str) -> None:
            subprocess.run([sys.executable, *words], env=environment, check=True, stdout=subprocess.DEVNULL)

        run("-m", "lcc_scrapy.cli.main", "init")
        sizes = [str(n) for n in (given.providers, given.urls, given.documents, site.port)]
        run(str(HERE), "--fill", url, *sizes)
        return _crawled(site, environment, folder, given)


def _crawled(
    site: Site, environment: dict[str, str], folder: Path, given: argparse.Namespace
) -> dict[str, Any]:
    report, began = folder / "jobs.json", time.time()
    with (folder / "crawl.log").open("wb") as log:
        command = [sys.executable, str(HERE), "--crawl", str(report)]
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
        try:
            first = _first_page(site.log, process, began, given.seconds)
            time.sleep(given.seconds)
        finally:
            process.terminate()
            process.wait(120)
    served = [float(line.split()[0]) for line in _pages(site.log)]
    jobs = json.loads(report.read_text())
    of_houses = jobs.get("Housekeeper (a step)", [0, 0.0, 0.0, 0.0])
    name, longest = max(jobs.items(), key=lambda one: one[1][2])
    return {
        "first page s": first,
        "pages/s": len(served) / given.seconds,
        "housekeeping CPU s": of_houses[3],
        "longest job, CPU ms": longest[2] * 1000,
        "longest job, ms": max(one[1] for one in jobs.values()) * 1000,
        "which": name,
        "jobs": jobs,
    }


def _first_page(log: Path, process: "subprocess.Popen[bytes]", began: float, patience: float) -> float:
    end = time.monotonic() + 600 + patience
    while time.monotonic() < end and process.poll() is None:
        if (line := next(iter(_pages(log)), None)) is not None:
            return float(line.split()[0]) - began
        time.sleep(0.1)
    raise SystemExit(f"no page was fetched: {(log.parent.parent / 'crawl.log').read_text()[-2000:]}")


def _pages(log: Path) -> list[str]:
    if not log.exists():
        return []
    return [line for line in log.read_text().splitlines() if line.endswith(".html")]


def _environment(source: Path, folder: Path, url: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("LCC_", "SCRAPY_"))}
    return clean | {
        "PYTHONPATH": str(source.resolve()),
        "SCRAPY_SETTINGS_MODULE": "lcc_scrapy.settings",
        "LCC_DATA_DIR": str(folder / "lcc-data"),
        "LCC_DATABASE_URL": url,
        "LCC_UNS_ENDPOINTS": f"tcp:{free_port()}:interface=127.0.0.1",
    }


# --- all of them -----------------------------------------------------------------------------------------


def show(found: dict[tuple[str, str], list[dict[str, Any]]]) -> None:
    """Print medians, and the longest jobs by name."""
    print(f"load {os.getloadavg()[0]:.1f}; medians")
    for (source, kind), results in found.items():
        print(f"\n{source}, {kind}:")
        for name in (
            "first page s",
            "pages/s",
            "housekeeping CPU s",
            "longest job, CPU ms",
            "longest job, ms",
        ):
            which = results[-1]["which"] if "CPU ms" in name else ""
            print(f"  {name:22s} {median(one[name] for one in results):9.1f}   {which}")
        print(f"  {'job':48s} {'count':>7s} {'longest ms':>11s} {'CPU ms':>8s} {'CPU s in all':>13s}")
        worst = sorted(results[-1]["jobs"].items(), key=lambda one: -one[1][2])[:SHOWN]
        for name, (count, longest, most, total) in worst:
            print(f"  {name:48s} {count:7d} {longest * 1000:11.1f} {most * 1000:8.1f} {total:13.2f}")


def main() -> None:
    """Measure all copies on all databases, in turns."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--providers", type=int, default=1000)
    parser.add_argument("--urls", type=int, default=10, help="URLs of each that wait")
    parser.add_argument("--documents", type=int, default=2, help="documents of each that are stored")
    parser.add_argument("--seconds", type=float, default=20, help="how long to crawl after the first page")
    parser.add_argument("--database", nargs="+", default=["sqlite"], choices=["sqlite", "mariadb"])
    parser.add_argument("--source", nargs="+", type=Path, default=[HERE.parent.parent])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write everything that was measured there")
    parser.add_argument("--folder", type=Path, help="where to write (default: the temporary folder)")
    parser.add_argument("--fill", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--crawl", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fill:
        fill(given.fill[0], *map(int, given.fill[1:]))
        return
    if given.crawl:
        crawl(given.crawl)
        return
    scratch = Path(tempfile.mkdtemp(dir=given.folder))
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    try:
        for number in range(given.rounds):
            for kind, source in itertools.product(given.database, given.source):
                done = measure(source, kind, given, scratch / f"{number}-{kind}-{len(found)}-{number}")
                found.setdefault((str(source), kind), []).append(done)
    finally:
        shutil.rmtree(scratch)
    show(found)
    if given.json:
        given.json.write_text(json.dumps({" ".join(key): value for key, value in found.items()}, indent=1))


if __name__ == "__main__":
    main()
