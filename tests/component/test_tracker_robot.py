"""The robot without a network: what becomes of scans that fail, that meet a defect, or that another process has taken over."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from zoneinfo import ZoneInfo

import pytest

from lcc_scrapy.apps.tracker import robot as robots
from lcc_scrapy.apps.tracker.effort import CannotScan, Effort
from lcc_scrapy.apps.tracker.entries import Directory
from lcc_scrapy.apps.tracker.listed import Listed, Unchanged
from lcc_scrapy.apps.tracker.registry import Registry
from lcc_scrapy.apps.tracker.robot import Robot
from lcc_scrapy.apps.tracker.rules.scans import ScanRules
from lcc_scrapy.apps.tracker.scanning import Scanned
from lcc_scrapy.apps.tracker.settings import ScanLimits
from lcc_scrapy.apps.tracker.spool import Files
from lcc_scrapy.apps.tracker.store import rows_in
from lcc_scrapy.apps.tracker.tasks import Tasks
from lcc_scrapy.kit.work import at_once
from tests.sqlite_store import sqlite_store

NOW = 1000.0
TREE = [Directory((), [(b"1", b"a")], [], [], [])]


class Scanning:
    """Stands for the scanner: what each host gets is an error to raise, a listing, or something to wait for."""

    def __init__(self, folder, **by_host):
        self.folder, self.by_host, self.asked = folder, by_host, []

    async def scan(self, asked, now):
        self.asked.append(asked)
        found = self.by_host[asked.place.host.split(".")[0]]
        if asyncio.iscoroutinefunction(found):
            await found()
            found = TREE
        if isinstance(found, Exception):
            raise found
        if isinstance(found, Unchanged):
            return found
        return Scanned(Listed("list", (found,), "v"), {}, Effort(ScanLimits()), Files(self.folder))


@pytest.fixture
def store():
    made = sqlite_store()
    Registry(made).add_domain("de", 1)
    return made


def run(store, scanner, *hosts, what=Robot.once, owner="me/1"):
    for host in hosts:
        Registry(store).add_server(f"ftp://{host}.de/", "de", 1)
    tasks = Tasks(store, owner, ZoneInfo("UTC"), 60.0, 3600.0)
    told = []

    async def ran():
        robot = Robot(store, tasks, scanner, at_once, at_once, told=told.append, now=lambda: NOW)
        await what(robot)

    with ThreadPoolExecutor(1) as apart:
        apart.submit(asyncio.run, ran()).result()
    return {one.host.url[6:].partition(".")[0]: one for one in told}


def host(store, hostid):
    with store.read() as tx:
        return rows_in(tx).host(hostid)


def test_each_server_ends_in_its_own_way(store, tmp_path, caplog):
    scanner = Scanning(
        tmp_path,
        good=TREE,
        bad=CannotScan("no", 5000.0),
        odd=ZeroDivisionError(),
        same=Unchanged("ls-lR.gz", "w"),
    )
    told = run(store, scanner, "good", "bad", "odd", "same")
    assert {name: one.error for name, one in told.items()} == {
        "good": "", "bad": "no", "odd": "a defect of the tracker: see its log", "same": "",
    }  # fmt: skip
    assert [host(store, one).due for one in (1, 2, 3, 4)] == [4600, 6000, 1060, 4600]
    assert [host(store, one).dirs for one in (1, 2, 3, 4)] == [1, 0, 0, 0]
    assert [host(store, one).scanned for one in (1, 2, 3, 4)] == [1000, 0, 0, 1000]
    assert (host(store, 1).adapter, host(store, 1).validator) == ("list", "v")
    assert told["good"].loaded.files == 1
    assert told["same"].unchanged
    assert {host(store, one).owner for one in (1, 2, 3, 4)} == {""}
    assert "cannot be scanned" in caplog.text


def test_the_next_scan_knows_the_validator_of_the_last_one(store, tmp_path):
    scanner = Scanning(tmp_path, good=TREE)
    run(store, scanner, "good")
    run(store, scanner, what=lambda robot: robot.these([1]))
    assert [(one.known.adapter, one.known.validator) for one in scanner.asked] == [("", ""), ("list", "v")]


def test_a_scan_whose_server_another_process_took_over_is_not_loaded(store, tmp_path):
    other = Tasks(store, "other/2", ZoneInfo("UTC"), 60.0, 3600.0)

    async def taken_over():
        other.claim(1, int(NOW) + 10_000)

    told = run(store, Scanning(tmp_path, good=taken_over), "good")
    assert told["good"].error == "another process scans it now"
    assert (host(store, 1).owner, host(store, 1).dirs, host(store, 1).failures) == ("other/2", 0, 0)


def test_a_scan_that_lost_its_server_ends_at_once(store, tmp_path, monkeypatch):
    monkeypatch.setattr(robots, "CLAIM", 0.03)
    ended = []

    async def for_ever():
        Tasks(store, "other/2", ZoneInfo("UTC"), 60.0, 3600.0).claim(1, int(NOW) + 10_000)
        try:
            await asyncio.sleep(600)
        finally:
            ended.append(True)

    told = run(store, Scanning(tmp_path, good=for_ever), "good")
    assert told["good"].error == "another process scans it now"
    assert ended == [True]


def test_at_most_four_servers_are_scanned_at_a_time(store, tmp_path):
    now, most = 0, 0

    async def counted():
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(5):
            await asyncio.sleep(0)
        now -= 1

    names = [f"h{number}" for number in range(9)]
    told = run(store, Scanning(tmp_path, **dict.fromkeys(names, counted)), *names)
    assert len(told) == 9
    assert most == robots.AT_A_TIME


def test_a_server_that_waits_for_another_domain_is_scanned_before_the_robot_ends(store, tmp_path):
    registry, now, most = Registry(store), 0, 0
    registry.add_domain("uk", 1)
    registry.add_server("ftp://same.de/", "de", 1)
    registry.add_server("http://same.de/", "uk", 1)
    registry.add_server("http://same.de/other/", "uk", 1)

    async def long():
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(50):
            await asyncio.sleep(0)
        now -= 1

    scanner = Scanning(tmp_path, same=long)
    run(store, scanner)
    assert sorted(str(one.place) for one in scanner.asked) == [
        "ftp://same.de/", "http://same.de/", "http://same.de/other/",
    ]  # fmt: skip
    assert [host(store, one).dirs for one in (1, 2, 3)] == [1, 1, 1]
    assert most == 1


def test_what_becomes_due_while_servers_are_scanned_once_is_left_for_the_next_time(store, tmp_path):
    rules = Tasks(store, "me/1", ZoneInfo("UTC"), 60.0, 3600.0)
    times = iter(range(1000, 100_000, 600))

    async def none():
        await asyncio.sleep(0)

    async def once_as_time_passes(robot):
        robot.now = lambda: float(next(times))
        rules.put_rules(ScanRules(1, every=60))
        await robot.once()

    scanner = Scanning(tmp_path, good=none, bad=CannotScan("no"))
    run(store, scanner, "good", "bad", what=once_as_time_passes)
    assert sorted(one.place.host for one in scanner.asked) == ["bad.de", "good.de"]


def test_one_that_is_ended_gives_its_servers_back(store, tmp_path):
    async def until_begun(robot):
        begun = asyncio.Event()

        async def for_ever():
            begun.set()
            await asyncio.sleep(600)

        robot.scanner.by_host["good"] = for_ever
        running = asyncio.ensure_future(robot.forever())
        await begun.wait()
        assert host(store, 1).owner == "me/1"
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    assert run(store, Scanning(tmp_path), "good", what=until_begun) == {}
    assert (host(store, 1).owner, host(store, 1).due, host(store, 1).failures) == ("", 1000, 0)
