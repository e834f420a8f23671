"""A dry run says what absorbing the same set then does, on every store."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from little_lcc import LittleLcc, dump, key, present, removal, update

from lcc_scrapy.domain.entries import Origin
from lcc_scrapy.intake import dry_run
from lcc_scrapy.uns.ports import DryRun
from tests.memory_store import MemoryStore


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(dry_run, "CHUNK", 3)


def names(count, start=0):
    return [f"page{number:04d}" for number in range(start, start + count)]


def outcome(lcc, *content, **values):
    """Dry-run a set, check that this changes nothing, absorb it, and check that the dry run told it."""
    spooled = lcc.spooled(*content, **values)
    before, documents = dump(lcc.store), len(lcc.documents())
    told = dry_run.dry_run(lcc.store, spooled, lcc.policy, lcc.now)
    assert dump(lcc.store) == before
    lcc.absorb(spooled)
    assert told == DryRun(documents - len(lcc.documents()), len(lcc.held()))
    return told


def test_a_partial_set_removes_what_is_cached_of_what_it_names(lcc):
    lcc.store_pages(*names(5))
    lcc.push(update("waiting"))
    content = [removal("unknown"), removal("waiting"), *map(removal, names(2)), removal(names(1)[0])]
    assert outcome(lcc, *content, update("new")) == DryRun(2)


def test_a_partial_set_with_too_many_removals_would_be_held(lcc):
    lcc.store_pages(*names(40))
    assert outcome(lcc, *map(removal, names(21))) == DryRun(0, 21)


def test_of_a_few_removals_those_go_for_which_the_day_has_room(lcc):
    lcc.store_pages(*names(30))
    lcc.push(*map(removal, names(15)))
    assert outcome(lcc, *map(removal, names(12, 15))) == DryRun(5, 7)


def test_a_full_set_removes_pushed_documents_that_it_does_not_name(lcc):
    lcc.store_pages(*names(10))
    with lcc.store.begin() as tx:
        row = tx.cached([key(names(1)[0])])[key(names(1)[0])]
        tx.update_cached([replace(row, origin=Origin.SPIDER)])
    named = [*map(update, [*names(4), *names(4)]), present(names(1, 4)[0]), removal(names(1, 5)[0])]
    assert outcome(lcc, *named, update("new"), full=True) == DryRun(5)


@pytest.mark.parametrize("unreadable", [0, 1])
def test_a_full_set_that_says_too_little_would_be_held(lcc, unreadable):
    lcc.store_pages(*names(5))
    named = map(update, names(2)) if unreadable else ()
    assert outcome(lcc, *named, full=True, unreadable=unreadable) == DryRun(0, 3 if unreadable else 5)


def test_urls_that_wait_for_their_first_fetch_are_known_too(lcc):
    lcc.store_pages(*names(10))
    lcc.push(*map(update, names(30, 10)))
    assert outcome(lcc, *map(update, names(19, 21)), full=True) == DryRun(0, 10)
    lcc.push(*map(update, names(10)))
    assert outcome(lcc, *map(update, names(20, 20)), full=True) == DryRun(10)


def test_a_provider_that_is_gone_has_nothing_to_lose(lcc):
    assert dry_run.dry_run(lcc.store, lcc.spooled(removal("a"), pid=99), lcc.policy, lcc.now) == DryRun(0)


some = st.lists(st.integers(0, 59), max_size=90)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(cached=some, waiting=some, gone=some, named=some, full=st.booleans(), share=st.floats(0, 1))
def test_whatever_a_dry_run_tells_comes_true(*, cached, waiting, gone, named, full, share):
    lcc = LittleLcc(MemoryStore())
    lcc.add()
    lcc.push(*[update(f"n{number}") for number in cached])
    lcc.settle(*[lcc.served(ticket) for ticket in lcc.tickets()])
    lcc.push(*[update(f"n{number}") for number in waiting])
    lcc.push(*[removal(f"n{number}") for number in gone[:15]])
    lcc.policy = replace(lcc.policy, max_removal=share)
    make = update if full else removal
    outcome(lcc, *[make(f"n{number}") for number in named], full=full)
