"""How sets are absorbed into the queue (design section 5), on every store."""

import threading
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest
from little_lcc import (
    PID,
    START,
    Crash,
    LittleLcc,
    assert_books_balance,
    dump,
    key,
    present,
    removal,
    update,
    url,
)

from lcc_scrapy.cache import full_set_requests
from lcc_scrapy.db import retrying
from lcc_scrapy.domain.cache import Tombstone
from lcc_scrapy.domain.entries import Declared, Origin
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.intake.absorbing import Intake
from lcc_scrapy.queue import held_removals
from lcc_scrapy.queue.held_removals import confirm_removals
from lcc_scrapy.queue.unit_of_work import UnitOfWork

BODY = b"a body of some length"


def names(count, start=0):
    return [f"page{number:04d}" for number in range(start, start + count)]


# --- arrival of updates -----------------------------------------------------------------------------


def test_updates_queue_in_the_order_of_their_sets_and_within_them(lcc):
    lcc.push(update("d"), update("b"), update("c"), update("a"))
    lcc.push(update("z"), update("y"))
    assert [name for name, _ in lcc.waiting()] == ["d", "b", "c", "a", "z", "y"]


def test_a_second_submission_keeps_the_place_and_brings_the_newest_data(lcc):
    lcc.push(update("a"), update("b"))
    lcc.push(update("c"), update("a", BODY, burl=None, subtype="lang: nl"))
    assert [name for name, _ in lcc.waiting()] == ["a", "b", "c"]
    row = lcc.queued("a")
    assert (row.len, row.burl, row.subtype, row.version) == (len(BODY), None, "lang: nl", 2)


def test_a_url_named_twice_in_one_set_is_one_row_with_the_last_data(lcc):
    lcc.push(update("a", b"old"), update("b"), update("a", BODY))
    assert [name for name, _ in lcc.waiting()] == ["a", "b"]
    assert lcc.queued("a").len == len(BODY)


def test_the_last_of_update_and_removal_in_one_set_wins(lcc):
    lcc.store_pages("a", "b")
    lcc.push(removal("a"), update("a"), update("b"), removal("b"))
    assert lcc.waiting() == [("a", "fetch"), ("b", "nothing")]
    assert lcc.documents() == []


def test_views_of_one_curl_are_rows_of_their_own(lcc):
    types = ("text/html", "text/plain", "application/pdf")
    lcc.push(*[update("a", mimetype=mimetype) for mimetype in types])
    lcc.fetch_all()
    lcc.push(removal("a", "text/plain"))
    assert [lcc.cached("a", mimetype) is not None for mimetype in types] == [True, False, True]


def test_the_same_url_of_two_providers_is_two_rows(lcc):
    lcc.add(8)
    lcc.push(update("a"))
    lcc.push(update("a"), pid=8)
    lcc.push(removal("a"), pid=8)
    assert lcc.waiting() == [("a", "fetch")]
    assert lcc.waiting(8) == [("a", "nothing")]


def test_case_and_trailing_blanks_tell_urls_apart(lcc):
    lcc.push(update("a"), update("A"), update("a "), update("a  "))
    lcc.fetch_all()
    assert lcc.documents() == ["A", "a", "a ", "a  "]
    with lcc.store.read() as tx:
        found = [[row.curl for row in tx.find_url(url(name))[0]] for name in ("a", "a ", "A")]
    assert found == [[url("a")], [url("a ")], [url("A")]]


def test_a_url_is_found_by_docid_and_by_a_curl_that_looks_like_hex(lcc):
    lcc.push(replace(update("a"), curl="abcd"))
    docid = key("a").hex()
    lcc.push(update("a"))
    lcc.fetch_all()
    with lcc.store.read() as tx:
        assert [row.curl for row in tx.find_url("abcd")[0]] == ["abcd"]
        assert [row.curl for row in tx.find_url(docid)[0]] == [url("a")]
        assert tx.find_url("") == ([], [], [])


def test_a_url_is_found_by_either_of_its_names_wherever_it_stands(lcc):
    def found(place):
        with lcc.store.read() as tx:
            return [
                [row.curl for row in tx.find_url(name)[place]] for name in ("name of a", url("a"), url("b"))
            ]

    cached, queued, removed = range(3)
    both, expected = [replace(update("a"), curl="name of a"), update("b")], [["name of a"]] * 2 + [[url("b")]]
    lcc.push(*both)
    assert found(queued) == expected
    lcc.fetch_all()
    assert (found(cached), found(queued)) == (expected, [[], [], []])
    lcc.push(*[replace(removal("a"), curl=one.curl) for one in both])
    lcc.fetch_all()
    assert (found(cached)[2], found(removed)[2]) == ([], [url("b")])
    assert found(removed)[0] == ["name of a"]


def test_the_urls_before_one_are_counted_over_sets_and_hours(lcc):
    nights = replace(update("b"), timeofday="1" * 6 + "0" * 18)
    lcc.push(update("a"), nights)
    lcc.push(update("c"), replace(nights, curl=url("d"), furl=url("d")), update("e"), setid="second")
    with lcc.store.read() as tx:
        rows = sorted(tx.queued_of(PID, 0, 10), key=lambda row: (row.psetid, row.position))
        assert [tx.count_before(row) for row in rows] == [0, 1, 2, 3, 4]


def test_any_text_that_a_url_may_hold_comes_back_unchanged(lcc):
    curl = "Übersicht 日本/😀'\"\\%_;--.html "
    lcc.push(replace(update("a"), curl=curl, subtype="naïve: 'x' \\ \" 😀"))
    with lcc.store.read() as tx:
        row = tx.queued_of(PID, 0, 10)[0]
    assert (row.curl, row.subtype) == (curl, "naïve: 'x' \\ \" 😀")


def test_ifabsent_leaves_alone_what_is_waiting_or_stored(lcc):
    lcc.store_pages("stored")
    lcc.push(update("waiting"))
    lcc.push(update("stored", b"x"), update("waiting", b"x"), update("new", b"x"), ifabsent=True)
    assert lcc.waiting() == [("waiting", "fetch"), ("new", "fetch")]
    assert lcc.queued("waiting").len is None


def test_ifabsent_fetches_what_was_removed_a_moment_ago(lcc):
    lcc.push(update("a"))
    lcc.push(removal("a"))
    lcc.push(update("a"), ifabsent=True)
    assert lcc.waiting() == [("a", "fetch")]


# --- unchanged --------------------------------------------------------------------------------------


def test_equal_md5_and_len_are_not_fetched_and_the_new_mtime_is_kept(lcc):
    lcc.push(update("a", BODY, declared=Declared(100)))
    lcc.fetch("a", BODY)
    before = lcc.cached("a")
    lcc.now += 50
    lcc.push(update("a", BODY, declared=Declared(200)))
    assert lcc.waiting() == []
    assert lcc.cached("a") == replace(before, mtime=200, confirmed_time=lcc.now, seen=2)


def test_with_strict_mtime_another_mtime_is_a_change(lcc):
    lcc.change(strictmtime=True)
    lcc.push(update("a", BODY, declared=Declared(100)))
    lcc.fetch("a", BODY)
    lcc.push(update("a", BODY, declared=Declared(100)))
    assert lcc.waiting() == []
    lcc.push(update("a", BODY, declared=Declared(200)))
    assert lcc.waiting() == [("a", "fetch")]


@pytest.mark.parametrize("missing", ["md5", "length"])
def test_a_missing_md5_or_len_counts_as_changed(lcc, missing):
    lcc.push(update("a", BODY))
    lcc.fetch("a", BODY)
    again = update("a", BODY)
    lcc.push(replace(again, declared=replace(again.declared, **{missing: None})))
    assert lcc.waiting() == [("a", "fetch")]


def test_new_links_of_unchanged_content_reach_the_users_without_a_fetch(lcc):
    lcc.push(update("a", BODY))
    lcc.fetch("a", BODY)
    before = lcc.cached("a")
    lcc.push(update("a", BODY, burl=None))
    after = lcc.cached("a")
    assert lcc.waiting() == []
    assert (after.burl, after.fetched_time) == (None, before.fetched_time)
    assert after.seq > before.seq


# --- removals ---------------------------------------------------------------------------------------


def test_a_removal_of_something_cached_takes_the_row_and_dooms_its_file(lcc):
    lcc.store_pages("a", "b")
    fileid = lcc.cached("a").fetched_fileid
    lcc.push(removal("a"))
    assert lcc.documents() == ["b"]
    with lcc.store.read() as tx:
        assert tx.files_to_delete(1, lcc.now + 3599, 10) == []
        assert [file.fileid for file in tx.files_to_delete(1, lcc.now + 3600, 10)] == [fileid]


def test_a_removal_of_something_queued_makes_it_nothing_and_takes_the_old_copy(lcc):
    lcc.store_pages("a")
    lcc.push(update("a"), update("b"))
    lcc.push(removal("a"))
    assert lcc.waiting() == [("a", "nothing"), ("b", "fetch")]
    assert lcc.documents() == []


def test_a_removal_of_something_unknown_changes_no_row(lcc):
    lcc.push(removal("a"))
    assert (lcc.waiting(), lcc.documents(), lcc.feed()) == ([], [], [])


def test_an_update_after_a_removal_revives_the_row_in_its_first_place(lcc):
    lcc.push(update("a"), update("b"))
    lcc.push(removal("a"))
    lcc.push(update("a"))
    assert lcc.waiting() == [("a", "fetch"), ("b", "fetch")]


def test_elements_that_are_only_present_change_nothing_in_a_partial_set(lcc):
    lcc.store_pages("a")
    before = dump(lcc.store)
    lcc.push(present("a"), present("b"))
    after = dump(lcc.store)
    for table in ("lccurl", "qdb", "qpsdb", "tombstones", "pidb"):
        assert after[table] == before[table]


# --- full sets --------------------------------------------------------------------------------------


def test_a_full_set_removes_what_it_does_not_name_and_then_updates(lcc):
    lcc.store_pages("a", "b", "c", "d", "e", "f", "g")
    lcc.push(*[update(name) for name in "bcdefgh"], full=True)
    assert lcc.documents() == list("bcdefg")
    assert [name for name, _ in lcc.waiting()] == list("bcdefgh")


def test_a_full_set_cancels_what_waits_and_is_not_named(lcc):
    lcc.push(update("a"), update("b"), update("c"), update("d"))
    lcc.push(update("b"), full=True)
    assert lcc.waiting() == [("a", "nothing"), ("b", "fetch"), ("c", "nothing"), ("d", "nothing")]


def test_a_full_set_leaves_other_providers_and_other_origins_alone(lcc):
    lcc.add(8)
    lcc.store_pages("a", "spidered", "x")
    with lcc.store.begin() as tx:
        row = tx.cached([key("spidered")])[key("spidered")]
        tx.update_cached([replace(row, origin=Origin.SPIDER)])
    lcc.push(update("a"), pid=8)
    lcc.fetch_all(8)
    lcc.push(update("x"), full=True)
    assert lcc.documents() == ["spidered", "x"]
    assert lcc.documents(8) == ["a"]


def test_a_full_set_cancels_a_pushed_update_but_keeps_the_spidered_copy(lcc):
    lcc.store_pages("a", "x")
    with lcc.store.begin() as tx:
        row = tx.cached([key("a")])[key("a")]
        tx.update_cached([replace(row, origin=Origin.SPIDER)])
    lcc.push(update("a"))
    lcc.push(update("x"), full=True)
    assert lcc.documents() == ["a", "x"]
    assert lcc.waiting() == [("a", "nothing"), ("x", "fetch")]


def test_a_refused_url_with_a_readable_key_counts_as_present(lcc):
    lcc.store_pages("a", "b", "c", "d")
    lcc.push(present("a"), update("b", b"x"), present("c"), full=True)
    assert lcc.documents() == ["a", "b", "c"]


def test_an_unreadable_key_holds_the_removals_and_updates_go_on(lcc):
    lcc.store_pages("a", "b")
    steps = lcc.push(update("a"), update("new"), full=True, unreadable=1)
    assert lcc.documents() == ["a", "b"]
    assert lcc.held() == ["b"]
    assert steps[-1].held == 1
    assert lcc.waiting() == [("a", "fetch"), ("new", "fetch")]


def test_a_full_set_of_no_urls_is_always_held(lcc):
    lcc.store_pages("a")
    lcc.push(update("waiting"))
    lcc.push(full=True)
    assert lcc.held() == lcc.documents() == ["a"]
    assert lcc.waiting() == [("waiting", "fetch")]


def test_a_truncated_full_set_is_held(lcc):
    lcc.store_pages(*names(42))
    lcc.push(*map(update, names(20)), full=True)
    assert lcc.held() == names(22, 20)
    assert len(lcc.documents()) == 42


def test_one_url_of_a_thousand_removes_nothing(lcc, monkeypatch):
    monkeypatch.setattr("lcc_scrapy.intake.absorbing.CHUNK", 400)
    monkeypatch.setattr("lcc_scrapy.intake.absorbing.NEW_CHUNK", 400)
    lcc.push(*map(update, names(1000)))
    with lcc.store.begin() as tx:
        tx.lock_providers([PID])
    tickets = lcc.tickets(limit=1000)
    lcc.settle(*[lcc.served(ticket) for ticket in tickets])
    lcc.push(update(names(1)[0], b"new"), full=True)
    assert len(lcc.documents()) == 1000
    assert lcc.held() == names(999, 1)


def test_a_truncated_full_set_leaves_urls_waiting_that_were_never_fetched(lcc):
    lcc.push(*map(update, names(60)))
    lcc.push(update(names(1)[0]), full=True)
    assert {operation for _, operation in lcc.waiting()} == {"fetch"}
    assert len(lcc.waiting()) == 60


def test_half_of_the_documents_may_go_in_a_day(lcc):
    lcc.store_pages(*names(44))
    lcc.push(*map(update, names(22)), full=True)
    assert (lcc.held(), len(lcc.documents())) == ([], 22)
    lcc.push(*map(update, names(21)), full=True)
    assert lcc.held() == names(1, 21)


def test_removals_of_a_day_add_up_and_are_forgotten_after_it(lcc):
    lcc.store_pages(*names(40))
    lcc.push(*map(removal, names(20)))
    lcc.push(removal(names(1, 20)[0]))
    assert (len(lcc.documents()), lcc.held()) == (20, names(1, 20))
    lcc.now += 86_400
    lcc.push(*map(removal, names(20, 20)))
    assert lcc.documents() == []


def test_a_partial_set_with_too_many_removals_is_held_and_its_updates_go_on(lcc, caplog):
    lcc.store_pages(*names(30))
    lcc.push(*map(removal, names(25)), update("new"))
    assert len(lcc.documents()) == 30
    assert lcc.held() == names(25)
    assert lcc.waiting() == [("new", "fetch")]
    assert caplog.messages == [
        (
            "provider 7: 25 removals are held (removed by the set of login 2, which names 26 URLs): `lcc provider"
            " confirm-removals 7` carries them out, a later full set decides anew"
        )
    ]


def test_removals_of_what_is_not_cached_do_not_count_for_the_guard(lcc):
    lcc.store_pages(*names(44))
    lcc.push(*map(removal, names(1000, 100)), *map(removal, names(22)))
    assert (lcc.documents(), lcc.held()) == (names(22, 22), [])


def test_a_document_that_a_set_removes_twice_counts_once(lcc):
    lcc.store_pages(*names(44))
    lcc.push(*map(removal, [*names(22), *names(22)]))
    assert (lcc.documents(), lcc.held()) == (names(22, 22), [])


def test_more_than_half_of_the_cached_are_held_whatever_else_is_removed(lcc):
    lcc.store_pages(*names(44))
    lcc.push(*map(removal, names(1000, 100)), *map(removal, names(23)))
    assert (len(lcc.documents()), lcc.held()) == (44, names(23))


def test_a_few_removals_go_one_by_one_until_the_day_is_full(lcc, caplog):
    lcc.store_pages(*names(24))
    lcc.push(*map(removal, names(15)))
    lcc.push(*map(removal, names(9, 15)))
    assert (lcc.documents(), lcc.held()) == (names(4, 20), names(4, 20))
    assert caplog.messages == [
        (
            "provider 7: 1 removals are held (removed by the set of login 3, which names 9 URLs): `lcc provider"
            " confirm-removals 7` carries them out, a later full set decides anew"
        ),
        (
            "provider 7: 3 removals are held (removed by the set of login 3, which names 9 URLs): `lcc provider"
            " confirm-removals 7` carries them out, a later full set decides anew"
        ),
    ]


def test_what_the_guard_counted_stays_guarded_while_it_is_removed(lcc):
    """Between the count and the removals, fetches that find nothing use the day up."""
    lcc.store_pages(*names(60))
    lcc.push(*map(update, names(30, 30)))
    intake = Intake(lcc.store, lcc.spooled(*map(removal, names(30))), lcc.policy)
    for _ in range(11):
        intake.step(lcc.now)
    lcc.settle(*[lcc.failed(ticket, 404, final=True) for ticket in lcc.tickets()])
    while not intake.step(lcc.now).finished:
        pass
    assert len(lcc.documents()) == 30
    assert lcc.held() == names(30)


def test_what_a_full_set_may_remove_stays_guarded_while_it_is_removed(lcc, caplog):
    """Between the judgement and the removals, fetches that find nothing use the day up."""
    lcc.store_pages(*names(60))
    lcc.push(*map(update, names(30)))
    intake = Intake(lcc.store, lcc.spooled(*map(update, names(30)), full=True), lcc.policy)
    for _ in range(11):
        intake.step(lcc.now)
    lcc.settle(*[lcc.failed(ticket, 404, final=True) for ticket in lcc.tickets()][:20])
    while not intake.step(lcc.now).finished:
        pass
    assert len(lcc.documents()) == 30
    assert lcc.held() == lcc.documents()[10:]
    assert sum(int(message.split()[2]) for message in caplog.messages) == 20
    with lcc.store.read() as tx:
        assert [pset.held for pset in tx.held_psets(PID)] == [20]


def test_what_waits_for_its_first_fetch_counts_from_the_judgement_to_the_last_removal(lcc):
    lcc.store_pages(*names(25))
    lcc.push(*map(update, names(60, 100)))
    lcc.push(*map(update, names(60, 100)), full=True)
    assert (lcc.documents(), len(lcc.waiting())) == ([], 60)


def test_a_full_set_that_only_removes_names_nothing_and_is_held(lcc):
    lcc.store_pages("a", "b")
    lcc.push(removal("a"), full=True)
    assert lcc.held() == lcc.documents() == ["a", "b"]
    lcc.change(fullsetwanted="cache crash")
    lcc.push(removal("a"), full=True)
    assert lcc.provider().fullsetwanted == "cache crash"


def test_removals_of_what_was_never_fetched_are_not_held_but_done(lcc):
    lcc.push(*map(update, names(30)))
    lcc.push(*map(removal, names(25)))
    assert {operation for _, operation in lcc.waiting()[:25]} == {"nothing"}
    assert {operation for _, operation in lcc.waiting()[25:]} == {"fetch"}


def test_confirmed_removals_are_carried_out_with_tombstones(lcc):
    lcc.store_pages(*names(30))
    lcc.push(*map(removal, names(25)))
    lcc.push(update(names(1)[0]))
    told = []
    assert confirm_removals(lcc.store, PID, lcc.now, lcc.policy, told.append) == 24
    assert told == [24]
    assert lcc.documents() == [*names(1), *names(5, 25)]
    assert lcc.held() == []
    with lcc.store.read() as tx:
        assert tx.held_psets(PID) == []
    gone = [row for row in lcc.feed() if isinstance(row, Tombstone)]
    assert {row.reason for row in gone} == {"removal confirmed by the operator"}


def test_a_confirmed_removal_cancels_the_fetch_that_would_bring_its_document_back(lcc):
    lcc.store_pages(*names(30))
    lcc.push(update(names(1)[0]))
    lcc.push(*map(removal, names(25)))
    confirm_removals(lcc.store, PID, lcc.now, lcc.policy)
    assert lcc.waiting() == [(names(1)[0], "nothing")]
    lcc.fetch_all()
    assert lcc.documents() == names(5, 25)


def test_confirmed_removals_are_not_those_of_the_day(lcc):
    lcc.store_pages(*names(60))
    lcc.push(*map(removal, names(40)))
    assert confirm_removals(lcc.store, PID, lcc.now, lcc.policy) == 40
    lcc.push(*map(removal, names(20, 40)))
    assert (lcc.documents(), lcc.held()) == ([], [])


def test_confirming_goes_on_after_a_deadlock_a_lost_connection_and_a_kill(lcc, monkeypatch):
    monkeypatch.setattr(held_removals, "CHUNK", 4)
    monkeypatch.setattr(retrying, "PAUSES", (0, 0))
    lcc.store_pages(*names(30))
    lcc.push(*map(removal, names(25)))
    failing = Failing(lcc.store, {1: "before", 3: "after", 4: "before", 5: "before", 6: "before"})
    with pytest.raises(StoreUnavailable):
        confirm_removals(failing, PID, lcc.now, lcc.policy)
    assert len(lcc.documents()) == 22
    with lcc.store.read() as tx:
        assert tx.held_psets(PID), "a later full set still has to decide about the rest"
    assert confirm_removals(lcc.store, PID, lcc.now, lcc.policy) == 17
    assert lcc.documents() == names(5, 25)


def test_the_holds_of_a_set_that_is_being_absorbed_outlive_a_confirmation(lcc):
    lcc.store_pages(*names(30))
    intake = Intake(lcc.store, lcc.spooled(*map(removal, names(25))), lcc.policy)
    for _ in range(11):
        intake.step(lcc.now)
    assert confirm_removals(lcc.store, PID, lcc.now, lcc.policy) == 3
    while not intake.step(lcc.now).finished:
        pass
    assert lcc.held() == names(22, 3)


def test_a_held_removal_is_still_held_after_a_fetch_that_was_asked_for_before_it(lcc):
    lcc.store_pages(*names(30))
    lcc.push(update(names(1)[0]))
    lcc.push(*map(removal, names(25)))
    lcc.fetch(names(1)[0], b"a newer body")
    assert lcc.held() == names(25)


def test_a_held_removal_whose_document_answers_unchanged_is_still_held(lcc):
    lcc.store_pages(*names(30))
    lcc.push(update(names(1)[0]))
    lcc.push(*map(removal, names(25)))
    lcc.settle(lcc.not_modified(lcc.ticket(names(1)[0])))
    assert lcc.held() == names(25)


@pytest.mark.parametrize("how", ["update", "unchanged", "full"])
def test_a_later_arrival_releases_a_hold(lcc, how):
    body = BODY if how == "unchanged" else None
    lcc.push(update("a", BODY))
    lcc.fetch("a", BODY)
    lcc.store_pages(*names(30))
    lcc.push(*map(removal, names(29)), removal("a"))
    assert "a" in lcc.held()
    lcc.push(update("a", body), full=how == "full", unreadable=1 if how == "full" else 0)
    assert "a" not in lcc.held()
    assert len(lcc.held()) >= 29


def test_a_hold_counts_whichever_set_it_is_for(lcc):
    lcc.store_pages("a", "b")
    with lcc.store.begin() as tx:
        batch = UnitOfWork(tx, [PID], [key("a"), key("b")], lcc.now, lcc.policy)
        batch.remove(key("a"), 1, "", hold=True)
        batch.flush()
    assert (lcc.held(), lcc.provider().heldremovals) == (["a"], 1)


def test_a_later_full_set_decides_about_what_is_held(lcc):
    lcc.store_pages(*names(30))
    lcc.push(*map(removal, names(25)))
    lcc.push(*map(update, names(20)), full=True)
    assert lcc.held() == []
    assert lcc.documents() == names(20)
    with lcc.store.read() as tx:
        assert tx.held_psets(PID) == []


def test_confirming_for_an_unknown_provider_does_nothing(lcc):
    assert confirm_removals(lcc.store, 99, lcc.now, lcc.policy) == 0


def test_what_is_fetched_between_the_phases_of_a_full_set_is_not_removed(lcc):
    lcc.push(update("a"), update("b"))
    tickets = lcc.tickets()
    full = lcc.spooled(update("a"), update("b"), update("c"), full=True)
    intake = Intake(lcc.store, full, lcc.policy)
    intake.step(lcc.now)
    lcc.settle(*[lcc.served(ticket) for ticket in tickets])
    while not intake.step(lcc.now).finished:
        pass
    assert lcc.documents() == ["a", "b"]


@pytest.fixture
def small_portions(monkeypatch):
    """What a full set does not name is counted, and looked for, among three keys at a time."""
    monkeypatch.setattr("lcc_scrapy.intake.absorbing.SPAN", 3)


def count_some(lcc, intake):
    """Let a full set be read, and some of what it does not name be counted, but not all."""
    for _ in range(100):
        intake.step(lcc.now)
        with lcc.store.read() as tx:
            pset = tx.pset_of(PID, lcc.connseq)
        if pset.phase == "absent" and pset.absent + pset.unfetched > 3:
            return
    pytest.fail("it was counted at once")


def test_nothing_is_removed_before_everything_was_counted(lcc, small_portions):
    lcc.store_pages(*names(40))
    intake = Intake(lcc.store, lcc.spooled(*map(update, names(20, 20)), full=True), lcc.policy)
    count_some(lcc, intake)
    phase, steps = "absent", 0
    while phase == "absent":
        assert lcc.documents() == names(40)
        intake.step(lcc.now)
        with lcc.store.read() as tx:
            phase = tx.pset_of(PID, lcc.connseq).phase
        steps += 1
    assert (phase, steps > 5) == ("removals", True)
    assert lcc.documents() == names(40)
    while not intake.step(lcc.now).finished:
        pass
    assert (lcc.documents(), lcc.held()) == (names(20, 20), [])


@pytest.mark.parametrize(("absent", "held"), [(40, False), (41, True)])
def test_what_is_fetched_while_a_full_set_is_counted_counts_once(lcc, small_portions, absent, held):
    named = names(40, 100)
    lcc.store_pages(*named)
    lcc.push(*map(update, names(absent)))
    intake = Intake(lcc.store, lcc.spooled(*map(present, named), full=True), lcc.policy)
    count_some(lcc, intake)
    lcc.settle(*[lcc.served(ticket) for ticket in lcc.tickets()[::2]])
    while not intake.step(lcc.now).finished:
        pass
    fetched = names(absent)[::2]
    assert lcc.held() == (fetched if held else [])
    assert lcc.documents() == sorted([*named, *(fetched if held else [])])


def test_what_waits_behind_many_that_a_full_set_names_is_cancelled_too(lcc, small_portions):
    lcc.store_pages(*names(2, 100))
    lcc.push(*map(update, names(20)))
    lcc.push(*map(update, [*names(18), *names(2, 100)]), full=True)
    with lcc.store.read() as tx:
        cancelled = [row.curl for row in tx.queued_of(PID, 0, 100) if row.operation == "nothing"]
    assert cancelled == [url(name) for name in names(2, 18)]


@pytest.mark.parametrize("missing", [30, 31])
def test_a_full_set_that_is_opened_anew_for_each_step_comes_to_its_end(lcc, small_portions, missing):
    lcc.store_pages(*names(60))
    full = lcc.spooled(*map(present, names(60 - missing)), full=True)
    for steps in range(200):  # noqa: B007 - of use below
        if Intake(lcc.store, full, lcc.policy).step(lcc.now).finished:
            break
    gone = names(missing, 60 - missing)
    assert steps < 120
    assert lcc.held() == (gone if missing > 30 else [])
    assert lcc.documents() == (names(60) if missing > 30 else names(60 - missing))


# --- the count of full sets -------------------------------------------------------------------------


def test_full_sets_are_counted_within_their_period(lcc):
    lcc.push(update("a"), full=True)
    lcc.push(update("a"))
    assert lcc.provider().fullsetsused == 0
    lcc.push(update("a"), full=True, charged=True)
    lcc.push(update("a"), full=True, charged=True)
    assert (lcc.provider().fullsetsused, lcc.provider().fullsetsince) == (2, START)
    lcc.now += int(lcc.policy.fullset_period)
    lcc.push(update("a"), full=True, charged=True)
    assert (lcc.provider().fullsetsused, lcc.provider().fullsetsince) == (1, lcc.now)


def test_a_resend_of_a_full_set_is_not_counted_again(lcc):
    for _ in range(2):
        lcc.push(update("a"), full=True, charged=True, setid="s", digest="d")
    assert lcc.provider().fullsetsused == 1


def test_a_restart_does_not_count_a_full_set_twice(lcc):
    full = lcc.spooled(*map(update, "abcdefg"), full=True, charged=True)
    for _ in range(3):
        Intake(lcc.store, full, lcc.policy).step(lcc.now)
    lcc.absorb(full)
    assert lcc.provider().fullsetsused == 1


# --- resends and restarts ---------------------------------------------------------------------------


def test_an_exact_resend_of_a_set_with_the_same_id_changes_nothing(lcc):
    lcc.store_pages("x")
    lcc.push(update("a"), full=True, setid="set 1", digest="d1")
    lcc.fetch_all()
    before = dump(lcc.store)
    lcc.now += 30 * 86_400
    steps = lcc.push(update("a"), full=True, setid="set 1", digest="d1")
    assert dump(lcc.store) == before
    assert [step.finished for step in steps] == [True]


def test_an_exact_resend_of_a_full_set_is_absorbed_anew_when_it_answers_a_wish(lcc):
    lcc.push(update("a"), update("b"), full=True, setid="s", digest="d")
    lcc.fetch_all()
    with lcc.store.begin() as tx:
        full_set_requests.want(tx, PID, "cache crash")
        tx.update_provider(PID, {"wantedseq": 1})
    lcc.push(removal("b"))
    lcc.push(update("a"), update("b"), full=True, setid="s", digest="d")
    assert lcc.provider().fullsetwanted == ""
    assert [name for name, _ in lcc.waiting()] == ["a", "b"]


@pytest.mark.parametrize(
    "other", [{"setid": "set 2", "digest": "d1"}, {"setid": "set 1", "digest": "d2"}, {"digest": "d1"}]
)
def test_another_id_or_digest_or_no_id_is_a_new_set(lcc, other):
    lcc.push(update("a"), **{**other, "setid": other.get("setid", "") and "set 1", "digest": "d1"})
    lcc.push(update("a"), **other)
    assert lcc.queued("a").version == 2


def test_a_resend_after_its_period_is_a_new_set(lcc):
    lcc.push(update("a"), setid="set 1", digest="d1")
    lcc.now += 30 * 86_400 + 1
    lcc.push(update("a"), setid="set 1", digest="d1")
    assert lcc.queued("a").version == 2


def test_a_set_that_was_absorbed_is_not_absorbed_again(lcc):
    spooled = lcc.spooled(update("a"))
    lcc.absorb(spooled)
    before = dump(lcc.store)
    lcc.absorb(spooled)
    assert dump(lcc.store) == before


def test_a_set_of_a_provider_that_is_gone_is_finished(lcc):
    spooled = lcc.spooled(*map(update, "abcdefg"))
    intake = Intake(lcc.store, spooled, lcc.policy)
    intake.step(lcc.now)
    with lcc.store.begin() as tx:
        tx.delete_provider(PID)
    assert intake.step(lcc.now).finished
    lcc.add(PID, nurlproc=3)


@pytest.mark.parametrize("store", ["mariadb", "postgresql"], indirect=True)
def test_two_processes_that_absorb_the_same_set_do_it_once(lcc):
    spooled = lcc.spooled(*map(update, names(30)))
    together = threading.Barrier(3)

    def absorb():
        intake = Intake(lcc.store, spooled, lcc.policy)
        together.wait(300)
        for _ in range(500):
            with suppress(StoreUnavailable):
                if intake.step(lcc.now).finished:
                    return

    threads = [threading.Thread(target=absorb) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert [name for name, _ in lcc.waiting()] == names(30)
    with lcc.store.read() as tx:
        assert {row.version for row in tx.queued_of(PID, 0, 100)} == {1}
        assert tx.peek("psetid") == 1


class Failing:
    """A store whose nth transactions fail: ``before`` their commit, or ``after`` it."""

    def __init__(self, store, failures):
        self._store = store
        self._failures = failures
        self._number = 0

    def read(self):
        return self._store.read()

    @contextmanager
    def begin(self):
        self._number += 1
        how = self._failures.get(self._number)
        with self._store.begin() as tx:
            yield tx
            if how == "before":
                raise StoreUnavailable("deadlock")
        if how == "after":
            raise StoreUnavailable("lost connection")


class Dying:
    """A store whose transactions can be made to end in a crash just before they commit."""

    def __init__(self, store, dies_at):
        self._store = store
        self._left = dies_at

    def begin(self):
        return self._dying(self._store.begin())

    def read(self):
        return self._store.read()

    def _dying(self, transaction):
        outer = self

        class Transaction:
            def __enter__(self):
                return transaction.__enter__()

            def __exit__(self, kind, error, trace):
                outer._left -= 1
                if kind is None and outer._left == 0:
                    crash = Crash()
                    transaction.__exit__(Crash, crash, None)
                    raise crash
                return transaction.__exit__(kind, error, trace)

        return Transaction()


def ordinary(lcc):
    return [
        lcc.spooled(removal(names(1)[0]), *map(update, [*names(3, 3), "new1", "new2"])),
        lcc.spooled(
            *map(update, [*names(4, 2), "new2", "new3", "new4"]),
            removal("new1"),
            full=True,
            charged=True,
            setid="f",
        ),
    ]


def doubtful(lcc):
    """The removals of the first set are counted and pass; those of the second set are held."""
    return [
        lcc.spooled(*map(removal, names(4)), update("new"), *map(removal, names(9, 90))),
        lcc.spooled(update(names(1, 4)[0]), update("new"), full=True, charged=True, unreadable=1),
    ]


def story(store, sets_of, how=None):
    """Absorb two sets, dying before the commit of step ``how`` or starting anew after it."""
    lcc = LittleLcc(store)
    lcc.add()
    lcc.push(*map(update, names(8)))
    lcc.fetch_all()
    sets = sets_of(lcc)
    kind, at = how or ("", 0)
    dying = Dying(store, at) if kind == "rolled back" else store
    steps = 0
    for spooled in sets:
        intake = Intake(dying, spooled, lcc.policy)
        while True:
            steps += 1
            if kind == "new process" and steps == at:
                intake = Intake(store, spooled, lcc.policy)
            try:
                if intake.step(lcc.now).finished:
                    break
            except Crash:
                intake = Intake(store, spooled, lcc.policy)
    assert_books_balance(store, lcc.files)
    return dump(store), steps


@pytest.mark.soak_of("postgresql")
@pytest.mark.parametrize("sets", [ordinary, doubtful])
@pytest.mark.parametrize("kind", ["rolled back", "new process"])
def test_a_crash_at_any_step_gives_the_same_end(store, empty, monkeypatch, kind, sets):
    monkeypatch.setattr("lcc_scrapy.intake.absorbing.CHUNK", 3)
    monkeypatch.setattr("lcc_scrapy.intake.absorbing.NEW_CHUNK", 3)
    monkeypatch.setattr("lcc_scrapy.intake.absorbing.SPAN", 3)
    monkeypatch.setattr("lcc_scrapy.domain.removal_guard.FEW", 2)
    expected, steps = story(store, sets)
    assert steps >= 9
    for at in range(1, steps + 1):
        empty(store)
        assert story(store, sets, (kind, at))[0] == expected


def test_the_doubtful_sets_are_counted_and_held(lcc, monkeypatch):
    monkeypatch.setattr("lcc_scrapy.domain.removal_guard.FEW", 2)
    lcc.store_pages(*names(8))
    first, second = doubtful(lcc)
    lcc.absorb(first)
    assert (lcc.documents(), lcc.held()) == (names(4, 4), [])
    lcc.absorb(second)
    assert (lcc.documents(), lcc.held()) == (names(4, 4), names(3, 5))


def test_an_error_in_the_middle_of_a_step_leaves_no_trace_of_it(lcc, monkeypatch):
    lcc.store_pages("a")
    spooled = lcc.spooled(update("b"), update("c"), removal("a"))
    before = dump(lcc.store)

    def broken(*_, **__):
        raise Crash  # behind the new URLs

    monkeypatch.setattr(UnitOfWork, "remove_pushed", broken)
    with pytest.raises(Crash):
        Intake(lcc.store, spooled, lcc.policy).step(lcc.now)
    assert dump(lcc.store) == before


def test_a_step_says_how_many_entries_it_took_and_what_went(lcc):
    lcc.store_pages("x", "y")
    partial = lcc.push(update("a"), update("b"), removal("x"), update("d"))
    assert [(step.entries, step.finished) for step in partial] == [(3, False), (1, True)]
    assert [step.removed for step in partial] == [((key("x"), "removed by its provider"),), ()]
    full = lcc.push(update("d"), full=True)
    assert [gone for step in full for gone in step.removed] == [(key("y"), "not in the full set")]
    assert {step.pid for step in [*partial, *full]} == {PID}


def test_the_guard_follows_the_operators_share(lcc):
    lcc.policy = QueuePolicy(max_removal=0.9)
    lcc.store_pages(*names(30))
    lcc.push(*map(removal, names(25)))
    assert lcc.documents() == names(5, 25)


def test_removals_of_a_full_set_that_are_held_are_told_in_one_line(lcc, caplog):
    lcc.store_pages(*names(60))
    lcc.push(*map(update, names(10)), full=True)
    (told,) = caplog.messages
    assert "provider 7: 50 removals are held (not in the full set of login" in told
    assert len(lcc.held()) == 50
