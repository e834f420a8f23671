"""What all tests stand on: databases, ports and programs of their own, whatever happened to the test before."""

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import sqlalchemy

from lcc_scrapy.db import schema
from lcc_scrapy.db.sql.store import SqlStore
from tests import forkserver, ports
from tests.conftest import Databases, SqliteStores
from tests.harness import Nginx, nginx, wait_for
from tests.integration.site import Visit, overlaps

__all__ = ["nginx"]
ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@pytest.fixture
def databases(tmp_path):
    made = Databases(tmp_path)
    yield made
    made.drop()


# --- databases ---------------------------------------------------------------------------------------


def test_a_database_whose_making_was_interrupted_is_not_given_to_the_next_test(databases, monkeypatch):
    """It had no tables: every later test of that process failed."""

    def interrupted(_url):
        raise TimeoutError

    with monkeypatch.context() as once:
        once.setattr(schema, "upgrade", interrupted)
        with pytest.raises(TimeoutError):
            databases.url("sqlite")
    assert schema.pending(databases.url("sqlite")) == []


def test_what_a_test_leaves_behind_is_not_met_by_the_next(databases):
    stores = SqliteStores(Path(sqlalchemy.make_url(databases.url("sqlite")).database))
    first = stores.fresh()
    left = first.begin()
    left.__enter__().set_info("fact", "of the first test, with the lock still held")
    second = stores.fresh()
    with second.begin() as tx:
        assert tx.info("fact") is None
        tx.set_info("fact", "of the second")
    left.__exit__(None, None, None)
    with second.read() as tx:
        assert tx.info("fact") == "of the second"
    stores.close()


def test_the_address_of_a_store_is_that_of_its_database(databases):
    stores = SqliteStores(Path(sqlalchemy.make_url(databases.url("sqlite")).database))
    stores.fresh()
    store = stores.fresh()
    with store.begin() as tx:
        tx.set_info("fact", "here")
    elsewhere = SqlStore(store.url)
    with elsewhere.read() as tx:
        assert tx.info("fact") == "here"
    elsewhere.close()
    stores.close()


# --- ports -------------------------------------------------------------------------------------------

TAKE = "from tests.ports import free_port; print(*(free_port() for _ in range(100)), flush=True); input()"


def test_processes_that_run_side_by_side_get_different_ports():
    takers = [
        subprocess.Popen(
            [sys.executable, "-c", TAKE], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(3)
    ]
    taken = [port for one in takers for port in one.stdout.readline().split()]
    for one in takers:
        one.communicate(b"\n")
    assert len(taken) == len(set(taken)) == 300


def test_the_ports_of_a_process_that_was_killed_are_free_again(monkeypatch):
    with subprocess.Popen(
        [sys.executable, "-c", TAKE], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as taker:
        port = int(taker.stdout.readline().split()[0])
        assert ports._claimed(port) is None
        taker.send_signal(signal.SIGKILL)
    claim = ports._claimed(port)
    assert claim is not None
    claim.close()


# --- programs ----------------------------------------------------------------------------------------


def environment(**more):
    return {**os.environ, **more}


def test_a_forked_program_says_and_ends_as_a_started_one(tmp_path):
    for words in (["status"], ["no-such-command"], ["-s", "wrong", "status"], ["--version"]):
        command, env = [str(BIN / "lcc"), *words], environment(LCC_DATA_DIR=str(tmp_path / "nothing"))
        assert forkserver.can_fork(command, env)
        forked = forkserver.run(command, env=env, cwd=tmp_path)
        started = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (forked.returncode, forked.stdout, forked.stderr) == (
            started.returncode,
            started.stdout,
            started.stderr,
        )


ENDS = {
    "a status": "sys.exit(3)",
    "a large status": "sys.exit(259)",
    "no status": "print('done', end='')",
    "a result": "return 4",
    "words": "sys.exit('words')",
    "an error": "raise ValueError('wrong')",
    "an interrupt": "raise KeyboardInterrupt",
    "a thread that goes on": "threading.Timer(0.2, print, ['late']).start()",
    "what is left to the end": "atexit.register(print, 'at the end')",
    "output that nobody reads": "print('x'); os.close(1)",
}


@pytest.mark.parametrize("how", ENDS)
def test_a_forked_program_ends_as_python_does(how, tmp_path):
    program = f"import atexit, os, sys, threading\ndef program():\n {ENDS[how]}\n"
    ways = ["sys.exit(program())", "from tests.forkserver import run_and_leave\nrun_and_leave(program)"]
    plain, left = (
        subprocess.run(
            [sys.executable, "-c", program + way],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=False, timeout=300,
        )
        for way in ways
    )  # fmt: skip
    assert (left.returncode, left.stdout) == (plain.returncode, plain.stdout)
    assert left.stderr.splitlines()[-1:] == plain.stderr.splitlines()[-1:]


def test_a_forked_program_has_its_own_folder_and_input_and_no_file_but_its_own(tmp_path):
    env = environment(LCC_DATA_DIR=str(tmp_path / "data"))
    assert forkserver.run([str(BIN / "lcc"), "init"], env=env, cwd=tmp_path).returncode == 0
    words = ["provider", "add", "7", "--password-file", "-", "--root", "http://www.example.org/"]
    added = forkserver.run([str(BIN / "lcc"), *words], env=env, cwd=tmp_path, text="secret\n")
    assert (added.returncode, added.stdout) == (0, "provider 7 added: http://www.example.org/\n")


def test_a_forked_program_is_signalled_and_waited_for_by_its_own_number(tmp_path):
    env = environment(LCC_DATA_DIR=str(tmp_path / "data"), LCC_UNS_ENDPOINTS="tcp:0:interface=127.0.0.1")
    assert forkserver.run([str(BIN / "lcc"), "init"], env=env, cwd=tmp_path).returncode == 0
    with (tmp_path / "log").open("wb") as log:
        process = forkserver.popen([str(BIN / "lcc"), "uns"], env=env, cwd=tmp_path, log=log)
    assert process.poll() is None

    def outputs() -> set[str]:
        return {os.readlink(f"/proc/{process.pid}/fd/{one}") for one in (1, 2)}

    wait_for(lambda: outputs() == {str(tmp_path / "log")}, what="the program's own outputs")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.kill()
    assert process.wait(300) == -signal.SIGKILL
    assert process.poll() == -signal.SIGKILL


@pytest.mark.parametrize("name", ["LD_PRELOAD", "PYTHONIOENCODING", "LC_ALL", "LANG"])
def test_what_python_looks_at_before_all_else_needs_a_real_start(name):
    command = [str(BIN / "lcc"), "status"]
    assert not forkserver.can_fork(command, environment(**{name: "other"}))
    assert not forkserver.can_fork(["/bin/ls"], environment())


def test_claims_of_ports_are_bounded_and_closed(monkeypatch):
    monkeypatch.setattr(ports, "HELD", len(ports._claims) + 2)
    oldest = ports._claims[0] if ports._claims else None
    found = [ports.free_port() for _ in range(4)]
    assert len(set(found)) == 4
    assert len(ports._claims) == ports.HELD
    assert oldest is None or oldest.fileno() == -1


# --- sites -------------------------------------------------------------------------------------------


def visit(start, end, *, cut=False):
    return Visit(1, "/a", {}, start, 1, end, cut)


def test_an_answer_that_is_under_way_when_the_next_request_comes_is_seen():
    assert not overlaps([visit(1, 2), visit(2, 3), visit(4, 0)])
    assert overlaps([visit(1, 2.001), visit(2, 3)])
    assert overlaps([visit(1, 9), visit(2, 3, cut=True), visit(4, 5)])
    assert overlaps([visit(1, 0), visit(2, 3)])
    assert not overlaps([visit(1, 9, cut=True), visit(2, 3)]), "who knows when its client went away?"


def test_the_log_of_the_web_server_has_a_line_for_every_answer_that_somebody_has(nginx: Nginx, tmp_path):
    (tmp_path / "page").write_text("a page")
    nginx.start({"site": tmp_path})
    for number in range(1, 300):
        with urllib.request.urlopen(f"http://127.0.0.1:{nginx.ports['site']}/page", timeout=300) as answer:
            assert answer.read() == b"a page"
        assert len(nginx.log("site")) == number
