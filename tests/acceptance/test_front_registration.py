"""Sites register at a front, and push to it; sub-LCCs die, fronts die, and several fronts run at a time."""

import json
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from harness import BIN, wait_for

from lcc_scrapy.apps.registration.front import FrontRegistrations
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.domain.providers import FRONT_FIRST_PID
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.open_subs import OpenSubs
from tests.front_registration import SUBS, Server, front_house

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

SITES = ("one", "two", "three")


@pytest.fixture
def house(tmp_path, nginx):
    with front_house(tmp_path, nginx, SITES) as made:
        yield made


@pytest.fixture
def server(house):
    made = Server(house, "server")
    yield made
    made.stop()


def lcc_push(house, config, *words):
    done = subprocess.run(
        [str(BIN / "lcc-push"), *words, "--config", str(config)], env=house.environment, cwd=house.folder,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def rows_of(lcc):
    lines = lcc.lcc("select", "--format", "jsonl").stdout.splitlines()
    return {row["curl"]: row["pid"] for row in map(json.loads, lines) if row.get("curl")}


def test_sites_register_and_push_at_the_front_and_each_sub_lcc_fetches_its_own(house, server):
    for name in SUBS:
        house.subs[name].start_uns()
    house.start_uns()
    homes = {}
    for name in SITES:
        (house.docroot(name) / "page.html").write_text(f"hello of {name}")
        config = house.folder / f"{name}.ini"
        begin = ("init", f"http://127.0.0.1:{server.port}/", str(house.docroot(name)), house.site(name))
        lcc_push(house, config, *begin)
        assert f"127.0.0.1:{house.uns_port}" in config.read_text(), "they push through the front"
        lcc_push(house, config)
        pid = int(next(line for line in config.read_text().splitlines() if line.startswith("pid"))[6:])
        homes[name] = pid, house.home_of(pid)
    assert sorted(pid for pid, _ in homes.values()) == [*range(FRONT_FIRST_PID, FRONT_FIRST_PID + 3)]
    assert {home for _, home in homes.values()} == set(SUBS)
    for name, (pid, home) in homes.items():
        lcc = house.subs[home]
        lcc.stop_uns()
        lcc.start_once_more()
        assert rows_of(lcc) == {f"{house.site(name)}page.html": pid}


def register(house, server, name):
    """Register a site; returns its id, its password and its sub-LCC."""
    status, given = server.post("", site=house.site(name))
    assert status == 201, given
    house.prove(name, given)
    shown = {"password": str(given["password"])}
    assert server.post(f"/{given['pid']}/activate", **shown)[0] == 200
    return given["pid"], shown, house.home_of(given["pid"])


def test_a_sub_lcc_that_is_down_is_later_for_its_providers_only(house, server):
    known = [register(house, server, name) for name in SITES]
    (pid, shown, _), *others = sorted(known, key=lambda one: one[2] != "b")
    house.relay.cut()
    ask = {"folder": house.site("two"), **shown}
    status, told = server.post(f"/{pid}/roots", **ask)
    assert (status, told["error"]) == (503, "database-away")
    for other, its, _ in others:
        assert server.post(f"/{other}/roots", folder=house.site("two"), **its)[0] == 201
    fresh = [server.post("", site=house.site("one")) for _ in range(4)]
    assert [status for status, _ in fresh] == [201] * 4
    assert Counter(house.home_of(given["pid"]) for _, given in fresh) == {"a": 2, "c": 2}
    wait_for(lambda: "left out: sub-LCC b" in server.log.read_text(), 60, "a look at sub-LCC b")
    house.relay.mend()
    wait_for(lambda: server.post(f"/{pid}/roots", **ask)[0] == 201, 60, "sub-LCC b")
    wait_for(lambda: "sub-LCC b answers again" in server.log.read_text(), 60, "its log")


def test_two_fronts_at_a_time_give_out_no_pid_twice(house, server):
    other = Server(house, "other")
    with ThreadPoolExecutor(6) as threads:
        asked = [
            threads.submit(one.post, "", site=house.site("one")) for _ in range(15) for one in (server, other)
        ]
    told = [one.result() for one in asked]
    other.stop()
    assert [status for status, _ in told] == [201] * 30
    pids = {given["pid"] for _, given in told}
    assert len(pids) == 30
    waiting = [row["pid"] for name in SUBS
               for row in json.loads(house.subs[name].lcc("registration", "list", "--json").stdout)]  # fmt: skip
    assert sorted(waiting) == sorted(pids)


def test_a_front_killed_between_the_two_databases_leaves_a_pid_that_is_forgotten(house):
    dying = Server(house, "dying", dies=True)
    with pytest.raises((OSError, ValueError)):
        dying.post("", site=house.site("one"))
    assert dying.process.wait(300) == -9
    lost = FRONT_FIRST_PID
    assert house.home_of(lost) in SUBS
    server = Server(house, "server")
    assert server.post(f"/{lost}/activate", password="x" * 40)[0] == 401
    pid, _, home = register(house, server, "one")
    server.stop()
    assert pid == lost + 1
    later = [10**10]
    with (
        closing(Directory(house.front_url)) as directory,
        closing(OpenSubs(directory, silence=60)) as subs,
    ):
        subs.look()
        FrontRegistrations(directory, subs, RegistrationRules(), now=lambda: later[0]).tidy()
        assert directory.assigned([lost, pid]) == {pid: home}


def test_what_keeps_it_from_starting_is_one_clear_line(house):
    for settings, what in (
        ({"LCC_REGISTRATION": "off"}, "LCC_REGISTRATION is off"),
        ({"LCC_PUSH_ENDPOINTS": ""}, "LCC_PUSH_ENDPOINTS is empty"),
        ({"LCC_PUSH_ENDPOINTS": "0.0.0.0:0"}, "in plain text"),
        ({"LCC_FRONT_DATABASE_URL": f"sqlite:///{house.folder}/none"}, "run `lcc front init`"),
    ):
        done = subprocess.run(
            [str(BIN / "lcc"), "front", "registration"], env={**house.environment, **settings}, check=False,
            cwd=house.folder, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert (done.returncode, what in done.stderr.splitlines()[-1]) == (2, True), done.stderr
