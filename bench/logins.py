"""Many providers with a small set each: logins, and sets accepted and absorbed, a second, by one ``lcc uns``.

Measured in a fresh LCC: *logins* (log in, read the answer, leave), *sets* (log in and send a set; accepting
and absorbing go on together) and *absorbed* (sets found in the spool at the start: from the moment when the
UNS listens until their URLs are in the queue). *removed* says the same of their files, which go after the
commit, in a thread of their own. First and last tenths are told apart for both. The password is hashed with
the least parameters that argon2 knows, which are read from the stored hash as ever; ``--real-hash`` takes the
usual ones.

    python bench/logins.py                                  # 1,000 providers, SQLite
    python bench/logins.py --providers 10000 --database mariadb
    python bench/logins.py --source ../before               # another checkout's ``lcc uns``, same clients
"""

import argparse
import asyncio
import os
import secrets
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import sqlalchemy
from argon2 import PasswordHasher

PID_1 = 1
ROOT = "http://www.example.org/"
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
REAL = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
NAMESPACE = "http://www.lococa.org/1.0"
AT_ONCE = 40
"""Connections that one client process keeps busy."""
CLIENTS = 2
TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE = 900


# --- those who log in --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Crowd:
    """What all providers do: log in, and send ``data`` unless that is empty."""

    port: int
    password: str
    data: bytes

    def run(self, pids: Sequence[int], answers: Any) -> None:
        """Converse as these providers, ``AT_ONCE`` at a time, in a process of its own."""
        answers.put(asyncio.run(self._all(list(pids))))

    async def _all(self, pids: list[int]) -> list[tuple[float, float]]:
        waits: list[tuple[float, float]] = []

        async def worker() -> None:
            while pids:
                pid, began = pids.pop(), time.monotonic()
                if await self._one(pid):
                    waits.append((time.monotonic(), time.monotonic() - began))
                else:  # it comes again
                    pids.insert(0, pid)
                    await asyncio.sleep(0.05)

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
        return waits

    async def _one(self, pid: int) -> bool:
        reading, writing = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            login = f'<provider id="{pid}" passwd="{self.password}"/>'
            writing.write(f'<lococa:init xmlns:lococa="{NAMESPACE}">{login}</lococa:init>'.encode())
            answer = await reading.readuntil(b"</lococa:init_")
            if b"init_accepted" not in answer:
                return False
            if self.data:
                writing.write(self.data)
                answer = await reading.readuntil(b"</lococa:set_result>")
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        else:
            return not self.data or b"set_accepted" in answer
        finally:
            writing.close()


def provider_set(urls: int) -> bytes:
    """Return a set of plain URLs, with an id as ``lcccp`` gives it."""
    elements = "".join(f'<url c="page{n}.html" mimetype="text/html" len="{n}"/>' for n in range(urls))
    begin = f'<lococa:set set="partial" id="{secrets.token_hex(16)}" urlprefix="{ROOT}">'
    return f"{begin}{elements}</lococa:set>".encode()


# --- the server --------------------------------------------------------------------------------------


@dataclass
class House:
    """An LCC of a checkout, in a scratch folder; ``query`` asks its database."""

    source: Path
    folder: Path
    database_url: str
    query: Callable[[str], int]
    password: str
    port: int = 0
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Return what its commands run with."""
        url = {"LCC_DATABASE_URL": self.database_url} if self.database_url else {}
        return {
            **os.environ,
            "PYTHONPATH": str(self.source),
            "SCRAPY_SETTINGS_MODULE": "lcc_scrapy.settings",
            "LCC_DATA_DIR": str(self.folder / "data"),
            "LCC_UNS_ENDPOINTS": f"tcp:{self.port}:interface=127.0.0.1",
            "LCC_MIMETYPES": "text/*",
            "LCC_CONNECTIONS_PER_ADDRESS": "5000",
            "LCC_CONNECTIONS_MAX": "5000",
            "LCC_LOGINS_WAITING": "5000",
            "LCC_LOGIN_FAILURES_PER_ADDRESS": "100000/m",
            **url,
            **self.settings,
        }

    def command(self, *words: str) -> list[str]:
        """Return how to run ``lcc`` of this checkout."""
        return [sys.executable, "-c", "from lcc_scrapy.cli.main import main; main()", *words]

    def make(self, providers: int, hasher: PasswordHasher) -> None:
        """Make the LCC with its providers."""
        subprocess.run(
            self.command("init"), env=self.environment, cwd=self.folder, check=True, stdout=subprocess.DEVNULL
        )
        code = (
            "import sys; from lcc_scrapy.domain.providers import Provider\n"
            "from lcc_scrapy.db.sql.store import SqlStore\n"
            "store = SqlStore(sys.argv[1])\n"
            "with store.begin() as tx:\n"
            " for pid in range(1, int(sys.argv[2]) + 1):\n"
            "  tx.insert_provider(Provider(pid, sys.argv[3]), [sys.argv[4]])\n"
        )
        url = self.database_url or f"sqlite:///{self.folder}/data/lcc.sqlite"
        hashed = hasher.hash(self.password)
        subprocess.run(
            [sys.executable, "-c", code, url, str(providers), hashed, ROOT],
            env=self.environment, cwd=self.folder, check=True,
        )  # fmt: skip

    @contextmanager
    def serving(self, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run ``lcc uns``."""
        self.settings = settings
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        path = self.folder / f"uns-{self.port}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                self.command("uns"), env=self.environment, cwd=self.folder, stdout=log, stderr=log
            )
        try:
            while b"listening on" not in path.read_bytes():
                assert process.poll() is None, path.read_text()
                time.sleep(0.02)
            yield process
        finally:
            process.terminate()
            process.wait(60)


def worked(process: subprocess.Popen[bytes]) -> float:
    """Return seconds of processor time."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def house(options: argparse.Namespace, source: Path) -> Iterator[House]:
    """Make a fresh LCC, and clean up after it."""
    folder = Path(tempfile.mkdtemp(prefix="bench-logins-", dir=options.folder))
    password = secrets.token_hex()
    try:
        if options.database == "sqlite":
            file = folder / "data/lcc.sqlite"
            yield House(source, folder, "", lambda text: _ask_sqlite(file, text), password)
            return
        server = sqlalchemy.create_engine(options.mariadb, isolation_level="AUTOCOMMIT")
        name = f"lcc_bench_{os.getpid()}"
        with server.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        try:
            url = server.url.set(database=name).render_as_string(hide_password=False)
            yield House(source, folder, url, lambda text: _ask(server, name, text), password)
        finally:
            with server.connect() as connection:
                connection.exec_driver_sql(f"DROP DATABASE {name}")
            server.dispose()
    finally:
        shutil.rmtree(folder)


def _ask_sqlite(file: Path, text: str) -> int:
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30)
    try:
        return int(connection.execute(text).fetchone()[0])
    finally:
        connection.close()


def _ask(server: sqlalchemy.Engine, name: str, text: str) -> int:
    with server.connect() as connection:
        connection.exec_driver_sql(f"USE {name}")
        return int(connection.exec_driver_sql(text).scalar_one())


# --- what is measured --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pace:
    """How many there were in how many seconds, and the processor seconds of the server."""

    count: int
    took: float
    worked: float
    waits: Sequence[float] = ()
    marks: Sequence[tuple[float, int]] = ()

    def tenth(self, first: bool) -> float:
        """Return how many a second were done in the first or last tenth."""
        low, high = (0, self.count // 10) if first else (self.count - self.count // 10, self.count)
        start = next(at for at, done in self.marks if done >= low)
        end = next(at for at, done in self.marks if done >= high)
        return (high - low) / max(0.05, end - start)


def converse(server: House, process: subprocess.Popen[bytes], pids: Sequence[int], data: bytes) -> Pace:
    """Let all providers log in, and send ``data``."""
    context = get_context("fork")
    answers = context.Queue()
    crowd, before, began = Crowd(server.port, server.password, data), worked(process), time.monotonic()
    clients = [
        context.Process(target=crowd.run, args=(pids[part::CLIENTS], answers)) for part in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    done = [one for _ in clients for one in answers.get(timeout=PATIENCE)]
    for client in clients:
        client.join()
    took = max(at for at, _ in done) - began
    return Pace(len(done), took, worked(process) - before, [wait for _, wait in done])


def watch_absorption(server: House, process: subprocess.Popen[bytes], count: int) -> dict[str, Pace]:
    """Wait until so many sets were absorbed, and their files were removed."""
    began, before = time.monotonic(), worked(process)
    spool = server.folder / "data/spool"
    left = {
        "absorbed": lambda: server.query("select count(*) from logins"),
        "removed": lambda: sum(name.endswith(".set") for name in os.listdir(spool)),
    }
    marks = {what: [(began, 0)] for what in left}
    paces: dict[str, Pace] = {}
    while len(paces) < len(left):
        assert time.monotonic() < began + PATIENCE, marks
        time.sleep(0.02)
        for what in left.keys() - paces.keys():
            seen = marks[what]
            seen.append((time.monotonic(), count - left[what]()))
            if seen[-1][1] >= count:
                paces[what] = Pace(count, seen[-1][0] - began, worked(process) - before, marks=seen)
    return {what: paces[what] for what in left}


def measure(options: argparse.Namespace, source: Path) -> dict[str, Pace]:
    """Return the paces of one checkout."""
    hasher = REAL if options.real_hash else CHEAP
    pids, data = range(1, options.providers + 1), provider_set(options.urls)
    with house(options, source) as server:
        server.make(options.providers, hasher)
        with server.serving() as process:
            logins = converse(server, process, pids, b"")
            sets = converse(server, process, pids, data)
            watch_absorption(server, process, len(pids))
        with server.serving(LCC_QUEUE_MAX="1") as process:
            spooled = converse(server, process, pids, data.replace(b"page", b"next"))
        with server.serving() as process:
            absorbed = watch_absorption(server, process, len(pids))
        waiting = server.query("select count(*) from qdb")
        assert waiting == 2 * options.urls * len(pids), waiting
    return {"logins": logins, "sets": sets, "spooled": spooled, **absorbed}


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--providers", type=int, default=1000)
    options.add_argument("--urls", type=int, default=10, help="of each set")
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--database", choices=["sqlite", "mariadb"], default="sqlite")
    options.add_argument("--mariadb", default="mysql+pymysql://root@127.0.0.1/", metavar="URL")
    options.add_argument("--real-hash", action="store_true")
    options.add_argument("--source", type=Path, action="append", metavar="DIR")
    options.add_argument("--folder", type=Path, default=Path.cwd(), help="for scratch data")
    chosen = options.parse_args()
    sources = [path.resolve() for path in chosen.source or [Path(__file__).parent.parent]]
    found: dict[Path, list[dict[str, Pace]]] = {source: [] for source in sources}
    for _ in range(chosen.rounds):
        for source in sources:  # interleaved
            found[source].append(measure(chosen, source))
    hashing = "argon2id as stored for providers" if chosen.real_hash else "argon2id with least parameters"
    print(
        f"{chosen.providers} providers, sets of {chosen.urls} URLs, {chosen.database}, {hashing},"
        f" n={chosen.rounds}, medians; load {os.getloadavg()[0]:.1f}"
    )
    for source, rounds in found.items():
        print(source)
        for what in rounds[0]:
            report(what, [one[what] for one in rounds], chosen.urls)


def report(what: str, rounds: Sequence[Pace], urls: int) -> None:
    """Print one line."""
    pace = median(one.count / one.took for one in rounds)
    line = f"  {what:10}{pace:10,.0f}/s{median(one.count / one.worked for one in rounds):10,.0f} a CPU second"
    waits = sorted(wait for one in rounds for wait in one.waits)
    if waits:
        line += (
            f", answered in {median(waits) * 1e3:.0f} ms, 99 %: {waits[int(len(waits) * 0.99)] * 1e3:.0f} ms"
        )
    if rounds[0].marks:
        first, last = (median(one.tenth(part) for one in rounds) for part in (True, False))
        line += f", {pace * urls:,.0f} URLs/s; first tenth {first:,.0f}/s, last tenth {last:,.0f}/s"
    print(line)


if __name__ == "__main__":
    main()
