"""The real Squid of Debian, unpacked and not installed, beside a mirror tracker: one folder, own ports, no root."""

import os
import socket
import subprocess
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from tests.harness import CORPORA, missing, wait_for
from tests.ports import free_port

_AS_SOMEBODY = () if os.geteuid() else ("unshare", "--user", "--map-user=1000")
"""Squid refuses to be root, and its helpers have to read what the tests made."""

LIBRARIES = ("libecap3", "libltdl7", "libnfnetlink0", "libnetfilter-conntrack3", "libtdb1")

CONFIGURATION = """
http_port 127.0.0.1:{port}
{access}
visible_hostname squid.test
pid_filename none
cache_log {folder}/cache.log
access_log stdio:{folder}/access.log
cache_store_log none
netdb_filename none
coredump_dir {folder}
mime_table {common}/mime.conf
icon_directory {common}/icons
error_directory {errors}
unlinkd_program {programs}/unlinkd
pinger_enable off
cache_mem 8 MB
shutdown_lifetime 0 seconds
digest_generation off
buffered_logs off
"""


class Squid:
    """One Squid; ``rules`` are further lines of its configuration, ``access`` says whom it serves."""

    def __init__(self, folder: Path, rules: str, access: str = "http_access allow all") -> None:
        self.folder = folder
        self.port = free_port()
        self._rules = rules
        self._access = access
        self._process = None

    def start(self) -> None:
        program = CORPORA / "squid/usr/sbin/squid"
        if not program.exists():
            missing("Squid", "make corpora")
        libraries = ":".join(f"{CORPORA}/{name}/usr/lib/x86_64-linux-gnu" for name in LIBRARIES)
        configuration = self.folder / "squid.conf"
        configuration.write_text(
            CONFIGURATION.format(
                port=self.port,
                access=self._access,
                folder=self.folder,
                common=CORPORA / "squid-common/usr/share/squid",
                errors=CORPORA / "squid-langpack/usr/share/squid-langpack/en",
                programs=CORPORA / "squid/usr/lib/squid",
            )
            + self._rules
        )
        environment = {**os.environ, "LD_LIBRARY_PATH": libraries}
        with (self.folder / "squid.out").open("wb") as out:
            self._process = subprocess.Popen(
                [*_AS_SOMEBODY, program, "-N", "-f", configuration], env=environment, stdout=out, stderr=out
            )
        wait_for(self._answers, 20, "Squid")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def _answers(self) -> bool:
        assert self._process.poll() is None, self.log("squid.out")
        try:
            return "Squid" in self.manager("info")
        except urllib.error.URLError:
            return False

    def get(self, url: str) -> bytes:
        """Return what a client gets that has this Squid as its proxy, and follows redirects."""
        proxy = urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{self.port}"})
        with urllib.request.build_opener(proxy).open(url, timeout=120) as answer:
            return answer.read()

    def asked(self, request: str) -> str:
        """Return the whole answer to what is sent as it is."""
        with socket.create_connection(("127.0.0.1", self.port), 120) as link:
            link.sendall(request.encode())
            return b"".join(iter(lambda: link.recv(65536), b"")).decode()

    def manager(self, page: str) -> str:
        """Return a page of the cache manager."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        url = f"http://127.0.0.1:{self.port}/squid-internal-mgr/{page}"
        with direct.open(url, timeout=120) as answer:
            return answer.read().decode()

    def counter(self, name: str) -> int:
        """Return one of its counters: ``icp.replies_recv``."""
        lines = dict(line.split(" = ", 1) for line in self.manager("counters").splitlines() if " = " in line)
        return int(float(lines[name]))

    def log(self, name: str = "access.log") -> str:
        return (self.folder / name).read_text()

    def logged(self, *words: str) -> str:
        """Return the first line of the access log with all of these words; waits for it."""

        def lines() -> list[str]:
            return [one for one in self.log().splitlines() if all(word in one for word in words)]

        wait_for(lines, 20, f"{words} in the access log")
        return lines()[0]


@contextmanager
def squid(folder: Path, rules: str, access: str = "http_access allow all"):
    """Run a Squid."""
    made = Squid(folder, rules, access)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@contextmanager
def little_mirror():
    """Run a web server that answers each GET with the path; yields its port and the paths asked for."""
    asked = []

    class Mirror(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = f"the mirror's {self.path}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_address[1], asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
