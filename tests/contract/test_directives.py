"""Directives on every store: who asks for what, how far that goes, and nothing is fetched twice for it."""

from dataclasses import replace

import pytest
from little_lcc import PID, SITE, START, key, update, url

from lcc_scrapy.db.records import DocumentLink, Ownership
from lcc_scrapy.domain.directives import NOBODY, Directive
from lcc_scrapy.domain.entries import ANY_TYPE, Origin, furlkey
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.spidering import directives as module
from lcc_scrapy.spidering.directives import Directives, NotTaken, territories
from lcc_scrapy.spidering.submitting import Progress, Read, Spidering, Terms

NOWHERE = Terms(depth=-1)


def asked(name, depth=0, *owners, parent=""):
    return Directive(HttpUrl.parse(url(name)), parent and url(parent), depth, owners)


def spider(lcc, terms=NOWHERE):
    return Spidering(lcc.store, PID, terms, lcc.policy)


def ask(lcc, *several, terms=NOWHERE):
    return Directives(spider(lcc, terms)).ask(several, lcc.now)


def dig(lcc, terms=NOWHERE):
    return Directives(spider(lcc, terms)).dig(lcc.now)


def scan(lcc, **links):
    """Read what was fetched; each document links to the names given for it."""
    spidering = spider(lcc)
    look = spidering.look(lcc.now)
    read = [
        Read(
            one, tuple(DocumentLink(url(n), "a") for n in links.get(one.row.furl.removeprefix(SITE), ())), ()
        )
        for one in look.documents
    ]
    return spidering.advance(look, read, look.upto, lcc.now)


def visit(lcc, *names, served_type="text/html"):
    for name in names:
        ticket = next(one for one in lcc.tickets() if one.row.furl == url(name))
        lcc.settle(lcc.served(ticket, name.encode(), served_type=served_type))


def owners(lcc, name):
    lies_at = furlkey(PID, url(name))
    with lcc.store.read() as tx:
        return {one.owner: one.reach for one in tx.owners_of([lies_at]).get(lies_at, ())}


def names(lcc):
    return [name for name, _ in lcc.waiting()]


# --- verbs ------------------------------------------------------------------------------------------


def test_owners_come_back_as_they_were_put_in_and_are_replaced_by_url_and_name(lcc):
    a, b = furlkey(PID, url("a")), furlkey(PID, url("b"))
    rows = [Ownership(a, "Zoë", PID, 1, due=True), Ownership(a, "anna", PID), Ownership(b, NOBODY, PID, 3)]
    with lcc.store.begin() as tx:
        tx.put_owners(rows)
        tx.put_owners([])
        tx.put_owners([replace(rows[1], reach=9)])
        rows[1] = replace(rows[1], reach=9)
    with lcc.store.read() as tx:
        assert tx.owners_of([a, b, key("never")]) == {a: rows[:2], b: rows[2:]}
        pairs = [(a, "anna"), (a, "Anna"), (b, "anna"), (b, NOBODY)]
        assert tx.ownerships(pairs) == {(a, "anna"): rows[1], (b, NOBODY): rows[2]}
        assert (tx.owners_of([]), tx.ownerships([])) == ({}, {})


def test_more_pairs_than_fit_into_a_statement_are_found(lcc):
    rows = [Ownership(furlkey(PID, url(str(n))), f"owner{n % 7}", PID, n) for n in range(1000)]
    with lcc.store.begin() as tx:
        tx.put_owners(rows)
    with lcc.store.read() as tx:
        found = tx.ownerships((row.furlkey, row.owner) for row in rows)
    assert found == {(row.furlkey, row.owner): row for row in rows}


def test_only_interests_that_go_on_become_due_and_come_by_url(lcc):
    keys = sorted(furlkey(PID, url(name)) for name in "abc")
    with lcc.store.begin() as tx:
        tx.put_owners(
            [Ownership(one, "anna", PID, reach) for one, reach in zip(keys, (1, 0, 2), strict=True)]
        )
        tx.put_owners([Ownership(furlkey(8, url("a")), "anna", 8, 5, due=True)])
        tx.let_dig([*keys, key("never")])
    with lcc.store.read() as tx:
        assert [one.furlkey for one in tx.to_dig(PID, 10)] == [keys[0], keys[2]]
        assert [one.furlkey for one in tx.to_dig(PID, 1)] == [keys[0]]
        assert [one.pid for one in tx.to_dig(8, 10)] == [8]


def test_owners_go_with_their_provider(lcc):
    key_of_a = furlkey(PID, url("a"))
    with lcc.store.begin() as tx:
        tx.put_owners([Ownership(key_of_a, "anna", PID)])
        tx.delete_provider(PID)
        assert tx.owners_of([key_of_a]) == {}


# --- asking -----------------------------------------------------------------------------------------


def test_what_is_asked_for_waits_once_with_all_its_owners_and_their_depths(lcc):
    assert ask(lcc, asked("a", 1, "anna"), asked("a", 2, "bert", "anna"), asked("a", 0, "bert")) == 1
    assert ask(lcc, asked("a", 1, "carla")) == 0
    assert names(lcc) == ["a"]
    assert lcc.queued("a", ANY_TYPE).origin == Origin.DIRECTIVE
    assert owners(lcc, "a") == {"anna": 2, "bert": 2, "carla": 1}
    visit(lcc, "a")
    assert lcc.cached("a").origin == Origin.DIRECTIVE
    assert lcc.tickets() == []


def test_what_nobody_is_named_for_is_asked_for_all_the_same(lcc):
    assert ask(lcc, asked("a", 1)) == 1
    assert owners(lcc, "a") == {NOBODY: 1}


def test_a_document_that_was_pushed_gets_owners_and_is_not_fetched_again(lcc):
    lcc.store_pages("a")
    before = lcc.cached("a")
    assert ask(lcc, asked("a", 0, "anna")) == 0
    told = replace(before, seq=before.seq + 1, owners_seq=before.seq + 1)
    assert (lcc.cached("a"), lcc.waiting(), owners(lcc, "a")) == (told, [], {"anna": 0})


def test_the_parent_is_noted_where_it_is_a_document(lcc):
    lcc.store_pages("index")
    ask(lcc, asked("a", parent="index"), asked("b", parent="never"))
    with lcc.store.read() as tx:
        rows = tx.spidered([furlkey(PID, url(name)) for name in "ab"])
        parents = {row.furl: (row.parent, row.depth) for row in rows.values()}
    assert parents == {url("a"): (key("index"), 0), url("b"): (None, 0)}


def test_a_url_that_failed_is_tried_again_when_somebody_asks(lcc):
    ask(lcc, asked("a", 0, "anna"))
    lcc.settle(lcc.failed(lcc.tickets()[0], 404, final=True))
    lcc.now += 1
    assert ask(lcc, asked("a", 0, "bert")) == 1
    assert lcc.errors() == []


@pytest.mark.parametrize("change", [{"state": State.DISABLED}, {"filesmax": 1}])
def test_directives_that_cannot_be_taken_change_nothing(lcc, change):
    lcc.change(**change)
    with pytest.raises(NotTaken):
        ask(lcc, asked("a", 1, "anna"), asked("b", 1, "anna"))
    assert (lcc.waiting(), owners(lcc, "a")) == ([], {})


def test_a_full_queue_takes_no_directives(lcc):
    lcc.push(*(update(str(n)) for n in range(5)))
    with pytest.raises(NotTaken, match="no room"):
        ask(lcc, asked("a"), terms=Terms(queue_max=5))


def test_full_sets_leave_what_was_asked_for_alone_and_a_push_makes_it_the_providers(lcc):
    ask(lcc, asked("a"), asked("b"))
    visit(lcc, "a")
    lcc.push(update("c"), full=True)
    assert (lcc.documents(), names(lcc)) == (["a"], ["b", "c"])
    lcc.push(update("a", b"news"), update("b", b"b"))
    lcc.fetch_all()
    assert {lcc.cached(name).origin for name in "ab"} == {Origin.PUSH}


def test_a_visit_leaves_a_document_to_those_who_asked_for_it(lcc):
    ask(lcc, asked("a"))
    visit(lcc, "a")
    lcc.now += 100
    assert spider(lcc).revisit(lcc.now, lcc.now) == 1
    lcc.fetch_all()
    assert lcc.cached("a").origin == Origin.DIRECTIVE


def test_the_provider_of_a_url_is_the_one_whose_roots_have_it(lcc):
    lcc.add(8)
    here = HttpUrl.parse(url("a"))
    with pytest.raises(ValueError, match="7, 8"):
        territories(lcc.store).whose(here)
    assert territories(lcc.store, 8).whose(here) == 8
    lcc.change(8, state=State.DISABLED)
    assert territories(lcc.store).whose(here) == PID
    with pytest.raises(NotTaken):
        territories(lcc.store, 8)
    with pytest.raises(ValueError, match="no provider"):
        territories(lcc.store).whose(HttpUrl.parse("http://elsewhere.example/"))


# --- digging ----------------------------------------------------------------------------------------


def test_links_are_followed_as_deep_as_the_deepest_owner_wants_and_each_owner_as_deep_as_asked(lcc):
    ask(lcc, asked("a", 1, "anna"), asked("a", 2, "bert"))
    visit(lcc, "a")
    scan(lcc, a=["b", "c"])
    assert dig(lcc) == Progress(2)
    visit(lcc, "b", "c")
    scan(lcc, b=["d", "a"], c=["d"])
    assert dig(lcc) == Progress(1)
    visit(lcc, "d")
    scan(lcc, d=["e"])
    assert dig(lcc) is None
    assert lcc.waiting() == []
    assert owners(lcc, "a") == {"anna": 1, "bert": 2}
    assert owners(lcc, "b") == owners(lcc, "c") == {"anna": 0, "bert": 1}
    assert (owners(lcc, "d"), owners(lcc, "e")) == ({"bert": 0}, {})
    assert lcc.cached("d").origin == Origin.SPIDER


def test_who_wants_to_go_deeper_goes_on_from_the_stored_links(lcc):
    ask(lcc, asked("a", 0, "anna"))
    visit(lcc, "a")
    scan(lcc, a=["b"])
    assert dig(lcc) is None
    assert ask(lcc, asked("a", 2, "anna")) == 0
    assert not spider(lcc).is_done(0, full=False)
    assert dig(lcc) == Progress(1)
    assert names(lcc) == ["b"]
    assert (owners(lcc, "a"), owners(lcc, "b")) == ({"anna": 2}, {"anna": 1})
    visit(lcc, "b")
    scan(lcc, b=["c"])
    assert dig(lcc) == Progress(1)
    visit(lcc, "c")
    scan(lcc)
    assert spider(lcc).is_done(0, full=False)


def test_pages_that_link_to_each_other_come_to_an_end(lcc):
    ask(lcc, asked("a", 100, "anna"))
    visit(lcc, "a")
    scan(lcc, a=["a", "b"])
    dig(lcc)
    visit(lcc, "b")
    scan(lcc, b=["a", "b"])
    assert dig(lcc) == Progress()
    assert dig(lcc) is None
    assert (owners(lcc, "a"), owners(lcc, "b")) == ({"anna": 100}, {"anna": 99})


def test_who_reaches_a_page_farther_over_another_one_goes_on_from_there(lcc):
    ask(lcc, asked("a", 3, "anna"), asked("b", 1, "anna"))
    visit(lcc, "a", "b")
    scan(lcc, a=["b"], b=["c"])
    while dig(lcc) is not None:
        pass
    assert (owners(lcc, "b"), owners(lcc, "c")) == ({"anna": 2}, {"anna": 1})


def test_links_that_a_new_version_brings_are_followed(lcc):
    ask(lcc, asked("a", 1, "anna"))
    visit(lcc, "a")
    scan(lcc, a=["b"])
    dig(lcc)
    visit(lcc, "b")
    lcc.push(update("a", b"another"))
    lcc.fetch_all()
    scan(lcc, a=["b", "c"])
    assert dig(lcc) == Progress(1)
    assert owners(lcc, "c") == {"anna": 0}


def test_nofollow_and_the_roots_hold_for_directives(lcc):
    ask(lcc, asked("a", 1, "anna"))
    visit(lcc, "a")
    with lcc.store.begin() as tx:
        tx.put_links(
            {
                key("a"): [
                    DocumentLink(url("b"), "a", nofollow=True),
                    DocumentLink("http://elsewhere.example/", "a"),
                    DocumentLink("mailto:anna", "a"),
                ]
            }
        )
    assert dig(lcc) == Progress()
    assert (lcc.waiting(), owners(lcc, "b")) == ([], {})


def test_what_there_is_no_room_for_stays_due(lcc):
    ask(lcc, asked("a", 1, "anna"))
    visit(lcc, "a")
    scan(lcc, a=["b", "c"])
    assert dig(lcc, Terms(depth=-1, urls=2)) == Progress(1, held_up=True)
    assert dig(lcc, Terms(depth=-1, urls=2)) == Progress(0, held_up=True)
    assert dig(lcc) == Progress(1)
    assert dig(lcc) is None
    assert owners(lcc, "c") == {"anna": 0}


def test_many_owners_and_links_are_passed_on_in_several_transactions(lcc, monkeypatch):
    monkeypatch.setattr(module, "INTERESTS", 6)
    people = [f"owner{n}" for n in range(5)]
    ask(lcc, asked("a", 1, *people))
    visit(lcc, "a")
    scan(lcc, a=["b", "c", "d"])
    steps = 0
    while dig(lcc) is not None:
        steps += 1
    assert steps == 3
    assert all(owners(lcc, name) == dict.fromkeys(people, 0) for name in "bcd")


def test_a_crash_while_digging_leaves_it_all_to_be_done(lcc, monkeypatch):
    ask(lcc, asked("a", 1, "anna"))
    visit(lcc, "a")
    scan(lcc, a=["b"])
    with monkeypatch.context() as patch:
        patch.setattr(Directives, "_own", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            dig(lcc)
    assert (lcc.waiting(), owners(lcc, "b")) == ([], {})
    assert dig(lcc) == Progress(1)
    assert lcc.now == START
