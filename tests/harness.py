"""A whole LCC as a user has it: real commands, real nginx, real databases, every process by its pid."""

import json
import os
import re
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pymysql
import pytest

from lcc_scrapy.content.stored import decoded
from lcc_scrapy.db.sql.store import SqlStore, make_engine
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.login.passwords import hash_password
from lcc_scrapy.providers.registration import add as add_provider
from tests.database_servers import SERVERS, connect_mariadb
from tests.forkserver import popen, run
from tests.made_databases import make_sqlite, upgrade
from tests.ports import free_port

BIN = Path(sys.executable).parent
PASSWORD = "wachtwoord"
BEHIND_A_FRONT = bool(os.environ.get("LCC_TEST_FRONT"))
CORPORA = Path(os.environ.get("LCC_CORPORA", Path(__file__).parents[1] / ".corpora"))


PATIENCE = 240
"""Seconds: how long is waited for anything on a machine that has much else to do."""


def wait_for(condition: Callable[[], object], seconds: float = 60, what: str = "it") -> None:
    """Wait for what takes less than ``seconds`` where nothing else goes on; how long it took says nothing."""
    end = time.monotonic() + max(seconds, PATIENCE)
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"waited {seconds} s for {what}")
        time.sleep(0.05)


def missing(what: str, how: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing: {how}")
    pytest.skip(f"{what} is missing: {how}")


@dataclass
class Served:
    """One line of the web server's log; times in epoch seconds."""

    host: str
    start: float
    end: float
    status: int
    sent: int
    uri: str


@dataclass
class Nginx:
    """A real web server with one port per document root."""

    folder: Path
    ports: dict[str, int] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    _fence: int = 0

    def start(self, roots: dict[str, Path], extra: str = "") -> None:
        servers = []
        for name, root in roots.items():
            self.ports[name] = free_port()
            servers.append(
                f"server {{ listen 127.0.0.1:{self.ports[name]}; root {root}; access_log {self.folder}/{name}.log lcc; {extra} }}"
            )
        self._fence = free_port()
        servers.append(f"server {{ listen 127.0.0.1:{self._fence}; access_log off; return 204; }}")
        config = self.folder / "nginx.conf"
        config.write_text(
            f"daemon off; master_process off; pid {self.folder}/nginx.pid; error_log {self.folder}/error.log;\n"
            "worker_rlimit_nofile 4096; events { worker_connections 512; }\n"
            "http { types { text/html html htm; text/css css; text/plain txt py; application/javascript js; image/png png; }\n"
            "default_type application/octet-stream; log_format lcc '$host $msec $request_time $status $body_bytes_sent $request_uri';\n"
            f"client_body_temp_path {self.folder}; proxy_temp_path {self.folder}; fastcgi_temp_path {self.folder};"
            f"uwsgi_temp_path {self.folder}; scgi_temp_path {self.folder}; keepalive_requests 100000;\n"
            + "\n".join(servers)
            + "}\n"
        )
        program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if program is None:
            missing("nginx", "apt-get install nginx-light")
        self.process = subprocess.Popen([str(program), "-c", str(config), "-p", str(self.folder)])
        for port in (*self.ports.values(), self._fence):
            wait_for(lambda port=port: answers(port), 20, "nginx")

    def _has_written(self) -> None:
        """Wait for the lines of all whole answers: each is written before the next request is looked at."""
        if self.process is not None and self.process.poll() is None:
            with socket.create_connection(("127.0.0.1", self._fence), 300) as link:
                link.sendall(b"GET / HTTP/1.0\r\n\r\n")
                while link.recv(65536):
                    pass

    def log(self, name: str) -> list[Served]:
        self._has_written()
        lines = (self.folder / f"{name}.log").read_text().splitlines()
        found = []
        for line in lines:
            host, end, took, status, sent, uri = line.split(" ", 5)
            found.append(Served(host, float(end) - float(took), float(end), int(status), int(sent), uri))
        return found

    def clear(self, name: str) -> None:
        self._has_written()
        (self.folder / f"{name}.log").write_text("")

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(300)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class Lcc:
    """An LCC in a folder of its own."""

    folder: Path
    database_url: str
    settings: dict[str, str] = field(default_factory=dict)
    port: int = 0
    own_port: int = 0
    """Where it listens itself; ``port`` is where providers connect, which may be a front's."""
    crawl: subprocess.Popen[bytes] | None = None
    project: Path | None = None
    uns: subprocess.Popen[bytes] | None = None
    front: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.port = self.own_port = free_port()
        self.settings = {
            "LCC_DATA_DIR": str(self.folder / "lcc-data"),
            "LCC_UNS_ENDPOINTS": f"tcp:{self.port}:interface=127.0.0.1",
            "LCC_MIMETYPES": "*/*",
            "LCC_POLL": "0.5",
            "LCC_LOGIN_SECONDS": "300s",  # whoever is held up between connecting and his login is let in
            "LCC_STORE_JOB_WARN": "0",  # what it warns of is how busy this machine is
            "LCC_RETRY_DELAYS": "",  # the first answer of a site counts, unless a test says otherwise
            **({"LCC_DATABASE_URL": self.database_url} if self.database_url else {}),
            **self.settings,
        }

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LCC_", "SCRAPY_"))}
        if self.project is None:
            kept["SCRAPY_SETTINGS_MODULE"] = "lcc_scrapy.settings"
        return {**kept, **self.settings, "PATH": f"{BIN}:{kept['PATH']}"}

    @property
    def cwd(self) -> Path:
        """Return where commands run: the Scrapy project that this LCC is part of, or its own folder."""
        return self.project or self.folder

    @property
    def shared_url(self) -> str:
        """Return the database's address as a further machine has to give it."""
        return self.database_url or f"sqlite:///{self.folder}/lcc-data/lcc.sqlite"

    def lcc(
        self, *words: str, check: bool = True, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = run([str(BIN / "lcc"), *words], env=self.environment, cwd=self.cwd, text=stdin)
        assert not check or done.returncode == 0, f"lcc {' '.join(words)}: {done.stdout}{done.stderr}"
        return done

    def add_provider(self, pid: int, root: str, *options: str) -> None:
        self.lcc(
            "provider",
            "add",
            str(pid),
            "--password-file",
            "-",
            "--root",
            root,
            "--allow-private",
            *options,
            stdin=PASSWORD + "\n",
        )

    def register(self, *providers: Provider, roots: Sequence[Sequence[str]]) -> None:
        """Add many providers at once, all with the one password."""
        hashed = hash_password(PASSWORD)
        store = SqlStore(self.shared_url)
        try:
            for provider, its_roots in zip(providers, roots, strict=True):
                add_provider(store, replace(provider, password=hashed), its_roots)
        finally:
            store.close()

    def start(self, *options: str, spider: str = "lcc_push") -> None:
        with (self.folder / "crawl.log").open("ab") as log:
            command = [str(BIN / "scrapy"), "crawl", spider, *options]
            self.crawl = popen(command, env=self.environment, cwd=self.cwd, log=log)
        wait_for(lambda: self.listens() or self.crawl.poll() is not None, 100, "the UNS")
        assert self.crawl.poll() is None, self.log_text()[-3000:]

    def start_once_more(self) -> None:
        """Run a crawl until nothing is left to do, with what it clears away when it starts."""
        with (self.folder / "crawl.log").open("ab") as log:
            command = [str(BIN / "scrapy"), "crawl", "lcc_push", "-a", "stop_when_done=1"]
            self.crawl = popen(command, env=self.environment, cwd=self.cwd, log=log)
        assert self.crawl.wait(300) == 0, self.log_text()[-3000:]

    def listens(self) -> bool:
        return answers(self.port) if self.settings["LCC_UNS_ENDPOINTS"] else bool(self.log_text())

    def start_uns(self, *options: str) -> None:
        """Run ``lcc uns``, and wait until it listens; ``fetch_only`` is the crawl beside it."""
        with self.uns_log.open("ab") as log:
            said = log.tell()
            command = [str(BIN / "lcc"), *options, "uns"]
            self.uns = popen(command, env=self.environment, cwd=self.cwd, log=log)

        def listens() -> bool:
            return b"listening on" in self.uns_log.read_bytes()[said:]

        wait_for(lambda: listens() or self.uns.poll() is not None, 100, "the UNS")
        assert self.uns.poll() is None, self.uns_log.read_text()[-3000:]

    @property
    def uns_log(self) -> Path:
        return self.folder / "uns.log"

    def stop_uns(self, how: int = signal.SIGTERM) -> int:
        if self.uns is None or self.uns.poll() is not None:
            return 0
        self.uns.send_signal(how)
        return self.uns.wait(300)

    def fetch_only(self, *options: str) -> None:
        """Run a crawl that leaves listening and the spool to ``lcc uns``."""
        said = len(self.log_text()) if (self.folder / "crawl.log").exists() else 0
        self.start("-s", "LCC_UNS_ENDPOINTS=", *options)
        wait_for(lambda: "Spider opened" in self.log_text()[said:], 30, "the crawl")

    def refused(
        self, *options: str, spider: str = "lcc_push", cwd: Path | None = None, **settings: str
    ) -> str:
        """Run a crawl that refuses to start; return the one line that it says."""
        command = [str(BIN / "scrapy"), "crawl", spider, *options]
        done = run(command, env={**self.environment, **settings}, cwd=cwd or self.cwd)
        assert done.returncode != 0, done.stderr
        return done.stdout + done.stderr

    def log_text(self) -> str:
        return (self.folder / "crawl.log").read_text(errors="replace")

    def stop(self, how: int = signal.SIGTERM) -> int:
        if self.crawl is None or self.crawl.poll() is not None:
            return 0
        self.crawl.send_signal(how)
        return self.crawl.wait(300)

    def push(
        self, docroot: Path, pid: int, urlprefix: str, *find: str, state: str = "state.txt", lcccp: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run the seed's own pipeline."""
        command = (
            f"file2url --find {docroot} {' '.join(find)} | lcccpstate --statefile={state} "
            f"| lcccp --uns=127.0.0.1:{self.port} --pid={pid} --pwd={PASSWORD} --urlprefix={urlprefix} {lcccp}"
        )
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def push_urls(
        self, pid: int, urls: Sequence[dict[str, object]], *options: str
    ) -> subprocess.CompletedProcess[str]:
        """Push URLs given by their attributes."""
        lines = [
            f"<url {' '.join(f'{name}={quoteattr(str(value))}' for name, value in url.items())}/>"
            for url in urls
        ]
        lines.append(f'<end count="{len(urls)}"/>\n')
        return self.lcccp(pid, *options, stdin="\n".join(lines))

    def lcccp(
        self, pid: int, *options: str, stdin: str = "", password: str = PASSWORD
    ) -> subprocess.CompletedProcess[str]:
        return run(
            [str(BIN / "lcccp"), f"--uns=127.0.0.1:{self.port}", f"--pid={pid}", *options],
            env={**self.environment, "LCC_PWD": password},
            cwd=self.folder,
            text=stdin,
        )

    def check(self, pid: int) -> dict[str, Any]:
        """Log in as a provider and return what it is told; errors that were told are then forgotten."""
        done = self.lcccp(pid, "--check", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["login"]

    def status(self) -> dict[str, object]:
        return json.loads(self.lcc("status", "--json").stdout)

    def sql(self, query: str) -> list[tuple[object, ...]]:
        if self.shared_url.startswith("sqlite"):
            # Not mode=ro: what a killed writer left half done in the WAL's index is mended by the next to open it.
            file = self.shared_url.removeprefix("sqlite:///")
            with closing(sqlite3.connect(f"file:{file}?mode=rw", uri=True, timeout=300)) as connection:
                connection.execute("pragma query_only = on")
                return connection.execute(query).fetchall()
        engine = make_engine(self.database_url)
        try:
            with engine.connect() as connection:
                return [tuple(row) for row in connection.exec_driver_sql(query)]
        finally:
            engine.dispose()

    def is_spooled(self) -> bool:
        return any((self.folder / "lcc-data" / "spool").glob("*.set"))

    def wait_until_fetched(self, seconds: float = 120) -> None:
        def done() -> bool:
            if self.crawl is not None and self.crawl.poll() is not None:
                pytest.fail("the crawl ended: " + self.log_text()[-3000:])
            return not self.is_spooled() and not self.sql("select count(*) from qdb")[0][0]

        wait_for(done, seconds, "the queue to empty")

    def path_of(self, machineid: int, fileid: int) -> Path:
        return (
            self.folder
            / "lcc-data/content"
            / str(machineid)
            / f"{fileid // 1000000:03d}/{fileid // 1000 % 1000:03d}/{fileid}"
        )

    def content(self, machineid: int, fileid: int, coding: str) -> bytes:
        """Return what the site served, out of a content file that may be compressed."""
        with decoded(self.path_of(machineid, fileid).open("rb"), coding) as stream:
            return stream.read()


def memory(lcc: Lcc, what: str) -> int:
    """Return what the kernel says of the memory of a crawl, in bytes."""
    assert lcc.crawl is not None
    status = Path(f"/proc/{lcc.crawl.pid}/status").read_text()
    return int(re.search(rf"{what}:\s+(\d+) kB", status)[1]) * 1024


def _mariadb_url() -> tuple[str, str]:
    name = f"lcc_test_{secrets.token_hex(6)}"
    try:
        connection = connect_mariadb()
    except pymysql.err.OperationalError:
        missing("MariaDB", f"a server at {SERVERS['mariadb'].url}")
    with connection, connection.cursor() as cursor:
        cursor.execute(f"create database {name}")
    url = SERVERS["mariadb"].url_of(name)
    upgrade(url)  # `lcc init` would take some seconds for it
    return url, name


def _kind() -> type[Lcc]:
    if not BEHIND_A_FRONT:
        return Lcc
    from tests.fronted import Fronted

    return Fronted


@contextmanager
def lccs(folder: Path) -> Iterator[Callable[..., Lcc]]:
    """Give what makes LCCs below a folder; at the end their processes are gone and their databases dropped."""
    made: list[Lcc] = []
    databases: list[str] = []

    def make(
        database: str = "sqlite", project: Path | None = None, beside: Lcc | None = None, **settings: str
    ) -> Lcc:
        """Make an LCC; ``beside`` another one, it is a further machine of that."""
        url = beside.shared_url if beside else database if "://" in database else ""
        if database == "mariadb" and not beside:
            url, name = _mariadb_url()
            databases.append(name)
        home = folder / f"lcc{len(made)}"
        home.mkdir()
        lcc = _kind()(home, url, settings, project=project)
        made.append(lcc)
        if not lcc.database_url and not beside:
            make_sqlite(home / "lcc-data/lcc.sqlite")  # `lcc init` would run every migration
        lcc.lcc("init", *(["--machine"] if beside else []))
        return lcc

    try:
        yield make
    finally:
        for process in (process for lcc in made for process in (lcc.crawl, lcc.uns, lcc.front)):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait(300)
        for name in databases:
            with connect_mariadb() as connection, connection.cursor() as cursor:
                cursor.execute(f"drop database {name}")


@pytest.fixture
def make_lcc(tmp_path: Path) -> Iterator[Callable[..., Lcc]]:
    with lccs(tmp_path) as make:
        yield make


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[Nginx]:
    folder = tmp_path / "nginx"
    folder.mkdir()
    server = Nginx(folder)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def corpora() -> dict[str, Path]:
    found = {
        "python": CORPORA / "python3.11-doc/usr/share/doc/python3.11/html",
        "postgresql": CORPORA / "postgresql-doc-15/usr/share/doc/postgresql-doc-15/html",
    }
    if not all(path.is_dir() for path in found.values()):
        missing("the documents to serve", "make corpora")
    return found
