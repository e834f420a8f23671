"""Seconds of a first visit to a slow site, with one fetch at a time and with several, beside Scrapy.

The site is a page of links and what these lead to; it takes as long for each page, however many it is asked
for at a time. `lcc_spider` visits it for a provider that permits one or more fetches at a time. Beside it, a
Scrapy spider with Scrapy's own settings follows the same links.

    python bench/at_once.py
    python bench/at_once.py --pages 301 --ms 100 --at-once 1 8 16 --rounds 3
"""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from crawling import running, tables
from crawling.command_line import CHECKOUT, parser
from crawling.lcc import Lcc
from crawling.running import Failed, Launch
from crawling.site import free_port
from crawling.variants import SCRAPY

HEADINGS = ("crawler", "s: first to last page", "range", "most at a time", "x Scrapy", "n")
SPIDER = """\
import scrapy
class Pages(scrapy.Spider):
    name = "pages"
    async def start(self):
        yield scrapy.Request({start!r})
    def parse(self, response):
        yield {{"url": response.url, "size": len(response.body)}}
        yield from response.follow_all(css="a")
"""


@dataclass
class Slow:
    """What a site of slow pages was asked for: when each began and ended, how many at a time."""

    pages: int
    seconds: float
    port: int
    begun: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    now: int = 0
    most: int = 0

    def forget(self) -> None:
        """Begin to count anew."""
        self.begun, self.ended, self.now, self.most = [], [], 0, 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests of one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._answer(head.split()[1], writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _answer(self, path: bytes, writer: asyncio.StreamWriter) -> None:
        body, status, kind = await self._page(path), b"200 OK", b"text/html"
        if not body:
            body, status, kind = b"none", b"404 Not Found", b"text/plain"
        writer.write(
            b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b"
            % (status, kind, len(body), body)
        )
        await writer.drain()

    async def _page(self, path: bytes) -> bytes:
        if not path.startswith(b"/p/"):
            return b""
        self.begun.append(time.monotonic())
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.seconds)
        self.now -= 1
        self.ended.append(time.monotonic())
        links = b"".join(b'<a href="/p/%d">%d</a>\n' % (n, n) for n in range(1, self.pages))
        return b"<html><title>%b</title>%b</html>" % (
            path,
            links if path == b"/p/0" else b"<p>text</p>" * 300,
        )


@contextmanager
def served(pages: int, seconds: float, kind: type[Slow] = Slow) -> Iterator[Slow]:
    """Serve such a site from a thread."""
    site, loop, ready = kind(pages, seconds, free_port()), asyncio.new_event_loop(), threading.Event()

    async def listen() -> None:
        await asyncio.start_server(site.serve, "127.0.0.1", site.port)
        ready.set()

    def run() -> None:
        loop.run_until_complete(listen())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield site
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def crawl(command: list[str], environment: dict[str, str], folder: Path, site: Slow) -> tuple[float, int]:
    """Run a crawl; return seconds from the first page to the last, and how many there were at a time."""
    site.forget()
    with running.started(Launch([tuple(command)], environment, folder)) as processes:
        for _ in running.looks(processes, folder):
            pass
    if len(site.ended) != site.pages:
        raise Failed(f"{command}: {len(site.ended)} pages were asked for, not {site.pages}")
    return site.ended[-1] - site.begun[0], site.most


def by_lcc(folder: Path, site: Slow, *options: str, **settings: str) -> tuple[float, int]:
    """Visit the site for a provider with these options."""
    folder.mkdir()
    lcc, root = Lcc(folder, f"sqlite:///{folder}/lcc-data/lcc.sqlite"), f"http://127.0.0.1:{site.port}/p/"
    lcc.command("init")
    (folder / "password").write_text("wachtwoord-of-17\n")
    permits = (*options, "--allow-private", "--password-file", "password")
    lcc.command("provider", "add", "1", "--root", root, *permits)
    command = [*SCRAPY, "crawl", "lcc_spider", "-a", "provider=1", "-a", f"start={root}0"]
    return crawl(command, lcc.environment | {"PYTHONPATH": str(CHECKOUT), **settings}, folder, site)


def by_scrapy(folder: Path, site: Slow) -> tuple[float, int]:
    """Let Scrapy follow the same links, as it comes."""
    folder.mkdir()
    (folder / "pages.py").write_text(SPIDER.format(start=f"http://127.0.0.1:{site.port}/p/0"))
    environment = Lcc(folder, "").environment
    environment.pop("SCRAPY_SETTINGS_MODULE")
    return crawl([*SCRAPY, "runspider", "pages.py", "-o", "pages.jsonl"], environment, folder, site)


def main() -> None:
    """Measure and print."""
    options = parser(__doc__, "--markdown", "--scratch")
    options.add_argument("--pages", type=int, default=301)
    options.add_argument("--ms", type=int, default=100, help="that the site takes for a page")
    options.add_argument("--at-once", type=int, nargs="+", default=[1, 8])
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    took: dict[str, list[tuple[float, int]]] = {}
    with running.scratch(given.scratch) as folder, served(given.pages, given.ms / 1000) as site:
        for number in range(given.rounds):  # in turns, so that a slow minute is everybody's
            took.setdefault("Scrapy", []).append(by_scrapy(folder / f"scrapy-{number}", site))
            for count in given.at_once:
                name = f"lcc_spider, {count} at a time"
                took.setdefault(name, []).append(
                    by_lcc(folder / f"lcc-{count}-{number}", site, "--at-once", str(count))
                )
    rows = [_row(name, seen, took["Scrapy"]) for name, seen in took.items()]
    tables.show(f"{given.pages} pages of {given.ms} ms", HEADINGS, rows, given.markdown)


def _row(name: str, seen: list[tuple[float, int]], scrapys: list[tuple[float, int]]) -> tuple[str, ...]:
    times = [seconds for seconds, _ in seen]
    ratio = median(times) / median(seconds for seconds, _ in scrapys)
    most = str(max(count for _, count in seen))
    span = f"{min(times):.1f}-{max(times):.1f}"
    return name, f"{median(times):.1f}", span, most, f"{ratio:.2f}", str(len(seen))


if __name__ == "__main__":
    main()
