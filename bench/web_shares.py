"""What a greedy client of `lcc web` costs an honest one beside it: documents a second, and waits.

The greedy client asks over many connections at a time with a token of its own, as fast as it is answered: for
contents, lists of changes that wait, and exports. The honest one asks for a document at a time, at a pace
that is half of its share.

python bench/web_shares.py
python bench/web_shares.py --connections 200 --rounds 7
"""

import argparse
import asyncio
import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median, quantiles

from crawling import running, tables
from crawling.lcc import Lcc
from crawling.running import Failed
from crawling.site import Site
from export import fill
from web import web

HEADINGS = ("honest client", "documents/s", "range", "x alone", "ms: median", "95 %", "most", "n")
PACE = 100.0
"""Documents a second that the honest client asks for; its share is twice as many."""
SIZE = 8000
RATE = "200/s"
"""``LCC_WEB_RATE`` as it is shipped."""


Round = tuple[float, list[float]]
"""Documents a second, and the milliseconds that each took."""


async def ask_for_everything(port: int, token: str, paths: Sequence[str], connections: int) -> None:
    """Ask without end over so many connections, and print what came of it when asked to end."""
    answers: Counter[int] = Counter()
    under_way = asyncio.Event()

    async def ask(number: int) -> None:
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                head = f"GET {paths[number % len(paths)]} HTTP/1.1\r\nHost: lcc\r\n"
                writer.write(f"{head}Authorization: Bearer {token}\r\nConnection: close\r\n\r\n".encode())
                answers[int((await reader.read(12))[-3:] or 0)] += 1
                await reader.read()
                writer.close()
            except (OSError, ValueError):
                answers[0] += 1
            if answers.total() >= 2 * connections:
                under_way.set()

    everyone = [asyncio.create_task(ask(number)) for number in range(connections)]
    await under_way.wait()
    print("under way", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for one in everyone:
        one.cancel()
    print(dict(sorted(answers.items())))


@contextmanager
def greedy(port: int, token: str, paths: Sequence[str], connections: int, told: list[str]) -> Iterator[None]:
    """Run the greedy client in a process of its own."""
    command = [sys.executable, __file__, "--greedy", str(port), "--connections", str(connections), *paths]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "TOKEN": token}
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        told.append(process.communicate("")[0].strip())


def main() -> None:
    """Measure and print."""
    given = options()
    if given.greedy:
        asyncio.run(ask_for_everything(given.greedy, os.environ["TOKEN"], given.paths, given.connections))
        return
    with running.scratch(given.scratch) as folder, closing(Site(folder / "site", [SIZE])) as site:
        lcc = Lcc(folder, f"sqlite:///{folder}/lcc-data/lcc.sqlite")
        fill(folder, folder / "lcc-data", [site.folder / f"{SIZE}.html"] * given.documents)
        honest, hungry = (lcc.command("token", "add", name).strip() for name in ("honest", "greedy"))
        docids = re.findall(r'"docid": "(\w+)"', lcc.command("select", "--format", "jsonl"))
        ours = [f"/v1/documents/{one}/content" for one in docids]
        with web(lcc, RATE) as port:
            cursor = newest(port, hungry)
            theirs = [*ours[:6], "/v1/changes", f"/v1/changes?since={cursor}&wait=20"]
            theirs += ["/v1/export?format=warc", "/v1/export?format=jsonl"]
            alone, beside, told = [], [], []
            get_at_a_pace(port, ours[:50], honest)
            for _ in range(given.rounds):
                alone.append(get_at_a_pace(port, ours, honest))
                with greedy(port, hungry, theirs, given.connections, told):
                    beside.append(get_at_a_pace(port, ours, honest))
    table = [row("alone", alone, alone), row("beside a greedy one", beside, alone)]
    title = (
        f"{given.documents:,} documents of {SIZE:,} bytes; the greedy one has {given.connections} connections"
    )
    tables.show(f"{title}, load {os.getloadavg()[0]:.1f}", HEADINGS, table, given.markdown)
    print("answers that the greedy one got, by status:", *told, sep="\n  ")


def get_at_a_pace(port: int, paths: Sequence[str], token: str) -> Round:
    """Get documents at ``PACE``; the milliseconds of each count from when it was due."""
    begun = time.perf_counter()
    late = []
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        for number, path in enumerate(paths):
            due = begun + number / PACE
            time.sleep(max(0.0, due - time.perf_counter()))
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            if (answer.status, len(answer.read())) != (200, SIZE):
                raise Failed(f"{path}: {answer.status}")
            late.append(1000 * (time.perf_counter() - due))
    return len(paths) / (time.perf_counter() - begun), late


def newest(port: int, token: str) -> str:
    """Return the cursor behind everything there is."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("GET", "/v1/changes?limit=0", headers={"Authorization": f"Bearer {token}"})
        return str(json.loads(connection.getresponse().read())["cursor"])


def row(name: str, mine: list[Round], alone: list[Round]) -> tuple[str, ...]:
    """Return what is told of the honest client, from all of its rounds."""
    rates = [rate for rate, _ in mine]
    late = [each for _, round_ in mine for each in round_]
    return (
        name, f"{median(rates):,.0f}", f"{min(rates):,.0f}-{max(rates):,.0f}",
        f"{median(rates) / median(rate for rate, _ in alone):.2f}", f"{median(late):.1f}",
        f"{quantiles(late, n=20)[-1]:.1f}", f"{max(late):.0f}", str(len(mine)),
    )  # fmt: skip


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=500, help="of the honest client, in a round")
    parser.add_argument("--connections", type=int, default=100, help="of the greedy client")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--markdown", type=Path, help="append the table to this file")
    parser.add_argument("--scratch", type=Path, default=Path.cwd(), help="where everything is written")
    parser.add_argument("--greedy", type=int, metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
