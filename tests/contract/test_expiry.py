"""What becomes of documents that nobody confirms, on every store; time is the test's."""

import threading
from contextlib import suppress
from dataclasses import replace

import pytest
from little_lcc import PID, START, LittleLcc, assert_books_balance, dump, key, update

from lcc_scrapy.domain.cache import Tombstone
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.ops.housekeeping import sweep
from lcc_scrapy.providers.registration import want_full_set
from lcc_scrapy.queue import expiry
from lcc_scrapy.queue.held_removals import confirm_removals

DAY = 86_400


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(expiry, "CHUNK", 7)


def names(count, start=0):
    return [f"page{number:04d}" for number in range(start, start + count)]


def keep_house(lcc, days=0):
    """Let days pass and sweep once; returns the keys of what went."""
    lcc.now += days * DAY
    return [key for step in sweep(lcc.store, lcc.policy, lcc.now) for key, _ in step.removed]


def wanted(lcc):
    return lcc.provider().fullsetwanted


def test_after_ninety_days_a_full_set_is_wanted_and_nothing_goes(lcc):
    lcc.store_pages(*names(30))
    assert (keep_house(lcc, 89), wanted(lcc)) == ([], "")
    assert (keep_house(lcc, 1), wanted(lcc)) == ([], "old files")
    assert (keep_house(lcc, 89), wanted(lcc)) == ([], "old files")


def test_after_180_days_documents_go_by_the_portions_of_the_guard(lcc, caplog):
    lcc.store_pages(*names(100))
    lcc.now += 179 * DAY
    left, told = [], []
    while not left or left[-1]:
        keep_house(lcc, 1)
        left.append(len(lcc.documents()))
    assert left == [50, 25, 5, 0]
    told = [message for message in caplog.messages if "expired" in message]
    assert told == [
        (
            "provider 7: 50 documents expired, nobody has confirmed them for 180 days; more go each day, as many"
            " as LCC_MAX_REMOVAL lets pass"
        ),
        (
            "provider 7: 25 documents expired, nobody has confirmed them for 180 days; more go each day, as many"
            " as LCC_MAX_REMOVAL lets pass"
        ),
        (
            "provider 7: 20 documents expired, nobody has confirmed them for 180 days; more go each day, as many"
            " as LCC_MAX_REMOVAL lets pass"
        ),
        "provider 7: 5 documents expired, nobody has confirmed them for 180 days",
    ]
    assert wanted(lcc) == "expired files"
    gone = [row for row in lcc.feed() if isinstance(row, Tombstone)]
    assert {row.reason for row in gone} == {"not confirmed for too long"}
    assert len(gone) == 100


def test_a_second_sweep_of_the_same_day_removes_no_more(lcc):
    lcc.store_pages(*names(100))
    assert len(keep_house(lcc, 180)) == 50
    assert keep_house(lcc) == []
    lcc.now += DAY - 1
    assert keep_house(lcc) == []


def test_expiry_leaves_nothing_of_the_day_to_other_removals(lcc):
    lcc.store_pages(*names(100))
    lcc.now += 180 * DAY
    lcc.change(removed=40, removedsince=lcc.now)
    assert len(keep_house(lcc)) == 30
    assert lcc.provider().removed == 70


def test_the_login_of_its_provider_confirms_every_document(lcc):
    lcc.store_pages(*names(30))
    for day in range(0, 400, 20):
        lcc.change(confirmed=START + day * DAY)
        lcc.now = START + day * DAY
        assert (keep_house(lcc), wanted(lcc)) == ([], "")


def test_what_was_confirmed_itself_stays_when_the_rest_goes(lcc):
    lcc.store_pages(*names(10))
    lcc.now += 100 * DAY
    lcc.push(*[replace(update(name), declared=lcc.cached(name).declared) for name in names(3)])
    lcc.fetch_all()
    keep_house(lcc, 80)
    assert lcc.documents() == names(3)


@pytest.mark.parametrize("how", ["skip", "fetch", "304", "full set"])
def test_a_row_is_confirmed_by(lcc, how):
    lcc.push(update("a", b"body"), update("b"))
    lcc.fetch_all(body=b"body")
    lcc.now += 100 * DAY
    lcc.push(update("a", b"body" if how == "skip" else None), full=how == "full set")
    if how == "304":
        lcc.settle(lcc.not_modified(lcc.ticket("a")))
    elif how == "fetch":
        lcc.fetch_all(body=b"body")
    assert lcc.cached("a").confirmed_time == lcc.now
    lcc.now += 100 * DAY
    keep_house(lcc)
    assert lcc.documents() == ["a"]


def test_a_full_set_that_is_wanted_and_does_not_come_grows_old_and_expires(lcc):
    lcc.store_pages(*names(10))
    want_full_set(lcc.store, PID, "moving house")
    keep_house(lcc, 90)
    assert wanted(lcc) == "old files"
    keep_house(lcc, 90)
    assert (wanted(lcc), lcc.documents()) == ("expired files", [])


def test_a_graver_wish_stays_and_its_documents_expire_all_the_same(lcc):
    lcc.store_pages(*names(10))
    want_full_set(lcc.store, PID, "cache crash")
    keep_house(lcc, 180)
    assert (wanted(lcc), lcc.documents()) == ("cache crash", [])


def test_a_wish_of_each_day_does_not_outdate_the_set_that_answers_the_first(lcc):
    lcc.store_pages(*names(100))
    lcc.change(lastconnseq=4)
    keep_house(lcc, 180)
    lcc.change(lastconnseq=5)
    keep_house(lcc, 1)
    assert (lcc.provider().wantedseq, wanted(lcc)) == (4, "expired files")


def test_zero_means_never(lcc):
    lcc.policy = QueuePolicy(stale_after=0, expire_after=0, resend_period=10_000 * DAY)
    lcc.store_pages(*names(30))
    before = dump(lcc.store)
    assert keep_house(lcc, 4000) == []
    assert {**dump(lcc.store), "psets": before["psets"]} == before, "notes of sets without an id go"
    lcc.policy = QueuePolicy(stale_after=0)
    keep_house(lcc)
    assert (wanted(lcc), len(lcc.documents())) == ("expired files", 10)


def test_a_url_that_waits_is_still_fetched_when_its_copy_expires(lcc):
    lcc.store_pages("a", "b")
    lcc.push(update("a"))
    keep_house(lcc, 180)
    assert lcc.documents() == []
    assert lcc.waiting() == [("a", "fetch")]
    lcc.fetch_all()
    assert lcc.documents() == ["a"]


def test_a_document_whose_removal_is_held_expires_like_the_others(lcc):
    lcc.store_pages(*names(30))
    lcc.push(full=True)
    assert lcc.provider().heldremovals == 30
    keep_house(lcc, 180)
    assert (len(lcc.documents()), lcc.provider().heldremovals) == (10, 10)
    assert confirm_removals(lcc.store, PID, lcc.now, lcc.policy) == 10


def test_a_sweep_that_is_killed_goes_on_where_it_was(lcc):
    lcc.store_pages(*names(100))
    lcc.now += 180 * DAY
    dead = sweep(lcc.store, lcc.policy, lcc.now)
    for _ in range(4):
        next(dead)
    assert len(lcc.documents()) == 72
    assert len(keep_house(lcc)) == 22


def test_a_provider_that_comes_back_in_the_middle_loses_nothing_more(lcc):
    lcc.store_pages(*names(100))
    lcc.now += 180 * DAY
    sweeping = sweep(lcc.store, lcc.policy, lcc.now)
    next(sweeping)
    lcc.change(confirmed=lcc.now)
    assert not any(step.removed for step in sweeping)
    assert len(lcc.documents()) == 93


def test_a_provider_that_is_removed_in_the_middle_is_left_alone(lcc):
    lcc.store_pages(*names(100))
    lcc.add(8)
    lcc.store_pages("x", pid=8)
    lcc.now += 180 * DAY
    sweeping = sweep(lcc.store, lcc.policy, lcc.now)
    next(sweeping)
    with lcc.store.begin() as tx:
        tx.delete_provider(PID)
    list(sweeping)
    assert lcc.documents(8) == []
    with lcc.store.begin() as tx:
        tx.insert_provider(replace(lcc.provider(8), pid=PID, fileused=93, spaceused=tx.usage(PID)[1]), [])


@pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)
def test_several_processes_together_remove_no_more_than_one(store):
    lcc = LittleLcc(store)
    lcc.add()
    lcc.push(*map(update, names(60)))
    lcc.settle(*[lcc.served(ticket) for ticket in lcc.tickets()])
    lcc.now += 180 * DAY
    together = threading.Barrier(3)

    def keep_house_too():
        together.wait(300)
        for _ in range(20):
            with suppress(StoreUnavailable):
                list(sweep(store, lcc.policy, lcc.now))
                return

    threads = [threading.Thread(target=keep_house_too) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert (len(lcc.documents()), lcc.provider().removed, wanted(lcc)) == (30, 30, "expired files")
    assert_books_balance(store, lcc.files)


def test_confirmations_are_read_page_by_page(lcc):
    lcc.add(8)
    lcc.store_pages("x", pid=8)
    lcc.store_pages("a", "b", "c")
    with lcc.store.read() as tx:
        first = tx.confirmations(PID, b"", 2)
        rest = tx.confirmations(PID, first[-1][0], 2)
        assert tx.confirmations(PID, rest[-1][0], 2) == []
    assert [*first, *rest] == [(one, START) for one in sorted(map(key, "abc"))]
