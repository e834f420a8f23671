"""What an honest client of the public endpoint of `lcc web` gets while strangers attack it.

The honest one asks at a rate; answers that came in time are counted. Each attack comes at the rate at which
it once stopped the server, from a process of its own and under other addresses:

* silence: 1,000 connections that say nothing, opened again when they are closed
* fields: registrations with a bandwidth of 4,090 blanks, 80 kB/s
* slashes: registrations at a path with a slash at its end, for a Host of the attacker's, 80 kB/s
* escapes: four that submit 24 MB of escaped quotes to IndexNow, again and again

    python bench/strangers.py
    python bench/strangers.py --rate 20 --seconds 10 --rounds 5
"""

import asyncio
import http.client
import json
import multiprocessing
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from statistics import median
from urllib.parse import urlencode

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.lcc import LCC, Lcc, database
from crawling.site import Site

HEADINGS = ("attack", "answered in time: alone", "beside it", "x alone", "range", "n")
CONNECTIONS = 10
"""On which the honest one asks."""

SILENT, STRANGERS = 1_000, 4
FIELDS_A_SECOND = 20
FORM = urlencode({"site": "http://www.example.org/", "bandwidth": "1" + " " * 4_090 + "!"})
FORM_TYPE = {"Content-Type": "application/x-www-form-urlencoded"}
KEY = "key-of-an-honest-site"
TAKEN = {200, 202}

Ask = Callable[[http.client.HTTPConnection, int], int]
"""Sends one request, with a number, on a connection; returns the status."""


def page(connection: http.client.HTTPConnection, number: int) -> int:
    """Ask for the form of registration, as one of many."""
    connection.request("GET", "/register", headers=address(number))
    return _status(connection)


def submission(root: str, connection: http.client.HTTPConnection, number: int) -> int:
    """Submit one URL to IndexNow, as a site that is known here."""
    said = {
        "host": root.split("/")[2],
        "key": KEY,
        "keyLocation": f"{root}{KEY}",
        "urlList": [f"{root}{number}"],
    }
    headers = {"Content-Type": "application/json", **address(number)}
    connection.request("POST", "/indexnow", json.dumps(said), headers)
    return _status(connection)


def address(number: int) -> dict[str, str]:
    """Return what our proxy says of a client."""
    return {"X-Forwarded-For": f"198.51.{number // 200 % 200}.{number % 200 + 1}"}


def _status(connection: http.client.HTTPConnection) -> int:
    answer = connection.getresponse()
    answer.read()
    return answer.status


def honest(port: int, ask: Ask, numbers: Iterator[int], rate: float, seconds: float) -> int:
    """Ask at a rate; returns how much was answered in time."""
    begun = time.perf_counter()
    due = [(begun + one / rate, next(numbers)) for one in range(int(rate * seconds))]

    def one(first: int) -> int:
        connection, answered = http.client.HTTPConnection("127.0.0.1", port, timeout=60), 0
        for moment, number in due[first::CONNECTIONS]:
            time.sleep(max(0.0, moment - time.perf_counter()))
            try:
                status = ask(connection, number)
            except (OSError, http.client.HTTPException):
                connection.close()
                continue
            answered += status in TAKEN and time.perf_counter() < begun + seconds + 1 / rate
        connection.close()
        return answered

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return sum(pool.map(one, range(CONNECTIONS)))


# --- strangers -----------------------------------------------------------------------------------------


def silence(port: int) -> None:
    """Connect, and say nothing."""

    async def one() -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                await reader.read()
                writer.close()
            await asyncio.sleep(1)

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(SILENT)))

    asyncio.run(all_of_them())


def forms(path: str, host: str, port: int) -> None:
    """Send a form, at a rate."""
    headers = {**FORM_TYPE, "X-Forwarded-For": "203.0.113.7", **({"Host": host} if host else {})}
    while True:
        begun = time.perf_counter()
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("POST", path, FORM, headers)
            _status(connection)
        time.sleep(max(0.0, begun + 1 / FIELDS_A_SECOND - time.perf_counter()))


def escapes(port: int) -> None:
    """Submit escaped quotes."""
    body = b'{"host": "' + b'\\"' * 12_000_000 + b'"}'

    def one(number: int) -> None:
        headers = {"Content-Type": "application/json", "X-Forwarded-For": f"203.0.113.{number}"}
        while True:
            with suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("POST", "/indexnow", body, headers)
                _status(connection)

    with ThreadPoolExecutor(STRANGERS) as pool:
        list(pool.map(one, range(1, STRANGERS + 1)))


@contextmanager
def beside(attack: Callable[[int], None], port: int) -> Iterator[None]:
    """Let strangers attack."""
    process = multiprocessing.get_context("spawn").Process(target=attack, args=(port,), daemon=True)
    process.start()
    time.sleep(2)
    try:
        yield
    finally:
        process.kill()
        process.join()


# --- the server ----------------------------------------------------------------------------------------


@contextmanager
def server(lcc: Lcc) -> Iterator[int]:
    """Run `lcc web` behind a proxy of this machine; yields its port."""
    with (lcc.folder / "web.log").open("wb") as log:
        process = subprocess.Popen([*LCC, "web"], env=lcc.environment, cwd=lcc.folder, stdout=log, stderr=log)
    try:
        yield _port(lcc, process)
    finally:
        process.terminate()
        process.wait(60)


def _port(lcc: Lcc, process: "subprocess.Popen[bytes]") -> int:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        found = re.search(r"listening on [^\n]*?:(\d+)[,\n]", (lcc.folder / "web.log").read_text())
        if found:
            return int(found[1])
        time.sleep(0.1)
    raise SystemExit((lcc.folder / "web.log").read_text())


SETTINGS = {
    "LCC_PUSH_ENDPOINTS": "127.0.0.1:0",
    "LCC_WEB_ENDPOINT": "",
    "LCC_WEB_PROXIES": "127.0.0.1",
    "LCC_REGISTRATION": "open",
    "LCC_INDEXNOW": "known",
    "LCC_PUBLIC_URL": "https://lcc.example.org",
}


def main() -> None:
    """Measure, and print."""
    options = parser(__doc__, "--markdown", "--scratch")
    options.add_argument("--rate", type=float, default=20.0, help="requests a second of the honest client")
    options.add_argument("--seconds", type=float, default=10.0, help="of each run")
    options.add_argument("--rounds", type=int, default=3)
    given = parsed(options)
    numbers = count()
    with (
        running.scratch(given.scratch) as folder,
        Site(folder / "site", [8_000]) as site,
        database("sqlite", folder) as url,
    ):
        root = site.root(1)
        (site.folder / KEY).write_text(KEY)
        lcc = Lcc(folder, url, SETTINGS)
        lcc.command("init")
        lcc.register({1: root})
        attacks: dict[str, tuple[Ask, Callable[[int], None]]] = {
            "silence": (page, silence),
            "fields": (page, partial(forms, "/register", "")),
            "slashes": (page, partial(forms, "/register/", "attacker.example")),
            "escapes": (partial(submission, root), escapes),
        }
        with server(lcc) as port:
            rows = []
            for name, (ask, attack) in attacks.items():
                honest(port, ask, numbers, given.rate, 1)
                alone, attacked = [], []
                for _ in range(given.rounds):
                    alone.append(honest(port, ask, numbers, given.rate, given.seconds))
                    with beside(attack, port):
                        attacked.append(honest(port, ask, numbers, given.rate, given.seconds))
                rows.append(row(name, alone, attacked))
    tables.show(f"an honest client, {given.rate:g} requests/s", HEADINGS, rows, given.markdown)


def row(name: str, alone: list[int], attacked: list[int]) -> tuple[str, ...]:
    """Return a line of the table."""
    ratios = [one / max(1, other) for one, other in zip(attacked, alone, strict=True)]
    lowest, highest = min(ratios), max(ratios)
    return (
        name, f"{median(alone):.0f}", f"{median(attacked):.0f}", f"{median(ratios):.2f}",
        f"{lowest:.2f}-{highest:.2f}", str(len(ratios)),
    )  # fmt: skip


if __name__ == "__main__":
    main()
