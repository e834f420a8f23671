"""Owners of documents in the feed: read with rows, and told when they change, on every store."""

import pytest
from little_lcc import (
    PID,
    Crash,
    LittleLcc,
    assert_books_balance,
    key,
    killed_before_its_commit,
    removal,
    url,
)
from test_directives import ask, asked, dig, scan, visit

from lcc_scrapy.cache import owners as module
from lcc_scrapy.cache.owners import owners_of, tell_owners
from lcc_scrapy.db.records import FEED, Ownership
from lcc_scrapy.domain.directives import NOBODY
from lcc_scrapy.domain.entries import furlkey


def places(lcc):
    """Return seq and owners_seq of the documents, by name."""
    return {row.curl.rpartition("/")[2]: (row.seq, row.owners_seq) for row in lcc.feed()}


def told(lcc, *names):
    with lcc.store.read() as tx:
        rows = {row.urlkey: row for row in tx.changes(0, 1000)}
        return dict(owners_of(tx, [rows[key(name)] for name in names]))


def own(lcc, name, *owners, pid=PID):
    with lcc.store.begin() as tx:
        tx.put_owners([Ownership(furlkey(pid, url(name)), owner, pid) for owner in owners])


def test_rows_name_their_owners_in_order_and_nobody_is_none(lcc):
    lcc.store_pages("a", "b", "c")
    own(lcc, "a", "zoe", "anna", NOBODY)
    own(lcc, "b", NOBODY)
    own(lcc, "c", "anna", pid=8)
    assert told(lcc, "a", "b", "c") == {key("a"): ["anna", "zoe"]}


def test_a_removal_names_the_owners_of_what_was_there(lcc):
    lcc.store_pages("a")
    own(lcc, "a", "anna")
    lcc.push(removal("a"))
    assert told(lcc, "a") == {key("a"): ["anna"]}


def test_a_row_names_the_first_owners_and_the_others_are_read_page_by_page(lcc, monkeypatch):
    monkeypatch.setattr(module, "TOLD", 2)
    lcc.store_pages("a", "b")
    own(lcc, "a", *"dcba", NOBODY)
    own(lcc, "b", "x")
    assert told(lcc, "a", "b") == {key("a"): ["a", "b"], key("b"): ["x"]}
    with lcc.store.read() as tx:
        lies_at = furlkey(PID, url("a"))
        assert tx.owners_behind(lies_at, "", 3) == ["a", "b", "c"]
        assert tx.owners_behind(lies_at, "c", 3) == ["d"]
        assert tx.owners_behind(key("never"), "", 3) == []
        assert tx.first_owners([], 3) == {}


def test_nobody_is_asked_for_owners_where_there_are_none(lcc, monkeypatch):
    lcc.store_pages("a")
    with lcc.store.read() as tx:
        monkeypatch.setattr(type(tx), "first_owners", None)
        assert not tx.has_owners()
        assert owners_of(tx, [lcc.cached("a")]) == {}


def test_a_new_owner_of_a_document_is_told_and_nothing_else_of_it_changes(lcc):
    lcc.store_pages("a", "b")
    before = lcc.cached("a")
    ask(lcc, asked("a", 1, "anna"))
    after = lcc.cached("a")
    assert (after.seq, after.owners_seq) == (3, 3)
    assert after == before.owned_anew(3)
    assert [row.seq for row in lcc.feed()] == [2, 3]


@pytest.mark.parametrize("again", [("a", 1, "anna"), ("a", 5, "anna"), ("a", 0, "anna"), ("a", 1)])
def test_who_was_an_owner_before_is_not_told_again_nor_is_nobody(lcc, again):
    lcc.store_pages("a")
    ask(lcc, asked("a", 1, "anna"))
    before = places(lcc)
    ask(lcc, asked(*again))
    assert places(lcc) == before


def test_owners_that_come_along_links_are_told_of_what_is_there(lcc):
    lcc.store_pages("b", "c")
    ask(lcc, asked("a", 1, "anna"))
    visit(lcc, "a")
    scan(lcc, a=["b", "d"])
    dig(lcc)
    assert places(lcc) == {"c": (2, 0), "a": (3, 0), "b": (4, 4)}


def test_a_document_that_is_new_or_changes_has_its_owners_with_it(lcc):
    ask(lcc, asked("a", 0, "anna"))
    visit(lcc, "a")
    assert places(lcc) == {"a": (1, 0)}
    ask(lcc, asked("a", 0, "bert"))
    lcc.store_pages("a")
    assert places(lcc) == {"a": (3, 2)}


def test_all_documents_at_a_url_are_told(lcc):
    lcc.store_pages("a", "b")
    with lcc.store.begin() as tx:
        assert tell_owners(tx, [furlkey(PID, url("a")), furlkey(PID, url("b")), key("never")]) == 2
        assert tell_owners(tx, []) == 0
    assert sorted(one for one, _ in places(lcc).values()) == [3, 4]


def test_a_kill_tells_nothing_of_owners_that_were_not_kept(lcc):
    lcc.store_pages("a")
    before = places(lcc)

    def own_and_tell(tx):
        tx.put_owners([Ownership(furlkey(PID, url("a")), "anna", PID)])
        tell_owners(tx, [furlkey(PID, url("a"))])

    with pytest.raises(Crash):
        killed_before_its_commit(lcc.store, own_and_tell)
    assert (places(lcc), told(lcc, "a")) == (before, {})
    with lcc.store.read() as tx:
        assert tx.peek(FEED) == 1
    ask(lcc, asked("a", 0, "anna"))
    assert (places(lcc), told(lcc, "a")) == ({"a": (2, 2)}, {key("a"): ["anna"]})


def test_books_balance_with_owners(store):
    lcc = LittleLcc(store)
    lcc.add()
    lcc.store_pages("a", "b")
    ask(lcc, asked("a", 2, "anna"), asked("b", 2, "bert"))
    assert_books_balance(store, lcc.files)
