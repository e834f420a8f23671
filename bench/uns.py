"""What a UNS accepts: checked, spooled and synced, by one ``lcc uns`` over TCP.

The clients are processes of their own that send bytes made before; the time runs from their first byte
behind the login to the last acceptance. Meanwhile a bystander asks again and again and waits for its
answer, which shows how long a conversation waits for its turn. Nothing is absorbed (``LCC_QUEUE_MAX=1``):
that is measured by ``bench/intake.py``.

    python bench/uns.py                                    # 500,000 URLs over 1 connection and over 50
    python bench/uns.py --urls 5000000 --connections 1 --rounds 1
    python bench/uns.py --odd 20                           # one URL in 20 is not plain
"""

import argparse
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median

from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.login.passwords import hash_password
from lcc_scrapy.providers.registration import add as add_provider
from lcc_scrapy.wire.messages import NAMESPACE

BIN = Path(sys.executable).parent
ROOT = "http://www.example.org/"
CONNECTIONS = (1, 50)
SENDERS = 2
"""Processes."""
ROUNDS = 5
AT_ONCE = 2000
"""URLs that are made at a time."""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Round:
    """Seconds, also of the server's processor; bytes by which it grew; seconds that a bystander waited."""

    took: float
    worked: float
    grown: int
    waits: Sequence[float]


def stream(count: int, odd: int) -> bytes:
    """Return a set; one URL in ``odd`` has a name that is not plain (0 = none)."""
    elements = (
        b'<url curl="dir%d/page%s%d.html" mimetype="text/html" len="%d" mtime="1700000000" md5="%032x"/>\n'
        % (n % 97, b"\xc3\xa9" if odd and n % odd == 0 else b"", n, 1000 + n % 5000, n)
        for n in range(count)
    )
    return b'<lococa:set set="partial" urlprefix="%s">%s</lococa:set>' % (ROOT.encode(), b"".join(elements))


# --- those who send ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Push:
    """What all providers do alike."""

    port: int
    password: str
    data: bytes
    count: int

    def send(self, pids: Sequence[int], start: Barrier) -> None:
        """Converse as some providers at once, in a process of its own."""
        ready = threading.Barrier(len(pids) + 1)
        them = [threading.Thread(target=self._converse, args=(pid, ready)) for pid in pids]
        for one in them:
            one.start()
        while ready.n_waiting < len(pids):
            time.sleep(0.05)
        start.wait()
        ready.wait()
        for one in them:
            one.join()

    def _converse(self, pid: int, ready: threading.Barrier) -> None:
        with self._log_in(pid) as connection:
            ready.wait()
            connection.sendall(self.data)
            answer = listen(connection, b"</lococa:set_result>")
        assert b'received="%d"' % self.count in answer, answer[-300:]

    def _log_in(self, pid: int) -> socket.socket:
        """Return a connection that is let in; many at once may have to come again."""
        provider = f'<provider id="{pid}" passwd="{self.password}"/>'
        while True:
            connection = socket.create_connection(("127.0.0.1", self.port), 600)
            connection.sendall(f'<lococa:init xmlns:lococa="{NAMESPACE}">{provider}</lococa:init>'.encode())
            if b"init_accepted" in listen(connection, b"</lococa:init_"):
                return connection
            connection.close()
            time.sleep(0.5)


def listen(connection: socket.socket, end: bytes) -> bytes:
    """Read an answer to its end."""
    said = b""
    while end not in said:
        more = connection.recv(65536)
        assert more, said
        said += more
    return said


# --- the server --------------------------------------------------------------------------------------


class Server:
    """An ``lcc uns``; ``port`` is where it listens."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self.port = port

    @property
    def worked(self) -> float:
        """Seconds of processor time."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self, what: str) -> int:
        """Bytes that are in use (VmRSS) or were at most (VmHWM)."""
        found = re.search(rf"{what}:\s+(\d+) kB", Path(f"/proc/{self._process.pid}/status").read_text())
        return int(found[1]) * 1024 if found else 0

    def forget_peak(self) -> None:
        """Measure the peak from here on."""
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")

    def ask(self) -> float:
        """Say what is no login; return how long the answer took."""
        begun = time.perf_counter()
        with socket.create_connection(("127.0.0.1", self.port), 60) as connection:
            connection.sendall(b"<html>")
            listen(connection, b"</lococa:init_rejected>")
        return time.perf_counter() - begun


@contextmanager
def serving(folder: Path, providers: int, password: str) -> Iterator[Server]:
    """Run an LCC with some providers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "LCC_DATA_DIR": str(folder / "data"),
        "LCC_UNS_ENDPOINTS": f"tcp:{port}:interface=127.0.0.1",
        "LCC_MIMETYPES": "text/*",
        "LCC_QUEUE_MAX": "1",
        "LCC_CONNECTIONS_PER_ADDRESS": "1000",
        "SCRAPY_SETTINGS_MODULE": "lcc_scrapy.settings",
    }
    environment = {**os.environ, **settings}
    subprocess.run([BIN / "lcc", "init"], env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    store, hashed = SqlStore(f"sqlite:///{folder}/data/lcc.sqlite"), hash_password(password)
    for pid in range(1, providers + 1):
        add_provider(store, Provider(pid, hashed), [ROOT])
    store.close()
    with (folder / "uns.log").open("wb") as log:
        process = subprocess.Popen([BIN / "lcc", "uns"], env=environment, cwd=folder, stdout=log, stderr=log)
    try:
        while b"listening on" not in (folder / "uns.log").read_bytes():
            assert process.poll() is None, (folder / "uns.log").read_text()
            time.sleep(0.1)
        yield Server(process, port)
    finally:
        process.terminate()
        process.wait(60)


def measure(server: Server, connections: int, push: Push) -> Round:
    """Let so many providers send the same set, each once."""
    context, parts = get_context("fork"), min(SENDERS, connections)
    start = context.Barrier(parts + 1)
    pids = range(1, connections + 1)
    senders = [context.Process(target=push.send, args=(pids[part::parts], start)) for part in range(parts)]
    for sender in senders:
        sender.start()
    while start.n_waiting < parts:
        time.sleep(0.05)
    server.forget_peak()
    before, worked, waits = server.memory("VmRSS"), server.worked, list[float]()
    start.wait()
    begun = time.perf_counter()
    while any(sender.is_alive() for sender in senders):
        waits.append(server.ask())
        time.sleep(0.05)
    took = time.perf_counter() - begun
    assert not any(sender.exitcode for sender in senders)
    return Round(took, server.worked - worked, server.memory("VmHWM") - before, waits)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--urls", type=int, default=500_000)
    options.add_argument("--connections", type=int, nargs="+", default=CONNECTIONS)
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--odd", type=int, default=0)
    chosen = options.parse_args()
    password, rounds = secrets.token_hex(), {connections: list[Round]() for connections in chosen.connections}
    for _ in range(chosen.rounds):
        for connections, done in rounds.items():
            each = chosen.urls // connections
            with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, \
                 serving(Path(folder), connections, password) as server:  # fmt: skip
                push = Push(server.port, password, stream(each, chosen.odd), each)
                done.append(measure(server, connections, push))
    odd = f"1 in {chosen.odd} odd" if chosen.odd else "all plain"
    print(f"{chosen.urls} URLs, {odd}, n={chosen.rounds}, medians; load {os.getloadavg()[0]:.1f}")
    titles = (
        f"{'URLs/s':>12}{'range':>20}{'per CPU second':>16}{'grown MB':>10}",
        f"{'waits ms':>10}{'longest':>9}",
    )
    print(f"{'connections':>11}{''.join(titles)}")
    for connections, done in rounds.items():
        report(connections, chosen.urls // connections * connections, done)


def report(connections: int, count: int, done: Sequence[Round]) -> None:
    """Print one line."""
    paces = sorted(count / one.took for one in done)
    worked = median(count / one.worked for one in done)
    grown = max(one.grown for one in done) / 1e6
    waits = [wait * 1e3 for one in done for wait in one.waits]
    spread = f"{paces[0]:,.0f}-{paces[-1]:,.0f}"
    print(
        f"{connections:11}{median(paces):12,.0f}{spread:>20}{worked:16,.0f}{grown:10.1f}"
        f"{median(waits):10.1f}{max(waits):9.1f}"
    )


if __name__ == "__main__":
    main()
