"""Earlier contents: what is kept of them, for how long, and that they go with their document, on every store."""

import random
from dataclasses import replace

import pytest
from little_lcc import MACHINE, PID, START, assert_books_balance, key, removal, update

from lcc_scrapy.cache import versions
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.versions import Keep
from lcc_scrapy.ops.housekeeping import sweep
from lcc_scrapy.providers import registration

DAY = 86400


def keeping(lcc, count=0, age=0.0):
    lcc.policy = replace(lcc.policy, versions=Keep(count, age))


def changed(lcc, name="a", times=1, step=10):
    """Let a document change; every content names its own time."""
    for _ in range(times):
        lcc.now += step
        lcc.push(update(name))
        lcc.fetch(name, content(name, lcc.now))


def content(name, at):
    return f"{name} as of {at}".encode()


def kept(lcc, name="a"):
    """Return the times of the contents that are kept, newest first."""
    with lcc.store.read() as tx:
        found = tx.versions([key(name)]).get(key(name), [])
    assert all(lcc.files[one.fetched_fileid] == content(name, one.fetched_time) for one in found)
    return [one.fetched_time - START for one in found]


def files_to_delete(lcc):
    with lcc.store.read() as tx:
        return len(tx.files_to_delete(MACHINE, 1 << 60, 1000))


def swept(lcc):
    for _ in sweep(lcc.store, lcc.policy, lcc.now):
        assert_books_balance(lcc.store, lcc.files)


def test_nothing_is_kept_unless_it_is_asked_for(lcc):
    changed(lcc, times=3)
    assert (kept(lcc), files_to_delete(lcc)) == ([], 2)


def test_the_newest_are_kept_and_older_ones_go_to_the_delete_manager(lcc):
    keeping(lcc, 3)
    changed(lcc, times=6)
    assert kept(lcc) == [50, 40, 30]
    assert files_to_delete(lcc) == 2
    with lcc.store.read() as tx:
        assert {file.not_before - lcc.now for file in tx.files_to_delete(MACHINE, 1 << 60, 9)} == {3600, 3590}


def test_a_version_tells_what_its_row_told(lcc):
    keeping(lcc, 1)
    changed(lcc)
    before = lcc.cached("a")
    changed(lcc)
    with lcc.store.read() as tx:
        (version,) = tx.versions([key("a")])[key("a")]
    names = [name for name in version.__slots__ if hasattr(before, name)]
    assert len(names) == 15
    assert all(getattr(version, name) == getattr(before, name) for name in names)
    assert (version.replaced_time, version.docid) == (lcc.now, before.docid)
    assert lcc.cached("a").seq > version.seq


def test_content_that_is_confirmed_makes_no_version(lcc):
    keeping(lcc, 3)
    changed(lcc)
    lcc.push(update("a", subtype="lang: nl"))
    lcc.fetch("a", content("a", START + 10))
    lcc.push(update("a"))
    lcc.settle(lcc.not_modified(lcc.ticket("a")))
    assert (kept(lcc), files_to_delete(lcc)) == ([], 0)


def test_content_that_comes_back_is_stored_anew(lcc):
    keeping(lcc, 3)
    for body in (b"one", b"two", b"one"):
        lcc.push(update("a"))
        lcc.fetch("a", body)
    with lcc.store.read() as tx:
        found = tx.versions([key("a")])[key("a")]
    assert [lcc.files[one.fetched_fileid] for one in found] == [b"two", b"one"]
    assert len({one.fetched_fileid for one in found} | {lcc.cached("a").fetched_fileid}) == 3


def test_versions_are_not_charged(lcc):
    lcc.change(spacemax=25, filesmax=1)
    keeping(lcc, 5)
    changed(lcc, times=4)
    assert len(kept(lcc)) == 3
    assert (lcc.provider().fileused, lcc.provider().spaceused) == (1, len(content("a", lcc.now)))


@pytest.mark.parametrize("way", ["removal", "full set", "404", "provider"])
def test_versions_go_with_their_document_whoever_removes_it(lcc, way):
    keeping(lcc, 5, 30 * DAY)
    changed(lcc, times=3)
    changed(lcc, "b")
    if way == "removal":
        lcc.push(removal("a"))
    elif way == "full set":
        lcc.push(update("b"), full=True)
    elif way == "404":
        lcc.push(update("a"))
        lcc.settle(lcc.failed(lcc.ticket("a"), 404, final=True))
    else:
        registration.remove(lcc.store, PID, lcc.now, lcc.policy)
    assert lcc.cached("a") is None
    assert kept(lcc) == []
    assert files_to_delete(lcc) == (4 if way == "provider" else 3)


def test_a_document_that_comes_back_begins_without_versions(lcc):
    keeping(lcc, 5)
    changed(lcc, times=3)
    lcc.push(removal("a"))
    changed(lcc)
    assert kept(lcc) == []


def test_housekeeping_drops_what_is_too_old(lcc):
    keeping(lcc, age=10 * DAY)
    changed(lcc, times=4, step=3 * DAY)
    assert kept(lcc) == [9 * DAY, 6 * DAY, 3 * DAY]
    lcc.now = START + (6 + 10) * DAY - 1
    swept(lcc)
    assert kept(lcc) == [9 * DAY, 6 * DAY, 3 * DAY]
    lcc.now += 1
    swept(lcc)
    assert kept(lcc) == [9 * DAY, 6 * DAY]
    lcc.now += 6 * DAY
    swept(lcc)
    assert kept(lcc) == []
    assert lcc.documents() == ["a"]


def test_age_alone_is_bounded_too(lcc, monkeypatch):
    monkeypatch.setattr("lcc_scrapy.domain.versions.MOST", 4)
    keeping(lcc, age=10 * DAY)
    changed(lcc, times=7)
    assert kept(lcc) == [60, 50, 40, 30]


@pytest.mark.parametrize(("count", "left"), [(3, 3), (1, 1), (0, 0)])
def test_a_smaller_setting_holds_for_what_was_kept_before(lcc, count, left, monkeypatch):
    monkeypatch.setattr(versions, "PORTION", 2)
    keeping(lcc, 3)
    for name in "abcde":
        changed(lcc, name, 5)
    keeping(lcc, count)
    swept(lcc)
    assert [len(kept(lcc, name)) for name in "abcde"] == [left] * 5
    changed(lcc, "a")
    assert len(kept(lcc)) == min(count, left)


def test_portions_of_a_batch_lose_nothing(lcc, monkeypatch):
    monkeypatch.setattr(versions, "PORTION", 2)
    keeping(lcc, 2)
    for _ in range(4):
        lcc.now += 10
        lcc.push(*[update(name) for name in "abcde"])
        lcc.settle(*[lcc.served(one, content(one.row.curl[-1], lcc.now)) for one in lcc.tickets(limit=100)])
    assert [kept(lcc, name) for name in "abcde"] == [[30, 20]] * 5
    lcc.push(*[removal(name) for name in "abcde"])
    assert files_to_delete(lcc) == 20


@pytest.mark.soak_of("postgresql")
@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_every_file_has_one_owner(lcc, seed):
    """The books are checked after every step: each file is a document's, a version's, or doomed."""
    chance = random.Random(seed)
    lcc.policy = QueuePolicy(max_removal=1.0)
    for _ in range(60):
        lcc.now += chance.choice((1, 100, DAY))
        keeping(lcc, *chance.choice(((0, 0), (1, 0), (3, 0), (2, 2.0 * DAY), (0, 3.0 * DAY))))
        name = chance.choice("abcd")
        if chance.random() < 0.7:
            changed(lcc, name)
        elif chance.random() < 0.5:
            lcc.push(removal(name))
        else:
            for _ in sweep(lcc.store, lcc.policy, lcc.now):
                pass
        assert_books_balance(lcc.store, lcc.files)
        lcc.fetch_all()
