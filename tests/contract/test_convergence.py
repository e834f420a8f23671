"""What was declared ends as declared, whatever the site in between does: stories, on every store."""

from collections import Counter
from dataclasses import replace
from datetime import time
from hashlib import md5
from zoneinfo import ZoneInfo

import pytest
from little_lcc import PID, SITE, START, key, removal, update, url

from lcc_scrapy.apps.mail.letters import Terms as MailTerms
from lcc_scrapy.apps.mail.letters import letter
from lcc_scrapy.apps.mail.rules import MARGIN, MailState
from lcc_scrapy.apps.mail.store import rows_in
from lcc_scrapy.db.records import OUTCOME_FAILED, OUTCOME_RETRYING, OUTCOME_STORED
from lcc_scrapy.domain.entries import Declared, Origin
from lcc_scrapy.domain.policy import STRICT
from lcc_scrapy.domain.queue import DUE
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.ops.doctor import mismatches
from lcc_scrapy.ops.fetch_again import Again, Terms
from lcc_scrapy.queue.explained import as_dict, lines
from lcc_scrapy.queue.explanation import Surroundings, explain
from lcc_scrapy.queue.settlement import CONFIRMED, DISCARDED, FAILED, RETRYING, STORED
from lcc_scrapy.queue.unit_of_work import UnitOfWork, keys_of
from lcc_scrapy.spidering.submitting import queue_up, visit_of

OLD, NEW = b"the former page", b"the page as it was pushed"
DELAYS = (60, 600, 3600)


@pytest.fixture
def held(lcc):
    """An LCC that holds the former page ``a``, as it was declared."""
    lcc.push(update("a", OLD))
    lcc.fetch("a", OLD, etag='"old"')
    lcc.now += 10
    return lcc


def outcome(lcc, name="a"):
    with lcc.store.read() as tx:
        return tx.outcome(key(name))


def said(lcc):
    """What ``lcc.cached()`` says was declared, and what it holds."""
    row = lcc.cached("a")
    return (row.md5 == row.fetched_md5, row.fetched_md5)


def digest(body):
    return md5(body).hexdigest()


def run_out(lcc, answer, name="a"):
    """Answer all tries of a URL; returns how many there were."""
    for count in range(1, 10):
        lcc.settle(answer(lcc.ticket(name)))
        row = lcc.queued(name)
        if row is None:
            return count
        lcc.now = row.not_before
    raise AssertionError("it never ends")


# --- a site that lags behind its push -----------------------------------------------------------------


@pytest.mark.parametrize("declared", ["record", STRICT])
def test_a_site_that_lags_is_asked_again_until_it_serves_what_was_pushed(held, declared):
    lcc = held
    lcc.change(declared=declared)
    before = lcc.cached("a")
    lcc.push(update("a", NEW))
    assert lcc.ticket("a").etag == "", "the declaration says that it is another content"
    settled = lcc.fetch("a", OLD, etag='"old"')
    assert (settled.result, settled.code, settled.again) == (RETRYING, 608, lcc.now + 60)
    assert said(lcc) == (False, digest(OLD))
    assert lcc.cached("a").confirmed_seq == before.confirmed_seq, "the feed has no confirmation"
    assert (lcc.errors(), outcome(lcc).state, lcc.cached("a").confirmed_time) == (
        [],
        OUTCOME_RETRYING,
        lcc.now,
    )
    lcc.now += 60
    ticket = lcc.ticket("a")
    assert (ticket.is_retry, ticket.etag, ticket.last_modified) == (True, '"old"', "")
    settled = lcc.settle(lcc.not_modified(ticket))[0]
    assert (settled.result, settled.code, lcc.queued("a").tries) == (RETRYING, 608, 2)
    assert lcc.cached("a").confirmed_seq == before.confirmed_seq
    lcc.now += 600
    assert lcc.fetch("a", NEW, etag='"new"').result == STORED
    assert (said(lcc), lcc.waiting(), lcc.errors()) == ((True, digest(NEW)), [], [])
    lcc.push(update("a", NEW))
    assert lcc.waiting() == []


def test_other_bytes_are_stored_at_once_and_the_url_stays_in_the_queue(held):
    held.push(update("a", NEW), update("b"))
    assert held.fetch("a", b"neither").result == STORED
    assert (said(held), held.waiting()) == ((False, digest(b"neither")), [("b", "fetch"), ("a", "fetch")])
    assert [ticket.row.curl for ticket in held.tickets()] == [url("b")]
    held.now += 60
    held.fetch("a", NEW)
    assert said(held) == (True, digest(NEW))


@pytest.mark.parametrize("tag", ['W/"old"', "", "old"])
def test_a_retry_names_no_bytes_without_a_strong_tag(held, tag):
    held.push(update("a", NEW))
    held.fetch("a", OLD, etag=tag, last_modified="Sun, 06 Nov 1994 08:49:37 GMT")
    held.now += 60
    assert (held.ticket("a").etag, held.ticket("a").last_modified) == ("", "")


def test_a_retry_names_no_bytes_that_came_from_elsewhere(held):
    held.push(update("a", NEW))
    held.fetch("a", OLD, etag='"old"', final_url=url("elsewhere"))
    held.now += 60
    assert held.ticket("a").etag == ""


def test_the_provider_is_told_once_after_the_last_try(held):
    held.push(update("a", NEW))
    assert run_out(held, lambda ticket: held.served(ticket, OLD, etag='"old"')) == 4
    assert ([one.code for one in held.errors()], outcome(held).state) == ([608], OUTCOME_STORED)
    assert (held.provider().mismatched, held.cached("a").confirmed_time) == (1, held.now)
    assert said(held) == (False, digest(OLD))


def test_a_304_ends_the_tries_as_any_other_mismatch_does(held):
    held.push(update("a", NEW))
    held.fetch("a", OLD, etag='"old"')
    held.now += 60
    assert run_out(held, held.not_modified) == 3
    assert ([one.code for one in held.errors()], outcome(held).state) == ([608], OUTCOME_STORED)
    assert (held.cached("a").confirmed_seq, held.provider().mismatched) == (0, 1)


@pytest.mark.parametrize("touched", [Declared(), Declared(5)])
def test_an_equal_declaration_changes_neither_tries_nor_time_nor_is_it_fetched_meanwhile(held, touched):
    held.push(update("a", NEW))
    held.fetch("a", OLD)
    waiting = held.queued("a")
    held.push(update("a", NEW, declared=touched, subtype="lang: nl"))
    row = held.queued("a")
    assert (row.tries, row.not_before, row.position) == (1, waiting.not_before, waiting.position)
    assert (row.subtype, row.seen, row.mtime) == ("lang: nl", 3, touched.mtime)
    assert held.tickets() == []


def test_an_equal_declaration_during_the_fetch_is_answered_by_it(held):
    held.push(update("a", NEW))
    ticket = held.ticket("a")
    held.push(update("a", NEW, subtype="lang: nl"))
    assert held.settle(held.served(ticket, OLD))[0].result == RETRYING
    assert (held.queued("a").tries, held.cached("a").subtype) == (1, "lang: nl")
    held.now += 60
    ticket = held.ticket("a")
    held.push(update("a", NEW, subtype="lang: fr"))
    assert held.settle(held.served(ticket, NEW))[0].result == STORED
    assert (held.waiting(), held.cached("a").subtype) == ([], "lang: fr")


def test_another_declaration_during_the_fetch_makes_its_mismatch_of_no_account(held):
    held.push(update("a", NEW))
    ticket = held.ticket("a")
    held.push(update("a", b"newest"))
    assert held.settle(held.served(ticket, b"neither"))[0].result == STORED
    row = held.queued("a")
    assert (row.tries, row.not_before, held.errors(), outcome(held)) == (0, 0, [], None)


def test_what_was_simply_declared_changed_again_during_its_last_try_is_asked_for_once_more(lcc):
    lcc.push(update("a"))
    for delay in DELAYS:
        lcc.settle(lcc.failed(lcc.ticket("a"), 404))
        lcc.now += delay
    ticket = lcc.ticket("a")
    lcc.push(update("a"))
    assert lcc.settle(lcc.failed(ticket, 404))[0].result == RETRYING
    assert (lcc.queued("a").tries, lcc.queued("a").not_before, lcc.errors()) == (3, lcc.now + 3600, [])
    lcc.now += 3600
    assert lcc.settle(lcc.failed(lcc.ticket("a"), 404))[0].result == FAILED
    assert (lcc.waiting(), len(lcc.errors())) == ([], 1)


# --- after the last try -------------------------------------------------------------------------------


def test_the_same_declaration_gets_one_conditional_request_per_last_delay(held):
    held.push(update("a", NEW))
    run_out(held, lambda ticket: held.served(ticket, OLD, etag='"old"'))
    ended = held.now
    for _ in range(3):
        held.now += 2
        held.push(update("a", NEW, declared=Declared(held.now)))
    assert (held.queued("a").tries, held.queued("a").not_before) == (3, ended + 3600)
    held.now = ended + 3600
    ticket = held.ticket("a")
    assert (ticket.is_retry, ticket.etag, ticket.last_modified) == (True, '"old"', "")
    assert held.settle(held.not_modified(ticket))[0].result == FAILED
    assert (held.waiting(), len(held.errors()), held.cached("a").confirmed_seq) == ([], 2, 0)
    held.now += 3600
    held.push(update("a", NEW))
    assert held.queued("a").not_before == DUE
    held.fetch("a", NEW)
    assert (said(held), held.waiting()) == ((True, digest(NEW)), [])


def test_another_declaration_gets_all_tries_and_so_does_the_former_one_after_it(held):
    held.push(update("a", NEW))
    run_out(held, lambda ticket: held.served(ticket, OLD, etag='"old"'))
    held.now += 1
    held.push(update("a", b"newest"))
    assert (held.queued("a").tries, held.queued("a").not_before) == (0, 0)
    held.fetch("a", b"newest")
    held.now += 1
    held.push(update("a", NEW))
    assert (held.queued("a").tries, held.queued("a").not_before) == (0, 0)


@pytest.mark.parametrize("whole", [True, False])
def test_an_operator_s_retry_asks_once_and_at_once(held, whole):
    held.push(update("a", NEW))
    run_out(held, lambda ticket: held.served(ticket, OLD, etag='"old"'))
    ask = Again(held.store, Terms(held.policy, 0, held.now + 1))
    done = (
        sum(ask.retry(PID), start=ask.retry_url("none", [PID])) if whole else ask.retry_url(url("a"), [PID])
    )
    assert done == {"queued": 1}
    assert (held.queued("a").tries, held.queued("a").not_before, held.ticket("a").etag) == (3, 0, '"old"')
    held.now += 5
    assert held.fetch("a", OLD).result == FAILED
    assert held.waiting() == []


def test_a_retry_leaves_alone_what_is_as_declared_by_now(held):
    held.push(update("a", NEW))
    run_out(held, lambda ticket: held.served(ticket, OLD))
    held.now += 3600
    held.push(update("a", NEW))
    held.fetch("a", NEW)
    ask = Again(held.store, Terms(held.policy, 0, held.now))
    assert ask.retry_url(url("a"), [PID]) == {"done_since": 1}


# --- what is stored -----------------------------------------------------------------------------------


def test_an_empty_page_never_replaces_a_copy(held):
    held.push(update("a", NEW))
    assert run_out(held, lambda ticket: held.served(ticket, b"", etag='"none"')) == 4
    assert (said(held), outcome(held).state) == ((False, digest(OLD)), OUTCOME_FAILED)
    assert [one.code for one in held.errors()] == [608]


def test_an_empty_page_that_was_declared_is_one(held):
    held.push(update("a", b""))
    assert held.fetch("a", b"").result == STORED
    assert said(held) == (True, digest(b""))


def test_another_type_replaces_a_copy_at_the_last_try_only(held):
    held.push(update("a"))
    for delay in DELAYS:
        settled = held.fetch("a", b"%PDF", served_type="application/pdf", etag='"pdf"')
        assert (settled.result, settled.code, said(held)[1]) == (RETRYING, 607, digest(OLD))
        held.now += delay
    assert held.ticket("a").etag == '"old"', "its bytes are wanted this time, those of the copy are not"
    assert held.fetch("a", b"%PDF", served_type="application/pdf").result == STORED
    assert (said(held)[1], [one.code for one in held.errors()]) == (digest(b"%PDF"), [607])


def test_nothing_replaces_a_copy_that_is_as_declared(held):
    held.change(strictmtime=True)
    held.push(update("a", OLD, declared=Declared(7)))
    assert run_out(held, lambda ticket: held.served(ticket, b"an old edge")) == 4
    assert (said(held), outcome(held).state) == ((True, digest(OLD)), OUTCOME_FAILED)


def test_a_mismatch_that_no_quota_admits_is_tried_again(held):
    held.change(spacemax=held.provider().spaceused + 1)
    held.push(update("a", OLD + b"."))
    assert held.fetch("a", b"x" * 100).result == RETRYING
    held.now += 60
    assert held.fetch("a", OLD + b".").result == STORED


# --- twenty in a row ----------------------------------------------------------------------------------


def test_after_twenty_mismatches_the_first_answer_counts_and_one_match_ends_that(lcc):
    names = [f"n{number:02}" for number in range(25)]
    lcc.push(*[update(name, NEW) for name in names])
    wrong = [lcc.served(ticket, b"wrong") for ticket in lcc.tickets()]
    lcc.settle(*wrong)
    for delay in DELAYS:
        lcc.now += delay
        tickets = lcc.tickets()
        lcc.settle(*[lcc.served(ticket, b"wrong") for ticket in tickets])
    assert (len(lcc.errors()), lcc.provider().mismatched, lcc.waiting()) == (25, 25, [])
    lcc.push(update("one more", NEW), update("right", NEW), update("after", NEW))
    assert lcc.fetch("one more", b"wrong").result == STORED
    assert (lcc.queued("one more"), lcc.provider().mismatched) == (None, 26)
    lcc.fetch("right", NEW)
    assert lcc.provider().mismatched == 0
    lcc.fetch("after", b"wrong")
    assert lcc.queued("after").tries == 1


def test_what_waits_is_settled_at_its_next_try(lcc):
    lcc.push(update("a", NEW))
    lcc.fetch("a", b"wrong", etag='"wrong"')
    lcc.change(mismatched=20)
    lcc.now += 60
    assert lcc.settle(lcc.not_modified(lcc.ticket("a")))[0].result == FAILED
    assert (lcc.waiting(), lcc.provider().mismatched) == ([], 21)


# --- a 404 right after a declaration --------------------------------------------------------------------


@pytest.mark.parametrize("code", [404, 410])
def test_a_page_that_was_declared_is_not_believed_gone_at_once(held, code):
    held.push(update("a", NEW), update("b", NEW))
    for name in "ab":
        assert held.settle(held.failed(held.ticket(name), code))[0].result == RETRYING
    assert (held.documents(), held.errors(), outcome(held).state) == (["a"], [], OUTCOME_RETRYING)
    held.now += 60
    for name in "ab":
        held.fetch(name, NEW)
    assert (held.documents(), held.errors(), held.waiting()) == (["a", "b"], [], [])


def test_what_an_outside_list_names_is_tried_again_and_a_visit_is_not(lcc):
    with lcc.store.begin() as tx:
        for origin in (Origin.SOURCE, Origin.INDEXNOW, Origin.SPIDER, Origin.DIRECTIVE):
            entries = [visit_of(url(origin))]
            batch = UnitOfWork(tx, [PID], keys_of(PID, entries), lcc.now, lcc.policy)
            queue_up(batch, PID, entries, origin)
    done = lcc.settle(*[lcc.failed(ticket, 404) for ticket in lcc.tickets()])
    found = {one.outcome.ticket.row.origin: one.result for one in done}
    assert found == {"source": RETRYING, "indexnow": RETRYING, "spider": FAILED, "directive": FAILED}


@pytest.mark.parametrize("code", [404, 500])
def test_where_nothing_is_held_the_same_declaration_gets_one_request(lcc, code):
    lcc.push(update("a", NEW))
    assert run_out(lcc, lambda ticket: lcc.failed(ticket, code)) == 4
    ended = lcc.now
    lcc.now += 2
    lcc.push(update("a", NEW), full=True)
    assert (lcc.queued("a").tries, lcc.queued("a").not_before) == (3, ended + 3600)
    lcc.now = ended + 3600
    assert lcc.settle(lcc.failed(lcc.ticket("a"), code))[0].result == FAILED
    lcc.now += 3600
    lcc.push(update("a", NEW))
    lcc.fetch("a", NEW)
    assert lcc.documents() == ["a"]


def test_a_page_that_was_removed_and_made_again_gets_all_tries(lcc):
    lcc.push(update("a", NEW))
    run_out(lcc, lambda ticket: lcc.failed(ticket, 404))
    lcc.push(removal("a"))
    lcc.push(update("a", NEW))
    assert (lcc.queued("a").tries, lcc.queued("a").not_before) == (0, 0)


# --- looks that nobody asked for ------------------------------------------------------------------------


def refetch(lcc):
    asked = Again(lcc.store, Terms(lcc.policy, 0, lcc.now)).refetch(PID, Selection())
    assert sum(asked, Counter()) == {"queued": 1}


@pytest.mark.parametrize("code", [0, 404, 410])
def test_a_look_is_repeated_before_it_replaces_or_removes_what_is_right(held, code):
    def look():
        ticket = held.ticket("a")
        return held.settle(held.failed(ticket, code) if code else held.served(ticket, b"an old edge"))[0]

    refetch(held)
    assert (look().result, said(held)) == (RETRYING, (True, digest(OLD)))
    assert held.queued("a").not_before == held.now + 3600
    held.now += 3600
    ticket = held.ticket("a")
    assert (ticket.is_retry, ticket.etag, ticket.last_modified) == (True, '"old"', "")
    if not code:
        assert held.settle(held.not_modified(ticket))[0].result == CONFIRMED
        assert (said(held), held.waiting()) == ((True, digest(OLD)), [])
        refetch(held)
        look()
        held.now += 3600
    look()
    assert held.documents() == ([] if code else ["a"])
    assert held.waiting() == []
    assert code or said(held) == (False, digest(b"an old edge"))


def test_a_look_at_what_is_not_as_declared_counts_at_once(held):
    held.push(update("a", NEW))
    run_out(held, lambda ticket: held.served(ticket, OLD))
    held.now += 1
    refetch(held)
    assert held.fetch("a", NEW).result == STORED
    assert said(held) == (True, digest(NEW))


def test_a_look_that_was_overtaken_says_nothing(held):
    refetch(held)
    ticket = held.ticket("a")
    held.push(update("a", NEW))
    assert held.settle(held.served(ticket, b"an old edge"))[0].result == DISCARDED
    assert (said(held), held.waiting()) == ((True, digest(OLD)), [("a", "fetch")])


# --- others do not starve -------------------------------------------------------------------------------


def test_of_four_fetches_one_at_most_is_a_retry_while_others_wait(lcc):
    wrong, fresh = [f"w{number:02}" for number in range(12)], [f"f{number:02}" for number in range(20)]
    lcc.push(*[update(name, NEW) for name in wrong])
    lcc.settle(*[lcc.served(ticket, b"wrong") for ticket in lcc.tickets()])
    lcc.now += 60
    lcc.push(*[update(name) for name in fresh])
    order = [ticket.row.curl.removeprefix(SITE) for ticket in lcc.tickets()]
    assert "".join(name[0] for name in order) == "fffw" * 6 + "ffw" + "w" * 5
    assert [name for name in order if name in wrong] == wrong
    assert [name for name in order if name in fresh] == fresh
    few = [ticket.row.curl.removeprefix(SITE)[0] for ticket in lcc.tickets(limit=5)]
    assert few == ["f", "f", "f", "w", "f"]


def test_the_store_knows_which_urls_failed(lcc):
    lcc.add(8)
    lcc.push(update("a", NEW), update("b"))
    lcc.settle(lcc.failed(lcc.ticket("a"), 404))
    with lcc.store.read() as tx:
        assert tx.with_outcomes([PID, 8]) == {PID}
        assert tx.tried([key("a"), key("b")]) == {key("a")}
        assert tx.outcomes_of([key("a"), key("b")]).keys() == {key("a")}
        assert (tx.with_outcomes([]), tx.tried([]), tx.outcomes_of([])) == (set(), set(), {})
        aside = lcc.queued("a")
        assert tx.next_due([(PID, aside.timeofday)]) == {(PID, aside.timeofday): START + 60}
        assert tx.next_due([(PID, aside.timeofday)], START + 60) == {}
    assert replace(aside, tries=0, not_before=0, position=1) != aside


# --- what is told of it ---------------------------------------------------------------------------------


def explained(lcc):
    around = Surroundings(lcc.now, ZoneInfo("UTC"), running=True)
    (known,) = explain(lcc.store, url("a"), around)
    return known, dict(lines(as_dict(known, lambda *_: "", lcc.now)))


def test_explain_says_that_what_is_held_is_not_what_was_declared(held):
    assert "differs" not in explained(held)[1]
    held.push(update("a", NEW))
    held.fetch("a", OLD, etag='"old"')
    known, told = explained(held)
    assert told["differs"] == "what is held is not what was declared: its site is asked again"
    assert "it waits to try again until" in told["why"]
    assert "608" in told["why"]
    assert (known.state, known.since_then) == ("waiting", "")
    held.now += 60
    run_out(held, held.not_modified)
    known, told = explained(held)
    assert "its site was asked as often as it may be" in told["differs"]
    assert told["last failure"].endswith("stored all the same")
    assert (known.state, known.since_then) == ("cached", "stored")
    held.now += 3600
    held.push(update("a", NEW))
    assert as_dict(explained(held)[0], lambda *_: "", held.now)["queued"]["not_before"] == 0
    held.fetch("a", NEW)
    known, told = explained(held)
    assert "differs" not in told
    assert known.since_then == "stored"


@pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)
def test_the_mail_counts_what_differs_and_says_when_it_is_not_tried_again_any_more(held):
    held.change(contact="owner@example.org", mismatched=19)
    held.push(update("a", NEW))
    run_out(held, lambda ticket: held.served(ticket, OLD))
    with held.store.read() as tx:
        rows = rows_in(tx)
        assert rows.count_url_errors(PID, START, held.now) == {608: 1}
        provider = tx.provider(PID)
        state = MailState(PID, since=START, due=held.now)
        rules = MailTerms(hour=time(6), zone=ZoneInfo("UTC"), operator="ops", urgent=True)
        written = letter(rows, provider, state, terms=rules, link="", now=held.now + MARGIN).written
    assert written is not None
    assert "1 x 608 md5 or len differs from the declared one" in written.text
    assert "Until it does so for one document, we ask for each only once." in written.text
    (found,) = mismatches([provider])
    assert found.text.endswith("not tried again until one matches (20 in a row): see `lcc errors 7`")
    assert list(mismatches([replace(provider, mismatched=19)])) == []
