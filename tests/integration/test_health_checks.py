"""The health checks of ``contrib/compose``, of real servers: ``lcc health`` as the image asks it, and that of Redis."""

import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
import yaml

from tests import dockerfile
from tests.forkserver import run
from tests.harness import BIN, missing, wait_for
from tests.mariadb_server import mariadb_server
from tests.ports import free_port
from tests.redis_server import redis_of_a_test

COMPOSE = yaml.safe_load(dockerfile.FILE.with_name("compose.yaml").read_text())
SERVERS = {
    service["command"][0]: service["command"]
    for service in COMPOSE["services"].values()
    if service["image"] == "lcc" and "command" in service
}
CHECK = dockerfile.health_check()


def check(lcc, *words):
    command, *rest = CHECK
    return run([str(BIN / command), *rest, *words], env=lcc.environment, cwd=lcc.folder)


def is_healthy(lcc):
    return check(lcc).returncode == 0


def house(make_lcc, url):
    made = make_lcc(url, LCC_WEB_ENDPOINT=f"127.0.0.1:{free_port()}", LCC_STOP_TIMEOUT="5", LCC_WATCHDOG="7")
    made.settings["LCC_HEALTH_FILE"] = str(made.folder / "health")
    return made


@contextmanager
def at_work(lcc, command):
    """Run a server as a container does: the command is its process."""
    with (lcc.folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "lcc_scrapy.cli.main", *command],
            env=lcc.environment,
            cwd=lcc.folder,
            stderr=log,
        )
    try:
        yield process
        process.terminate()
        assert process.wait(300) == 0, (lcc.folder / "server.log").read_text()[-3000:]
    finally:
        process.kill()
        process.wait(300)


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_is_healthy_while_its_loop_runs(make_lcc, name):
    lcc = house(make_lcc, "sqlite")
    before = check(lcc)
    assert (before.returncode, "no server has given a sign of life" in before.stderr) == (1, True)
    with at_work(lcc, SERVERS[name]) as process:
        wait_for(lambda: is_healthy(lcc), 60, "health")
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: not is_healthy(lcc), 60, "the end of its health")
        process.send_signal(signal.SIGCONT)
        wait_for(lambda: is_healthy(lcc), 60, "health")


@pytest.mark.slow
def test_a_database_that_is_away_or_silent_is_found_within_seconds(make_lcc, tmp_path):
    with mariadb_server(tmp_path / "server") as database:
        lcc = house(make_lcc, database.url("lcc"))
        with at_work(lcc, ["web"]):
            wait_for(lambda: is_healthy(lcc), 60, "health")
            database.freeze()
            silent = check(lcc)
            database.thaw()
            assert (silent.returncode, silent.stderr) == (
                1,
                "lcc: error: the database said nothing for 10 s\n",
            )
            database.stop()
            away = check(lcc)
            assert (away.returncode, "the database does not answer" in away.stderr) == (1, True)
            wait_for(lambda: check(lcc, "--process-only").returncode == 0, 60, "signs of life")
            database.start()
            wait_for(lambda: is_healthy(lcc), 60, "health")


def test_without_a_health_file_it_says_what_to_set(make_lcc):
    lcc = make_lcc()
    done = check(lcc)
    assert (done.returncode, "LCC_HEALTH_FILE is empty" in done.stderr) == (1, True)


def test_a_redis_that_is_away_is_not_healthy():
    kind, *command = COMPOSE["services"]["redis"]["healthcheck"]["test"]
    assert kind == "CMD"
    with redis_of_a_test() as (client, _):
        found = client.get_connection_kwargs()
    if shutil.which(command[0]) is None:
        missing("redis-cli", "apt-get install redis-tools")
    where = {"there": (found["host"], found["port"]), "away": ("127.0.0.1", free_port())}
    status = {
        name: subprocess.run(
            [command[0], "-h", host, "-p", str(port), *command[1:]],
            capture_output=True,
            check=False,
            timeout=300,
        ).returncode
        for name, (host, port) in where.items()
    }
    assert status == {"there": 0, "away": 1}
