"""What an operator wants fetched again: ``lcc retry`` and ``lcc refetch``, on every store."""

from collections import Counter
from dataclasses import replace

import pytest
from little_lcc import PID, dump, key, removal, update, url

from lcc_scrapy.domain.entries import Declared, Origin
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.ops import fetch_again as module
from lcc_scrapy.ops.fetch_again import Again, Terms, open_pids

BODY = b"a body of some length"
ALL = Selection()


def again(lcc, *, queue_max=0, dry_run=False):
    return Again(lcc.store, Terms(lcc.policy, queue_max, lcc.now, dry_run))


def retry(lcc, *codes, since=0, **terms):
    return sum(again(lcc, **terms).retry(PID, codes, since), Counter())


def refetch(lcc, selection=ALL, **terms):
    return sum(again(lcc, **terms).refetch(PID, selection), Counter())


def fail(lcc, *names, code=404):
    lcc.push(*map(update, names))
    lcc.settle(*[lcc.failed(ticket, code, final=True) for ticket in lcc.tickets()])


# --- retry ------------------------------------------------------------------------------------------


def test_what_failed_is_fetched_again_with_all_that_was_declared(lcc):
    lcc.push(update("a", BODY, subtype="lang: nl", burl=None, declared=Declared(mtime=5)))
    before = lcc.queued("a")
    lcc.settle(lcc.failed(lcc.ticket("a"), 404, final=True))
    assert retry(lcc) == {"queued": 1}
    row = lcc.queued("a")
    assert replace(before, psetid=row.psetid, seen=0, tries=3) == row, "one request, and no series"
    lcc.fetch("a", BODY)
    assert lcc.documents() == ["a"]
    assert retry(lcc) == {"done_since": 1}


def test_codes_and_times_choose_and_a_dry_run_changes_nothing(lcc):
    fail(lcc, "a", "b")
    lcc.now += 10
    fail(lcc, "c", code=500)
    before = dump(lcc.store)
    assert retry(lcc, dry_run=True) == {"queued": 3}
    assert dump(lcc.store) == before
    assert retry(lcc, 410, 403) == {}
    assert retry(lcc, since=lcc.now + 1) == {}
    assert retry(lcc, 500) == {"queued": 1}
    assert retry(lcc, since=lcc.now) == {"waiting": 1}
    assert [name for name, _ in lcc.waiting()] == ["c"]
    assert retry(lcc, 404, 500) == {"queued": 2, "waiting": 1}


def test_what_waits_to_try_again_goes_at_once_in_its_first_place(lcc):
    lcc.push(update("a"), update("b"))
    lcc.settle(lcc.failed(lcc.ticket("a"), 500))
    assert lcc.queued("a").not_before > lcc.now
    assert retry(lcc) == {"sooner": 1}
    assert [ticket.row.curl for ticket in lcc.tickets()] == [url("a"), url("b")]
    assert (lcc.queued("a").tries, lcc.queued("a").not_before) == (1, 0)
    lcc.fetch("a")
    assert retry(lcc) == {"done_since": 1}


def test_what_failed_meanwhile_again_waits_for_another_retry(lcc, monkeypatch):
    monkeypatch.setattr(module, "PAGE", 2)
    fail(lcc, *"abc")
    pages = again(lcc).retry(PID)
    assert next(pages) == {"queued": 2}
    lcc.now += 1
    lcc.settle(*[lcc.failed(ticket, 404, final=True) for ticket in lcc.tickets()])
    assert sum(pages, Counter()) == {"queued": 1}


def test_withdrawn_refused_held_and_outside_urls_are_left_alone(lcc):
    fail(lcc, *"abc")
    lcc.push(removal("a"))
    lcc.store_pages("d")
    lcc.now += 1
    fail(lcc, "d", code=503)
    with lcc.store.begin() as tx:
        tx.replace_roots(PID, [url("b"), url("d")])
        tx.put_outcomes([replace(tx.outcome(key("b")), state="refused")])
        tx.update_cached([replace(lcc.cached("d"), held=1)])
        tx.add_to_provider(PID, {"heldremovals": 1})
    assert retry(lcc) == {"outside_roots": 1, "held": 1}
    ask = again(lcc)
    found = [ask.retry_url(url(name), [PID]) for name in "abcde"]
    assert found == [{"withdrawn": 1}, {"refused": 1}, {"outside_roots": 1}, {"held": 1}, {}]
    assert ask.retry_url(url("a"), [8]) == {}


def test_a_retried_document_that_a_full_set_leaves_out_goes(lcc):
    fail(lcc, "a")
    retry(lcc)
    lcc.fetch("a")
    lcc.push(update("b"), full=True)
    assert lcc.documents() == []


def test_the_queue_takes_no_more_than_there_is_room_for(lcc, monkeypatch):
    monkeypatch.setattr(module, "PAGE", 2)
    fail(lcc, *"abcde")
    pages = list(again(lcc, queue_max=6).retry(PID))
    assert pages == [{"queued": 2}, {"queued": 1, "no_room": 1}]
    assert len(lcc.waiting()) == 3


def test_only_providers_that_may_be_fetched_from_are_asked(lcc):
    lcc.add(8, state="paused")
    lcc.add(9, state="disabled")
    assert (open_pids(lcc.store), open_pids(lcc.store, [8])) == ([PID, 8], [8])
    with pytest.raises(LccError, match="provider 9"):
        open_pids(lcc.store, [8, 9])


# --- refetch ----------------------------------------------------------------------------------------


def test_a_refetched_document_keeps_what_was_declared_and_no_change_counts_as_missed(lcc):
    lcc.push(update("a", BODY, subtype="lang: nl", declared=Declared(mtime=5)))
    lcc.fetch("a", BODY)
    before = lcc.cached("a")
    lcc.now += 1
    assert refetch(lcc, dry_run=True) == refetch(lcc) == {"queued": 1}
    assert lcc.queued("a").origin == Origin.REFETCH
    assert lcc.fetch("a", b"another").result == "retrying"
    assert lcc.cached("a") == before, "a copy that is as declared stays until a second look"
    lcc.now += 3600
    lcc.fetch("a", b"another")
    row = lcc.cached("a")
    assert (row.mtime, row.subtype, row.origin, row.seen) == (5, "lang: nl", "push", before.seen)
    assert (row.fetched_len, row.len, row.seq) == (7, len(BODY), before.seq + 1)
    assert lcc.errors() == []
    with lcc.store.read() as tx:
        missed = tx.missed(PID, 0)
        assert (missed.sampled, tx.count_suspects(PID, lcc.now + 1)) == (0, 0)


def test_a_refetched_document_may_be_unchanged_or_gone(lcc):
    lcc.store_pages("a", "b")
    lcc.now += 1
    refetch(lcc)
    lcc.settle(lcc.not_modified(lcc.ticket("a")))
    lcc.settle(lcc.failed(lcc.ticket("b"), 404, final=True))
    assert (lcc.documents(), lcc.cached("a").confirmed_time, lcc.errors()) == (["a"], lcc.now, [])
    assert lcc.waiting() == []


def test_filters_choose_documents_and_pages_reach_all(lcc, monkeypatch):
    monkeypatch.setattr(module, "PAGE", 2)
    lcc.store_pages(*"abcde")
    assert refetch(lcc, Selection(url_prefixes=(url("a"), url("c")))) == {"queued": 2}
    assert refetch(lcc, Selection(mimetypes=("image/*",))) == {}
    assert refetch(lcc) == {"queued": 3, "waiting": 2}
    ask = again(lcc)
    assert ask.refetch_url(url("a"), [PID], ALL) == {"waiting": 1}
    assert ask.refetch_url(url("z"), [PID], ALL) == {}
