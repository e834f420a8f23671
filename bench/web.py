"""Documents a second from `lcc web` to one client on one connection, beside nginx with the same bytes.

python bench/web.py
python bench/web.py --documents 5000 --rounds 7
"""

import argparse
import http.client
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.lcc import LCC, Lcc
from crawling.running import Failed
from crawling.site import Site
from export import fill

HEADINGS = ("server", "documents/s", "range", "x nginx", "ms: median", "95 %", "from head to body", "n")
RATE = "1000000/s"
"""``LCC_WEB_RATE``: what is measured is the server, not the share of one token."""


Times = list[tuple[float, float]]
"""Seconds of each document: in all, and from the end of its head to the end of its body."""


@contextmanager
def web(lcc: Lcc, rate: str = RATE, **settings: str) -> Iterator[int]:
    """Run `lcc web` with a rate for each client, and further settings; gives its port."""
    environment = {**lcc.environment, "LCC_WEB_ENDPOINT": "127.0.0.1:0", "LCC_WEB_RATE": rate, **settings}
    log = lcc.folder / "web.log"
    with (
        log.open("w") as out,
        subprocess.Popen([*LCC, "web"], env=environment, cwd=lcc.folder, stderr=out) as process,
    ):
        try:
            yield _port(process, log)
        finally:
            process.terminate()


def _port(process: "subprocess.Popen[bytes]", log: Path) -> int:
    while process.poll() is None:
        if found := re.search(r"listening on \S+:(\d+)$", log.read_text(), re.MULTILINE):
            return int(found[1])
        time.sleep(0.05)
    raise Failed(log.read_text())


def get(port: int, host: str, paths: Sequence[str], size: int, token: str = "") -> Times:
    """Get documents one after the other on one connection."""
    connection = http.client.HTTPConnection(host, port, timeout=60)
    shown = {"Authorization": f"Bearer {token}"} if token else {}
    took: Times = []
    for path in paths:
        begun = time.perf_counter()
        connection.request("GET", path, headers=shown)
        answer = connection.getresponse()
        headed = time.perf_counter()
        body = answer.read()
        ended = time.perf_counter()
        took.append((ended - begun, ended - headed))
        if (answer.status, len(body)) != (200, size):
            raise Failed(f"{path}: {answer.status}, {len(body)} bytes: {body[:200]!r}")
    connection.close()
    return took


def rates_of(rounds: list[Times]) -> list[float]:
    return [len(one) / sum(whole for whole, _ in one) for one in rounds]


def row(name: str, mine: list[Times], nginx: list[Times]) -> tuple[str, ...]:
    """Return what is told of a server, from all of its rounds."""
    rates = rates_of(mine)
    ratio = median(rates) / median(rates_of(nginx))
    each = [1000 * whole for one in mine for whole, _ in one]
    gaps = [1000 * gap for one in mine for _, gap in one]
    return (
        name, f"{median(rates):,.0f}", f"{min(rates):,.0f}-{max(rates):,.0f}", f"{ratio:.3f}",
        f"{median(each):.2f}", f"{quantiles(each, n=20)[-1]:.2f}", f"{median(gaps):.2f}",
        str(len(mine)),
    )  # fmt: skip


def main() -> None:
    """Measure and print."""
    given = options()
    with (
        running.scratch(given.scratch) as folder,
        Site(folder / "site", [given.size]) as site,
    ):
        lcc = Lcc(folder, f"sqlite:///{folder}/lcc-data/lcc.sqlite")
        fill(folder, folder / "lcc-data", [site.folder / f"{given.size}.html"] * given.documents)
        secret = lcc.command("token", "add", "bench").strip()
        docids = lcc.command("select", "--format", "jsonl")
        ours = [f"/v1/documents/{one}/content" for one in re.findall(r'"docid": "(\w+)"', docids)]
        theirs = [f"/{given.size}/{number}.html" for number in range(given.documents)]
        took: dict[str, list[Times]] = {"nginx": [], "lcc web": []}
        with web(lcc) as port:
            get(port, "127.0.0.1", ours[:50], given.size, secret)  # what is done once is done now
            for _ in range(given.rounds):  # in turns, so that a slow minute is everybody's
                took["nginx"].append(get(site.port, "127.0.0.1", theirs, given.size))
                took["lcc web"].append(get(port, "127.0.0.1", ours, given.size, secret))
    table = [row(name, mine, took["nginx"]) for name, mine in took.items()]
    load = f"load {os.getloadavg()[0]:.1f}"
    title = f"{given.documents:,} documents of {given.size:,} bytes, one after the other, {load}"
    tables.show(title, HEADINGS, table, given.markdown)


def options() -> argparse.Namespace:
    """Read the command line."""
    options = parser(__doc__, "--markdown", "--scratch")
    options.add_argument("--documents", type=int, default=2000)
    options.add_argument("--size", type=int, default=8000, help="bytes of a document")
    options.add_argument("--rounds", type=int, default=5)
    return parsed(options)


if __name__ == "__main__":
    main()
