"""What becomes of queue, cache and errors after a fetch (design section 5), on every store."""

import json
from dataclasses import replace

import pytest
from little_lcc import MACHINE, PID, START, dump, key, removal, update, url

from lcc_scrapy.cache.last_outcomes import entry_of, of_fetch, origin_of
from lcc_scrapy.db.records import CONFIRMED as CONFIRMED_ROW
from lcc_scrapy.db.records import OUTCOME_STORED, LastOutcome
from lcc_scrapy.domain.cache import Tombstone
from lcc_scrapy.domain.entries import Declared, Origin
from lcc_scrapy.domain.errors import NotDurable
from lcc_scrapy.domain.policy import STRICT, QueuePolicy
from lcc_scrapy.domain.queue import Cancelled, Delayed, HostNoted
from lcc_scrapy.domain.retries import Backoff
from lcc_scrapy.domain.sent import with_form
from lcc_scrapy.queue.settlement import (
    CONFIRMED,
    DELAYED,
    DISCARDED,
    FAILED,
    LOST,
    RETRYING,
    STORED,
    Settlement,
)

BODY = b"a body of some length"
DELAYS = (60, 600, 3600)


def names(count):
    return [f"page{number:04d}" for number in range(count)]


# --- served -----------------------------------------------------------------------------------------


def test_a_fetched_document_is_stored_and_leaves_the_queue(lcc):
    lcc.push(update("a", BODY, subtype="lang: nl", declared=Declared(100)))
    settled = lcc.fetch("a", BODY)
    row = lcc.cached("a")
    assert (settled.result, settled.row) == (STORED, row)
    assert lcc.queued("a") is None
    assert (row.fetched_time, row.fetched_machineid, row.fetched_len) == (START, MACHINE, len(BODY))
    assert (row.mtime, row.subtype, row.seq, row.etag) == (100, "lang: nl", 1, '"1"')
    assert lcc.files == {row.fetched_fileid: BODY}
    with lcc.store.read() as tx:
        assert tx.meta(key("a")).status_line == "HTTP/1.1 200 OK"


def test_new_content_takes_a_new_file_and_a_new_place_in_the_feed(lcc):
    lcc.store_pages("a", "b")
    before = lcc.cached("a")
    lcc.push(update("a"))
    lcc.now += 10
    lcc.fetch("a", b"new")
    after = lcc.cached("a")
    assert after.fetched_fileid > before.fetched_fileid
    assert after.seq > lcc.cached("b").seq
    with lcc.store.read() as tx:
        assert [file.fileid for file in tx.files_to_delete(MACHINE, lcc.now + 3600, 9)] == [
            before.fetched_fileid
        ]


def test_a_body_that_has_its_file_id_keeps_it(lcc):
    lcc.push(update("a"))
    lcc.settle(replace(lcc.served(lcc.ticket("a"), BODY), fileid=77))
    assert lcc.cached("a").fetched_fileid == 77
    assert lcc.files == {77: BODY}


def test_identical_content_is_confirmed_and_changes_neither_feed_nor_time(lcc):
    lcc.store_pages("a")
    before = lcc.cached("a")
    lcc.push(update("a", declared=Declared(5)))
    lcc.now += 10
    settled = lcc.fetch("a", lcc.files[before.fetched_fileid], etag='"2"')
    assert settled.result == CONFIRMED
    assert lcc.cached("a") == replace(
        before, mtime=5, etag='"2"', confirmed_time=lcc.now, seen=2, confirmed_seq=1
    )
    assert lcc.queued("a") is None


def test_not_modified_confirms_and_changes_neither_feed_nor_time(lcc):
    lcc.store_pages("a")
    before = lcc.cached("a")
    lcc.push(update("a", declared=Declared(5)))
    lcc.now += 10
    settled = lcc.settle(lcc.not_modified(lcc.ticket("a")))[0]
    assert (settled.result, lcc.queued("a")) == (CONFIRMED, None)
    assert lcc.cached("a") == replace(before, mtime=5, confirmed_time=lcc.now, seen=2, confirmed_seq=1)


def test_not_modified_without_a_copy_is_fetched_again_without_conditions(lcc):
    lcc.store_pages("a")
    lcc.push(update("a"))
    ticket = lcc.ticket("a")
    assert ticket.etag == '"1"'
    with lcc.store.begin() as tx:
        row = tx.cached([key("a")])[key("a")]
        tx.delete_cached([key("a")])
        tx.add_to_provider(PID, {"fileused": -1, "spaceused": -row.fetched_len})
    lcc.files.clear()
    assert lcc.settle(lcc.not_modified(ticket))[0].result == DISCARDED
    assert lcc.ticket("a").etag == ""


def test_an_update_during_a_fetch_that_finds_nothing_modified_is_fetched_in_its_turn(lcc):
    lcc.store_pages("a")
    lcc.push(update("a", b"first"))
    ticket = lcc.ticket("a")
    lcc.push(update("a", b"declared anew"))
    assert lcc.settle(lcc.not_modified(ticket))[0].result == CONFIRMED
    assert lcc.waiting() == [("a", "fetch")]


def test_an_update_during_the_fetch_is_stored_and_fetched_again_in_its_place(lcc):
    lcc.push(update("a"), update("b"))
    ticket = lcc.ticket("a")
    lcc.push(update("a", b"declared anew"))
    assert lcc.settle(lcc.served(ticket, BODY))[0].result == STORED
    assert lcc.cached("a").md5 is None
    assert lcc.waiting() == [("a", "fetch"), ("b", "fetch")]


def test_an_update_during_the_fetch_that_declares_what_was_stored_is_done(lcc):
    lcc.push(update("a", b"an older body"), update("b"))
    ticket = lcc.ticket("a")
    lcc.push(update("a", BODY, burl=None, subtype="lang: nl", declared=Declared(9)))
    lcc.settle(lcc.served(ticket, BODY))
    row = lcc.cached("a")
    assert lcc.errors() == []
    assert lcc.waiting() == [("b", "fetch")]
    assert (row.mtime, row.len, row.burl, row.subtype, row.seen) == (9, len(BODY), None, "lang: nl", 2)


def test_a_removal_during_the_fetch_discards_the_content(lcc):
    lcc.push(update("a"))
    ticket = lcc.ticket("a")
    lcc.push(removal("a"))
    settled = lcc.settle(lcc.served(ticket, BODY))[0]
    assert (settled.result, settled.row) == (DISCARDED, None)
    assert (lcc.cached("a"), lcc.queued("a"), lcc.files, lcc.feed()) == (None, None, {}, [])


def test_a_removal_and_an_update_during_the_fetch_end_in_another_fetch(lcc):
    lcc.store_pages("a")
    lcc.push(update("a"))
    ticket = lcc.ticket("a")
    lcc.push(removal("a"))
    lcc.push(update("a"))
    lcc.settle(lcc.served(ticket, BODY))
    assert lcc.documents() == ["a"]
    assert lcc.waiting() == [("a", "fetch")]
    assert not [row for row in lcc.feed() if isinstance(row, Tombstone)]


def test_a_full_set_that_names_the_url_during_the_fetch_counts_it_as_seen(lcc):
    lcc.push(update("a"))
    ticket = lcc.ticket("a")
    lcc.push(update("a"), full=True)
    lcc.settle(lcc.served(ticket, BODY))
    assert lcc.cached("a").seen == 2


def test_an_outcome_that_was_settled_before_changes_nothing(lcc):
    lcc.push(update("a"))
    served = lcc.served(lcc.ticket("a"))
    lcc.settle(served)
    kept = dict(lcc.files)
    assert lcc.settle(served)[0].result == DISCARDED
    assert lcc.files == kept


def test_a_cancelled_row_leaves_the_queue(lcc):
    lcc.push(update("a"))
    lcc.push(removal("a"))
    assert lcc.settle(Cancelled(lcc.ticket("a")))[0].result == DISCARDED
    assert lcc.waiting() == []


def test_an_update_that_came_after_the_cancelled_ticket_stays(lcc):
    lcc.push(update("a"))
    lcc.push(removal("a"))
    ticket = lcc.ticket("a")
    lcc.push(update("a"))
    lcc.settle(Cancelled(ticket))
    assert lcc.waiting() == [("a", "fetch")]


def test_many_outcomes_of_several_providers_settle_together_in_order(lcc):
    lcc.add(8)
    lcc.push(*map(update, names(20)))
    lcc.push(*map(update, names(20)), pid=8)
    tickets = [*lcc.tickets(7), *lcc.tickets(8)]
    outcomes = [
        lcc.failed(ticket, 404, final=True) if number % 5 == 0 else lcc.served(ticket, b"%d" % number)
        for number, ticket in enumerate(tickets)
    ]
    settled = lcc.settle(*outcomes)
    assert [one.result for one in settled] == [FAILED if n % 5 == 0 else STORED for n in range(40)]
    assert [row.urlkey for row in lcc.feed()] == [t.row.urlkey for n, t in enumerate(tickets) if n % 5]
    assert [one.row for one in settled if one.row] == lcc.feed()


def test_what_cannot_be_put_on_disk_is_not_settled(lcc):
    lcc.push(update("a"))
    ticket = lcc.ticket("a")
    before = dump(lcc.store)

    def keep(_):
        raise NotDurable("disk full")

    with pytest.raises(NotDurable), lcc.store.begin() as tx:
        Settlement(
            tx, [lcc.served(ticket)], owner=lcc.owner, machineid=1, now=lcc.now, policy=lcc.policy, keep=keep
        ).run()
    assert dump(lcc.store) == before


def test_headers_that_no_column_could_hold_do_not_stop_the_settling(lcc):
    lcc.push(update("a"))
    lcc.fetch(
        "a", etag='"' + "x" * 300, last_modified="y" * 300, served_charset="z" * 300, status_line="\0\ud800" * 200,
        served_type="text/html", peer="p" * 99, final_url=url("é" * 3000),
    )  # fmt: skip
    row = lcc.cached("a")
    assert (row.etag, row.last_modified, row.served_charset) == ("", "", "z" * 64)
    assert len(row.final_url) == 2048


def test_headers_that_no_column_could_hold_do_not_stop_what_has_its_file_id(lcc):
    lcc.push(update("a"))
    lcc.settle(replace(lcc.served(lcc.ticket("a"), BODY, etag="x" * 300), fileid=77))
    assert (lcc.cached("a").etag, lcc.cached("a").fetched_fileid) == ("", 77)


def test_a_document_that_comes_and_goes_in_one_batch_is_told_to_nobody(lcc):
    lcc.push(update("a"))
    first = lcc.ticket("a")
    lcc.push(update("a", b"declared anew"))
    second = lcc.ticket("a")
    settled = lcc.settle(lcc.served(first, BODY), lcc.failed(second, 404, final=True))
    assert [one.result for one in settled] == [STORED, FAILED]
    assert (lcc.documents(), lcc.feed(), lcc.waiting()) == ([], [], [])


def test_of_two_contents_of_a_document_in_one_batch_only_the_last_one_is_stored(lcc):
    lcc.push(update("a"))
    first = lcc.ticket("a")
    lcc.push(update("a", b"declared anew"))
    lcc.settle(lcc.served(first, BODY), lcc.served(lcc.ticket("a"), b"declared anew"))
    assert lcc.files == {lcc.cached("a").fetched_fileid: b"declared anew"}
    assert lcc.waiting() == []


def test_a_batch_that_tells_content_users_nothing_does_not_wait_for_the_feed(lcc, monkeypatch):
    lcc.store_pages("a")
    lcc.push(update("a"))
    ticket = lcc.ticket("a")
    with lcc.store.begin() as tx:
        real, taken = type(tx).take, []
        monkeypatch.setattr(
            type(tx), "take", lambda self, name, count: (taken.append(name), real(self, name, count))[1]
        )
    lcc.settle(lcc.not_modified(ticket))
    assert taken == [CONFIRMED_ROW]


# --- leases -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["token", "owner", "provider"])
def test_without_the_lease_nothing_changes_at_all(lcc, wrong):
    lcc.store_pages("a", "b", "c")
    lcc.push(update("a"), update("b"), update("c"), update("d"))
    tickets = lcc.tickets()
    if wrong == "token":
        tickets = [replace(ticket, token=ticket.token + 1) for ticket in tickets]
    elif wrong == "provider":
        tickets = [replace(ticket, row=replace(ticket.row, pid=99)) for ticket in tickets]
    before, files = dump(lcc.store), dict(lcc.files)
    settled = lcc.settle(
        lcc.served(tickets[0]), lcc.failed(tickets[1], 404, final=True), lcc.not_modified(tickets[2]), Cancelled(tickets[3]),
        owner="another" if wrong == "owner" else None,
    )  # fmt: skip
    assert [one.result for one in settled] == [LOST] * 4
    assert (dump(lcc.store), lcc.files) == (before, files)


def test_a_lease_that_ended_but_was_not_taken_still_settles(lcc):
    lcc.push(update("a"))
    ticket = lcc.ticket("a")
    lcc.now += 3600
    assert lcc.settle(lcc.served(ticket))[0].result == STORED


# --- mismatches -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "declared", "served"),
    [
        (607, {}, {"served_type": "application/pdf"}),
        (608, {"declared": Declared(None, len(BODY), "0" * 32)}, {}),
        (608, {"declared": Declared(None, 5, None)}, {}),
    ],
)
def test_a_mismatch_is_recorded_and_the_provider_told_at_the_last_try(lcc, code, declared, served):
    lcc.push(update("a", **declared))
    for delay in DELAYS:
        settled = lcc.fetch("a", BODY, **served)
        assert (settled.code, lcc.errors(), lcc.queued("a").not_before) == (code, [], lcc.now + delay)
        assert (lcc.cached("a") is None) == (code == 607)
        lcc.now += delay
    settled = lcc.settle(lcc.served(lcc.ticket("a"), BODY, **served))[0]
    assert (settled.result, settled.code) == (STORED if code == 607 else FAILED, code)
    assert (lcc.documents(), lcc.waiting()) == (["a"], [])
    assert [error.code for error in lcc.errors()] == [code]
    assert lcc.provider().nurlerrs == 1
    with lcc.store.read() as tx:
        noted = tx.outcome(key("a"))
    assert (noted.code, noted.state) == (code, OUTCOME_STORED)


def test_a_copy_that_was_held_goes_when_its_pushed_url_is_gone(lcc):
    lcc.store_pages("a")
    lcc.push(update("a", b"new"))
    ticket = lcc.ticket("a")
    lcc.push(full=True)
    assert lcc.held() == ["a"]
    settled = lcc.settle(lcc.failed(ticket, 404, final=True))[0]
    assert (settled.removed, lcc.documents()) == (True, [])


@pytest.mark.parametrize("where", ["provider", "policy"])
def test_a_mismatch_is_refused_when_the_choice_is_strict(lcc, where):
    lcc.store_pages("a")
    before = lcc.cached("a")
    if where == "provider":
        lcc.change(declared=STRICT)
    else:
        lcc.policy = QueuePolicy(declared=STRICT)
    wanted = update("a", b"something else").declared
    lcc.push(update("a", b"something else"))
    for delay in DELAYS:
        assert lcc.fetch("a", BODY).result == RETRYING
        lcc.now += delay
    settled = lcc.fetch("a", BODY)
    assert (settled.result, settled.code, settled.removed) == (FAILED, 608, False)
    says = {"len": wanted.length, "md5": wanted.md5, "confirmed_time": lcc.now, "seen": 2}
    assert lcc.cached("a") == replace(before, **says), "it exists; what is held of it is the former content"
    assert lcc.waiting() == []


@pytest.mark.parametrize("served", ["", "application/octet-stream", "application/xhtml+xml", "text/html"])
def test_a_type_that_says_nothing_or_is_an_alias_is_no_mismatch(lcc, served):
    lcc.change(declared=STRICT)
    lcc.push(update("a"))
    assert lcc.fetch("a", served_type=served).code == 0


# --- quota ------------------------------------------------------------------------------------------


def test_the_files_quota_is_exact_within_one_batch(lcc):
    lcc.change(filesmax=3)
    lcc.store_pages("x")
    lcc.push(*map(update, names(4)), update("x"))
    settled = lcc.settle(*[lcc.served(ticket) for ticket in lcc.tickets()])
    assert [one.code for one in settled] == [0, 0, 609, 609, 0]
    assert lcc.provider().fileused == 3


def test_the_space_quota_is_exact_within_one_batch(lcc):
    lcc.change(spacemax=100)
    lcc.push(*map(update, names(4)))
    tickets = lcc.tickets()
    settled = lcc.settle(
        *[lcc.served(t, b"x" * size) for t, size in zip(tickets, (60, 41, 40, 1), strict=True)]
    )
    assert [one.code for one in settled] == [0, 610, 0, 610]
    assert lcc.provider().spaceused == 100


def test_a_quota_counts_the_documents_of_its_own_provider_only(lcc):
    lcc.add(8)
    lcc.change(filesmax=1, spacemax=10)
    lcc.push(*map(update, names(3)), pid=8)
    lcc.push(update("a"))
    settled = lcc.settle(*[lcc.served(ticket) for ticket in [*lcc.tickets(8), *lcc.tickets()]])
    assert [one.result for one in settled] == [STORED] * 4


HEADERS = '[["Server", "x"]]'
"""They count 15 bytes."""


def test_headers_that_are_kept_count_against_the_space_quota(lcc):
    lcc.change(spacemax=100)
    lcc.push(*map(update, names(3)))
    tickets = lcc.tickets()
    sizes = (40, 31, 30)
    served = [lcc.served(t, b"x" * size, headers=HEADERS) for t, size in zip(tickets, sizes, strict=True)]
    assert [one.code for one in lcc.settle(*served)] == [0, 610, 0]
    assert lcc.provider().spaceused == 100
    lcc.push(removal(names(3)[0]))
    assert lcc.provider().spaceused == 45


def test_headers_refuse_no_copy_that_is_renewed_and_are_counted_anew(lcc):
    lcc.change(spacemax=100)
    lcc.push(update("a"))
    lcc.fetch("a", b"x" * 100)
    for size, code, used in ((100, 0, 115), (101, 610, 115), (99, 0, 114)):
        lcc.push(update("a"))
        assert lcc.fetch("a", bytes([size]) * size, headers=HEADERS).code == code
        assert lcc.provider().spaceused == used
    lcc.push(update("a"))
    lcc.fetch("a", bytes([99]) * 99)
    assert lcc.provider().spaceused == 99


def test_a_replaced_document_gives_its_space_back_at_once(lcc):
    lcc.change(spacemax=100)
    lcc.push(update("a"))
    lcc.fetch("a", b"x" * 90)
    lcc.push(update("a"))
    assert lcc.fetch("a", b"y" * 100).code == 0
    lcc.push(update("a"))
    assert lcc.fetch("a", b"y" * 101).code == 610
    assert lcc.provider().spaceused == 100


def test_a_replacement_that_takes_no_more_room_is_stored_also_over_the_quota(lcc):
    lcc.push(update("a"), update("b"))
    lcc.fetch("a", b"x" * 90)
    lcc.fetch("b", b"x" * 90)
    lcc.change(filesmax=1, spacemax=50)
    for size, code in ((91, 610), (90, 0), (60, 0), (61, 610), (0, 0)):
        lcc.push(update("a"))
        assert lcc.fetch("a", bytes([size]) * size).code == code
    lcc.push(update("c"))
    assert lcc.fetch("c", b"").code == 609
    assert (lcc.provider().fileused, lcc.provider().spaceused) == (2, 90)


def test_a_document_removed_in_the_same_batch_makes_room(lcc):
    lcc.change(filesmax=1)
    lcc.store_pages("a")
    lcc.push(update("a"), update("b"))
    first, second = lcc.tickets()
    settled = lcc.settle(lcc.failed(first, 404, final=True), lcc.served(second))
    assert [one.code for one in settled] == [404, 0]
    assert lcc.documents() == ["b"]


# --- delays ------------------------------------------------------------------------------------------


def test_a_delayed_url_keeps_its_place_while_its_host_waits(lcc):
    """Its site is down: that is no fault of the URL, and costs it no try."""
    lcc.push(update("a"), update("b"))
    ticket, backoff = lcc.ticket("a"), failing(lcc, "a")
    settled = lcc.settle(Delayed(ticket, 601, "no answer", lcc.now, backoff))[0]
    assert (settled.result, settled.code, settled.again) == (DELAYED, 601, 0)
    assert lcc.queued("a") == ticket.row
    assert backoff_of(lcc, ticket) == backoff
    with lcc.store.read() as tx:
        last = tx.outcome(key("a"))
    assert (last.state, last.code, last.text) == ("retrying", 601, "Host name not found: no answer")


@pytest.mark.parametrize("code", [503, 429, 601, 602, 612])
def test_what_failed_though_its_host_answers_goes_behind_its_set_with_one_try_less(lcc, code):
    lcc.push(update("a"), update("b"), update("c"))
    a, b, c = lcc.tickets()
    lcc.settle(*(Delayed(one, code, "no", lcc.now, failing(lcc, "a")) for one in (a, b)))
    answers = failing(lcc, "a").answered(lcc.now)
    noted = HostNoted(c, answers, lcc.now, failing(lcc, "a", "b").blamed)
    assert [one.result for one in lcc.settle(noted, lcc.served(c))] == ["noted", "stored"]
    assert backoff_of(lcc, a) == answers
    assert [lcc.queued(name).tries for name in "ab"] == [1, 1]
    lcc.settle(noted)
    assert [lcc.queued(name).tries for name in "ab"] == [1, 1], "once, however often it is said"
    lcc.now += 60
    assert [one.row.curl for one in lcc.tickets()] == [url("a"), url("b")]


def test_what_failed_and_is_to_blame_may_be_settled_at_once(lcc):
    lcc.push(update("a"), update("b"))
    a, b = lcc.tickets()
    noted = HostNoted(b, failing(lcc, "a").answered(lcc.now), lcc.now, failing(lcc, "a").blamed)
    lcc.settle(Delayed(a, 503, "no", lcc.now, failing(lcc, "a")), noted, lcc.served(b))
    assert (lcc.queued("a").tries, lcc.queued("a").not_before) == (1, lcc.now + 60)


def test_without_further_tries_it_is_final_and_its_provider_is_told(lcc):
    lcc.push(update("a"), update("b"))
    a, b = lcc.tickets()
    lcc.settle(Delayed(a, 503, "no", lcc.now, failing(lcc, "a")))
    lcc.policy = replace(lcc.policy, retry_delays=())
    lcc.settle(HostNoted(b, failing(lcc, "a").answered(lcc.now), lcc.now, failing(lcc, "a").blamed))
    assert [(one.code, one.text) for one in lcc.errors()] == [(503, "Service Unavailable: no")]


def test_the_retry_after_of_a_503_is_kept_by_its_url(lcc):
    lcc.push(update("a"), update("b"))
    lcc.settle(Delayed(lcc.ticket("a"), 503, "", lcc.now, failing(lcc, "a"), until=lcc.now + 500))
    assert [one.row.curl for one in lcc.tickets()] == [url("b")]
    lcc.settle(HostNoted(lcc.ticket("b"), failing(lcc).answered(lcc.now), lcc.now, failing(lcc, "a").blamed))
    assert (lcc.queued("a").tries, lcc.queued("a").not_before) == (1, lcc.now + 500)


def failing(lcc, *names):
    blamed = tuple((key(name), 7, 0, 1) for name in names)
    return Backoff(lcc.now + 60.0, 2, lcc.now - 5.0, 60.0, blamed)


def backoff_of(lcc, ticket):
    with lcc.store.read() as tx:
        return tx.hosts_of(["7"])["7"][ticket.host].backoff


# --- failures ---------------------------------------------------------------------------------------


def test_retries_go_behind_what_is_fresh_after_the_delays_in_order(lcc):
    lcc.push(update("a"), update("b"), update("c"))
    lcc.push(update("z"))
    a, b, _, _ = lcc.tickets()
    assert [one.result for one in lcc.settle(lcc.failed(b, 500), lcc.failed(a, 500))] == [RETRYING] * 2
    assert [t.row.curl for t in lcc.tickets()] == [url("c"), url("z")]
    assert lcc.window().look_at == START + 60
    lcc.now += 59
    assert len(lcc.tickets()) == 2
    lcc.now += 1
    assert [t.row.curl for t in lcc.tickets()] == [url(name) for name in "czab"]


def test_a_failure_is_final_after_the_last_delay_and_the_provider_is_told(lcc):
    lcc.push(update("a", BODY, subtype="lang: nl", burl=None))
    for delay in (60, 600, 3600):
        assert lcc.settle(lcc.failed(lcc.ticket("a"), 500))[0].result == RETRYING
        assert lcc.errors() == []
        lcc.now += delay
    settled = lcc.settle(lcc.failed(lcc.ticket("a"), 500, detail="tried often"))[0]
    assert (settled.result, settled.code, lcc.waiting()) == (FAILED, 500, [])
    error = lcc.errors()[0]
    assert (error.code, error.url, error.at) == (500, url("a"), lcc.now)
    assert error.text == "Internal Server Error: tried often"
    attributes = json.loads(error.attributes)
    assert attributes["subtype"] == "lang: nl"
    assert (attributes["burl"], attributes["len"], "mtime" in attributes) == ("", str(len(BODY)), False)
    with lcc.store.read() as tx:
        assert tx.outcome(key("a")).code == 500


def test_a_provider_is_told_exactly_what_it_submitted_last(lcc):
    first = {"c": "a", "mimetype": "Text/HTML", "own": "x"}
    last = {
        "c": "a",
        "f": url("a"),
        "mimetype": "text/html",
        "mtime": "20020131235959",
        "strange": "\u00e9 \U0001f600",
    }
    entry = update("a", BODY)
    for sent in (first, last):  # the second one meets the row of the first
        lcc.push(with_form(entry, sent, url("")))
        lcc.push(with_form(update("b", BODY), {"c": "b"}, url("")))
    lcc.settle(lcc.failed(lcc.ticket("a"), 404, final=True), lcc.failed(lcc.ticket("b"), 404, final=True))
    assert [error.submitted for error in lcc.errors()] == [last, {"c": "b"}]


def test_of_what_was_queued_before_it_was_known_what_was_sent_a_provider_is_told_what_was_made_of_it(lcc):
    lcc.push(update("a"))
    lcc.settle(lcc.failed(lcc.ticket("a"), 404, final=True))
    assert lcc.errors()[0].sent is None
    assert lcc.errors()[0].submitted["curl"] == url("a")


def test_another_declaration_of_a_url_that_failed_starts_over_in_its_first_place(lcc):
    lcc.push(update("a"), update("b"))
    lcc.settle(lcc.failed(lcc.ticket("a"), 500))
    lcc.push(update("a", b"new"))
    assert [t.row.curl for t in lcc.tickets()] == [url("a"), url("b")]
    assert lcc.queued("a").tries == 0


def test_a_failure_of_what_was_overtaken_says_nothing_about_the_newer_one(lcc):
    lcc.push(update("a"))
    ticket = lcc.ticket("a")
    lcc.push(update("a"))
    before = dump(lcc.store)
    assert lcc.settle(lcc.failed(ticket, 404, final=True))[0].result == DISCARDED
    assert dump(lcc.store) == before


def test_a_late_failure_after_a_removal_leaves_nothing(lcc):
    lcc.push(update("a"))
    ticket = lcc.ticket("a")
    lcc.push(removal("a"))
    lcc.settle(lcc.failed(ticket, 500))
    assert (lcc.waiting(), lcc.errors()) == ([], [])


def test_the_kept_errors_are_bounded_and_their_count_is_exact(lcc):
    lcc.policy = QueuePolicy(errors_kept=3)
    lcc.add(8)
    lcc.push(*map(update, names(10)))
    lcc.push(update("other"), pid=8)
    lcc.settle(*[lcc.failed(ticket, 404, final=True) for ticket in [*lcc.tickets(8), *lcc.tickets()[:4]]])
    lcc.settle(*[lcc.failed(ticket, 404, final=True) for ticket in lcc.tickets()])
    assert [error.url for error in lcc.errors()] == [url(name) for name in names(10)[7:]]
    assert lcc.provider().nurlerrs == 10
    assert (lcc.provider(8).nurlerrs, len(lcc.errors(8))) == (1, 1)


def test_failures_are_found_by_either_name_of_their_url_whosever_they_are(lcc):
    lcc.add(8)
    lcc.push(replace(update("a"), curl="name of a"), update("b"))
    lcc.push(update("b"), pid=8)
    lcc.settle(*[lcc.failed(ticket, 404, final=True) for ticket in [*lcc.tickets(), *lcc.tickets(8)]])
    with lcc.store.read() as tx:
        docid = key("b", pid=8).hex()
        names = ("name of a", url("a"), url("b"), "b", "", docid)
        found = [tx.outcomes_named(name) for name in names]
    assert [sorted((one.pid, one.furl) for one in outcomes) for outcomes in found] == [
        [(PID, url("a"))], [(PID, url("a"))], [(PID, url("b")), (8, url("b"))], [], [], [(8, url("b"))],
    ]  # fmt: skip


def test_an_outcome_holds_all_that_the_url_was_submitted_with(lcc):
    mask = "1" + "0" * 167
    sent = update("a", BODY, subtype="lang: nl", burl=None, timeofday=mask, declared=Declared(mtime=5))
    lcc.push(sent)
    failed = of_fetch(lcc.queued("a"), 404, "Not Found", 1)
    with lcc.store.begin() as tx:
        tx.put_outcomes([failed])
    with lcc.store.read() as tx:
        assert tx.outcome(key("a")) == failed
    assert (entry_of(failed), origin_of(failed)) == (sent, Origin.PUSH)
    assert entry_of(LastOutcome(key("a"), PID, 404, "", 1)) is None


def test_a_removal_by_the_provider_withdraws_what_failed_and_nothing_else(lcc):
    lcc.push(*map(update, "abc"))
    lcc.settle(*[lcc.failed(ticket, 404, final=True) for ticket in lcc.tickets()[:2]])
    lcc.settle(lcc.failed(lcc.ticket("c"), 500))
    lcc.push(removal("a"), removal("c"))
    with lcc.store.read() as tx:
        assert [tx.outcome(key(name)).state for name in "abc"] == ["withdrawn", "failed", "withdrawn"]


def test_the_oldest_outcomes_in_a_state_go_and_others_stay(lcc):
    def outcome(name, at, state="refused", pid=PID):
        return LastOutcome(key(name, pid=pid), pid, 704, "", at, state, url(name), "text/html", url(name))

    a, b, c = outcome("a", 3), outcome("b", 1), outcome("c", 2)
    others = [outcome("d", 1, "failed"), outcome("e", 1, pid=8)]
    with lcc.store.begin() as tx:
        tx.put_outcomes([a, b, c, *others])
        tx.trim_outcomes(PID, "refused", 2)
    with lcc.store.read() as tx:
        assert [tx.outcome(row.urlkey) for row in (a, b, c, *others)] == [a, None, c, *others]
        assert tx.outcomes_in(PID, "refused", (2, b""), 3, 9) == [c, a]
        assert tx.outcomes_in(PID, "refused", (2, c.urlkey), 3, 9) == [a]
        assert tx.outcomes_in(PID, "refused", (0, b""), 2, 9) == [c]
        assert tx.outcomes_in(PID, "refused", (0, b""), 3, 1) == [c]


def test_errors_are_forgotten_up_to_the_last_that_was_delivered(lcc):
    lcc.push(*map(update, names(3)))
    lcc.settle(*[lcc.failed(ticket, 404, final=True) for ticket in lcc.tickets()])
    second = lcc.errors()[1]
    with lcc.store.begin() as tx:
        tx.forget_errors(PID, second.errorid)
        tx.forget_errors(8, second.errorid + 10)
    assert [error.url for error in lcc.errors()] == [url(names(3)[2])]


def test_numbers_of_errors_are_not_used_again(lcc):
    lcc.push(update("a"), update("b"))
    lcc.settle(lcc.failed(lcc.ticket("a"), 404, final=True))
    first = lcc.errors()[0].errorid
    with lcc.store.begin() as tx:
        tx.forget_errors(PID, first)
    lcc.settle(lcc.failed(lcc.ticket("b"), 404, final=True))
    assert lcc.errors()[0].errorid > first


def test_what_may_not_be_shown_goes_at_once(lcc):
    code = 451
    lcc.store_pages("a")
    lcc.push(update("a"))
    settled = lcc.settle(lcc.failed(lcc.ticket("a"), code))[0]
    assert (settled.result, settled.removed) == (FAILED, True)
    assert lcc.documents() == []
    assert lcc.feed()[-1].reason == f"answered {code}"


@pytest.mark.parametrize("code", [401, 403, 404, 410])
def test_what_is_forbidden_or_missing_takes_the_copy_only_after_the_retries(lcc, code):
    lcc.store_pages("a")
    lcc.push(update("a"))
    for delay in DELAYS:
        assert lcc.settle(lcc.failed(lcc.ticket("a"), code))[0].result == RETRYING
        assert lcc.documents() == ["a"]
        lcc.now += delay
    assert lcc.settle(lcc.failed(lcc.ticket("a"), code))[0].removed
    assert lcc.documents() == []
    assert lcc.feed()[-1].reason == f"answered {code}"


@pytest.mark.parametrize("code", [400, 500, 501, 503, 601, 602, 603, 604, 605, 606, 611, 612, 613, 614, 615])
def test_no_other_failure_takes_the_copy(lcc, code):
    lcc.store_pages("a")
    lcc.push(update("a"))
    settled = lcc.settle(lcc.failed(lcc.ticket("a"), code, final=True))[0]
    assert (settled.result, settled.removed, lcc.documents()) == (FAILED, False, ["a"])


def test_the_log_tells_of_the_first_the_tenth_and_the_hundredth_that_are_held_one_by_one(lcc, caplog):
    lcc.policy = QueuePolicy(max_removal=0)
    lcc.push(*map(update, names(130)))
    lcc.fetch_all()
    lcc.push(*map(update, names(130)))
    for ticket in lcc.tickets(limit=200):
        lcc.settle(lcc.failed(ticket, 404, final=True))
    assert [int(message.split()[2]) for message in caplog.messages] == [1, 10, 100]


def test_a_site_that_answers_404_to_all_loses_half_of_its_documents_and_no_more(lcc):
    lcc.push(*map(update, names(60)))
    lcc.fetch_all()
    lcc.push(*map(update, names(60)))
    for ticket in lcc.tickets():
        lcc.settle(lcc.failed(ticket, 404, final=True))
    assert (lcc.documents(), lcc.held()) == (names(60)[30:], names(60)[30:])


def test_a_site_that_answers_404_to_all_loses_twenty_documents_and_no_more(lcc, caplog):
    lcc.policy = QueuePolicy(max_removal=0.3)
    lcc.push(*map(update, names(60)))
    lcc.fetch_all()
    lcc.push(*map(update, names(60)))
    settled = lcc.settle(*[lcc.failed(ticket, 404, final=True) for ticket in lcc.tickets()])
    assert sum(one.removed for one in settled) == 20
    assert lcc.held() == names(60)[20:]
    assert caplog.messages == [
        (
            "provider 7: 40 removals are held (their fetches failed for good): `lcc provider confirm-removals 7`"
            " carries them out, a later full set decides anew"
        )
    ]
    assert lcc.provider().nurlerrs == 60
    lcc.push(*map(update, names(60)[:30]))
    assert lcc.held() == names(60)[30:]


# --- old notes go -----------------------------------------------------------------------------------


def test_old_outcomes_and_notes_of_sets_are_forgotten(lcc):
    lcc.push(update("a"), setid="s", digest="d")
    lcc.settle(lcc.failed(lcc.ticket("a"), 404, final=True))
    lcc.now += 100
    lcc.push(update("b"))
    lcc.settle(lcc.failed(lcc.ticket("b"), 404, final=True))
    with lcc.store.begin() as tx:
        tx.forget_outcomes(lcc.now)
        tx.forget_psets(lcc.now, lcc.now)
    with lcc.store.read() as tx:
        assert (tx.outcome(key("a")), tx.outcome(key("b")).code) == (None, 404)
        assert (tx.pset_of(PID, 1), tx.pset_of(PID, 2).psetid) == (None, 2)


def test_a_second_outcome_of_a_settled_ticket_does_not_touch_a_new_arrival(lcc):
    """A pipeline behind LccPipeline drops the document after it was stored; meanwhile an update arrived."""
    lcc.push(update("a", b"old"))
    ticket = lcc.ticket("a")
    lcc.settle(lcc.served(ticket, b"old"))
    lcc.push(update("a", b"new"))
    lcc.settle(lcc.failed(ticket, 616, final=True))
    assert lcc.queued("a") is not None, "the update that was accepted is lost"
