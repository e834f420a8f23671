"""The operator's long commands over a database that fails at two of three transactions."""

from contextlib import contextmanager
from itertools import count

import pytest
from little_lcc import PID, LittleLcc, assert_books_balance, key

from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.db import retrying
from lcc_scrapy.db.retrying import repeated
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.ops import verification
from lcc_scrapy.ops.verification import Kind, Verification
from lcc_scrapy.providers import registration
from lcc_scrapy.queue import held_removals
from lcc_scrapy.queue.held_removals import confirm_removals
from lcc_scrapy.queue.unit_of_work import UnitOfWork


class ShakyStore:
    """Of three transactions, the first is undone, the second is done though its answer is lost, the third is well."""

    def __init__(self, store):
        self.store = store
        self.count = count()

    @contextmanager
    def begin(self):
        number = next(self.count) % 3
        with self.store.begin() as tx:
            yield tx
            if number == 0:
                raise StoreUnavailable("deadlock")
        if number == 1:
            raise StoreUnavailable("lost connection")

    read = snapshot = begin


@pytest.fixture
def slept(monkeypatch):
    """Return the pauses that were made, without making them."""
    pauses = []
    monkeypatch.setattr(retrying.time, "sleep", pauses.append)
    return pauses


@pytest.fixture
def lcc(store, monkeypatch):
    for module, name in ((held_removals, "CHUNK"), (registration, "CHUNK"), (verification, "PAGE")):
        monkeypatch.setattr(module, name, 4)
    made = LittleLcc(store)
    made.add()
    made.store_pages(*"abcdefghij")
    return made


@pytest.fixture
def shaky(lcc, slept):
    return ShakyStore(lcc.store)


def test_a_provider_is_removed_all_the_same(lcc, shaky):
    registration.remove(shaky, PID, lcc.now, lcc.policy)
    assert lcc.documents() == []
    assert {tombstone.reason for tombstone in lcc.feed()} == {"provider removed"}
    with lcc.store.read() as tx:
        assert tx.provider(PID) is None
        assert len(tx.known_to_delete(1, range(1, 100))) == 10


def test_held_removals_are_carried_out_all_the_same(lcc, shaky):
    with lcc.store.begin() as tx:
        batch = UnitOfWork(tx, [PID], [key(name) for name in "abcdefghij"], lcc.now, lcc.policy)
        for document in list(batch.cached):
            batch.remove(document, 9, "", hold=True)
        batch.flush()
    confirm_removals(shaky, PID, lcc.now, lcc.policy)
    assert lcc.documents() == []
    assert_books_balance(lcc.store)


def test_everything_lost_is_queued_again_once(lcc, shaky, tmp_path):
    content = ContentFiles(tmp_path, 1)
    content.prepare()
    findings = list(Verification(shaky, content, lcc.policy, repair=True).run())
    assert {found.kind for found in findings} <= {Kind.NO_FILE}
    assert lcc.documents() == []
    assert sorted(name for name, _ in lcc.waiting()) == list("abcdefghij")
    with lcc.store.read() as tx:
        rows = tx.queued_of(PID, 0, 100)
    assert len({(row.psetid, row.position) for row in rows}) == 10
    assert_books_balance(lcc.store)


def test_books_are_corrected_once(lcc, shaky, tmp_path):
    with lcc.store.begin() as tx:
        tx.add_to_provider(PID, {"nurlproc": 5, "fileused": -2})
    for _ in range(3):
        list(Verification(shaky, ContentFiles(tmp_path, 1), lcc.policy, repair=True)._counts_of(PID))
        assert_books_balance(lcc.store)


def test_a_database_that_stays_away_is_told_after_the_last_try(slept):
    def work():
        raise StoreUnavailable("gone away")

    with pytest.raises(StoreUnavailable, match="gone away"):
        repeated(work)
    assert slept == list(retrying.PAUSES)


def test_what_is_the_fault_of_the_work_is_not_repeated(lcc, slept):
    with pytest.raises(registration.NoSuchProvider):
        registration.remove(lcc.store, 99, lcc.now, QueuePolicy())
    assert slept == []
