"""What becomes of a row of the queue, and of a document, when something arrives or is settled."""

from dataclasses import replace

import pytest

from lcc_scrapy.domain.cache import OUTSIDE_ROOTS, Answer, Body, CachedUrl
from lcc_scrapy.domain.entries import ANY_TYPE, Declared, Origin, UrlEntry, urlkey
from lcc_scrapy.domain.queue import (
    END_OF_SET,
    FETCH,
    NOTHING,
    NotModified,
    Place,
    QueuedUrl,
    Served,
    Ticket,
    arrive_again,
    as_rechecked,
    as_told,
    at_once,
    cancel,
    confirmed_by,
    confirmed_row,
    is_among,
    is_recheck,
    is_sample,
    is_unchanged,
    mismatch,
    overtaken,
    stored_row,
    superseded,
    try_again,
    update_row,
)

KEY = b"k" * 16
ENTRY = UrlEntry("http://x/a", "text/html", furl="http://x/a")
ROW = update_row(ENTRY, KEY, 7, Place(5, 3))
TRIED = replace(ROW, position=3 + 2 * END_OF_SET, version=4, tries=2, not_before=900, seen=5)
BODY = Body(4, "m" * 32, "s" * 64, encoding="gzip")
ANSWER = Answer(200, "http://x/a", "text/html", "utf-8", "e", "l", "", "HTTP/1.1 200 OK", "10.0.0.1", 1000)


def stored(row: QueuedUrl = ROW, before: CachedUrl | None = None, body: Body = BODY, **answer) -> CachedUrl:
    served = Served(Ticket(row, "t", 1), replace(ANSWER, **answer), body, fileid=77)
    return stored_row(served, row, before, machineid=8)


# --- arrival ----------------------------------------------------------------------------------------


def test_a_new_row_waits_for_nothing_and_has_failed_never():
    row = update_row(ENTRY, KEY, 7, Place(5, 3))
    assert (row.psetid, row.position, row.operation) == (5, 3, FETCH)
    assert (row.version, row.tries, row.not_before) == (1, 0, 0)


@pytest.mark.parametrize(("named", "seen"), [(True, 5), (False, 0)])
def test_only_a_set_that_somebody_made_names_a_new_url(named, seen):
    assert update_row(ENTRY, KEY, 7, Place(5, 3, named=named)).seen == seen


@pytest.mark.parametrize(("named", "seen"), [(True, 9), (False, 5)])
def test_what_was_removed_and_arrives_again_is_fetched_in_its_first_place_with_all_its_tries(named, seen):
    row = arrive_again(replace(TRIED, operation=NOTHING), ENTRY, Place(9, 1, named=named))
    assert (row.psetid, row.position, row.operation) == (5, 3, FETCH)
    assert (row.version, row.tries, row.not_before, row.seen) == (5, 0, 0, seen)


def test_what_is_to_be_fetched_at_once_has_its_first_place_and_the_tries_that_are_left():
    assert at_once(TRIED) == replace(TRIED, position=3, version=5, not_before=0)


@pytest.mark.parametrize(
    "change", [{"md5": "n" * 32}, {"len": 5}, {"furl": "http://x/b"}, {"operation": NOTHING}]
)
def test_what_declares_something_else_has_its_first_place_and_all_its_tries(change):
    entry = replace(ENTRY, declared=Declared(9, 4, "m" * 32))
    waiting = replace(TRIED, **{"md5": "m" * 32, "len": 4, "last_etag": '"e"', **change})
    row = arrive_again(waiting, entry, Place(9, 1))
    assert (row.position, row.tries, row.not_before, row.last_etag) == (3, 0, 0, "")


@pytest.mark.parametrize(
    "declared", [Declared(9), Declared(9, 4), Declared(9, None, "m" * 32), Declared(9, 4, "m" * 32)]
)
def test_an_equal_declaration_changes_neither_place_nor_tries_nor_time(declared):
    entry = replace(ENTRY, declared=declared, subtype="a: b")
    waiting = replace(TRIED, mtime=1, len=declared.length, md5=declared.md5, last_etag='"e"')
    row = arrive_again(waiting, entry, Place(9, 1))
    assert row == replace(waiting, mtime=9, subtype="a: b", version=5, seen=9, sent=None)
    known = None not in {declared.length, declared.md5}
    assert overtaken(row, Ticket(waiting, "t", 1)) == (not known)
    assert not superseded(row, Ticket(waiting, "t", 1))
    assert superseded(replace(row, len=8), Ticket(waiting, "t", 1))


def test_a_removal_cancels_a_waiting_fetch_and_whatever_is_under_way():
    assert cancel(TRIED, 9) == replace(TRIED, operation=NOTHING, version=5, not_before=0, seen=9)


def test_a_url_that_failed_queues_behind_its_set_until_its_time():
    assert try_again(ROW, 1000.9) == replace(ROW, tries=1, not_before=1000, position=3 + END_OF_SET)
    assert try_again(TRIED, 1000).position == 3 + 3 * END_OF_SET
    assert try_again(ROW, 0.5).not_before == 1, "0 would be a URL that did not fail"


def test_an_mtime_that_is_not_declared_again_stays():
    cached = stored(replace(ROW, mtime=500))
    assert confirmed_by(ENTRY, cached, 9, 2000).mtime == 500
    assert confirmed_by(replace(ENTRY, declared=Declared(600)), cached, 9, 2000).mtime == 600
    assert confirmed_by(replace(ENTRY, declared=Declared(0)), cached, 9, 2000).mtime == 0


# --- looks that nobody asked for --------------------------------------------------------------------


def test_samples_and_refetches_are_rechecks_and_only_samples_are_counted():
    rows = [replace(ROW, origin=origin) for origin in (Origin.PUSH, Origin.SAMPLE, Origin.REFETCH)]
    assert [is_sample(row) for row in rows] == [False, True, False]
    assert [is_recheck(row) for row in rows] == [False, True, True]


def test_a_recheck_keeps_what_was_declared():
    pushed = replace(ROW, len=10, md5="d" * 32, mtime=500)
    before = stored(pushed)
    looked = replace(ROW, origin=Origin.SAMPLE, seen=99)
    row = as_rechecked(looked, before)
    assert (row.len, row.md5, row.mtime, row.seen) == (10, "d" * 32, 500, before.seen)


def test_a_304_to_a_recheck_changes_nothing_that_was_declared():
    before = stored(replace(ROW, mtime=500, subtype="a: b"))
    looked = Ticket(replace(ROW, origin=Origin.SAMPLE, seen=99), "t", 1)
    assert confirmed_row(NotModified(looked, 2000), 99, before) == replace(before, confirmed_time=2000)
    pushed = Ticket(replace(ROW, mtime=600), "t", 1)
    assert confirmed_row(NotModified(pushed, 2000), 99, before).mtime == 600


# --- what is stored ---------------------------------------------------------------------------------


def test_a_first_content_is_stored_with_its_file_and_time():
    row = stored()
    assert (row.fetched_time, row.fetched_machineid, row.fetched_fileid) == (1000, 8, 77)
    assert (row.file_encoding, row.seq, row.subtype_seq, row.held, row.seen) == ("gzip", 0, 0, 0, 5)


BEFORE = replace(
    stored(),
    fetched_time=500,
    fetched_machineid=2,
    fetched_fileid=33,
    file_encoding="br",
    seq=44,
    subtype_seq=43,
    seen=6,
    held=12,
)


def test_the_same_content_keeps_its_file_and_time():
    row = stored(before=BEFORE)
    assert (row.fetched_time, row.fetched_machineid, row.fetched_fileid) == (500, 2, 33)
    assert (row.file_encoding, row.seq, row.subtype_seq, row.seen) == ("br", 44, 43, 6)
    assert row.confirmed_time == 1000


def test_another_content_has_its_own_file_and_time_and_the_place_in_the_feed_of_the_former():
    row = stored(before=BEFORE, body=Body(6, "n" * 32, "t" * 64))
    assert (row.fetched_time, row.fetched_machineid, row.fetched_fileid) == (1000, 8, 77)
    assert (row.file_encoding, row.seq, row.subtype_seq, row.seen) == ("", 44, 43, 6)


def test_a_hold_outlasts_a_fetch_of_what_was_pushed_and_ends_with_what_was_found():
    assert stored(before=BEFORE).held == 12
    assert stored(replace(ROW, origin=Origin.SPIDER), before=BEFORE).held == 0
    assert stored(before=replace(BEFORE, held=OUTSIDE_ROOTS)).held == 0


# --- mismatches -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "served", "code"),
    [
        ("text/html", "text/html", 0),
        ("*/*", "image/png", 0),
        ("text/xml", "application/xml", 0),
        ("text/html", "image/png", 607),
        ("text/html", "", 0),
        ("text/html", "application/octet-stream", 0),
        ("text/xml", "text/html", 607),
        ("image/png", "image/png", 0),
    ],
)
def test_a_type_is_as_declared_or_one_of_its_other_names(declared, served, code):
    assert mismatch(replace(ROW, mimetype=declared), replace(ANSWER, served_type=served), BODY) == code


@pytest.mark.parametrize(
    ("declared", "code"),
    [({"len": 4}, 0), ({"md5": "m" * 32}, 0), ({"len": 5}, 608), ({"md5": "n" * 32}, 608), ({"len": 0}, 608)],
)
def test_a_body_has_the_length_and_digest_that_were_declared(declared, code):
    assert mismatch(replace(ROW, **declared), ANSWER, BODY) == code


def test_a_document_outside_the_roots_is_fetched_again_though_its_declaration_is_the_same():
    entry = replace(ENTRY, declared=Declared(5, BODY.length, BODY.md5))
    held = replace(stored(), mtime=5, origin=Origin.PUSH)
    assert is_unchanged(entry, held, strict_mtime=False)
    assert not is_unchanged(entry, replace(held, held=OUTSIDE_ROOTS), strict_mtime=False)


def test_a_url_is_among_keys_by_its_own_or_as_a_visit():
    of_visit = urlkey(ROW.pid, ROW.furl, ANY_TYPE)
    assert [is_among(ROW, keys) for keys in ({KEY}, {of_visit}, {b"x" * 16})] == [True, True, False]


def test_an_indexnow_submission_is_told_as_a_push_when_its_type_is_known():
    assert as_told(replace(ROW, origin=Origin.INDEXNOW)).origin == Origin.PUSH
    assert as_told(replace(ROW, origin=Origin.SPIDER)).origin == Origin.SPIDER


def test_only_equal_content_keeps_what_was_confirmed_of_it():
    before = replace(stored(), confirmed_seq=9, owners_seq=4)
    assert (stored(before=before).confirmed_seq, stored(before=before).owners_seq) == (9, 4)
    changed = stored(before=before, body=replace(BODY, sha256="t" * 64))
    assert (changed.confirmed_seq, changed.owners_seq) == (0, 4)
    assert (stored().confirmed_seq, stored().owners_seq) == (0, 0)
