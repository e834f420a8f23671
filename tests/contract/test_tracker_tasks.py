"""Which servers of the mirror tracker are scanned, when and by whom, on every store."""

import os
import socket
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from lcc_scrapy.apps.tracker.registry import NotTracked, Registry, ServerRefused
from lcc_scrapy.apps.tracker.rules.scans import CLAIM, BadRules, ScanRules
from lcc_scrapy.apps.tracker.store import rows_in
from lcc_scrapy.apps.tracker.tasks import ScannedElsewhere, Tasks
from lcc_scrapy.kit.claims import this_process

pytestmark = pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)

NOON = 43_200
"""Thursday 1 January 1970, 12 h in UTC."""


def tasks_of(store, owner="elsewhere/1"):
    return Tasks(store, owner, ZoneInfo("UTC"), 60.0, 3600.0)


@pytest.fixture
def tasks(store):
    registry = Registry(store)
    registry.add_domain("de", 1)
    registry.add_domain("uk", 1)
    registry.add_domain("fr", 1, "https://peer.example/")
    for number, url in enumerate(("ftp://a.de/", "http://a.de/pub/", "ftp://b.de/", "ftp://c.uk/")):
        registry.add_server(url, "uk" if "uk" in url else "de", NOON + number)
    return tasks_of(store)


def host(tasks, hostid):
    with tasks.store.read() as tx:
        return rows_in(tx).host(hostid)


def test_the_server_that_has_been_due_for_longest_is_claimed_and_of_one_host_only_one(tasks):
    assert tasks.claim_due("de", NOON - 1) is None
    first = tasks.claim_due("de", NOON + 9)
    assert (first.host.url, first.host.owner, first.host.claimed) == (
        "ftp://a.de/",
        "elsewhere/1",
        NOON + 9 + CLAIM,
    )
    assert tasks.claim_due("de", NOON + 9).host.url == "ftp://b.de/"  # http://a.de/pub/ is of the same host
    assert tasks.claim_due("de", NOON + 9) is None
    assert tasks.claim_due("uk", NOON + 9).host.url == "ftp://c.uk/"
    tasks.succeeded(first, NOON + 10)
    assert tasks.claim_due("de", NOON + 10).host.url == "http://a.de/pub/"
    assert tasks.domains() == ["de", "uk"]


def test_only_what_was_due_by_a_time_is_claimed_if_one_is_given(tasks):
    assert tasks.claim_due("uk", NOON + 9, NOON + 2) is None
    task = tasks.claim_due("uk", NOON + 9, NOON + 3)
    assert task.host.url == "ftp://c.uk/"
    its = host(tasks, 4)
    assert (its.claimed, its.due, its.owner) == (NOON + 9 + CLAIM, NOON + 9 + CLAIM, "elsewhere/1")
    tasks.released(task, NOON + 10)
    its = host(tasks, 4)
    assert (its.claimed, its.due, its.owner) == (0, NOON + 10, "")
    assert Registry(tasks.store).add_server("ftp://d.uk/", "uk", NOON).hostid == 5  # no number was used up


def test_a_claim_that_is_not_kept_is_taken_over_and_one_that_is_is_not(tasks):
    mine = tasks.claim_due("uk", NOON + 9)
    other = tasks_of(tasks.store, "elsewhere/2")
    assert tasks.keep(mine, NOON + 100)
    assert other.claim_due("uk", NOON + 9 + CLAIM) is None
    assert other.claim_due("uk", NOON + 100 + CLAIM - 1) is None
    assert other.claim_due("uk", NOON + 100 + CLAIM).host.hostid == mine.host.hostid
    assert not tasks.keep(mine, NOON + 101 + CLAIM)
    before = host(tasks, mine.host.hostid)
    tasks.succeeded(mine, NOON + 102 + CLAIM)
    tasks.failed(mine, "too late", NOON + 102 + CLAIM)
    tasks.released(mine, NOON + 102 + CLAIM)
    assert host(tasks, mine.host.hostid) == before


def test_the_claim_of_a_process_of_this_machine_that_has_ended_is_taken_over_at_once(tasks):
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    dead = tasks_of(tasks.store, f"{socket.gethostname()[:40]}/{pid}")
    lost = dead.claim_due("de", NOON)
    assert tasks.claim_due("uk", NOON + 9).host.url == "ftp://c.uk/"  # it is no server of this domain
    assert tasks.claim_due("de", NOON + 1).host.hostid == lost.host.hostid


def test_the_claim_of_a_process_that_lives_stays(tasks):
    living = tasks_of(tasks.store, this_process())
    task = living.claim_due("uk", NOON + 9)
    assert tasks.claim_due("uk", NOON + 10) is None
    with pytest.raises(ScannedElsewhere, match=f"by process {task.host.owner} now"):
        tasks.claim(task.host.hostid, NOON + 10)


def test_a_server_that_failed_is_tried_later_each_time_and_as_late_as_it_asks(tasks):
    when, waits = NOON, []
    for wait in (0.0, 0.0, 0.0, 7200.0):
        task = tasks.claim(3, when)
        tasks.failed(task, "no\nanswer", when, wait)
        waits.append(host(tasks, 3).due - when)
        when = host(tasks, 3).due
    assert waits == [60, 120, 240, 7200]
    assert (host(tasks, 3).failures, host(tasks, 3).error, host(tasks, 3).owner) == (4, "no answer", "")
    tasks.succeeded(tasks.claim(3, when), when)
    assert (host(tasks, 3).failures, host(tasks, 3).error, host(tasks, 3).due) == (0, "", when + 3600)


def test_a_scan_that_found_nothing_new_makes_a_server_fresh(tasks):
    tasks.succeeded(tasks.claim(3, NOON), NOON + 7, unchanged=True)
    assert host(tasks, 3).scanned == NOON + 7
    tasks.succeeded(tasks.claim(4, NOON), NOON + 7)
    assert host(tasks, 4).scanned == 0  # loading notes that


def test_outside_of_its_hours_no_server_is_scanned_but_on_demand(tasks):
    night = "1" * 6 + "0" * 18
    tasks.put_rules(ScanRules(4, timeofday=night * 7, timezone="Europe/Moscow", bandwidth=9, every=600))
    assert tasks.claim_due("uk", NOON + 9) is None
    assert (host(tasks, 4).due, host(tasks, 4).claimed) == (21 * 3600 + 1, 0)  # midnight in Moscow
    assert tasks.claim_due("uk", 21 * 3600 + 1).rules.bandwidth == 9
    task = tasks.claim(3, NOON)
    tasks.put_rules(replace(task.rules, every=600))
    tasks.released(task, NOON)
    tasks.succeeded(tasks.claim(3, NOON), NOON)
    assert host(tasks, 3).due == NOON + 600


def test_rules_are_kept_and_go_with_their_server(tasks):
    assert tasks.rules(1) == ScanRules(1)
    rules = ScanRules(1, 3600, "01" * 12, "Europe/Berlin", 10**12, private=True)
    tasks.put_rules(rules)
    tasks.put_rules(ScanRules(2, 60))
    assert (tasks.rules(1), tasks.rules(2)) == (rules, ScanRules(2, 60))
    for wrong in (ScanRules(1, every=59), ScanRules(1, timeofday="0" * 24)):
        with pytest.raises(BadRules):
            tasks.put_rules(wrong)
    assert tasks.rules(1) == rules
    Registry(tasks.store).remove_server(1)
    with tasks.store.read() as tx:
        assert rows_in(tx).scan_rules([1, 2]) == {1: ScanRules(1), 2: ScanRules(2, 60)}
    for refused in (lambda: tasks.rules(1), lambda: tasks.put_rules(rules), lambda: tasks.claim(1, NOON)):
        with pytest.raises(NotTracked):
            refused()


def test_servers_of_a_peers_domain_are_not_scanned_here(tasks):
    with tasks.store.begin() as tx:
        rows_in(tx).put_host(replace(host(tasks, 3), domain="fr", due=1))
    assert tasks.claim_due("fr", NOON) is None
    with pytest.raises(ServerRefused, match=r"scanned by the tracker https://peer.example"):
        tasks.claim(3, NOON)
    assert host(tasks, 3).owner == ""


def test_a_server_that_was_removed_meanwhile_is_nobodys(tasks):
    task = tasks.claim(3, NOON)
    Registry(tasks.store).remove_server(3)
    assert not tasks.keep(task, NOON)
    tasks.succeeded(task, NOON)
    assert host(tasks, 3) is None
