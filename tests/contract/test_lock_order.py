"""In which order a transaction locks rows that others wait for: the feed's counter is the last (``tx.FEED``)."""

from contextlib import contextmanager
from dataclasses import replace

import pytest
from little_lcc import MACHINE, dump, update

from lcc_scrapy.db.records import EVERYBODY, FEED, Fetched, OpenLogin
from lcc_scrapy.domain.errors import NotDurable
from lcc_scrapy.domain.fetch_counts import span_of
from lcc_scrapy.intake.absorbing import Intake
from lcc_scrapy.intake.small_sets import SmallSet, absorb_together, read_small
from lcc_scrapy.queue.settlement import Settlement
from tests.memory_store import MemoryStore

SHARED = ("lock_providers", "lock_turns", "add_to_turns", "count_fetches", "tally", "take")
"""Verbs that lock rows for which other workers wait."""


class Noting:
    """A transaction that notes which verbs were used."""

    def __init__(self, tx, verbs):
        self._tx = tx
        self._verbs = verbs

    def __getattr__(self, name):
        verb = getattr(self._tx, name)

        def noting(*args, **kwargs):
            if any(args):
                told = {"take": lambda: args[:1], "lock_providers": lambda: tuple(args[0])}
                self._verbs.append((name, *told.get(name, tuple)()))
            return verb(*args, **kwargs)

        return noting


class NotingStore:
    """A store whose transactions note their verbs, a list for each."""

    def __init__(self, store):
        self._store = store
        self.transactions = []

    @contextmanager
    def begin(self):
        verbs = []
        self.transactions.append(verbs)
        with self._store.begin() as tx:
            yield Noting(tx, verbs)


def behind_the_feed(verbs):
    """Return what locks shared rows behind the feed's counter, and has not locked the same before it."""
    if ("take", FEED) not in verbs:
        return []
    at = verbs.index(("take", FEED))
    return [verb for verb in verbs[at + 1 :] if verb[0] in SHARED and verb not in verbs[:at]]


def settlement(lcc, tx, *outcomes, keep=lambda _: None, durable=lambda: None):
    return Settlement(
        tx, outcomes, owner=lcc.owner, machineid=MACHINE, now=lcc.now, policy=lcc.policy, keep=keep,
        durable=durable,
    )  # fmt: skip


def store_declared(lcc, *names):
    """Cache pages so that a push of the same content fetches nothing."""
    lcc.push(*[update(name, b"x") for name in names])
    lcc.fetch_all(body=b"x")


def some_of_each(lcc):
    """Return outcomes of a page that is new, one that is removed, and one that fails."""
    lcc.store_pages("old", "failing")
    lcc.push(update("old"), update("failing"), update("new"))
    new, old, failing = (lcc.ticket(name) for name in ("new", "old", "failing"))
    return [lcc.served(new), lcc.failed(old, 404, final=True), lcc.failed(failing, 603)]


def test_a_settlement_locks_what_all_workers_write_when_files_are_durable_and_the_feed_last(lcc):
    outcomes, verbs = some_of_each(lcc), []
    with lcc.store.begin() as tx:
        settlement(
            lcc,
            Noting(tx, verbs),
            *outcomes,
            keep=lambda kept: lcc.files.update({one.fileid: one.body.data for one in kept}),
            durable=lambda: verbs.append(("durable",)),
        ).run()
    at = verbs.index(("durable",))
    assert [verb for verb in verbs[at:] if verb[0] in SHARED] == [
        ("count_fetches",), ("tally",), ("take", FEED),
    ]  # fmt: skip
    assert ("take", FEED) not in verbs[:at]
    assert ("tally",) not in verbs[:at]
    written = {verb[0] for verb in verbs[verbs.index(("take", FEED)) + 1 :]}
    assert written <= {"put_tombstones"}


def test_while_a_commit_waits_for_its_disk_other_workers_count_and_number(lcc):
    if isinstance(lcc.store, MemoryStore) or lcc.store.engine.dialect.name == "sqlite":
        pytest.skip("has one writer at a time")
    outcomes, others = some_of_each(lcc), []

    def durable():
        with lcc.store.begin() as tx:
            tx.count_fetches({Fetched(EVERYBODY, "stored", 0): 1}, span_of(lcc.now))
            tx.tally({"stored 0": 1, "failed 404": 1})
            others.append(tx.take(FEED, 1))

    with lcc.store.begin() as tx:
        new, *_ = settlement(
            lcc,
            tx,
            *outcomes,
            keep=lambda kept: lcc.files.update({one.fileid: one.body.data for one in kept}),
            durable=durable,
        ).run()
    assert new.row.seq == others[0] + 1


def test_what_cannot_be_made_durable_is_not_settled(lcc):
    outcomes = some_of_each(lcc)
    before = dump(lcc.store)

    def durable():
        raise NotDurable("disk full")

    with pytest.raises(NotDurable), lcc.store.begin() as tx:
        settlement(lcc, tx, *outcomes, durable=durable).run()
    assert dump(lcc.store) == before


@pytest.mark.parametrize("full", [False, True])
def test_an_intake_step_locks_nothing_shared_behind_the_feed(lcc, full):
    names = [f"{number}" for number in range(20)]
    store_declared(lcc, *names)
    store = NotingStore(lcc.store)
    changed = [update(name, b"x", subtype="other") for name in names[:14]]
    intake = Intake(store, lcc.spooled(*changed, update("new"), full=full), lcc.policy)
    while not intake.step(lcc.now, lambda _: True).finished:
        pass
    assert [verbs for verbs in store.transactions if behind_the_feed(verbs)] == []
    assert sum(("take", FEED) in verbs for verbs in store.transactions) > 2
    assert lcc.cached("13").subtype == "other"
    assert lcc.waiting() == [("new", "fetch")]


def test_chunks_of_which_no_content_user_hears_share_a_transaction(lcc):
    store = NotingStore(lcc.store)
    intake = Intake(store, lcc.spooled(*[update(f"{number}") for number in range(20)]), lcc.policy)
    while not intake.step(lcc.now, lambda _: True).finished:
        pass
    assert len(store.transactions) == 1
    assert len(lcc.waiting()) == 20


def test_small_sets_behind_one_that_was_overtaken_are_left_so_that_the_feed_stays_the_last(lcc):
    for pid in (8, 9):
        lcc.add(pid)
    store_declared(lcc, "a")
    changed = update("a", b"x", subtype="other")
    sets = [lcc.spooled(changed), *(lcc.spooled(update("b"), pid=pid) for pid in (8, 9))]
    with lcc.store.begin() as tx:
        logins = [OpenLogin(one.pid, one.connseq, "me", 1) for one in sets]
        tx.insert_logins([replace(one, overtaken=one.pid == 8) for one in logins])
    finished = []
    while sets:
        store = NotingStore(lcc.store)
        small = [SmallSet(one, read_small(one), Intake(store, one, lcc.policy)) for one in sets]
        steps = absorb_together(store, small, lcc.policy, lcc.now)
        finished.append([step.finished for step in steps])
        assert [verbs for verbs in store.transactions if behind_the_feed(verbs)] == []
        sets = [one for one, step in zip(sets, steps, strict=True) if not step.finished]
    assert finished == [[True, False, False], [True, False], [True]]
    assert lcc.waiting(8) == lcc.waiting(9) == [("b", "fetch")]
