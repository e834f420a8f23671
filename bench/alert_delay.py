"""How soon an owner is told of a page: from the request at the site to the call of the owner's webhook.

A page is pushed, crawled and annotated, and two owners are told of it, at the service levels 1 (soon) and 2
(at once). Then there is a pause that is never the same. Everything as configured by default, without a load.

    python bench/alert_delay.py
    python bench/alert_delay.py --database mariadb --pages 100
"""

import json
import os
import random
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.lcc import LCC, Lcc, database
from crawling.recording import RecordingSite
from crawling.running import Failed, Launch
from crawling.site import await_listener
from crawling.variants import SCRAPY
from wakeup import PASSWORD, PATIENCE, PAUSE, push

from lcc_scrapy.login.passwords import hash_password

LEVELS = {"1": "soon", "2": "at once"}
HEADINGS = ("service level", "median s", "range", "n")


class Hooks:
    """Takes calls of webhooks, and notes when the first about each page came, by the path called."""

    def __init__(self) -> None:
        self.told: dict[str, dict[str, float]] = defaultdict(dict)
        hooks = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                came = time.monotonic()
                said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                for aci in said["data"]["acis"]:
                    hooks.told[self.path].setdefault(aci["uri"], came)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}"


def delays(lcc: Lcc, site: RecordingSite, hooks: Hooks, pages: range) -> dict[str, list[float]]:
    """Push one page after the other; return seconds by service level."""
    found: dict[str, list[float]] = {level: [] for level in LEVELS}
    for number in pages:
        time.sleep(random.uniform(0.1, PAUSE))
        path = f"page{number}.html"
        push(lcc.port, site.root, [path])
        end = time.monotonic() + PATIENCE
        while not all(site.root + path in hooks.told[f"/{level}"] for level in LEVELS):
            if time.monotonic() > end:
                raise Failed(f"not told within {PATIENCE:.0f} s: see {lcc.folder}")
            time.sleep(0.02)
        for level, its in found.items():
            its.append(hooks.told[f"/{level}"][site.root + path] - site.asked[f"/{path}"])
    return found


def main() -> None:
    """Measure and print."""
    given = options()
    site, hooks = RecordingSite(), Hooks()
    with running.scratch(given.scratch) as folder, database(given.database, folder) as url:
        lcc = AlertingLcc(folder, url)
        lcc.command("init")
        lcc.register({1: site.root}, hash_password(PASSWORD))
        for level in LEVELS:
            lcc.command("urd", "add", f"level{level}", "*", "--keyword", "hello", "--urgency", level)
            lcc.command("recipient", "add", f"level{level}", "--webhook", f"{hooks.url}/{level}")
        commands = [(*SCRAPY, "crawl", "lcc_push"), (*LCC, "annotate")]
        with running.started(Launch(commands, lcc.environment, lcc.folder)):
            await_listener(lcc.port)
            delays(lcc, site, hooks, range(1))  # with the start of processors
            found = delays(lcc, site, hooks, range(1, given.pages + 1))
    table = [row(level, its) for level, its in found.items()]
    tables.show(
        f"from fetch to alert on {given.database}, load {os.getloadavg()[0]:.1f}",
        HEADINGS, table, given.markdown,
    )  # fmt: skip


class AlertingLcc(Lcc):
    """An LCC that may call webhooks of this machine."""

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {"LCC_ALERT_PRIVATE": "yes"}


def row(level: str, found: list[float]) -> tuple[str, ...]:
    """Return a row of the table."""
    extent = f"{min(found):.2f}-{max(found):.2f}"
    return (f"{level} ({LEVELS[level]})", f"{median(found):.2f}", extent, str(len(found)))


def options():
    """Read the command line."""
    options = parser(__doc__, "--database", "--markdown", "--scratch")
    options.add_argument("--pages", type=int, default=30, help="that owners are told of")
    return parsed(options)


if __name__ == "__main__":
    main()
