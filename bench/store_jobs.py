"""The longest jobs of the store's thread with a crowd of providers, and what housekeeping costs there.

A crawl (``scrapy crawl lcc_push``) is started on a database that holds many providers, each with some URLs
that wait and some documents, beside an nginx that serves every page. Every job of its store thread is timed:
seconds, and of these the CPU seconds of the thread, which other programs do not change.

    python bench/store_jobs.py                                   # 1,000 providers, SQLite
    python bench/store_jobs.py --providers 10000 --database sqlite mariadb
    python bench/store_jobs.py --providers 10000 --source ../before --rounds 3

``--source`` names another checkout; they take turns. Nothing of it stays.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from crawling import running
from crawling.command_line import parsed, parser
from crawling.filling import SIZE, fill, path_of
from crawling.lcc import Lcc, database
from crawling.site import Site

SHOWN = 12
"""Jobs named one by one."""


# --- in a process of the checkout that is measured -------------------------------------------------------


def crawl(report: Path) -> None:
    """Crawl in this process, and report of every job when it ends."""
    from lcc_scrapy.db import thread as threads  # noqa: PLC0415

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
    with Site(folder / "site", [SIZE]) as site, database(kind, folder) as url:
        environment = Lcc(folder, url).environment | path_of(source)
        running.wait_for(("init",), environment, folder)
        fill(environment, site, given.providers, given.urls, given.documents)
        return _crawled(site, environment, folder, given)


def _crawled(
    site: Site, environment: dict[str, str], folder: Path, given: argparse.Namespace
) -> dict[str, Any]:
    report, began = folder / "jobs.json", time.time()
    with (folder / "crawl.log").open("wb") as log:
        command = [sys.executable, __file__, "--crawl", str(report)]
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
    options = parser(__doc__, "--source", "--scratch")
    options.add_argument("--providers", type=int, default=1000)
    options.add_argument("--urls", type=int, default=10, help="URLs of each that wait")
    options.add_argument("--documents", type=int, default=2, help="documents of each that are stored")
    options.add_argument("--seconds", type=float, default=20, help="how long to crawl after the first page")
    options.add_argument("--database", nargs="+", default=["sqlite"], choices=["sqlite", "mariadb"])
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--json", type=Path, help="write everything that was measured there")
    options.add_argument("--crawl", type=Path, help=argparse.SUPPRESS)
    given = parsed(options)
    if given.crawl:
        crawl(given.crawl)
        return
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    with running.scratch(given.scratch) as folder:
        for number in range(given.rounds):
            for kind, source in itertools.product(given.database, given.sources):
                done = measure(source, kind, given, folder / f"{number}-{kind}-{source.name}")
                found.setdefault((str(source), kind), []).append(done)
    show(found)
    if given.json:
        given.json.write_text(json.dumps({" ".join(key): value for key, value in found.items()}, indent=1))


if __name__ == "__main__":
    main()
