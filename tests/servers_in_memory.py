"""Runs a command whose tests have a MariaDB and a PostgreSQL of their own, below ``/dev/shm``.

    python -m tests.servers_in_memory COMMAND…

A test on a database mostly waits for a disk, at every commit. These servers sync as often as any other; in memory it
takes no time. One that the environment names already, or that is not installed, is not started; none is where
memory is short. Tests of kills and power cuts have servers and folders of their own.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.database_servers import SERVERS
from tests.mariadb_server import mariadb_server
from tests.postgresql_servers import BIN, USER, PostgreSqlServer

MEMORY = Path("/dev/shm")
LEAST_MEMORY = 6 << 30
"""Bytes free there, below which tests use the servers that run already."""

MARIADB = (
    "--character-set-server=utf8mb4",  # as Debian has it
    "--innodb-log-file-size=96M",
    "--innodb-buffer-pool-size=128M",
    "--max-connections=400",
)
POSTGRESQL = {
    "max_connections": "300",
    "shared_buffers": "128MB",
    "max_wal_size": "512MB",
    "autovacuum": "on",
}


def has_memory(folder: Path = MEMORY) -> bool:
    """Tell whether databases fit into memory."""
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= LEAST_MEMORY


@contextmanager
def mariadb(folder: Path) -> Iterator[str]:
    """Give the URL of a MariaDB server; it is gone at the end."""
    with mariadb_server(folder / "mariadb", *MARIADB) as server:
        yield f"mysql+pymysql://root@127.0.0.1:{server.port}/"


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Give the URL of a PostgreSQL server; it is gone at the end."""
    server = PostgreSqlServer(folder / "postgresql")
    try:
        server.install()
        server.start(**POSTGRESQL)
        yield f"postgresql+psycopg://{USER}@127.0.0.1:{server.port}/postgres"
    finally:
        server.stop()  # killed, it would leave shared memory behind


INSTALLED = {
    "mariadb": (mariadb, lambda: shutil.which("mariadb-install-db")),
    "postgresql": (postgresql, (BIN / "postgres").exists),
}


@contextmanager
def servers() -> Iterator[dict[str, str]]:
    """Give the variables that name the servers that were started."""
    with ExitStack() as running:
        named = {}
        if has_memory():
            folder = Path(
                running.enter_context(tempfile.TemporaryDirectory(prefix="lcc-servers-", dir=MEMORY))
            )
            folder.chmod(0o755)  # PostgreSQL does not run as root
            for kind, (started, is_installed) in INSTALLED.items():
                if SERVERS[kind].variable not in os.environ and is_installed():
                    named[SERVERS[kind].variable] = running.enter_context(started(folder))
        yield named


def main(command: Sequence[str]) -> int:
    """Run a command to its end; returns its status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with servers() as named:
        return subprocess.run(command, env={**os.environ, **named}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
