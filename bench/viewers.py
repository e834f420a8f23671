"""What viewers of the dashboard's changes cost a crawl: pages/s with none, and with a thousand of them.

Each round crawls the same pages beside `lcc web` (SQLite), with viewers of `/dashboard/changes/events` who
read all they get. They are in a process of their own, which takes its share of the processors too.

    python bench/viewers.py
    python bench/viewers.py --viewers 0 100 1000 --rounds 5
"""

import multiprocessing
import os
import resource
import selectors
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from typing import NamedTuple

from crawling import running, tables
from crawling.command_line import parser
from crawling.lcc import LCC, Lcc
from crawling.running import Failed, Launch
from crawling.site import Site
from dashboard import Client, add_operator
from web import web

PROVIDERS, SIZE = 64, 8_000
HEADINGS = ("viewers", "pages/s", "range", "x none", "KB to each viewer", "n")


class Signals(NamedTuple):
    """Between the viewers and who measures: all have begun, all may end, and the bytes that they got."""

    ready: Event
    over: Event
    told: "multiprocessing.Queue[int]"


def look(port: int, cookie: str, count: int, signals: Signals) -> None:
    """Be so many viewers until it is over; tells how many bytes they got."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, count + 200), hard), hard))
    asked = f"GET /dashboard/changes/events HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n\r\n".encode()
    heard, begun = selectors.DefaultSelector(), set()
    for _ in range(count):
        one = socket.create_connection(("127.0.0.1", port))
        one.sendall(asked)
        heard.register(one, selectors.EVENT_READ)
    size = 0
    while not signals.over.is_set():
        for key, _ in heard.select(0.1):
            got = key.fileobj.recv(1_000_000)  # type: ignore[union-attr]
            size += len(got)
            begun.add(key.fd)
            if not got:
                heard.unregister(key.fileobj)
        if len(begun) == count:
            signals.ready.set()
    signals.told.put(size if len(heard.get_map()) == count else -1)


@contextmanager
def viewers(port: int, count: int) -> Iterator[list[int]]:
    """Have so many viewers; gives a list that has the bytes which they got, in the end."""
    got: list[int] = []
    if not count:
        yield got
        return
    context = multiprocessing.get_context("spawn")
    signals = Signals(context.Event(), context.Event(), context.Queue())
    cookie = Client(port).cookie
    process = context.Process(target=look, args=(port, cookie, count, signals))
    process.start()
    try:
        if not signals.ready.wait(120):
            raise Failed("the viewers got no answer")
        yield got
    finally:
        signals.over.set()
    got.append(signals.told.get(timeout=60))
    process.join(60)
    if got[0] < 0:
        raise Failed("a viewer was cut off")


def crawl(home: Path, site: Site, pages: int, count: int) -> tuple[float, float]:
    """Crawl beside so many viewers; return pages/s, and the kB that each viewer got."""
    home.mkdir()
    lcc = Lcc(home, f"sqlite:///{home}/lcc-data/lcc.sqlite")
    urls = {pid: site.urls(pid, SIZE, pages // PROVIDERS) for pid in range(1, PROVIDERS + 1)}
    lcc.command("init")
    add_operator(lcc.database_url)
    lcc.register({pid: site.root(pid) for pid in urls})
    lcc.push(urls, site.pages[SIZE])
    waiting = lcc.waiting()
    with web(lcc) as port, viewers(port, count) as got:
        launch = Launch([(*LCC, "crawl", "-a", "stop_when_done=1")], lcc.environment, home)
        measured = running.run(launch, site, waiting, PROVIDERS, lambda: waiting - lcc.waiting())
    return measured.rate, got[0] / count / 1000 if got else 0.0


def main() -> None:
    """Measure and print."""
    options = parser(__doc__, "--markdown", "--scratch")
    options.add_argument("--pages", type=int, default=12_800)
    options.add_argument("--viewers", type=int, nargs="+", default=[0, 1000])
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    runs: dict[int, list[tuple[float, float]]] = {count: [] for count in given.viewers}
    with running.scratch(given.scratch) as folder, Site(folder / "site", [SIZE]) as site:
        for number in range(given.rounds):
            for count in given.viewers:
                runs[count].append(crawl(folder / f"{number}-{count}", site, given.pages, count))
                print(f"{count} viewers: {runs[count][-1][0]:,.0f} pages/s", flush=True)
    none = median(rate for rate, _ in runs[given.viewers[0]])
    rows = [_row(count, seen, none) for count, seen in runs.items()]
    title = f"{given.pages:,} pages of {PROVIDERS} providers beside viewers, load {os.getloadavg()[0]:.1f}"
    tables.show(title, HEADINGS, rows, given.markdown)


def _row(count: int, seen: list[tuple[float, float]], none: float) -> tuple[str, ...]:
    rates = [rate for rate, _ in seen]
    got = f"{median(size for _, size in seen):,.0f}" if count else "-"
    span = f"{min(rates):,.0f}-{max(rates):,.0f}"
    return str(count), f"{median(rates):,.0f}", span, f"{median(rates) / none:.2f}", got, str(len(seen))


if __name__ == "__main__":
    main()
