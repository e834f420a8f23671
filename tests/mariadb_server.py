"""A MariaDB server of a test's own, in a folder of its own, which may be stopped, killed or frozen."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql

from tests.harness import free_port, missing, wait_for

SMALL = ("--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M", "--innodb-fast-shutdown=1")

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
"""Of a server, which is another user and may not write where that says."""


class MariaDbServer:
    """One server below ``folder``; whoever asks on its port of 127.0.0.1 is root without a password."""

    user = "root"
    """As whom it runs where the tests run as root."""

    def __init__(self, folder: Path) -> None:
        self.folder = self._folder = folder
        self._as_root = [f"--user={self.user}"] if os.geteuid() == 0 else []
        self._daemon = _program("mariadbd")
        self.command = [self._daemon, "--no-defaults", *self._as_root, f"--datadir={folder}/data"]
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self._install()

    def url(self, database: str) -> str:
        """Make an empty database and return its SQLAlchemy URL."""
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"create database {database}")
        return f"mysql+pymysql://root@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Execute a statement; returns its rows."""
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def _install(self) -> None:
        installed = subprocess.run(
            [
                _program("mariadb-install-db"),
                "--no-defaults",
                *self._as_root,
                f"--datadir={self._folder}/data",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                *SMALL,
            ],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert installed.returncode == 0, installed.stdout + installed.stderr

    def start(self, *options: str) -> None:
        """Start it, with options of its own, and wait until it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *self.command,
                    "--socket=socket",  # in the data directory: a path from the root may be too long
                    f"--port={self.port}",
                    "--bind-address=127.0.0.1",
                    "--innodb-flush-log-at-trx-commit=1",
                    *SMALL,
                    *options,
                ],
                env=ENVIRONMENT,
                stdout=log,
                stderr=log,
            )
        wait_for(lambda: self._answers() or self._process.poll() is not None, 120, "MariaDB")
        assert self._process.poll() is None, (self._folder / "log").read_text(errors="replace")[-3000:]

    def _answers(self) -> bool:
        try:
            self._connect().close()
        except pymysql.err.OperationalError:
            return False
        return True

    def _connect(self) -> pymysql.Connection:
        return pymysql.connect(host="127.0.0.1", port=self.port, user="root", autocommit=True)

    def stop(self, how: int = signal.SIGTERM) -> None:
        """Stop it; returns when the process has ended."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(300)
            self._process = None

    def freeze(self) -> None:
        """Let it keep its connections and say nothing more."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if found is None:
        missing(name, "apt-get install mariadb-server-core")
    return str(found)


@contextmanager
def mariadb_server(folder: Path, *options: str) -> Iterator[MariaDbServer]:
    """Give a running server, with options of its own; it is gone at the end."""
    folder.mkdir()
    server = MariaDbServer(folder)
    server.start(*options)
    try:
        yield server
    finally:
        server.stop(signal.SIGKILL)
