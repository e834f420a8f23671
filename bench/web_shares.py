"""What an honest client of `lcc web` gets while a greedy one asks for all it can get.

The honest one asks for so many documents a second. The greedy one, a program of its own with another token,
has many connections, and asks for contents, lists and exports without end.

python bench/web_shares.py
python bench/web_shares.py --rate 50 --connections 200 --rounds 5
"""

import argparse
import asyncio
import http.client
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import cycle
from statistics import median, quantiles

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.lcc import Lcc
from export import fill
from web import web

HEADINGS = ("beside it", "documents/s", "range", "x alone", "ms: median", "95 %", "n")
ALONE, GREEDY = "nobody", "a greedy client"
LISTS = ("/v1/changes", "/v1/export?format=jsonl", "/v1/export?format=tar.gz")
HONEST_CONNECTIONS = 10

Round = list[float]
"""Seconds that each document took which came in time."""


def honest(port: int, secret: str, paths: Sequence[str], rate: float, seconds: float) -> Round:
    """Ask for documents at a rate, each at its time or as soon as a connection is free."""
    begun = time.perf_counter()
    due = [(begun + number / rate, path) for number, path in zip(range(int(rate * seconds)), cycle(paths))]
    with ThreadPoolExecutor(HONEST_CONNECTIONS) as pool:
        parts = pool.map(
            lambda first: _one(port, secret, due[first::HONEST_CONNECTIONS]), range(HONEST_CONNECTIONS)
        )
        answered = [one for part in parts for one in part]
    return [took for ended, took in answered if ended <= begun + seconds]


def _one(port: int, secret: str, due: Sequence[tuple[float, str]]) -> list[tuple[float, float]]:
    """Ask on one connection; returns when each document was there, and how long after it was due."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    answered = []
    for moment, path in due:
        time.sleep(max(0.0, moment - time.perf_counter()))
        connection.request("GET", path, headers={"Authorization": f"Bearer {secret}"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise running.Failed(f"{path}: {answer.status}")
        answered.append((time.perf_counter(), time.perf_counter() - moment))
    connection.close()
    return answered


async def be_greedy(port: int, secret: str, paths: Sequence[str], connections: int) -> None:
    """Ask without end on many connections, and tell every second what came."""
    told: Counter[str] = Counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(connections):
            tasks.create_task(_ask_without_end(port, secret, paths[number % len(paths)], told))
        while True:
            await asyncio.sleep(1)
            print(dict(told), flush=True)


async def _ask_without_end(port: int, secret: str, path: str, told: Counter[str]) -> None:
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {secret}\r\n\r\n"
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head.encode())
            told[(await reader.read(12))[9:].decode()] += 1
            while await reader.read(1 << 16):
                pass
            writer.close()


@contextmanager
def greedy(port: int, secret: str, paths: Sequence[str], connections: int) -> Iterator[None]:
    """Run the greedy client."""
    words = [sys.executable, __file__, "--greedy", str(port), secret, str(connections), *paths]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()


def row(name: str, rounds: list[Round], alone: list[Round], seconds: float) -> tuple[str, ...]:
    """Return what the honest client got, from all rounds."""
    rates = [len(one) / seconds for one in rounds]
    each = [1000 * took for one in rounds for took in one]
    ratio = median(rates) / median(len(one) / seconds for one in alone)
    return (
        name, f"{median(rates):.0f}", f"{min(rates):.0f}-{max(rates):.0f}", f"{ratio:.2f}",
        f"{median(each):.1f}", f"{quantiles(each, n=20)[-1]:.1f}", str(len(rounds)),
    )  # fmt: skip


def main() -> None:
    """Measure and print."""
    given = options()
    with running.scratch(given.scratch) as folder:
        lcc = Lcc(folder, f"sqlite:///{folder}/lcc-data/lcc.sqlite")
        page = folder / "page.html"
        page.write_bytes(os.urandom(given.size))
        fill(folder, folder / "lcc-data", [page] * given.documents)
        secrets = [lcc.command("token", "add", name).strip() for name in ("honest", "greedy")]
        docids = re.findall(r'"docid": "(\w+)"', lcc.command("select", "--format", "jsonl"))
        paths = [f"/v1/documents/{one}/content" for one in docids]
        took: dict[str, list[Round]] = {ALONE: [], GREEDY: []}
        with web(lcc, "200/s") as port:
            for _ in range(given.rounds):  # in turns, so that a slow minute is everybody's
                took[ALONE].append(honest(port, secrets[0], paths, given.rate, given.seconds))
                with greedy(port, secrets[1], [*LISTS, *paths[:7]], given.connections):
                    took[GREEDY].append(honest(port, secrets[0], paths, given.rate, given.seconds))
    table = [row(name, rounds, took[ALONE], given.seconds) for name, rounds in took.items()]
    load = f"load {os.getloadavg()[0]:.1f}"
    wanted = f"{given.rate:g} documents of {given.size:,} bytes a second wanted"
    title = f"{wanted}, {given.seconds:g} s a round, {load}"
    tables.show(title, HEADINGS, table, given.markdown)


def options() -> argparse.Namespace:
    """Read the command line."""
    options = parser(__doc__, "--markdown", "--scratch")
    options.add_argument("--documents", type=int, default=2000)
    options.add_argument("--size", type=int, default=8000, help="bytes of a document")
    options.add_argument(
        "--rate", type=float, default=100, help="documents a second that the honest one asks for"
    )
    options.add_argument("--seconds", type=float, default=10, help="of a round")
    options.add_argument("--connections", type=int, default=100, help="of the greedy one")
    options.add_argument("--rounds", type=int, default=5)
    return parsed(options)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--greedy"]:
        asyncio.run(be_greedy(int(sys.argv[2]), sys.argv[3], sys.argv[5:], int(sys.argv[4])))
    else:
        main()
