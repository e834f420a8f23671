"""What is accepted over HTTP (``lcc web``), beside the socket (``lcc uns``), both with one LCC.

A large set goes alternately over the socket and over HTTP, as XML, gzip and JSON: checked, spooled and synced
each time, absorbed never (``LCC_QUEUE_MAX=1``). With ``--tls`` HTTP is HTTPS; the socket stays plain.
Then sets of one URL each go over connections that are kept alive, with a password that people thought of,
one that was made up, and a push token.

    python bench/push_http.py                          # 100,000 URLs, 5 rounds; 10,000 sets of one URL
    python bench/push_http.py --tls --urls 1000000 --rounds 3 --sets 0
    python bench/push_http.py --urls 0 --logins token --connections 8
"""

import argparse
import base64
import gzip
import json
import os
import re
import secrets
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from uns import BIN, ROOT, Server, listen, stream

from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.login.passwords import hash_made_up, hash_password, made_up
from lcc_scrapy.providers.registration import add as add_provider
from lcc_scrapy.wire.messages import NAMESPACE

THOUGHT_OF, MADE_UP = 7, 8
"""Providers: one whose password is hashed slowly, and one whose password is random."""

LOGINS = ["thought-of", "made-up", "token"]
"""How the small sets log in: with the password of either provider, or a push token."""

PATIENCE = 600


class Lcc:
    """An LCC with a UNS and a push endpoint, each a process of its own."""

    def __init__(self, folder: Path, *, tls: bool = False) -> None:
        self.folder = folder
        self.thought_of, self.made_up = secrets.token_hex(8), made_up()
        self.settings = {
            **os.environ,
            "LCC_DATA_DIR": str(folder / "data"),
            "LCC_UNS_ENDPOINTS": "tcp:0:interface=127.0.0.1",
            "LCC_WEB_ENDPOINT": "",
            "LCC_PUSH_ENDPOINTS": "127.0.0.1:0",
            "LCC_MIMETYPES": "text/*",
            "LCC_QUEUE_MAX": "1",
            "LCC_CONNECTIONS_PER_ADDRESS": "1000",
            "LCC_WEB_RATE": "1000000/s",
            "SCRAPY_SETTINGS_MODULE": "lcc_scrapy.settings",
            **(certified(folder) if tls else {}),
        }
        self._lcc("init")
        store = SqlStore(f"sqlite:///{folder}/data/lcc.sqlite")
        add_provider(store, Provider(THOUGHT_OF, hash_password(self.thought_of)), [ROOT])
        add_provider(store, Provider(MADE_UP, hash_made_up(self.made_up)), [ROOT])
        store.close()
        self.token = self._lcc("token", "add", "bench", "--scope", "push", "--provider", str(MADE_UP))

    def _lcc(self, *words: str) -> str:
        done = subprocess.run(
            [BIN / "lcc", *words], env=self.settings, cwd=self.folder, check=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        return done.stdout.strip()

    @contextmanager
    def running(self, command: str) -> Iterator[Server]:
        """Run ``lcc uns`` or ``lcc web``."""
        path = self.folder / f"{command}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                [BIN / "lcc", command], env=self.settings, cwd=self.folder, stdout=log, stderr=log
            )
        try:
            while not (found := re.search(r"listening on 127\.0\.0\.1:(\d+)", path.read_text())):
                assert process.poll() is None, path.read_text()
                time.sleep(0.1)
            yield Server(process, int(found[1]))
        finally:
            process.terminate()
            process.wait(60)


def certified(folder: Path) -> dict[str, str]:
    """Make a certificate that nobody vouches for; returns the settings that name it."""
    files = {"LCC_HTTP_CERTIFICATE": str(folder / "cert.pem"), "LCC_HTTP_KEY": str(folder / "key.pem")}
    made = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    command = f"openssl req -x509 {made}"
    out, keyout = files.values()
    subprocess.run([*command.split(), "-out", out, "-keyout", keyout], check=True, stderr=subprocess.DEVNULL)
    return files


def connected(server: Server, *, tls: bool) -> socket.socket:
    """Return a connection to a server, over TLS where it has that."""
    link = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    if not tls:
        return link
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(link)


def over_socket(port: int, lcc: Lcc, data: bytes) -> bytes:
    """Push a set to the UNS; returns the end of its answer."""
    provider = f'<provider id="{MADE_UP}" passwd="{lcc.made_up}"/>'
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as link:
        link.sendall(f'<lococa:init xmlns:lococa="{NAMESPACE}">{provider}</lococa:init>'.encode())
        link.sendall(data)
        return listen(link, b"</lococa:set_result>")


def request(authorization: str, body: bytes, **headers: str) -> bytes:
    """Return the bytes of a push."""
    lines = {
        "Host": "localhost", "Authorization": authorization, "Content-Length": str(len(body)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }  # fmt: skip
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST /v1/push HTTP/1.1\r\n{head}\r\n".encode() + body


def basic(pid: int, password: str) -> str:
    """Return the header of a login."""
    return "Basic " + base64.b64encode(f"{pid}:{password}".encode()).decode()


def answered(link: socket.socket) -> bytes:
    """Read one answer, which says its length."""
    said = listen(link, b"\r\n\r\n")
    head, _, body = said.partition(b"\r\n\r\n")
    length = int(re.search(rb"content-length: (\d+)", head)[1])
    while len(body) < length:
        body += link.recv(65536)
    return head + body


def over_http(web: Server, data: bytes, *, tls: bool) -> bytes:
    """Push over a connection of its own."""
    with connected(web, tls=tls) as link:
        link.sendall(data)
        return answered(link)


def timed(
    server: Server, count: int, push: Callable[[], bytes], accepted: bytes
) -> tuple[float, float, float]:
    """Return URLs per second, per processor second of the server, and the megabytes by which it grew."""
    server.forget_peak()
    before, worked, begun = server.memory("VmRSS"), server.worked, time.perf_counter()
    answer = push()
    took = time.perf_counter() - begun
    assert accepted in answer, answer[-500:]
    grown = (server.memory("VmHWM") - before) / 1e6
    return count / took, count / max(server.worked - worked, 0.01), grown


def as_json(count: int) -> bytes:
    """Return the same set as ``stream``, as one object."""
    urls = [
        {"c": f"dir{n % 97}/page{n}.html", "mimetype": "text/html", "len": 1000 + n % 5000,
         "mtime": 1700000000, "md5": f"{n:032x}"}
        for n in range(count)
    ]  # fmt: skip
    return json.dumps({"set": "partial", "urlprefix": ROOT, "urls": urls}).encode()


def large_sets(lcc: Lcc, uns: Server, web: Server, count: int, rounds: int, *, tls: bool) -> None:
    """Measure every way in turn, and print."""
    http = "HTTPS" if tls else "HTTP"
    data, login = stream(count, 0), basic(MADE_UP, lcc.made_up)
    xml, packed = request(login, data), request(login, gzip.compress(data, 6), Content_Encoding="gzip")
    written = request(login, as_json(count), Content_Type="application/json")
    told, told_json = b'received="%d"' % count, b'"received":%d' % count
    ways = {
        "socket": (uns, lambda: over_socket(uns.port, lcc, data), told),
        http: (web, lambda: over_http(web, xml, tls=tls), told),
        f"{http}, gzip": (web, lambda: over_http(web, packed, tls=tls), told),
        f"{http}, JSON": (web, lambda: over_http(web, written, tls=tls), told_json),
    }
    done = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (server, push, accepted) in ways.items():
            done[name].append(timed(server, count, push, accepted))
    print(f"{count} URLs in one set, n={rounds}, medians; load {os.getloadavg()[0]:.1f}")
    print(f"{'':12}{'URLs/s':>12}{'per CPU second':>16}{'grown MB':>10}{'of socket':>11}")
    base = median(one[0] for one in done["socket"])
    for name, one in done.items():
        pace, worked = median(x[0] for x in one), median(x[1] for x in one)
        print(f"{name:12}{pace:12,.0f}{worked:16,.0f}{max(x[2] for x in one):10.1f}{pace / base:10.2f}x")


def small_sets(web: Server, login: str, sets: int, connections: int, *, tls: bool) -> tuple[float, float]:
    """Push sets of one URL over so many connections; return sets per second, and per processor second."""
    each = sets // connections
    worked, begun = web.worked, time.perf_counter()
    them = [threading.Thread(target=_push_many, args=(web, login, each, n, tls)) for n in range(connections)]
    for one in them:
        one.start()
    for one in them:
        one.join()
    took = time.perf_counter() - begun
    return each * connections / took, each * connections / max(web.worked - worked, 0.01)


def _push_many(web: Server, login: str, count: int, whose: int, tls: bool) -> None:
    with connected(web, tls=tls) as link:
        for n in range(count):
            body = f'{{"set":"partial","urls":["{ROOT}{whose}/{n}.html"]}}'.encode()
            link.sendall(request(login, body, Content_Type="application/json"))
            answer = answered(link)
            assert b'"received":1' in answer, answer


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--urls", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--sets", type=int, default=10_000)
    options.add_argument("--connections", type=int, nargs="+", default=[1, 8])
    options.add_argument("--logins", nargs="+", choices=LOGINS, default=LOGINS)
    options.add_argument("--tls", action="store_true")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        lcc = Lcc(Path(folder), tls=chosen.tls)
        with lcc.running("uns") as uns, lcc.running("web") as web:
            if chosen.urls:
                large_sets(lcc, uns, web, chosen.urls, chosen.rounds, tls=chosen.tls)
            logins = {
                "thought-of": basic(THOUGHT_OF, lcc.thought_of),
                "made-up": basic(MADE_UP, lcc.made_up),
                "token": f"Bearer {lcc.token}",
            }
            for connections in chosen.connections if chosen.sets else ():
                for name in chosen.logins:
                    pace, worked = small_sets(web, logins[name], chosen.sets, connections, tls=chosen.tls)
                    print(
                        f"sets of one URL, {connections} connections, {name}: {pace:,.0f}/s,"
                        f" {worked:,.0f} per CPU second",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
