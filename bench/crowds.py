"""A whole LCC under many providers or long queues: pushed, absorbed, fetched and looked at.

Providers push over TCP to an ``lcc uns``; then a crawl fetches some of what waits from a real nginx, beside
the same crawl with nothing more in its queue than it fetches. Only commands, sockets and tables are used, so
that an older checkout can be measured too.

    python bench/crowds.py                                            # 500 providers with 10 URLs each
    python bench/crowds.py --providers 10000 --urls 100000 --fetch 20000
    python bench/crowds.py --providers 1 --urls 1000000 --database mariadb
    python bench/crowds.py --source ../older-checkout
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from argon2 import PasswordHasher
from crawling.command_line import parsed, parser
from crawling.lcc import LCC, Lcc, database
from crawling.running import Book, Failed, Launch, Served, scratch, started
from crawling.site import Site, await_listener

PASSWORD = "a password"
CLIENTS = 64
PAGE = 2_000
LOOK = 0.05
PATIENCE = 3600.0
STEADY = 0.2
"""The share of the fetched pages before the measured part."""

BESIDE = 64
"""Providers of the crawl beside, at most."""

ROOMY = {
    "LCC_CONNECTIONS_PER_ADDRESS": "1000", "LCC_LOGINS_WAITING": "1000", "LCC_QUEUE_MAX": "0",
    "LCC_SPOOL_MAX_BYTES": "0", "LCC_MIMETYPES": "text/*",
}  # fmt: skip
"""What lets one address push for all providers."""

REGISTER = """
import json, sys
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.providers.registration import add
from lcc_scrapy.db.sql.store import SqlStore
url, hashed, roots = json.load(sys.stdin)
store = SqlStore(url)
for pid, root in enumerate(roots, 1):
    add(store, Provider(pid, hashed, allowprivate=True), [root])
store.close()
"""


@dataclass(frozen=True)
class House:
    """An LCC of some checkout."""

    lcc: Lcc
    source: str

    @property
    def environment(self) -> dict[str, str]:
        path = {"PYTHONPATH": self.source} if self.source else {}
        return {**self.lcc.environment, **ROOMY, **path}

    def command(self, *words: str) -> str:
        done = subprocess.run(
            [*LCC, *words],
            env=self.environment,
            cwd=self.lcc.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Failed(f"lcc {' '.join(words)}: {done.stderr[-2000:]}")
        return done.stdout

    def seconds(self, *words: str) -> float:
        begun = time.perf_counter()
        self.command(*words)
        return time.perf_counter() - begun

    def register(self, roots: list[str]) -> None:
        cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
        subprocess.run(
            [sys.executable, "-c", REGISTER],
            env=self.environment,
            cwd=self.lcc.folder,
            check=True,
            text=True,
            input=json.dumps([self.lcc.database_url, cheap, roots]),
        )

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        launch = Launch([[sys.executable, "-m", *words]], self.environment, self.lcc.folder)
        with started(launch) as (process,):
            yield process
            process.send_signal(signal.SIGTERM)
            process.wait(120)


# --- pushing -----------------------------------------------------------------------------------------


@dataclass
class Pushed:
    """What became of the sets; seconds since the first byte."""

    accepted: float = 0.0
    absorbed: list[tuple[float, int]] = field(default_factory=list)
    """(seconds, URLs in the queue by then)."""

    def tenth(self, urls: int, first: int) -> float:
        """Return the URLs absorbed a second while the queue grew from ``first`` tenths to one more."""
        low, high = urls * first // 10, urls * (first + 1) // 10
        begun = max((at for at, count in self.absorbed if count <= low), default=0.0)
        ended = min((at for at, count in self.absorbed if count >= high), default=0.0)
        inside = [count for at, count in self.absorbed if at in {begun, ended}]
        return (inside[-1] - inside[0]) / (ended - begun) if ended > begun else 0.0


async def push_all(house: House, site: Site, providers: int, each: int) -> Pushed:
    """Push one set of each provider, some at a time, until all are accepted and absorbed."""
    todo = iter(range(1, providers + 1))
    begun, told = time.monotonic(), Pushed()

    async def client() -> None:
        for pid in todo:
            await push(house.lcc.port, pid, site.urls(pid, PAGE, each))

    async def watch() -> None:
        while not told.absorbed or told.absorbed[-1][1] < providers * each:
            told.absorbed.append((time.monotonic() - begun, await asyncio.to_thread(house.lcc.waiting)))
            await asyncio.sleep(0.1)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    told.accepted = time.monotonic() - begun
    await watching
    return told


async def push(port: int, pid: int, urls: list[str]) -> None:
    """Push one set; one that is turned away comes again."""
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        provider = f'<provider id="{pid}" passwd="{PASSWORD}"/>'
        writer.write(
            f'<lococa:init xmlns:lococa="http://www.lococa.org/1.0">{provider}</lococa:init>'.encode()
        )
        if b"init_accepted" in await answer(reader, b"</lococa:init_"):
            break
        writer.close()
        await asyncio.sleep(0.2)
    writer.write(b'<lococa:set set="partial">')
    for at in range(0, len(urls), 1000):
        writer.write(
            "".join(f'<url c="{url}" mimetype="text/html"/>' for url in urls[at : at + 1000]).encode()
        )
        await writer.drain()
    writer.write(b"</lococa:set>")
    said = await answer(reader, b"</lococa:set_result>")
    writer.close()
    if b"set_accepted" not in said:
        raise Failed(said.decode())


async def answer(reader: asyncio.StreamReader, end: bytes) -> bytes:
    """Read until an answer has ended."""
    said = b""
    while end not in said:
        more = await reader.read(65536)
        if not more:
            raise Failed(f"the UNS hung up after {said[-300:]!r}")
        said += more
    return said


# --- crawling ----------------------------------------------------------------------------------------


@dataclass
class Crawled:
    """What a crawl did: its first page after so many seconds, pages a second, CPU, memory in MB."""

    first: float
    rate: float
    cpu: float
    peak: float
    looks: dict[str, float]
    longest: str


def crawl(house: House, site: Site, pages: int, look: Callable[[House], dict[str, float]]) -> Crawled:
    """Fetch so many pages of what waits, and look at the LCC meanwhile."""
    served, book, looks, longest = Served(), Book(site.pid), dict[str, float](), ""
    first, marks, ending = 0.0, list[tuple[float, float, int]](), time.monotonic() + PATIENCE
    with site.log.open("rb") as log:
        log.seek(0, os.SEEK_END)
        begun = time.monotonic()
        with house.running("scrapy", "crawl", "lcc_push", "-s", "LCC_UNS_ENDPOINTS=") as process:
            while served.pages < pages:
                if process.poll() is not None or time.monotonic() > ending:
                    raise Failed(f"the crawl did not do its work: see {house.lcc.folder}")
                served.read(log.read())
                first = first or (time.monotonic() - begun if served.pages else 0.0)
                used = book.look([process.pid])
                if served.pages >= STEADY * pages:
                    marks.append((time.monotonic(), used.cpu, served.pages))
                time.sleep(LOOK)
            looks, longest = look(house), longest_job(house)
    (t0, cpu0, pages0), (t1, cpu1, pages1) = marks[0], marks[-1]
    done = max(pages1 - pages0, 1)
    rate = done / (t1 - t0) if t1 > t0 else 0.0
    return Crawled(first, rate, 1000 * (cpu1 - cpu0) / done, book.peak / 1e6, looks, longest)


def longest_job(house: House) -> str:
    """Return what the LCC says of the longest job of its store's thread."""
    said = json.loads(house.command("status", "--json"))
    jobs = [(one.get("longest_job_ms", 0), one.get("longest_job")) for one in said.get("workers", [])]
    longest, name = max(jobs, default=(0, ""))
    return f"{longest} ms ({name})" if name else "not told"


def commands(url: str) -> Callable[[House], dict[str, float]]:
    """Return what times the operator's commands, as seconds beyond those of ``lcc --version``."""

    def look(house: House) -> dict[str, float]:
        words = {
            "nothing": ("--version",), "status": ("status",), "explain": ("explain", url),
            "provider list": ("provider", "list"),
        }  # fmt: skip
        times: dict[str, list[float]] = {name: [] for name in words}
        for _ in range(3):
            for name, command in words.items():
                times[name].append(house.seconds(*command))
        medians = {name: statistics.median(some) for name, some in times.items()}
        return {name: medians[name] - medians["nothing"] for name in words if name != "nothing"}

    return look


def nothing(_: House) -> dict[str, float]:
    """Look at nothing."""
    return {}


# --- the whole -----------------------------------------------------------------------------------------


@contextmanager
def filled(
    folder: Path, chosen: argparse.Namespace, site: Site, providers: int, urls: int
) -> Iterator[tuple[House, Pushed]]:
    """Give an LCC to which so many providers have pushed so many URLs."""
    folder.mkdir()
    with database(chosen.database, folder) as address:
        house = House(Lcc(folder, address), chosen.source)
        house.command("init")
        house.register([site.root(pid) for pid in range(1, providers + 1)])
        with house.running("lcc_scrapy.cli.main", "uns"):
            await_listener(house.lcc.port, 120)
            pushed = asyncio.run(push_all(house, site, providers, urls // providers))
        yield house, pushed


def measure(chosen: argparse.Namespace, folder: Path) -> None:
    """Measure and print."""
    providers = chosen.providers
    beside = min(providers, chosen.beside)
    fetched = min(chosen.fetch, chosen.urls)
    rates = []
    with (
        Site(folder / "site", [PAGE]) as site,
        filled(folder / "long", chosen, site, providers, chosen.urls) as (house, pushed),
    ):
        for number in range(2):
            name = folder / f"short{number}"
            with filled(name, chosen, site, beside, fetched // beside * beside) as (short, _):
                rates.append(crawl(short, site, fetched // beside * beside * 9 // 10, nothing).rate)
            if number == 0:
                url = site.urls(1, PAGE, chosen.urls // providers)[-1]
                long = crawl(house, site, fetched * 9 // 10, commands(url))
    urls, empty = chosen.urls // providers * providers, statistics.mean(rates)
    said = {
        "accepted URLs/s": f"{urls / pushed.accepted:,.0f}",
        "sets accepted/s": f"{providers / pushed.accepted:,.0f}",
        "absorbed URLs/s": f"{urls / pushed.absorbed[-1][0]:,.0f}",
        "absorbed/s, first tenth": f"{pushed.tenth(urls, 0):,.0f}",
        "absorbed/s, last tenth": f"{pushed.tenth(urls, 9):,.0f}",
        "first page after start": f"{long.first:.1f} s",
        "pages/s": f"{long.rate:,.0f}",
        f"pages/s, {beside} providers, short queue": f"{empty:,.0f} ({rates[0]:,.0f}, {rates[1]:,.0f})",
        "ratio": f"{long.rate / empty:.2f}" if empty else "-",
        "CPU s per 1,000 pages": f"{long.cpu:.2f}",
        "peak memory": f"{long.peak:.0f} MB",
        "longest job of the store's thread": long.longest,
        **{f"lcc {name}, beside Python's start": f"{seconds:.2f} s" for name, seconds in long.looks.items()},
    }
    what = f"{providers:,} providers, {urls:,} URLs, {chosen.database}, {fetched:,} fetched"
    print(f"\n{what}; load {os.getloadavg()[0]:.1f}")
    for name, value in said.items():
        print(f"  {name:48}{value}")


def main() -> None:
    """Read the arguments."""
    options = parser(__doc__, "--database", "--scratch")
    options.add_argument("--providers", type=int, default=500)
    options.add_argument("--urls", type=int, default=5_000, help="in all (%(default)s)")
    options.add_argument("--fetch", type=int, default=5_000, help="pages to fetch (%(default)s)")
    options.add_argument(
        "--beside", type=int, default=BESIDE, help="providers of the crawl beside (%(default)s)"
    )
    options.add_argument("--source", default="", help="a checkout to measure in place of this one")
    chosen = parsed(options)
    if chosen.source:
        chosen.source = str(Path(chosen.source).resolve())
    with scratch(chosen.scratch) as folder:
        measure(chosen, folder)


if __name__ == "__main__":
    main()
