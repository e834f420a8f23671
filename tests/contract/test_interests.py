"""How interests are added, changed, removed and read on, on every store."""

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from lcc_scrapy.annotation import interests as module
from lcc_scrapy.annotation import profile_feed
from lcc_scrapy.annotation.interests import Imported, Interests
from lcc_scrapy.annotation.profile_feed import ProfileChanges, profile_changes
from lcc_scrapy.db.sql import urd_verbs
from lcc_scrapy.domain.urd_rules import BadUrd, NoSuchUrd, TooManyUrds
from lcc_scrapy.domain.urds import Keyword, Urd
from tests import memory_store
from tests.memory_store import MemoryStore

SITE = "http://www.example.org/"
ANNA = Urd(0, "anna", SITE, keywords=(Keyword("ibm"),))
BERT = replace(ANNA, owner="bert")


@pytest.fixture
def interests(store):
    return Interests(store)


def numbers(urds):
    return [one.urdid for one in urds]


def test_a_urd_is_checked_added_and_found(interests):
    made = interests.add(replace(ANNA, uri="HTTP://www.EXAMPLE.org", urdid=77))
    assert (made.urdid, made.uri) == (1, SITE)
    assert interests.get(1) == interests.get(1, "anna") == made
    with pytest.raises(BadUrd, match="urgency 9"):
        interests.add(replace(ANNA, urgency=9))
    assert interests.of(None, 0, 9) == [made]


def test_an_owner_sees_and_changes_its_own_only(interests):
    interests.add(ANNA)
    theirs = interests.add(BERT)
    assert numbers(interests.of("anna", 0, 9)) == [1]
    assert (interests.count("anna"), interests.count()) == (1, 2)
    for attempt in (
        lambda: interests.get(2, "anna"),
        lambda: interests.change(2, lambda one: replace(one, owner="anna"), "anna"),
        lambda: interests.remove([1, 2], "anna"),
        lambda: interests.get(3, "anna"),
    ):
        with pytest.raises(NoSuchUrd, match=r"no URD [23] of anna"):
            attempt()
    assert numbers(interests.of(None, 0, 9)) == [1, 2]
    assert interests.get(2) == theirs


def test_a_change_is_a_new_revision_only_if_it_changes_something(interests, store):
    made = interests.add(ANNA)
    assert interests.change(1, lambda one: replace(one, uri="http://www.example.org:80/")) == made
    changed = interests.change(1, lambda one: replace(one, threshold=7))
    assert changed == replace(made, threshold=7, revision=2)
    with pytest.raises(BadUrd):
        interests.change(1, lambda one: replace(one, depth=-1))
    assert interests.get(1) == changed


def test_one_owner_cannot_have_any_number(interests):
    for _ in range(2):
        interests.add(ANNA, most=2)
    with pytest.raises(TooManyUrds, match="anna has 2 URDs"):
        interests.add(ANNA, most=2)
    interests.add(BERT, most=2)
    interests.remove([1])
    assert interests.add(ANNA, most=2).urdid == 4


def test_of_two_that_add_the_last_one_only_one_does(interests, store):
    def add(_):
        try:
            return interests.add(ANNA, most=5).urdid
        except TooManyUrds:
            return 0

    with ThreadPoolExecutor(1 if isinstance(store, MemoryStore) else 6) as threads:
        made = list(threads.map(add, range(12)))
    assert sorted(made) == [0] * 7 + [1, 2, 3, 4, 5]


def test_removal_is_of_all_or_none(interests):
    interests.add(ANNA)
    interests.add(ANNA)
    with pytest.raises(NoSuchUrd, match=r"no URD 9$"):
        interests.remove([1, 9])
    assert numbers(interests.of(None, 0, 9)) == [1, 2]
    assert numbers(interests.remove([2, 1])) == [1, 2]
    assert interests.of(None, 0, 9) == []


# --- files -------------------------------------------------------------------------------------------


def test_a_file_is_taken_in_in_batches_and_a_second_time_changes_nothing(interests, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 3)
    urds = [replace(ANNA, urdid=n, threshold=n) for n in (9, 2, 4, 7, 5)] + [BERT] * 4
    told = []
    assert interests.take_in(urds, told.append) == Imported(9, 0, 0)
    assert told == [3, 5, 8, 9]
    assert numbers(interests.of(None, 0, 99)) == [2, 4, 5, 7, 9, 10, 11, 12, 13]
    again = interests.of(None, 0, 99)
    assert interests.take_in(again) == Imported(0, 0, 9)
    assert interests.of(None, 0, 99) == again
    changed = [replace(one, threshold=99) if one.urdid in {4, 5} else one for one in again]
    assert interests.take_in(changed) == Imported(0, 2, 7)


def test_new_ones_get_no_number_of_those_that_have_one(interests):
    interests.take_in([ANNA, replace(BERT, urdid=1), ANNA])
    assert [(one.urdid, one.owner) for one in interests.of(None, 0, 9)] == [
        (1, "bert"),
        (2, "anna"),
        (3, "anna"),
    ]


def test_when_a_page_was_asked_for_is_not_set_back(interests, store):
    interests.take_in([replace(ANNA, urdid=1, lastcheck=5)])
    with store.begin() as tx:
        tx.note_checks([1], 50)
    assert interests.take_in([replace(ANNA, urdid=1, lastcheck=5)]) == Imported(0, 0, 1)
    assert interests.take_in([replace(ANNA, urdid=1, lastcheck=70)]) == Imported(0, 1, 0)
    assert interests.get(1).lastcheck == 70


@pytest.mark.parametrize(
    ("urds", "why"),
    [
        ((BERT, replace(ANNA, urdid=5), replace(ANNA, urdid=5)), "id 5 stands there twice"),
        ((BERT, replace(BERT, urdid=1)), "id 1 is that of a URD of anna, not of bert"),
    ],
    ids=["twice", "of another owner"],
)
def test_a_file_with_a_wrong_number_is_not_taken(interests, store, urds, why):
    before = interests.add(ANNA)
    with pytest.raises(BadUrd, match=why):
        interests.take_in(urds)
    assert interests.of(None, 0, 9) == [before]
    with store.read() as tx:
        assert tx.urd_revision() == 1


def test_an_import_that_is_cut_leaves_nothing(interests, monkeypatch, store):
    monkeypatch.setattr(module, "BATCH", 1)

    def cut(done):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interests.take_in([replace(ANNA, urdid=9), ANNA, ANNA], cut)
    assert interests.of(None, 0, 9) == []
    assert profile_changes(store, 0) == ProfileChanges(0)


# --- what changed ------------------------------------------------------------------------------------


def follow(store, known, seen, limit=profile_feed.PAGE):
    """Do what a reader does; returns the revision that it came to."""
    while True:
        changes = profile_changes(store, seen, limit)
        if changes.afresh:
            known.clear()
        for urdid in changes.removed:
            known.pop(urdid, None)
        known.update({one.urdid: one for one in changes.changed})
        seen = changes.revision
        if not changes.more:
            return seen


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_a_reader_that_goes_on_has_what_there_is(interests, store, limit):
    chance = random.Random(limit)
    known, seen = {}, 0
    for _ in range(12):
        for _ in range(chance.randrange(6)):
            there = numbers(interests.of(None, 0, 999))
            kind = chance.choice(["add", "change", "remove"])
            if kind == "add" or not there:
                interests.add(ANNA)
            elif kind == "change":
                interests.change(chance.choice(there), lambda one: replace(one, threshold=one.threshold + 1))
            else:
                interests.remove([chance.choice(there)])
        seen = follow(store, known, seen, limit)
        assert known == {one.urdid: one for one in interests.of(None, 0, 999)}
        assert profile_changes(store, seen) == ProfileChanges(seen)


def test_no_change_is_false_and_every_other_answer_true(interests, store):
    assert not profile_changes(store, 0)
    interests.add(ANNA)
    assert profile_changes(store, 0)
    interests.remove([1])
    assert profile_changes(store, 1).removed == (1,)
    assert profile_changes(store, 1)
    assert not profile_changes(store, 2)


def test_a_page_has_as_many_changes_as_it_may_and_the_last_one_says_so(interests, store):
    for _ in range(5):
        interests.add(ANNA)
    interests.remove([5])
    first, second = profile_changes(store, 0, 2), profile_changes(store, 2, 2)
    assert (numbers(first.changed), first.revision, first.more) == ([1, 2], 2, True)
    assert (numbers(second.changed), second.removed, second.revision) == ([3, 4], (), 4)
    assert profile_changes(store, 0, 9) == ProfileChanges(6, tuple(interests.of(None, 0, 9)))
    interests.remove([1, 2, 3, 4])
    assert profile_changes(store, 5, 2) == ProfileChanges(7, removed=(5, 1), more=True)


def test_who_was_away_for_too_long_or_before_a_restore_begins_afresh(interests, store, monkeypatch):
    for one in (urd_verbs, memory_store, profile_feed):
        monkeypatch.setattr(one, "REMOVALS_KEPT", 3)
    for _ in range(6):
        interests.add(ANNA)
    assert not profile_changes(store, 0).afresh
    known = {}
    seen = follow(store, known, 0)
    interests.remove([2, 3, 4])
    assert not profile_changes(store, seen).afresh
    interests.remove([5])
    for stale in (1, seen, 1000):
        assert profile_changes(store, stale).afresh
        assert follow(store, known, stale) == 10
        assert sorted(known) == [1, 6]


# --- what owners reach -------------------------------------------------------------------------------


def withdrawn(store):
    with store.begin() as tx:
        owners = [one.owner for one in tx.withdrawals(9)]
        for owner in owners:
            tx.end_withdrawal(owner)
    return owners


def test_who_asks_for_less_reaches_less(interests, store):
    interests.add(replace(ANNA, timing=60_000, depth=2))
    interests.add(replace(BERT, timing=60_000, depth=2))
    interests.change(1, lambda one: replace(one, threshold=5))
    assert withdrawn(store) == []
    interests.change(1, lambda one: replace(one, depth=1))
    assert withdrawn(store) == ["anna"]
    interests.take_in([replace(one, depth=0) for one in interests.of("bert", 0, 9)])
    assert withdrawn(store) == ["bert"]
    interests.remove([1])
    assert withdrawn(store) == ["anna"]
