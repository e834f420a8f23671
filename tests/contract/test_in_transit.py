"""Whoever writes finds no provider that is in transit to another LCC; its rows stay as they are."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from little_lcc import PID, dump, key, removal, update

from lcc_scrapy.cache import misses, versions
from lcc_scrapy.domain.providers import State, Wanted
from lcc_scrapy.domain.versions import Keep
from lcc_scrapy.ops.housekeeping import sweep
from lcc_scrapy.providers import registration
from lcc_scrapy.providers.groups import regroup
from lcc_scrapy.providers.narrowing import Narrowing
from lcc_scrapy.providers.registration import Moves, NoSuchProvider
from lcc_scrapy.queue.held_removals import confirm_removals

UNKNOWN = 4711
PAGES = [f"{number:02}" for number in range(40)]
CHANGES: dict[str, Callable] = {
    "settings": lambda store, pid: registration.change(store, pid, {"bandwidth": 1}),
    "state": lambda store, pid: registration.change(store, pid, {"state": State.PAUSED}),
    "a wanted full set": lambda store, pid: registration.want_full_set(store, pid, Wanted.OLD_FILES),
    "a group": lambda store, pid: regroup(store, pid, "group", 0.0),
}


@pytest.fixture
def busy(lcc):
    """A provider that has of everything: documents, versions, waiting URLs, held removals, other roots."""
    lcc.policy = replace(lcc.policy, versions=Keep(3))
    lcc.store_pages(*PAGES)
    lcc.push(*[update(name, b"other") for name in PAGES[:3]])
    lcc.fetch_all(body=b"other")
    with lcc.store.begin() as tx:
        misses.suspect(tx, [key(PAGES[-1])], PID, lcc.now - 1)
    lcc.push(*map(removal, PAGES[:30]))
    assert lcc.provider().heldremovals
    lcc.push(update("waiting"))
    registration.change(lcc.store, PID, {}, lambda _: ["http://www.example.org/0"])
    return lcc


def put_in(lcc, state):
    with lcc.store.begin() as tx:
        assert tx.lock_moving(PID) is not None
        tx.update_provider(PID, {"state": state})


@pytest.mark.parametrize(
    ("state", "what"),
    [(State.MOVING, "settings"), (State.MOVING, "state"), *((State.IN_TRANSIT, what) for what in CHANGES)],
)
def test_an_operator_is_told_that_it_moves(lcc, state, what):
    put_in(lcc, state)
    before = dump(lcc.store)
    with pytest.raises(Moves, match="provider 7 moves to another sub-LCC: run `lcc front move 7`"):
        CHANGES[what](lcc.store, PID)
    assert dump(lcc.store) == before


@pytest.mark.parametrize("what", CHANGES)
def test_one_that_is_not_there_is_another_thing(lcc, what):
    with pytest.raises(NoSuchProvider):
        CHANGES[what](lcc.store, UNKNOWN)


def test_nobody_but_who_moves_it_gets_it_locked(lcc):
    put_in(lcc, State.IN_TRANSIT)
    with lcc.store.begin() as tx:
        assert tx.lock_providers([PID]) == {}
        assert tx.lock_moving(PID).state == State.IN_TRANSIT
        assert tx.lock_moving(UNKNOWN) is None
    put_in(lcc, State.MOVING)
    with lcc.store.begin() as tx:
        assert tx.lock_providers([PID])[PID].state == State.MOVING


WRITERS: dict[str, Callable] = {
    "confirmed removals": lambda lcc: confirm_removals(lcc.store, PID, lcc.now, lcc.policy),
    "narrowed roots": lambda lcc: list(Narrowing(lcc.store, PID, lcc.now, lcc.policy).run()),
    "fewer versions": lambda lcc: list(
        versions.trim(lcc.store, PID, lcc.now, replace(lcc.policy, versions=Keep(0)))
    ),
    "the daily housekeeping": lambda lcc: [
        step for step in sweep(lcc.store, lcc.policy, lcc.now + 1000 * 86_400) if step
    ],
    "judged misses": lambda lcc: in_transaction(lcc, lambda tx: misses.judge(tx, PID, lcc.now, 0)),
    "a set": lambda lcc: lcc.push(update("more"), removal("00")),
}


def in_transaction(lcc, work):
    with lcc.store.begin() as tx:
        return work(tx)


@pytest.mark.parametrize("store", ["memory", "sqlite", "mariadb"], indirect=True)
@pytest.mark.parametrize("writer", WRITERS)
def test_its_rows_stay_as_they_are(busy, writer):
    put_in(busy, State.IN_TRANSIT)
    before = rows_of(busy)
    WRITERS[writer](busy)
    assert rows_of(busy) == before


def test_a_worker_that_was_taken_for_dead_settles_nothing(busy):
    registration.change(busy.store, PID, {}, lambda _: ["http://www.example.org/"])
    ticket = busy.tickets()[0]
    put_in(busy, State.IN_TRANSIT)
    before = rows_of(busy)
    busy.settle(busy.served(ticket))
    assert rows_of(busy) == before


def rows_of(lcc):
    """Return all of the provider that a move copies, and its own row."""
    with lcc.store.read() as tx:
        documents = tx.cached_of(PID, b"", 1000)
        kept = tx.versions([row.urlkey for row in documents])
        waiting = tx.queued_of(PID, 0, 1000)
        assert sum(map(len, kept.values())) == 3
        suspects = tx.suspects(PID, 0, lcc.now, 1000)
        return tx.provider(PID), documents, kept, waiting, suspects, tx.errors(PID, 1000), tx.held(PID, 1000)
