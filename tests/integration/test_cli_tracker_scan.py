"""``lcc tracker scan`` as its operator runs it: servers of several kinds, several processes, signals."""

import json
import signal
from contextlib import ExitStack
from itertools import pairwise

import pytest

from tests.forkserver import popen
from tests.harness import BIN, wait_for
from tests.little_ftp import LittleFtp

GOOD = b"-rw-r--r-- 1 ftp ftp 5 Jan  1 2020 a\r\ndrwxr-xr-x 2 ftp ftp 4096 Jan  1 2020 s\r\n\r\ns:\r\n-rw-r--r-- 1 ftp ftp 3 Jan  1 2020 b\r\n"


@pytest.fixture
def lcc(make_lcc):
    made = make_lcc()
    made.lcc("tracker", "domain", "add", "de")
    return made


def add(lcc, url, *rules):
    lcc.lcc("tracker", "server", "add", url, "--domain", "de")
    (hostid,) = lcc.sql(f"select hostid from tr_host where url = '{url}'")[0]
    if rules:
        lcc.lcc("tracker", "server", "set", str(hostid), *rules)
    return str(hostid)


def begun(lcc, *words):
    with (lcc.folder / "scan.log").open("ab") as log:
        return popen(
            [str(BIN / "lcc"), "tracker", "scan", *words], env=lcc.environment, cwd=lcc.folder, log=log
        )


def test_a_server_is_scanned_when_that_is_permitted_and_its_replica_is_found(lcc):
    with LittleFtp({"LIST -lR": GOOD}) as one, LittleFtp({"LIST -lR": GOOD}) as other:
        hostid = add(lcc, one.url)
        done = lcc.lcc("tracker", "scan", "--once", check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            f"lcc: server {hostid}: its address is private: see `lcc tracker server set --allow-private`\n"
        )
        assert one.commands == []
        assert lcc.lcc("tracker", "scan", "--once").stdout == ""  # it is tried again later
        rules = json.loads(lcc.lcc("tracker", "server", "set", hostid, "--allow-private", "--json").stdout)
        assert rules["private"] is True
        done = lcc.lcc("tracker", "scan", "--server", hostid)
        assert done.stdout.startswith(f"server {hostid}: 2 directories, 2 files, 0 links by list; ")
        add(lcc, other.url, "--allow-private")
        found = json.loads(lcc.lcc("tracker", "scan", "--once", "--json").stdout)
        assert (found["url"], found["dirs"], found["error"]) == (other.url, 2, "")
        assert (
            lcc.lcc("tracker", "lookup", f"{one.url}s/b").stdout.split("\t")[0].strip() == f"{other.url}s/b"
        )


def test_a_scan_that_fails_changes_nothing_but_the_error(lcc):
    with LittleFtp({"LIST -lR": GOOD}) as server:
        hostid = add(lcc, server.url, "--allow-private")
        lcc.lcc("tracker", "scan", "--once")
        before = lcc.sql("select first, dirs, scanned from tr_host"), lcc.sql("select * from tr_dir")
        server.end = b"426 broken\r\n"
        done = lcc.lcc("tracker", "scan", "--server", hostid, check=False)
        assert done.returncode == 1
        assert (
            lcc.sql("select first, dirs, scanned from tr_host"),
            lcc.sql("select * from tr_dir"),
        ) == before
        (error, failures) = lcc.sql("select error, failures from tr_host")[0]
        assert (error, failures) == ("the transfer broke off: the server answers '426 broken'", 1)


@pytest.mark.slow
def test_several_processes_scan_each_server_once_and_one_of_a_host_at_a_time(lcc):
    with ExitStack() as stack:
        sessions: list[list[float]] = []
        servers = [stack.enter_context(LittleFtp({"LIST -lR": GOOD}, sessions=sessions)) for _ in range(8)]
        for server in servers:
            add(lcc, server.url, "--allow-private")
        processes = [begun(lcc) for _ in range(3)]
        try:
            wait_for(
                lambda: lcc.sql("select count(*) from tr_host where scanned > 0") == [(8,)], what="scans"
            )
            for process in processes:
                process.send_signal(signal.SIGTERM)
            assert [process.wait(300) for process in processes] == [0, 0, 0]
        finally:
            for process in processes:
                process.kill()
        assert [server.commands.count("LIST -lR") for server in servers] == [1] * 8
        assert all(one[1] < other[0] for one, other in pairwise(sorted(sessions)))
    assert lcc.sql("select count(*) from tr_host where owner <> '' or failures > 0") == [(0,)]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
def test_a_scan_that_is_ended_is_begun_again_by_the_next_process(how, lcc):
    with LittleFtp({"LIST -lR": GOOD}, silent_at="LIST") as server:
        add(lcc, server.url, "--allow-private")
        process = begun(lcc)
        try:
            wait_for(lambda: "LIST -lR" in server.commands, what="the scan")
            process.send_signal(how)
            assert process.wait(300) == (0 if how == signal.SIGTERM else -how)
        finally:
            process.kill()
        assert bool(lcc.sql("select owner from tr_host")[0][0]) == (how == signal.SIGKILL)
        server.silent_at = ""
        assert lcc.lcc("tracker", "scan", "--once").stdout.startswith("server 1: 2 directories")


WRONG_RULES = (
    (("1", "--hours", "25-26"), "hours run from 0 to 24"),
    (("1", "--every", "soon"), "expected for example 90d"),
    (("1", "--every", "5s"), "--every: at least 60 seconds"),
    (("1", "--timezone", "Mars/Olympus"), "is no time zone"),
    (("1", "--hours", "0" * 168), "no hour is permitted"),
    (("7", "--bandwidth", "1M"), "there is no server 7"),
)


def test_rules_that_cannot_be_are_refused_in_one_line(lcc):
    add(lcc, "ftp://ftp.example.org/")
    for words, why in WRONG_RULES:
        done = lcc.lcc("tracker", "server", "set", *words, check=False)
        assert done.returncode in {1, 2}
        assert why in done.stderr.splitlines()[-1]
    assert lcc.sql("select count(*) from tr_rules") == [(0,)]
    done = lcc.lcc("tracker", "scan", "--server", "9", check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "lcc: error: there is no server 9: see `lcc tracker server list`\n",
    )
