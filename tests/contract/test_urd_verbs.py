"""Interests of owners, on every store."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from lcc_scrapy.db.sql import urd_verbs
from lcc_scrapy.db.sql.urd_verbs import NOT_BEGUN
from lcc_scrapy.domain.urds import EVERYTHING, Keyword, Method, Process, Urd
from tests import memory_store
from tests.memory_store import MemoryStore

SITE = "http://www.example.org/"
WORDS = (Keyword("ibm"), Keyword("größe 漢字", 3), Keyword("'\\%", 4))
PLAIN = Urd(0, "anna", SITE, keywords=WORDS)
RICH = Urd(
    0, "bert", SITE + "a", 600_000, 97_876_750_000, 443, "https", Method.PULL, Process.RULE, 'any("a", "b")\n',
    4, 2, 10**12, 2**53, keywords=WORDS[:1],
)  # fmt: skip


def add(store, *urds):
    with store.begin() as tx:
        return tx.add_urds(urds)


def put(store, *urds):
    with store.begin() as tx:
        return tx.put_urds(urds)


def remove(store, *urdids):
    with store.begin() as tx:
        return tx.remove_urds(urdids)


def all_of(store):
    with store.read() as tx:
        return tx.all_urds(0, 1000)


def test_urds_are_numbered_and_come_back_as_they_were(store):
    assert add(store) == []
    first, second = add(store, PLAIN, RICH)
    assert (first, second) == (replace(PLAIN, urdid=1, revision=1), replace(RICH, urdid=2, revision=2))
    third = replace(PLAIN, urdid=3, revision=3, expires=None, keywords=())
    assert add(store, replace(PLAIN, keywords=())) == [third]
    with store.read() as tx:
        assert tx.all_urds(0, 9) == [first, second, third]
        assert tx.all_urds(1, 1) == [second]
        assert tx.urds_of("anna", 0, 9) == [first, third]
        assert tx.urds_of("anna", 1, 9) == [third]
        assert tx.urds_of("Anna", 0, 9) == []
        assert tx.urds([3, 1, 4, 3]) == {1: first, 3: third}
        assert (tx.count_urds(), tx.count_urds("anna"), tx.count_urds("x")) == (3, 2, 0)


def test_a_urd_is_replaced_with_its_keywords_and_gets_the_next_revision(store):
    one, other = add(store, PLAIN, RICH)
    changed = replace(one, threshold=5, keywords=WORDS[1:])
    assert put(store, changed) == [replace(changed, revision=3)]
    assert all_of(store) == [replace(changed, revision=3), other]
    assert put(store) == []


def test_a_number_that_was_put_is_given_to_nobody_else(store):
    assert [one.urdid for one in put(store, replace(PLAIN, urdid=70), replace(PLAIN, urdid=9))] == [70, 9]
    assert [one.urdid for one in add(store, PLAIN)] == [71]
    put(store, replace(PLAIN, urdid=5))
    remove(store, 71)
    assert [one.urdid for one in add(store, PLAIN, PLAIN)] == [72, 73]


def test_who_goes_on_behind_a_revision_gets_every_change_and_removal_once(store):
    one, two, three = add(store, PLAIN, RICH, PLAIN)
    (again,) = put(store, one)
    with store.read() as tx:
        assert tx.urd_revision() == 4
        assert tx.urds_changed(0, 9) == [two, three, again]
        assert tx.urds_changed(2, 1) == [three]
        assert tx.urds_removed(0, 9) == []
    assert remove(store, 3, 1, 99, 3) == [again, three]
    assert remove(store, 99) == []
    with store.read() as tx:
        assert tx.urd_revision() == 6
        assert tx.urds_changed(4, 9) == []
        assert tx.urds_removed(4, 9) == [(5, 1), (6, 3)]
        assert tx.urds_removed(5, 9) == tx.urds_removed(4, 9)[1:] == [(6, 3)]
        assert tx.urds_removed(0, 1) == [(5, 1)]
        assert tx.all_urds(0, 9) == [two]


def test_keywords_go_with_their_urd(store):
    (one,) = add(store, PLAIN)
    remove(store, one.urdid)
    put(store, replace(one, keywords=()))
    assert all_of(store)[0].keywords == ()


def test_removals_are_known_for_a_number_of_revisions(store, monkeypatch):
    for module in (urd_verbs, memory_store):
        monkeypatch.setattr(module, "REMOVALS_KEPT", 3)
    add(store, *[PLAIN] * 4)
    remove(store, 1)
    remove(store, 2)
    remove(store, 3, 4)
    with store.read() as tx:
        assert tx.urds_removed(0, 9) == [(6, 2), (7, 3), (8, 4)]


def test_a_revision_is_committed_before_every_later_one(store):
    def work(turn):
        for _ in range(5):
            with store.begin() as tx:
                tx.add_urds([PLAIN] * turn)
                tx.remove_urds([one.urdid for one in tx.urds_of("anna", 0, 1)])

    with ThreadPoolExecutor(1 if isinstance(store, MemoryStore) else 4) as threads:
        list(threads.map(work, [1, 2, 3, 4]))
    with store.read() as tx:
        assert tx.urd_revision() == 5 * 10 + 5 * 4
        numbers = [one.revision for one in tx.urds_changed(0, 999)] + [
            at for at, _ in tx.urds_removed(0, 999)
        ]
        assert len(set(numbers)) == len(numbers) == 30 + 20
        assert tx.count_urds() == 30


# --- when pages are asked for ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "due"),
    [
        ({}, None),
        ({"timing": 1000}, 1000),
        ({"timing": 1000, "lastcheck": 5}, 1005),
        ({"timing": 1000, "method": Method.PUSH}, None),
        ({"timing": 1000, "uri": EVERYTHING}, None),
        ({"timing": 1000, "expires": 900}, 900),
        ({"timing": 1000, "expires": 1001}, 1000),
    ],
)
def test_a_page_is_due_when_its_time_has_passed(store, values, due):
    add(store, replace(PLAIN, **values))
    with store.read() as tx:
        assert [one.urdid for one in tx.due_urds(2**60, 9)] == ([] if due is None else [1])
        assert due is None or (tx.due_urds(due, 9) and not tx.due_urds(due - 1, 9))


def test_the_earliest_come_first_and_a_check_puts_them_off(store):
    late, soon, same = add(store, *(replace(PLAIN, timing=1000, lastcheck=at) for at in (500, 100, 100)))
    with store.begin() as tx:
        assert [one.urdid for one in tx.due_urds(1500, 9)] == [2, 3, 1]
        assert tx.due_urds(1500, 2) == [soon, same]
        tx.note_checks([2, 3, 99], 1400)
        tx.note_checks([], 9)
    with store.read() as tx:
        assert tx.due_urds(1500, 9) == [late]
        assert [one.urdid for one in tx.due_urds(2400, 9)] == [1, 2, 3]
        assert tx.urds([2])[2] == replace(soon, lastcheck=1400)
        assert tx.urd_revision() == 3


# --- running over cached documents -------------------------------------------------------------------


def test_new_and_changed_urds_are_to_be_run_from_the_first_document(store):
    one, two = add(store, PLAIN, RICH)
    with store.begin() as tx:
        assert tx.urds_to_run(9) == [(one, NOT_BEGUN), (two, NOT_BEGUN)]
        tx.note_run([1, 2], b"k" * 16)
        tx.note_run([1], None)
    (again,) = put(store, one)
    with store.begin() as tx:
        assert tx.urds_to_run(9) == [(again, NOT_BEGUN), (two, b"k" * 16)]
        assert tx.urds_to_run(1) == [(again, NOT_BEGUN)]
        tx.note_run([2, 3], None)
        assert tx.urds_to_run(9) == []


def test_a_run_of_an_earlier_revision_is_not_noted(store):
    (one,) = add(store, PLAIN)
    (again,) = put(store, one)
    with store.begin() as tx:
        tx.note_run([one.revision], None)
        assert tx.urds_to_run(9) == [(again, NOT_BEGUN)]


def test_a_check_begins_no_run(store):
    add(store, PLAIN)
    with store.begin() as tx:
        tx.note_run([1], None)
        tx.note_checks([1], 5)
        assert tx.urds_to_run(9) == []
