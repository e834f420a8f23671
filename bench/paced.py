"""What providers that wait for their own bandwidth take from others.

Two questions, each with a real crawl and a site that sends as fast as it may:

* *urgent*: providers at 300 B/s have a page each, more of them than there are places. Then a provider of
  priority 2 without a limit pushes a page: the seconds from its acceptance to its request, and how many
  pages of the others were under way then.
* *beside*: ``LCC_FETCHES=2`` and hundreds of such providers; the pages a second of one provider without a
  limit, against the same crawl without them, and the peak memory.

    python bench/paced.py                                  # 65 and 500 providers, a minute and a half
    python bench/paced.py --source ../lcc-before           # against another source tree, interleaved
    python bench/paced.py --only urgent --size 30000
"""

import argparse
import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any, Self

from crawling.lcc import Lcc, absorb, database

from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.entries import UrlEntry
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.login.passwords import hash_password
from lcc_scrapy.providers.registration import add as add_provider
from lcc_scrapy.uns.spool import SpoolFolder
from lcc_scrapy.uns.spool_file import SpoolHeader
from lcc_scrapy.wire.messages import NAMESPACE

SLOW = 300
"""Bytes per second of those who are paced."""

SMALL = 8_000
"""Bytes of a page of the provider without a limit."""

PASSWORD = "wachtwoord"
FREE = 100_000
"""The pid of the provider without a limit."""

PATIENCE = 60.0
GATHERING = 15.0
"""Seconds in which the paced ones begin, as far as they can."""


class Site:
    """Serves pages of a size by their first part: ``/N/name``; counts requests and what is under way."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.asked: Counter[int] = Counter()
        self.under_way: Counter[int] = Counter()
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                area = head.split(b" ", 2)[1].decode().split("/")[1]
                await self._answer(writer, int(area) if area.isdigit() else 0)
        writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, pid: int) -> None:
        size = 0 if not pid else SMALL if pid == FREE else self._size
        status = "200 OK" if size else "404 Not Found"
        self.asked[pid] += 1
        self.under_way[pid] += 1
        try:
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {size}\r\n\r\n".encode()
            )
            writer.write(os.urandom(size))
            await writer.drain()
        finally:
            self.under_way[pid] -= 1

    def paced(self) -> int:
        """Count the paced providers of which a page was asked for."""
        return sum(1 for pid in self.asked if 0 < pid < FREE)


class Crawl:
    """An LCC of its own with providers and their queues, and its crawl."""

    def __init__(self, folder: Path, url: str, site: Site) -> None:
        self.lcc = Lcc(folder, url)
        self._site = site
        self.lcc.command("init")

    def register(self, paced: int) -> None:
        """Add the provider without a limit, and so many that are paced."""
        store, hashed = SqlStore(self.lcc.database_url), hash_password(PASSWORD)
        for pid in (*range(1, paced + 1), FREE):
            limits = {"bandwidth": SLOW} if pid != FREE else {"priority": 2}
            provider = Provider(pid, hashed, allowprivate=True, **limits)  # type: ignore[arg-type]
            add_provider(store, provider, [self.root(pid)])
        store.close()

    def root(self, pid: int) -> str:
        """Return where a provider's pages are."""
        return f"http://127.0.0.1:{self._site.port}/{pid}/"

    def queue(self, pids: range, pages: int) -> None:
        """Let intake absorb pages of providers."""
        store, spool = SqlStore(self.lcc.database_url), SpoolFolder(self.lcc.folder / "lcc-data/spool")
        for pid in pids:
            writer = spool.begin(SpoolHeader(pid, 1, 0), time.time())
            for number in range(pages):
                url = f"{self.root(pid)}{number}"
                writer.add(UrlEntry(url, "text/html", furl=url, burl=url))
            absorb(store, writer.commit())
        store.close()

    @contextmanager
    def running(self, **settings: object) -> Any:
        """Run the crawl, and end it."""
        environment = self.lcc.environment | {"LCC_STOP_TIMEOUT": "0.5s", "LCC_DISK_MIN_FREE": "0"}
        environment |= {name: str(value) for name, value in settings.items()}
        log = (self.lcc.folder / "crawl.log").open("wb")
        command = [sys.executable, "-m", "scrapy", "crawl", "lcc_push"]
        process = subprocess.Popen(command, env=environment, cwd=self.lcc.folder, stdout=log, stderr=log)
        try:
            wait_for(lambda: answers(self.lcc.port), PATIENCE)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
            log.close()

    def push(self, pid: int) -> float:
        """Push a page as a provider does; returns when it was accepted."""
        who = f'<provider id="{pid}" passwd="{PASSWORD}"/>'
        login = f'<lococa:init xmlns:lococa="{NAMESPACE}">{who}</lococa:init>'
        pages = f'<lococa:set set="partial"><url c="{self.root(pid)}0" mimetype="text/html"/></lococa:set>'
        with socket.create_connection(("127.0.0.1", self.lcc.port)) as wire:
            wire.settimeout(PATIENCE)
            wire.sendall(login.encode())
            read_until(wire, b"init_accepted>")
            wire.sendall(pages.encode())
            read_until(wire, b"set_accepted")
            return time.monotonic()


def read_until(wire: socket.socket, mark: bytes) -> None:
    """Read until something was said."""
    said = b""
    while mark not in said:
        more = wire.recv(65536)
        if not more or b"rejected" in said:
            raise SystemExit(f"the UNS says: {(said + more).decode()}")
        said += more


def answers(port: int) -> bool:
    """Tell whether somebody listens."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition: Callable[[], object], seconds: float) -> bool:
    """Wait; tells whether it came true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def urgent(crawl: Crawl, site: Site, paced: int, seconds: float) -> dict[str, float]:
    """Measure how long an urgent provider waits for its first page behind paced ones."""
    crawl.register(paced)
    crawl.queue(range(1, paced + 1), 1)
    with crawl.running():
        wait_for(lambda: site.paced() >= paced, GATHERING)
        time.sleep(1)
        accepted = crawl.push(FREE)
        came = wait_for(lambda: site.asked[FREE], max(PATIENCE, seconds))
        took = time.monotonic() - accepted
        return {"first page s": round(took, 3) if came else PATIENCE, "begun before": site.paced()}


def beside(crawl: Crawl, site: Site, paced: int, seconds: float) -> dict[str, float]:
    """Measure what a provider without a limit gets beside paced ones, and the memory of all."""
    crawl.register(paced)
    crawl.queue(range(1, paced + 1), 1)
    crawl.queue(range(FREE, FREE + 1), max(2000, int(400 * (seconds + GATHERING))))
    with crawl.running(LCC_FETCHES=2) as process:
        wait_for(lambda: site.paced() >= paced and site.asked[FREE] > 0, GATHERING)
        before, begun, cpu = site.asked[FREE], time.monotonic(), cpu_of(process.pid)
        time.sleep(seconds)
        took = time.monotonic() - begun
        pages = site.asked[FREE] - before
        return {
            "pages/s": round(pages / took, 1),
            "ms CPU a page": round(1000 * (cpu_of(process.pid) - cpu) / max(1, pages), 2),
            "paced begun": site.paced(),
            "peak MB": peak(process.pid),
        }


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak(pid: int) -> float:
    """Return the memory of a process at its height in MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return round(int(found[1]) * 1024 / 1e6, 1) if found else 0.0


def once(name: str, paced: int, size: int, seconds: float) -> dict[str, float]:
    """Run one measurement in the source tree that this process imports."""
    measure = urgent if name == "urgent" else beside
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch, Site(size) as site:
        folder = Path(scratch)
        with database("sqlite", folder) as url:
            return measure(Crawl(folder, url, site), site, paced, seconds)


def elsewhere(source: Path, name: str, paced: int, given: argparse.Namespace) -> dict[str, float]:
    """Run one measurement in a process of its own that imports a source tree."""
    command = [sys.executable, __file__, "--once", name, "--paced", str(paced)]
    command += ["--size", str(given.size), "--seconds", str(given.seconds)]
    environment = os.environ | {"PYTHONPATH": str(source)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{source}, {name}: {done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure and print medians; with ``--source``, trees in turns."""
    given = options()
    if given.once:
        print(json.dumps(once(given.once, given.paced, given.size, given.seconds)))
        return
    here = Path(__file__).resolve().parents[1]
    sources = [here, *([given.source.resolve()] if given.source else [])]
    runs = [("urgent", given.crowd)] * (given.only != "beside")
    runs += [("beside", 0), ("beside", given.paced)] * (given.only != "urgent")
    for name, paced in runs:
        found: dict[Path, list[dict[str, float]]] = {source: [] for source in sources}
        for number in range(given.rounds):
            for source in sources[:: 1 if number % 2 else -1]:
                found[source].append(elsewhere(source, name, paced, given))
        for source in sources:
            figures = {key: median(one[key] for one in found[source]) for key in found[source][0]}
            told = ", ".join(f"{key} {value:g}" for key, value in figures.items())
            print(
                f"{'this tree' if source == here else 'the other'}: {name}, {paced} paced: {told}", flush=True
            )


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, help="another source tree to compare with")
    parser.add_argument("--only", choices=("urgent", "beside"))
    parser.add_argument("--crowd", type=int, default=65, help="paced providers before the urgent one")
    parser.add_argument("--paced", type=int, default=500, help="paced providers beside one without a limit")
    parser.add_argument("--size", type=int, default=300_000, help="bytes of a paced page")
    parser.add_argument("--seconds", type=float, default=10.0, help="for which pages are counted")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--once", choices=("urgent", "beside"), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
