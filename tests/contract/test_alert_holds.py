"""Versions that outlive their document while alerts on them wait, on every store."""

import random
from dataclasses import replace

import pytest
from alerting import alert, deliver
from little_lcc import (
    MACHINE,
    PID,
    Crash,
    assert_books_balance,
    key,
    killed_before_its_commit,
    removal,
    update,
)
from test_versions import DAY, changed, content, files_to_delete, keeping, kept

from lcc_scrapy.cache import versions
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.ops.housekeeping import sweep
from lcc_scrapy.providers import registration
from lcc_scrapy.queue.unit_of_work import UnitOfWork


def swept(lcc):
    for _ in sweep(lcc.store, lcc.policy, lcc.now):
        assert_books_balance(lcc.store, lcc.files)


def alerted(lcc, name="a", **values):
    return alert(lcc.store, key(name), lcc.cached(name).seq, **values)


@pytest.mark.parametrize("way", ["removal", "full set", "404"])
def test_the_last_content_of_a_document_stays_while_an_alert_on_it_waits(lcc, way):
    changed(lcc)
    changed(lcc, "b")
    alerted(lcc)
    if way == "removal":
        lcc.push(removal("a"), removal("b"))
    elif way == "full set":
        lcc.push(update("c"), full=True)
    else:
        for name in "ab":
            lcc.push(update(name))
            lcc.settle(lcc.failed(lcc.ticket(name), 404, final=True))
    assert lcc.documents() == []
    assert (kept(lcc), kept(lcc, "b"), files_to_delete(lcc)) == ([10], [], 1)
    assert (lcc.provider().fileused, lcc.provider().spaceused) == (0, 0)


def test_of_the_earlier_contents_those_with_an_alert_stay(lcc):
    keeping(lcc, 5)
    changed(lcc)
    alerted(lcc)
    changed(lcc, times=3)
    lcc.push(removal("a"))
    assert (kept(lcc), files_to_delete(lcc)) == ([10], 3)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_content_with_an_alert_outlives_the_number_that_is_kept(lcc, count):
    keeping(lcc, count)
    changed(lcc)
    alerted(lcc)
    changed(lcc, times=4)
    newest = [40, 30][:count]
    assert (kept(lcc), files_to_delete(lcc)) == ([*newest, 10], 3 - count)


def test_an_alert_is_about_the_content_that_was_there_though_the_place_in_the_feed_rose(lcc):
    keeping(lcc, 1)
    changed(lcc)
    alerted(lcc)
    lcc.push(update("a", subtype="lang: nl"))
    lcc.fetch("a", content("a", lcc.now))
    changed(lcc, times=3)
    assert kept(lcc) == [30, 10]


def test_what_is_delivered_goes_with_the_next_housekeeping_and_not_before(lcc):
    changed(lcc)
    number = alerted(lcc)
    second = alert(lcc.store, key("a"), lcc.cached("a").seq, owner="bert")
    lcc.push(removal("a"))
    deliver(lcc.store, number)
    swept(lcc)
    assert kept(lcc) == [10]
    deliver(lcc.store, second)
    assert kept(lcc) == [10]
    swept(lcc)
    assert (kept(lcc), files_to_delete(lcc)) == ([], 1)


def test_what_is_delivered_of_a_removed_document_goes_though_versions_are_kept(lcc):
    keeping(lcc, 3, 30 * DAY)
    changed(lcc, times=2)
    number = alerted(lcc)
    lcc.push(removal("a"))
    assert kept(lcc) == [20]
    deliver(lcc.store, number)
    swept(lcc)
    assert kept(lcc) == []


@pytest.mark.parametrize("gone", [True, False])
def test_nothing_is_held_for_longer_than_the_setting_says(lcc, gone):
    lcc.policy = replace(lcc.policy, alert_hold=2.0 * DAY)
    changed(lcc)
    alerted(lcc)
    lcc.now += 10
    if gone:
        lcc.push(removal("a"))
    else:
        lcc.push(update("a"))
        lcc.fetch("a", b"new")
    lcc.now += 2 * DAY - 1
    swept(lcc)
    assert kept(lcc) == [10]
    lcc.now += 1
    swept(lcc)
    assert kept(lcc) == []


def test_with_a_hold_of_nothing_versions_go_with_their_document(lcc):
    lcc.policy = replace(lcc.policy, alert_hold=0.0)
    changed(lcc)
    alerted(lcc)
    lcc.push(removal("a"))
    assert (kept(lcc), files_to_delete(lcc)) == ([], 1)


def test_a_document_that_comes_back_has_what_was_held_as_its_versions(lcc):
    keeping(lcc, 3)
    changed(lcc)
    alerted(lcc)
    lcc.push(removal("a"))
    changed(lcc, times=2)
    assert kept(lcc) == [20, 10]


def test_removing_a_provider_overrides_every_hold(lcc, monkeypatch):
    monkeypatch.setattr(versions, "PORTION", 2)
    for name in "abcde":
        changed(lcc, name)
        alerted(lcc, name)
    lcc.push(*[removal(name) for name in "abcd"])
    assert files_to_delete(lcc) == 0
    registration.remove(lcc.store, PID, lcc.now, lcc.policy)
    assert [kept(lcc, name) for name in "abcde"] == [[]] * 5
    assert files_to_delete(lcc) == 5


def test_a_kill_between_two_steps_of_a_removed_provider_leaves_nothing_behind(lcc, monkeypatch):
    monkeypatch.setattr(versions, "PORTION", 1)
    for name in "abc":
        changed(lcc, name)
        alerted(lcc, name)
    lcc.push(removal("a"), removal("b"), removal("c"))
    for _ in range(3):
        with pytest.raises(Crash):
            registration.remove(lcc.store, PID, lcc.now, lcc.policy, progress=_crash)
        assert_books_balance(lcc.store, lcc.files)
    registration.remove(lcc.store, PID, lcc.now, lcc.policy)
    assert (lcc.provider(), files_to_delete(lcc)) == (None, 3)


def _crash(*_):
    raise Crash


def test_a_kill_in_the_middle_of_housekeeping_loses_and_repeats_nothing(lcc, monkeypatch):
    monkeypatch.setattr(versions, "PORTION", 1)
    numbers = {}
    for name in "abcd":
        changed(lcc, name)
        numbers[name] = alerted(lcc, name)
    lcc.policy = replace(lcc.policy, max_removal=1.0)
    lcc.push(*[removal(name) for name in "abcd"])
    for name in "abc":
        deliver(lcc.store, numbers[name])
    steps = versions.trim(lcc.store, PID, lcc.now, lcc.policy)
    while sum(bool(kept(lcc, name)) for name in "abcd") == 4:
        next(steps)
    steps.close()
    assert sum(bool(kept(lcc, name)) for name in "abcd") == 3
    assert_books_balance(lcc.store, lcc.files)
    swept(lcc)
    assert [kept(lcc, name) for name in "abcd"] == [[], [], [], [40]]
    assert files_to_delete(lcc) == 3


def test_a_kill_before_the_commit_of_a_removal_changes_nothing(lcc):
    changed(lcc)
    alerted(lcc)

    def remove(tx):
        batch = UnitOfWork(tx, [PID], [key("a")], lcc.now, lcc.policy)
        batch.remove(key("a"), 1, "a test")
        batch.flush()

    with pytest.raises(Crash):
        killed_before_its_commit(lcc.store, remove)
    assert (lcc.documents(), kept(lcc), files_to_delete(lcc)) == (["a"], [], 0)
    lcc.push(removal("a"))
    assert (lcc.documents(), kept(lcc)) == ([], [10])


def test_alerts_are_looked_for_only_where_some_wait(lcc, monkeypatch):
    changed(lcc)
    number = alerted(lcc)
    deliver(lcc.store, number)
    with lcc.store.read() as tx:
        assert tx.open_alerts([key("a")]) == set()
        assert tx.open_alerts([]) == set()
        with monkeypatch.context() as patched:
            patched.setattr(type(tx), "_rows", None, raising=False)
            assert tx.open_alerts([key("a")]) == set()


def test_open_alerts_are_found_by_document_and_place(lcc):
    changed(lcc)
    changed(lcc, "b")
    first = lcc.cached("a").seq
    for owner in ("anna", "bert"):
        alerted(lcc, owner=owner)
    changed(lcc)
    alerted(lcc)
    deliver(lcc.store, alerted(lcc, "b"))
    with lcc.store.read() as tx:
        assert tx.open_alerts([key("a"), key("b"), key("c")]) == {
            (key("a"), first),
            (key("a"), lcc.cached("a").seq),
        }
        assert tx.present([key("a"), key("c")]) == {key("a")}


@pytest.mark.soak_of("postgresql")
@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_every_file_has_one_owner_with_alerts_too(lcc, seed):
    chance = random.Random(seed)
    lcc.policy = QueuePolicy(max_removal=1.0, alert_hold=3.0 * DAY)
    waiting = []
    for _ in range(60):
        lcc.now += chance.choice((1, 100, DAY))
        keeping(lcc, *chance.choice(((0, 0), (1, 0), (3, 0), (2, 2.0 * DAY))))
        name = chance.choice("abcd")
        if chance.random() < 0.5:
            changed(lcc, name)
            waiting.append(alerted(lcc, name))
        elif chance.random() < 0.5:
            lcc.push(removal(name))
        elif waiting and chance.random() < 0.6:
            deliver(lcc.store, waiting.pop(chance.randrange(len(waiting))))
        else:
            for _ in sweep(lcc.store, lcc.policy, lcc.now):
                pass
        assert_books_balance(lcc.store, lcc.files)
        lcc.fetch_all()
    for number in waiting:
        deliver(lcc.store, number)
    lcc.policy = replace(lcc.policy, versions=QueuePolicy().versions)
    swept(lcc)
    with lcc.store.read() as tx:
        assert tx.totals()["versions"] == 0
        assert tx.version_files(MACHINE, range(1000)) == set()
