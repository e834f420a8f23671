"""The database servers that a command of tests gets in memory."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy

from tests import servers_in_memory
from tests.database_servers import SERVERS

ROOT = Path(__file__).parents[2]
SPEAKS = """
import sys, sqlalchemy
from tests.database_servers import SERVERS
for kind in SERVERS:
    with sqlalchemy.create_engine(SERVERS[kind].url).connect() as connection:
        where = "@@datadir" if kind == "mariadb" else "current_setting('data_directory')"
        print(SERVERS[kind].url, connection.exec_driver_sql(f"SELECT {where}").scalar())
sys.exit(3)
"""


@pytest.fixture
def started(monkeypatch):
    """Start nothing, and return the kinds that would have been; there is memory, and every server is installed."""
    asked = []

    def starting(kind):
        @contextmanager
        def start(_folder):
            asked.append(kind)
            yield f"{kind}://"

        return start

    monkeypatch.setattr(
        servers_in_memory, "INSTALLED", {kind: (starting(kind), lambda: True) for kind in SERVERS}
    )
    monkeypatch.setattr(servers_in_memory, "LEAST_MEMORY", 0)
    for server in SERVERS.values():
        monkeypatch.delenv(server.variable, raising=False)
    return asked


@pytest.mark.slow
def test_a_command_has_both_servers_in_memory_and_they_are_gone_after_it():
    if not servers_in_memory.has_memory():
        pytest.skip("too little memory")
    told = {server.variable for server in SERVERS.values()}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.servers_in_memory", sys.executable, "-c", SPEAKS],
        cwd=ROOT, env={name: value for name, value in os.environ.items() if name not in told},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 3, ran.stderr
    said = dict(line.split() for line in ran.stdout.splitlines())
    assert len(said) == 2
    for url, folder in said.items():
        assert folder.startswith("/dev/shm/lcc-servers-")
        assert not Path(folder).exists()
        with pytest.raises(sqlalchemy.exc.OperationalError):
            sqlalchemy.create_engine(url).connect()


def test_every_server_that_is_started_is_named(started):
    with servers_in_memory.servers() as named:
        assert named == {SERVERS[kind].variable: f"{kind}://" for kind in SERVERS}
    assert started == list(SERVERS)


def test_a_server_that_the_environment_names_is_not_started(started, monkeypatch):
    monkeypatch.setenv(SERVERS["mariadb"].variable, "mysql+pymysql://elsewhere/")
    with servers_in_memory.servers() as named:
        assert list(named) == [SERVERS["postgresql"].variable]
    assert started == ["postgresql"]


def test_a_server_that_is_not_installed_is_not_started(started, monkeypatch):
    monkeypatch.setitem(servers_in_memory.INSTALLED, "mariadb", (None, lambda: False))
    with servers_in_memory.servers() as named:
        assert list(named) == [SERVERS["postgresql"].variable]
    assert started == ["postgresql"]


def test_where_memory_is_short_the_servers_that_run_are_used(started, monkeypatch):
    monkeypatch.setattr(servers_in_memory, "LEAST_MEMORY", 1 << 60)
    with servers_in_memory.servers() as named:
        assert named == {}
    assert started == []
