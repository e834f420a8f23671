"""PostgreSQL servers of a test's own: a primary and a standby that streams from it, each in a folder of its own."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.harness import free_port, missing, wait_for

BIN = Path("/usr/lib/postgresql/15/bin")
USER = "postgres"
STANDBY = "standby"
_SMALL = {
    "max_connections": "40",
    "shared_buffers": "16MB",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
    "autovacuum": "off",
    "wal_receiver_status_interval": "1s",
    "hot_standby_feedback": "on",
}


class PostgreSqlServer:
    """One server below ``folder``; whoever asks on its port of 127.0.0.1 is the user ``postgres``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._as_user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        if os.geteuid():
            self._as_user = []  # PostgreSQL refuses root only
        folder.mkdir(mode=0o755)
        if self._as_user:
            account = pwd.getpwnam(USER)
            os.chown(folder, account.pw_uid, account.pw_gid)

    def _run(self, program: str, *arguments: str) -> None:
        ran = subprocess.run(
            [*self._as_user, BIN / program, *arguments],
            capture_output=True, text=True, check=False, timeout=300, cwd="/",
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def install(self) -> None:
        """Make an empty cluster, durable but small."""
        self._run("initdb", f"--pgdata={self.data}", f"--username={USER}", "--auth=trust", "--encoding=UTF8")

    def copy(self, primary: "PostgreSqlServer") -> None:
        """Begin as a standby of another server."""
        source = f"host=127.0.0.1 port={primary.port} user={USER} application_name={STANDBY}"
        self._run("pg_basebackup", f"--pgdata={self.data}", f"--dbname={source}", "--write-recovery-conf",
                  "--wal-method=stream", "--checkpoint=fast")  # fmt: skip

    def start(self, **settings: str) -> None:
        """Start it and wait until it answers."""
        given = {
            **_SMALL,
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            **settings,
        }
        options = [f"--{name}={value}" for name, value in given.items()]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._as_user, BIN / "postgres", "-D", self.data, *options], stdout=log, stderr=log, cwd="/"
            )
        wait_for(self._answers, 60, "PostgreSQL")

    def _answers(self) -> bool:
        try:
            self.execute("select 1")
        except psycopg.OperationalError:
            return False
        return True

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Execute a statement outside of the LCC's database; returns its rows."""
        where = f"host=127.0.0.1 port={self.port} user={USER} dbname=postgres connect_timeout=5"
        with psycopg.connect(where, autocommit=True) as connection:
            found = connection.execute(statement)  # type: ignore[call-overload]
            return found.fetchall() if found.description else []

    def log(self) -> str:
        """Return what it said."""
        return (self.folder / "log").read_text(errors="replace")

    def kill(self) -> None:
        """End the server and all of its processes at once, as a power cut would."""
        if self._process is None:
            return
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self._process.pid)],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.split()
        for pid in (self._process.pid, *map(int, children)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait(60)
        self._process = None

    def stop(self) -> None:
        """End it in order."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(60)
            self._process = None


def url_of(database: str, *servers: PostgreSqlServer, **options: str) -> str:
    """Return the SQLAlchemy URL of a database on these servers."""
    hosts = "&".join(f"host=127.0.0.1:{server.port}" for server in servers)
    more = "".join(f"&{name}={value}" for name, value in options.items())
    return f"postgresql+psycopg://{USER}@/{database}?{hosts}{more}"


@contextmanager
def primary_and_standby() -> Iterator[tuple[PostgreSqlServer, PostgreSqlServer]]:
    """Give a running primary, and a synchronous standby of it; both are gone at the end."""
    if not (BIN / "postgres").exists():
        missing("PostgreSQL 15", "apt-get install postgresql-15")
    if not os.geteuid() and shutil.which("setpriv") is None:
        missing("setpriv", "apt-get install util-linux")
    with folder_for_others() as folder:
        primary, standby = PostgreSqlServer(folder / "primary"), PostgreSqlServer(folder / "standby")
        with _running(primary, standby):
            yield primary, standby


@contextmanager
def _running(primary: PostgreSqlServer, standby: PostgreSqlServer) -> Iterator[None]:
    try:
        primary.install()
        primary.start()
        standby.copy(primary)
        standby.start()
        primary.execute(f"alter system set synchronous_standby_names = '{STANDBY}'")
        primary.execute("select pg_reload_conf()")
        wait_for(lambda: _is_synchronous(primary), 60, "the standby to be synchronous")
        yield
    finally:
        for server in (standby, primary):
            server.kill()


def _is_synchronous(primary: PostgreSqlServer) -> bool:
    return primary.execute("select sync_state from pg_stat_replication") == [("sync",)]


@contextmanager
def folder_for_others() -> Iterator[Path]:
    """Give a folder that other users than the tests' reach; those of pytest are for their owner only."""
    with tempfile.TemporaryDirectory(prefix="lcc-servers-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
