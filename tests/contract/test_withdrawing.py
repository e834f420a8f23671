"""Withdrawals on every store: what an owner wants no longer goes, and what it reaches otherwise stays."""

import pytest
from little_lcc import PID, SITE, update, url
from test_directives import ask, asked, dig, owners, scan, spider, visit

from lcc_scrapy.domain.entries import furlkey
from lcc_scrapy.domain.urds import Urd
from lcc_scrapy.spidering import withdrawing as module
from lcc_scrapy.spidering.directives import Directives
from lcc_scrapy.spidering.withdrawing import carry_out, withdraw

TREE = {"a": "bc", "b": "d", "c": "e", "d": "f", "x": "d"}


def directives(lcc):
    return Directives(spider(lcc))


def settled(lcc, **links):
    """Fetch and read everything that directives reach."""
    for _ in range(8):
        visit(lcc, *(ticket.row.furl.removeprefix(SITE) for ticket in lcc.tickets()))
        scan(lcc, **{name: list(to) for name, to in (links or TREE).items()})
        while dig(lcc) is not None:
            pass


def reached(lcc, owner="anna", names="abcdefx"):
    return {name: owners(lcc, name)[owner] for name in names if owner in owners(lcc, name)}


def carried_out(lcc):
    return sum(carry_out(lcc.store, lambda: lcc.now))


def test_a_directive_that_is_withdrawn_takes_its_reach_along(lcc):
    ask(lcc, asked("a", 2, "anna", "bert"))
    settled(lcc)
    assert reached(lcc) == {"a": 2, "b": 1, "c": 1, "d": 0, "e": 0}
    assert directives(lcc).withdraw([asked("a", 0, "anna", "carl")]) == 1
    assert reached(lcc) == {"a": 2, "b": 1, "c": 1, "d": 0, "e": 0}
    assert carried_out(lcc) == 5
    assert reached(lcc) == {}
    assert reached(lcc, "bert") == {"a": 2, "b": 1, "c": 1, "d": 0, "e": 0}
    assert carried_out(lcc) == 0


def test_what_another_directive_reaches_stays_as_far_as_that_one_goes(lcc):
    ask(lcc, asked("a", 3, "anna"), asked("x", 1, "anna"))
    settled(lcc)
    assert reached(lcc) == {"a": 3, "b": 2, "c": 2, "d": 1, "e": 1, "f": 0, "x": 1}
    directives(lcc).withdraw([asked("a", 3, "anna")])
    carried_out(lcc)
    assert reached(lcc) == {"x": 1, "d": 0}


def test_what_a_urd_of_the_owner_reaches_stays_and_goes_when_it_is_removed(lcc):
    ask(lcc, asked("a", 3, "anna"))
    settled(lcc)
    with lcc.store.begin() as tx:
        [one] = tx.add_urds([Urd(0, "anna", url("b"), timing=1000, depth=1)])
        tx.add_urds([Urd(0, "anna", url("c"), timing=0, depth=1), Urd(0, "bert", url("c"), timing=1000)])
    directives(lcc).withdraw([asked("a", 3, "anna")])
    carried_out(lcc)
    assert reached(lcc) == {"b": 1, "d": 0}
    with lcc.store.begin() as tx:
        tx.remove_urds([one.urdid])
        withdraw(tx, ["anna"])
    assert carried_out(lcc) == 2
    assert reached(lcc) == {}


def test_what_is_shortened_to_nothing_is_not_followed_any_more(lcc):
    ask(lcc, asked("a", 2, "anna"), asked("b", 0, "anna"))
    visit(lcc, "a", "b")
    scan(lcc, a="b")
    dig(lcc)
    scan(lcc, b="d")
    with lcc.store.begin() as tx:
        tx.let_dig([furlkey(PID, url("b"))])
    directives(lcc).withdraw([asked("a", 0, "anna")])
    carried_out(lcc)
    assert reached(lcc) == {"b": 0}
    with lcc.store.read() as tx:
        assert tx.to_dig(PID, 9) == []


def test_circles_end(lcc):
    ask(lcc, asked("a", 90, "anna"), asked("b", 1, "anna"))
    settled(lcc, a="b", b="c", c="a")
    directives(lcc).withdraw([asked("a", 0, "anna")])
    carried_out(lcc)
    assert reached(lcc) == {"b": 1, "c": 0}


def test_an_interest_that_rises_meanwhile_is_computed_again(lcc):
    ask(lcc, asked("a", 3, "anna"))
    settled(lcc)
    directives(lcc).withdraw([asked("a", 3, "anna")])
    steps = carry_out(lcc.store, lambda: lcc.now)
    next(steps)
    ask(lcc, asked("b", 5, "anna"))
    for _ in steps:
        pass
    settled(lcc)
    assert reached(lcc) == {"b": 5, "d": 4, "f": 3}


@pytest.mark.parametrize("chunk", [1, 2, 250])
def test_a_withdrawal_that_is_killed_between_any_two_steps_goes_on(lcc, chunk, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", chunk)
    monkeypatch.setattr(module, "PAGES", chunk)
    ask(lcc, asked("a", 3, "anna"), asked("x", 1, "anna"))
    settled(lcc)
    directives(lcc).withdraw([asked("a", 3, "anna")])
    kept = 0
    while True:  # each run is killed one step later than the one before
        kept += 1
        steps = carry_out(lcc.store, lambda: lcc.now)
        if len([done for done, _ in zip(range(kept), steps, strict=False)]) < kept:
            break
        assert reached(lcc).keys() >= {"x", "d"}
    assert reached(lcc) == {"x": 1, "d": 0}
    with lcc.store.read() as tx:
        assert tx.withdrawals(9) == []


def test_a_directive_that_is_asked_for_again_after_its_withdrawal_holds(lcc):
    ask(lcc, asked("a", 1, "anna"))
    settled(lcc)
    directives(lcc).withdraw([asked("a", 1, "anna")])
    ask(lcc, asked("a", 1, "anna"))
    carried_out(lcc)
    assert reached(lcc) == {"a": 1, "b": 0, "c": 0}


def test_nothing_is_withdrawn_that_was_not_asked_for(lcc):
    ask(lcc, asked("a", 1, "anna"))
    settled(lcc)
    assert directives(lcc).withdraw([asked("b", 1, "anna"), asked("q", 1, "anna")]) == 0
    with lcc.store.read() as tx:
        assert tx.withdrawals(9) == []
        [row] = tx.owners_of([furlkey(PID, url("b"))]).values()
    assert (row[0].asked, row[0].reach) == (-1, 0)


def test_pushed_pages_keep_their_place(lcc):
    lcc.push(update("a"))
    lcc.fetch_all()
    ask(lcc, asked("a", 1, "anna"))
    directives(lcc).withdraw([asked("a", 0, "anna")])
    carried_out(lcc)
    with lcc.store.read() as tx:
        assert len(tx.cached_at([furlkey(PID, url("a"))])) == 1
