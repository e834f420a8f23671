"""What one hostile site costs the others: a real crawl, an honest provider beside it, logins meanwhile.

For some seconds an honest provider's pages are fetched while a hostile site does its worst; without an attack
its site answers as the honest one does. CPU seconds and peak memory are those of the LCC's processes.

    python bench/hostile_sites.py
    python bench/hostile_sites.py --attacks rules agents --rounds 3 --seconds 20
    python bench/hostile_sites.py --source ../lcc-of-before       # the same attacks on another checkout
"""

import argparse
import asyncio
import gzip
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from crawling import running
from crawling.lcc import MIMETYPE, clean_environment
from crawling.running import Book, Failed, Launch
from crawling.site import await_listener, free_port

from lcc_scrapy.push.client import Address, connect
from lcc_scrapy.wire.messages import Init, InitAccepted, SetAccepted, SetStart

PASSWORD = "wachtwoord"
HONEST, HOSTILE, VISITOR = 1, 2, 3
"""Providers; the third one only logs in."""
MOST = 600
"""Pages a second that the honest site is asked for at most."""
HOSTILE_PAGES = 2000
PATIENCE = 120.0
"""Seconds after which a login counts as one that is not answered."""
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
HEADINGS = (
    "attack",
    "honest pages/s",
    "of unattacked",
    "login s",
    "longest",
    "CPU s",
    "peak MB",
    "kept B/page",
)


def answer(body: bytes, mimetype: str = MIMETYPE, more: bytes = b"") -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {mimetype}\r\nContent-Length: {len(body)}\r\n".encode()
    return head + more + b"\r\n" + body


PAGE = answer(b"hello\n" * 100)


@dataclass(frozen=True)
class Attack:
    """What a hostile site answers, by path; "" is every other page. ``spider``: it is visited, not pushed."""

    answers: dict[str, bytes] = field(default_factory=dict)
    spider: bool = False


def agents() -> Attack:
    names = "".join(f"User-agent: a{n}\n" for n in range(3000)) + "User-agent: *\n"
    rules = "".join(f"Disallow: /private/{n}\n" for n in range(3000))
    return Attack({"/robots.txt": answer((names + rules).encode(), "text/plain")})


def rules() -> Attack:
    lines = "".join(f"Disallow: /{n}\n" for n in range(33_624))
    return Attack({"/robots.txt": answer(f"User-agent: *\n{lines}".encode(), "text/plain")})


def wildcards() -> Attack:
    lines = "".join(f"Allow: /*{n}*b\n" for n in range(25_000))
    return Attack({"/robots.txt": answer(f"User-agent: *\n{lines}".encode(), "text/plain")})


def sitemap() -> Attack:
    """Some 50 kB on the wire: a base of 100,000 characters, and 16,000 links to be seen from it."""
    base = b"http://www.example.org/" + b"a" * 100_000
    items = b"".join(b"<url><loc>%d</loc></url>" % n for n in range(16_000))
    body = gzip.compress(b'<urlset xml:base="' + base + b'/">' + items + b"</urlset>")
    return Attack({"/sitemap.xml.gz": answer(body, "application/gzip")}, spider=True)


def headers() -> Attack:
    lines = b"".join(b"X-Filler-%d: %s\r\n" % (n, b"x" * 600) for n in range(90))
    return Attack({"": answer(b"hello\n" * 100, more=lines)})


ATTACKS = {"agents": agents, "rules": rules, "wildcards": wildcards, "sitemap": sitemap, "headers": headers}
"""robots.txt with 3,000 agents and as many rules, with 33,624 rules, or with 25,000 wildcards; and others."""


class Sites:
    """The web server of both sites, in a thread; counts what each was asked for."""

    def __init__(self) -> None:
        self.attack = Attack()
        self.asked: Counter[int] = Counter()
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        self.roots = {
            pid: asyncio.run_coroutine_threadsafe(self._listen(pid), loop).result(10)
            for pid in (HONEST, HOSTILE)
        }

    async def _listen(self, pid: int) -> str:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._answer(pid, head.split(b" ", 2)[1].decode()))
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"

    def _answer(self, pid: int, path: str) -> bytes:
        answers = self.attack.answers if pid == HOSTILE else {}
        if path in answers:
            return answers[path]
        if not path.startswith("/page/"):
            return NOT_FOUND
        self.asked[pid] += 1
        return answers.get("", PAGE)


@dataclass(frozen=True)
class Seen:
    """What a run showed; ``kept``: bytes of headers kept for each hostile page."""

    rate: float
    logins: list[float]
    cpu: float
    peak: float
    kept: float


@dataclass(frozen=True)
class House:
    """An LCC of its own, of the program in ``source``."""

    folder: Path
    source: Path
    port: int

    @property
    def environment(self) -> dict[str, str]:
        return clean_environment() | {
            "PYTHONPATH": str(self.source),
            "SCRAPY_SETTINGS_MODULE": "lcc_scrapy.settings",
            "LCC_DATA_DIR": str(self.folder / "lcc-data"),
            "LCC_UNS_ENDPOINTS": f"tcp:{self.port}:interface=127.0.0.1",
        }

    def lcc(self, *words: str) -> None:
        command = [sys.executable, "-m", "lcc_scrapy.cli.main", *words]
        done = subprocess.run(
            command, env=self.environment, cwd=self.folder, check=False, capture_output=True
        )
        if done.returncode:
            raise Failed(f"lcc {' '.join(words)}: {done.stderr.decode()}")

    def furnish(self, roots: dict[int, str]) -> None:
        (self.folder / "password").write_text(PASSWORD + "\n")
        self.lcc("init")
        for pid, root in roots.items():
            words = ("--password-file", "password", "--root", root, "--allow-private")
            self.lcc("provider", "add", str(pid), *words)

    def crawl(self, *words: str) -> Launch:
        return Launch([[sys.executable, "-m", "scrapy", "crawl", *words]], self.environment, self.folder)

    def kept(self) -> float:
        query = "select avg(length(headers)) from lccmeta join lccurl using (urlkey) where pid = ?"
        with closing(sqlite3.connect(self.folder / "lcc-data/lcc.sqlite")) as database:
            return float(database.execute(query, (HOSTILE,)).fetchone()[0] or 0)


def talk(port: int, pid: int, urls: list[str]) -> float:
    """Log in, and push a set if there are URLs; return the seconds until the login was answered."""
    begun = time.monotonic()

    def lines() -> Iterator[bytes]:
        yield from (f'<url curl="{url}" mimetype="{MIMETYPE}"/>\n'.encode() for url in urls)

    conversation = connect(Address("127.0.0.1", port), PATIENCE)
    try:
        login = conversation.login(Init(str(pid), PASSWORD))
        if not isinstance(login, InitAccepted):
            raise Failed(f"no login: {login}")
        took = time.monotonic() - begun
        if urls:
            verdict = conversation.submit(SetStart(full=False), lines(), print)
            if not isinstance(verdict, SetAccepted):
                raise Failed(f"not accepted: {verdict}")
    finally:
        conversation.close()
    return took


def run(folder: Path, source: Path, sites: Sites, attack: Attack, seconds: float) -> Seen:
    """Let it happen for so many seconds, from the moment at which all was pushed."""
    house = House(folder, source, free_port())
    sites.attack = attack
    house.furnish({**sites.roots, VISITOR: "http://127.0.0.1:9/"})
    with running.started(house.crawl("lcc_push")) as crawls:
        await_listener(house.port)
        book = Book(os.getpid())
        if attack.spider:
            start = f"start={sites.roots[HOSTILE]}sitemap.xml.gz"
            visiting = running.started(house.crawl("lcc_spider", "-a", f"provider={HOSTILE}", "-a", start))
        else:
            visiting = running.started(Launch([], house.environment, folder))
            pushed = [f"{sites.roots[HOSTILE]}page/{n}" for n in range(HOSTILE_PAGES)]
            talk(house.port, HOSTILE, pushed)
        with visiting as visits:
            pids = [one.pid for one in (*crawls, *visits)]
            book.look(pids)
            urls = [f"{sites.roots[HONEST]}page/{n}" for n in range(int(MOST * seconds))]
            talk(house.port, HONEST, urls)
            before, begun, logins = book.look(pids), sites.asked[HONEST], list[float]()
            while (left := before.at + seconds - time.time()) > 0:
                logins.append(talk(house.port, VISITOR, []))
                book.look(pids)
                time.sleep(min(0.25, max(0.0, left)))
            after, pages = book.look(pids), sites.asked[HONEST] - begun
    rate = pages / (after.at - before.at)
    return Seen(rate, logins, after.cpu - before.cpu, book.peak / 1e6, house.kept())


def measure(given: argparse.Namespace) -> dict[str, list[Seen]]:
    """Run each attack in turn, and the unattacked crawl before each of them, round by round."""
    sites, seen = Sites(), dict[str, list[Seen]]()
    for number in range(given.rounds):
        for name in given.attacks:
            for what, attack in (("none", Attack()), (name, ATTACKS[name]())):
                with running.scratch(given.scratch) as folder:
                    one = run(folder, given.source.resolve(), sites, attack, given.seconds)
                seen.setdefault(what, []).append(one)
                print(f"round {number + 1}: {what}: {one.rate:.0f} honest pages/s", file=sys.stderr)
    return seen


def row(name: str, runs: list[Seen], unattacked: float) -> tuple[str, ...]:
    rate, logins = median(one.rate for one in runs), [login for one in runs for login in one.logins]
    return (
        name, f"{rate:.0f}", f"{rate / unattacked:.2f}", f"{median(logins):.2f}", f"{max(logins):.2f}",
        f"{median(one.cpu for one in runs):.1f}", f"{max(one.peak for one in runs):.0f}",
        f"{median(one.kept for one in runs):.0f}",
    )  # fmt: skip


def main() -> None:
    """Measure and print."""
    given = options()
    seen = measure(given)
    unattacked = median(one.rate for one in seen["none"])
    print(f"{given.seconds:.0f} s each, load {os.getloadavg()[0]:.1f}, {given.source}")
    table = [HEADINGS, *(row(name, runs, unattacked) for name, runs in seen.items())]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for cells in table:
        print("  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)))


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    here = Path(__file__).resolve().parent.parent
    parser.add_argument("--attacks", nargs="+", choices=ATTACKS, default=list(ATTACKS), metavar="ATTACK")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each run (8)")
    parser.add_argument("--rounds", type=int, default=1, help="of all attacks (1)")
    parser.add_argument("--source", type=Path, default=here, help="the checkout whose program is attacked")
    parser.add_argument("--scratch", type=Path, default=Path.cwd(), help="where everything is written")
    return parser.parse_args()


if __name__ == "__main__":
    main()
