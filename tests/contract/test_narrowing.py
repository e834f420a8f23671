"""What becomes of documents and waiting URLs when the roots of their provider change, on every store."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from little_lcc import PID, SITE, removal, update

from lcc_scrapy.db import retrying
from lcc_scrapy.domain.cache import OUTSIDE_ROOTS, Tombstone
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.ops.housekeeping import sweep
from lcc_scrapy.providers import portions, registration
from lcc_scrapy.providers.narrowing import Narrowing
from lcc_scrapy.providers.registration import NoSuchProvider
from lcc_scrapy.queue.held_removals import confirm_removals

OLD = SITE + "old/"
NEW = SITE + "new/"


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(portions, "CHUNK", 4)


def old(count, start=0):
    return [f"old/{number:02}" for number in range(start, start + count)]


def new(count):
    return [f"new/{number:02}" for number in range(count)]


def set_roots(lcc, *roots):
    registration.change(lcc.store, PID, {}, lambda _: list(roots))


def narrow(lcc):
    done = Counter()
    for step in Narrowing(lcc.store, PID, lcc.now, lcc.policy).run():
        done.update(removed=len(step.removed), held=step.held, released=step.released, dropped=step.dropped)
    assert not lcc.provider().narrowing
    return {name: count for name, count in done.items() if count}


def narrow_to(lcc, *roots):
    set_roots(lcc, *roots)
    return narrow(lcc)


def test_documents_outside_the_new_roots_go_with_tombstones(lcc):
    lcc.store_pages(*old(10), *new(5))
    assert narrow_to(lcc, NEW) == {"removed": 10}
    assert lcc.documents() == new(5)
    gone = [row for row in lcc.feed() if isinstance(row, Tombstone)]
    assert {row.reason for row in gone} == {"outside the provider's roots"}
    assert lcc.provider().removed == 10


def test_the_provider_is_told_which_of_its_documents_went(lcc):
    lcc.store_pages(*old(2), *new(1))
    narrow_to(lcc, NEW)
    told = lcc.errors()
    assert {(error.code, json.loads(error.attributes)["curl"]) for error in told} == {
        (704, SITE + name) for name in old(2)
    }
    assert json.loads(told[0].attributes)["mimetype"] == "text/html"
    assert lcc.provider().nurlerrs == 2


def test_waiting_urls_outside_go_and_their_provider_is_told(lcc):
    lcc.push(*map(update, [*old(6), *new(2)]))
    assert narrow_to(lcc, NEW) == {"dropped": 6}
    assert [name for name, _ in lcc.waiting()] == new(2)
    assert lcc.provider().nurlerrs == 6
    error = lcc.errors()[0]
    assert (error.code, error.url) == (704, SITE + "old/00")
    assert error.text == f"URL outside the provider's roots: not below {NEW}"
    assert json.loads(error.attributes)["curl"] == SITE + "old/00"


def test_a_fetch_that_was_under_way_is_not_stored(lcc):
    lcc.push(update("old/a"))
    ticket = lcc.ticket("old/a")
    narrow_to(lcc, NEW)
    assert lcc.settle(lcc.served(ticket))[0].result == "discarded"
    assert lcc.documents() == []


def test_what_was_fetched_from_outside_by_a_redirect_goes_too(lcc):
    lcc.push(update("new/a"), update("new/b"))
    lcc.fetch("new/a", final_url=SITE + "old/a")
    lcc.fetch("new/b", final_url=SITE + "new/c")
    assert narrow_to(lcc, NEW) == {"removed": 1}
    assert lcc.documents() == ["new/b"]


def test_more_than_half_are_held_all_of_them(lcc, caplog):
    lcc.store_pages(*old(25), *new(5))
    assert narrow_to(lcc, NEW) == {"held": 25}
    assert (lcc.held(), lcc.provider().heldremovals) == (old(25), 25)
    assert caplog.messages == [
        (
            "provider 7: 25 removals are held (outside its roots): `lcc provider confirm-removals 7`"
            " carries them out, a later full set decides anew"
        )
    ]
    assert confirm_removals(lcc.store, PID, lcc.now, lcc.policy) == 25
    assert lcc.documents() == new(5)


def test_widening_ends_the_holds_of_what_lies_inside_again(lcc):
    lcc.store_pages(*old(25), *new(5))
    narrow_to(lcc, NEW)
    assert narrow_to(lcc, NEW, SITE + "old/0") == {}
    assert narrow_to(lcc, NEW, OLD) == {"released": 25}
    assert (lcc.held(), len(lcc.documents())) == ([], 30)


def test_widening_does_not_end_the_holds_of_sets(lcc):
    lcc.policy = QueuePolicy(max_removal=0)
    lcc.store_pages(*old(46), *new(5))
    lcc.push(*map(removal, old(25)))
    assert narrow_to(lcc, NEW) == {"held": 21}
    assert lcc.held() == old(46)
    assert narrow_to(lcc, SITE) == {"released": 21}
    assert lcc.held() == old(25)


def test_the_same_roots_again_are_no_change(lcc):
    lcc.store_pages("old/a")
    set_roots(lcc, SITE)
    assert not lcc.provider().narrowing
    assert list(Narrowing(lcc.store, PID, lcc.now, lcc.policy).run()) == []


def test_an_update_from_inside_ends_the_hold_when_it_is_fetched(lcc):
    body = b"the same body"
    lcc.push(*[update(name, body) for name in old(25)])
    lcc.fetch_all(body=body)
    narrow_to(lcc, NEW)
    moved = [replace(update(name, body), furl=SITE + f"new/{number}") for number, name in enumerate(old(2))]
    lcc.push(*moved, update("old/02", body))
    assert len(lcc.held()) == 25
    assert [name for name, _ in lcc.waiting()] == old(3)
    first, second, third = lcc.tickets()
    lcc.settle(lcc.served(first, body), lcc.not_modified(second), lcc.failed(third, 704))
    assert lcc.held() == old(23, 2)


def test_a_refused_url_of_a_full_set_does_not_end_the_hold(lcc):
    lcc.store_pages(*old(25))
    narrow_to(lcc, NEW)
    present = [replace(removal(name), operation="present") for name in old(25)]
    lcc.push(*present, update("new/a"), full=True)
    assert lcc.held() == old(25)
    assert {lcc.cached(name).held for name in old(25)} == {OUTSIDE_ROOTS}


def test_confirming_leaves_a_fetch_from_inside_alone(lcc):
    lcc.store_pages(*old(25))
    narrow_to(lcc, NEW)
    lcc.push(replace(update("old/00"), furl=SITE + "new/x"))
    assert confirm_removals(lcc.store, PID, lcc.now, lcc.policy) == 25
    assert lcc.waiting() == [("old/00", "fetch")]


def test_an_interrupted_change_is_finished_by_the_housekeeping(lcc):
    lcc.store_pages(*old(10), *new(30))
    lcc.push(*map(update, old(3, 50)))
    set_roots(lcc, NEW)
    for step in Narrowing(lcc.store, PID, lcc.now, lcc.policy).run():
        if step.removed:
            break
    assert lcc.provider().narrowing
    left = len(lcc.documents()) - 30
    assert left > 0
    removed = [key for step in sweep(lcc.store, lcc.policy, lcc.now) for key, _ in step.removed]
    assert (len(removed), lcc.documents(), lcc.waiting()) == (left, new(30), [])
    assert not lcc.provider().narrowing


def test_roots_that_change_once_more_meanwhile_are_the_ones_that_count(lcc):
    lcc.store_pages(*old(8), *new(8))
    set_roots(lcc, NEW)
    steps = Narrowing(lcc.store, PID, lcc.now, lcc.policy).run()
    next(steps)
    set_roots(lcc, SITE)
    assert sum(len(step.removed) for step in steps) == 0
    assert len(lcc.documents()) == 16
    assert not lcc.provider().narrowing


def test_what_the_last_change_of_roots_excludes_goes_although_an_earlier_one_did_not(lcc):
    lcc.store_pages(*old(8), *new(8))
    set_roots(lcc, NEW)
    steps = Narrowing(lcc.store, PID, lcc.now, lcc.policy).run()
    for step in steps:
        if step.removed:
            break
    set_roots(lcc, OLD)
    list(steps)
    assert {name.split("/")[0] for name in lcc.documents()} == {"old"}


def test_documents_outside_stay_guarded_while_they_are_removed(lcc):
    """Between the judgement and the removals, fetches that find nothing use the day up."""
    lcc.store_pages(*old(30), *new(30))
    lcc.push(*map(update, new(20)))
    set_roots(lcc, NEW)
    steps = Narrowing(lcc.store, PID, lcc.now, lcc.policy).run()
    for step in steps:
        if step.removed:
            break
    lcc.settle(*[lcc.failed(ticket, 404, final=True) for ticket in lcc.tickets()])
    list(steps)
    assert len(lcc.documents()) == 30
    assert len(lcc.held()) == 20
    assert {name.split("/")[0] for name in lcc.held()} == {"old"}


def test_a_database_that_is_away_for_a_moment_is_waited_for(lcc, monkeypatch):
    monkeypatch.setattr(retrying, "PAUSES", (0,))
    lcc.store_pages(*old(10), *new(5))
    set_roots(lcc, NEW)
    begin, failures = lcc.store.begin, iter([True, False] * 20)

    def sometimes():
        if next(failures):
            raise StoreUnavailable("deadlock")
        return begin()

    monkeypatch.setattr(lcc.store, "begin", sometimes)
    assert sum(len(s.removed) for s in Narrowing(lcc.store, PID, lcc.now, lcc.policy).run()) == 10
    monkeypatch.setattr(lcc.store, "begin", begin)


def test_the_housekeeping_does_not_wait_for_a_database(lcc, monkeypatch):
    lcc.store_pages(*old(10))
    set_roots(lcc, NEW)
    begin = lcc.store.begin

    def away():
        raise StoreUnavailable("away")

    monkeypatch.setattr(lcc.store, "begin", away)
    monkeypatch.setattr(retrying, "PAUSES", (1000,))
    with pytest.raises(StoreUnavailable):
        list(sweep(lcc.store, lcc.policy, lcc.now))
    monkeypatch.setattr(lcc.store, "begin", begin)


def test_a_provider_that_is_removed_meanwhile_is_named(lcc):
    lcc.store_pages(*old(10))
    set_roots(lcc, NEW)
    steps = Narrowing(lcc.store, PID, lcc.now, lcc.policy).run()
    next(steps)
    registration.remove(lcc.store, PID, lcc.now, lcc.policy)
    with pytest.raises(NoSuchProvider):
        list(steps)
