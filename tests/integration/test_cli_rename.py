"""``lcc provider rename-root --give-up`` as operators run it: beside one that waits."""

import subprocess
import time

import pytest
from front_house import PROGRAM
from test_cli import SITE, House, one_error

from lcc_scrapy.db.records import WorkerRow
from lcc_scrapy.queue.leases import take_turns
from tests.harness import wait_for

RENAME = ("provider", "rename-root", "7", SITE, "https://new.example.org/")


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    made.lcc("init")
    made.add()
    return made


def test_what_is_not_under_way_cannot_be_given_up(house):
    assert "no root of provider 7 is being renamed" in one_error(house.lcc(*RENAME, "--give-up", status=1))
    house.lcc(*RENAME, "--give-up", "--dry-run", status=2)
    assert house.json("audit", "--provider", "7")[0]["action"] == "provider add"


@pytest.mark.slow
def test_one_that_waits_for_a_fetch_is_given_up_and_ends(house):
    house.push("x")
    store = house.store()
    with store.begin() as tx:
        tx.put_worker(WorkerRow("1/9", 1, 1, 4711, time.time(), time.time() + 3600, 64))
        take_turns(tx, "1/9", time.time(), limit=9, only=7)
    with subprocess.Popen(
        [*PROGRAM, *RENAME], env=house.environment, cwd=house.folder, stderr=subprocess.PIPE, text=True
    ) as waiting:
        try:
            wait_for(lambda: house.json("provider", "show", "7")["state"] == "moving", 300)
            given_up = house.lcc(*RENAME, "--give-up")
            _, said = waiting.communicate(timeout=300)
        finally:
            waiting.kill()
    store.close()
    assert given_up.stdout == f"{SITE} stays: 0 documents changed\n"
    assert waiting.returncode == 1
    assert said.splitlines()[-1].endswith("the renaming of a root of provider 7 was given up")
    shown = house.json("provider", "show", "7")
    assert (shown["state"], shown["roots"], shown["nurlproc"]) == ("active", [SITE], 1)
    assert house.json("audit", "--provider", "7")[0]["detail"].endswith("given up")
