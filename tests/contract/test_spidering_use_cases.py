"""What spiders find in queue and cache, and the scan for it, on every store."""

import json
from dataclasses import replace

import pytest
from little_lcc import PID, SITE, START, key, removal, update, url

from lcc_scrapy.db.records import DocumentLink
from lcc_scrapy.domain.entries import ANY_TYPE, Declared, Origin, furlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.revisits import Bounds
from lcc_scrapy.spidering import submitting
from lcc_scrapy.spidering.submitting import Found, Progress, Read, Spidering, Terms


@pytest.fixture
def spider(lcc):
    return Spidering(lcc.store, PID, Terms(), lcc.policy)


def seed(lcc, *names):
    return Spidering(lcc.store, PID, Terms(), lcc.policy).seed([url(name) for name in names], lcc.now)


def read(look, **links):
    """Read documents: each links to the names given for it."""
    return [
        Read(
            one,
            tuple(DocumentLink(url(name), "a") for name in links.get(one.row.curl.removeprefix(SITE), ())),
            tuple(
                Found(url(name), one.depth + 1, one.row.urlkey)
                for name in links.get(one.row.curl.removeprefix(SITE), ())
            ),
        )
        for one in look.documents
    ]


def scan(lcc, spider, **links):
    look = spider.look(lcc.now)
    return spider.advance(look, read(look, **links), look.upto, lcc.now)


def visit(lcc, name, body=b"a page", served_type="text/html", **answer):
    ticket = next(one for one in lcc.tickets() if one.row.furl == url(name))
    return lcc.settle(lcc.served(ticket, body, served_type=served_type, **answer))[0]


def known(lcc, name):
    with lcc.store.read() as tx:
        return tx.spidered([furlkey(PID, url(name))]).get(furlkey(PID, url(name)))


# --- found URLs in queue and cache ------------------------------------------------------------------


def test_a_found_url_is_stored_under_the_type_that_was_served(lcc):
    seed(lcc, "a")
    assert lcc.queued("a", ANY_TYPE).origin == Origin.SPIDER
    settled = visit(lcc, "a", served_type="application/xhtml+xml")
    assert settled.result == "stored"
    row = lcc.cached("a", "application/xhtml+xml")
    assert settled.row == row
    assert (row.origin, row.furl, row.burl, row.declared) == (Origin.SPIDER, url("a"), url("a"), Declared())
    assert (lcc.waiting(), lcc.documents(), lcc.errors()) == ([], ["a"], [])
    with lcc.store.read() as tx:
        assert json.loads(tx.meta(row.urlkey).headers) == []
    assert known(lcc, "a").visited == START


@pytest.mark.parametrize("served", ["", "nonsense", "a/" + "b" * 200])
def test_what_is_served_without_a_usable_type_is_bytes(lcc, served):
    lcc.policy = QueuePolicy(mimetypes=("*/*",))
    seed(lcc, "a")
    visit(lcc, "a", served_type=served)
    assert lcc.cached("a", "application/octet-stream")


def test_a_provider_s_own_types_hold_instead_of_those_of_all(lcc, spider):
    lcc.policy = QueuePolicy(mimetypes=("text/*",))
    lcc.change(mimetypes="image/*")
    seed(lcc, "a", "b")
    assert visit(lcc, "a", served_type="image/png").result == "stored"
    assert visit(lcc, "b", served_type="text/html").code == 703


def test_a_type_that_is_not_accepted_leaves_no_row_and_is_not_tried_again(lcc, spider):
    lcc.policy = QueuePolicy(mimetypes=("text/*",))
    seed(lcc, "a", "index")
    settled = visit(lcc, "a", served_type="image/png")
    assert (settled.result, settled.code, lcc.documents(), lcc.errors()) == ("failed", 703, [], [])
    assert known(lcc, "a").code == 703
    visit(lcc, "index")
    scan(lcc, spider, index=["a"])
    assert lcc.waiting() == []


def test_what_a_provider_pushed_is_present_whatever_its_name(lcc, spider):
    lcc.push(update("some name", furl=url("a")), update("waits", furl=url("b")))
    lcc.fetch("some name")
    assert spider.seed([url("a"), url("b"), url("c")], lcc.now) == Progress(1)
    assert lcc.waiting() == [("waits", "fetch"), ("c", "fetch")]


def test_a_push_takes_over_the_place_of_a_found_url(lcc):
    seed(lcc, "a", "b")
    lcc.push(update("c"), update("a", b"a page", mimetype="text/plain"))
    assert lcc.waiting() == [("a", "fetch"), ("b", "fetch"), ("c", "fetch")]
    row = lcc.queued("a", "text/plain")
    assert (row.origin, row.version, lcc.queued("a", ANY_TYPE)) == (Origin.PUSH, 2, None)
    visit(lcc, "a", served_type="text/plain")
    assert (lcc.cached("a", "text/plain").origin, lcc.documents()) == (Origin.PUSH, ["a"])


def test_a_visit_that_is_under_way_answers_the_push_that_declares_what_it_brings(lcc):
    seed(lcc, "a")
    ticket = lcc.tickets()[0]
    lcc.push(update("named otherwise", b"a page", furl=url("a")))
    lcc.settle(lcc.served(ticket, b"a page", served_type="text/html"))
    assert (lcc.documents(), lcc.waiting()) == (["named otherwise"], [])
    assert lcc.cached("named otherwise").origin == Origin.PUSH


def test_a_push_is_not_handed_out_while_the_visit_of_the_same_place_is_under_way(lcc):
    seed(lcc, "a")
    ticket = lcc.tickets()[0]
    lcc.push(update("named otherwise", b"a page", furl=url("a")), update("b"))
    out = [ticket.row.urlkey]
    assert [one.row.curl for one in lcc.tickets(out=out)] == [url("b")]


def test_a_push_during_a_visit_that_brings_something_else_is_fetched(lcc):
    seed(lcc, "a")
    ticket = lcc.tickets()[0]
    lcc.push(update("a", b"the newest"))
    lcc.settle(lcc.served(ticket, b"older", served_type="text/html"))
    assert lcc.waiting() == [("a", "fetch")]
    visit(lcc, "a", b"the newest")
    row = lcc.cached("a")
    assert (row.origin, row.fetched_len, lcc.waiting()) == (Origin.PUSH, 10, [])


def test_a_visit_that_fails_while_a_push_arrives_leaves_the_push_alone(lcc):
    seed(lcc, "a")
    ticket = lcc.tickets()[0]
    lcc.push(update("a"))
    assert lcc.settle(lcc.failed(ticket, 404, final=True))[0].result == "discarded"
    assert lcc.waiting() == [("a", "fetch")]


def test_a_visit_changes_nothing_that_a_provider_declared(lcc):
    lcc.push(update("a", b"old", subtype="lang: nl", furl=url("elsewhere")))
    visit(lcc, "elsewhere", b"old")
    seed(lcc, "a")
    assert visit(lcc, "a", b"new").result == "retrying"
    assert lcc.cached("a").fetched_md5 == update("a", b"old").declared.md5
    lcc.now += 3600
    visit(lcc, "a", b"new")
    row = lcc.cached("a")
    assert (row.origin, row.subtype, row.len, row.fetched_len) == (Origin.PUSH, "lang: nl", 3, 3)
    assert (row.furl, row.fetched_md5) == (url("elsewhere"), update("a", b"new").declared.md5)


def test_a_full_set_leaves_alone_what_spiders_found(lcc):
    seed(lcc, "a", "b")
    visit(lcc, "a")
    lcc.push(update("c"), full=True)
    assert (lcc.documents(), lcc.waiting()) == (["a"], [("b", "fetch"), ("c", "fetch")])


def test_a_document_that_a_spider_found_is_pushed_and_then_belongs_to_its_provider(lcc):
    seed(lcc, "a")
    visit(lcc, "a")
    lcc.push(update("a"))
    lcc.fetch_all()
    assert lcc.cached("a").origin == Origin.PUSH
    lcc.push(update("b"), full=True)
    assert lcc.documents() == []


def test_a_removal_takes_away_what_a_spider_found(lcc):
    seed(lcc, "a")
    visit(lcc, "a")
    lcc.push(removal("a"))
    assert lcc.documents() == []


def test_failures_of_visits_are_not_told_to_the_provider(lcc):
    seed(lcc, "a")
    assert lcc.settle(lcc.failed(lcc.tickets()[0], 404, final=True))[0].result == "failed"
    assert (lcc.errors(), lcc.provider().nurlerrs, known(lcc, "a").code) == ([], 0, 404)
    with lcc.store.read() as tx:
        assert tx.outcome(key("a", ANY_TYPE)).code == 404


# --- the scan ---------------------------------------------------------------------------------------


def test_links_are_followed_page_by_page_and_nothing_twice(lcc, spider):
    seed(lcc, "index")
    visit(lcc, "index")
    assert scan(lcc, spider, index=["a", "b", "a", "index"]) == Progress(2)
    assert lcc.waiting() == [("a", "fetch"), ("b", "fetch")]
    assert (known(lcc, "a").depth, known(lcc, "a").parent) == (1, key("index"))
    with lcc.store.read() as tx:
        assert [link.url for link in tx.links_of(key("index"))] == [url(n) for n in ("a", "b", "a", "index")]
    for name in ("a", "b"):
        visit(lcc, name)
    assert scan(lcc, spider, a=["b", "c"], b=["c", "index"]) == Progress(1)
    assert known(lcc, "c").depth == 2
    visit(lcc, "c")
    assert scan(lcc, spider) == Progress()
    assert spider.look(lcc.now).at_end
    assert spider.is_done(0, full=False)


def test_links_of_pushed_documents_are_followed_too(lcc, spider):
    lcc.store_pages("index")
    assert scan(lcc, spider, index=["a"]) == Progress(1)
    assert (known(lcc, "a").depth, known(lcc, "index")) == (1, None)


def test_a_dead_link_is_tried_once_however_many_pages_have_it(lcc, spider):
    seed(lcc, "index")
    visit(lcc, "index")
    scan(lcc, spider, index=["dead", "a"])
    lcc.settle(lcc.failed(lcc.ticket("dead"), 404, final=True))
    visit(lcc, "a")
    assert scan(lcc, spider, a=["dead"]) == Progress()


def test_a_start_page_that_could_not_be_had_is_tried_again(lcc, spider):
    seed(lcc, "index")
    lcc.settle(lcc.failed(lcc.ticket("index"), 404, final=True))
    lcc.now += 10
    assert spider.seed([url("index")], lcc.now) == Progress(1)
    assert spider.seed([url("index")], lcc.now) == Progress()
    assert known(lcc, "index").visited == 0


def test_other_terms_begin_the_scan_anew(lcc, spider):
    seed(lcc, "index")
    visit(lcc, "index")
    scan(lcc, spider)
    lcc.now += 10
    further = Spidering(lcc.store, PID, Terms(depth=3), lcc.policy)
    assert not further.is_done(0, full=False)
    assert [one.row.curl for one in further.look(lcc.now).documents] == [url("index")]
    assert scan(lcc, further, index=["a"]) == Progress(1)
    assert further.look(lcc.now).documents == ()
    with lcc.store.read() as tx:
        assert tx.scan(PID).since == lcc.now


def test_a_new_root_begins_the_scan_anew(lcc, spider):
    lcc.store_pages("index")
    scan(lcc, spider)
    with lcc.store.begin() as tx:
        tx.replace_roots(PID, [SITE, "http://other.example.org/"])
    assert len(spider.look(lcc.now).documents) == 1


def test_a_step_that_is_killed_has_done_nothing_and_is_done_again(lcc, spider, monkeypatch):
    seed(lcc, "index")
    visit(lcc, "index")
    monkeypatch.setattr(submitting.UnitOfWork, "flush", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        scan(lcc, spider, index=["a"])
    monkeypatch.undo()
    assert (lcc.waiting(), known(lcc, "a")) == ([], None)
    assert scan(lcc, spider, index=["a"]) == Progress(1)


def test_two_scans_of_one_provider_do_not_do_the_same_step(lcc, spider):
    seed(lcc, "index")
    visit(lcc, "index")
    look = spider.look(lcc.now)
    assert spider.advance(look, read(look, index=["a"]), look.upto, lcc.now) == Progress(1)
    assert spider.advance(look, read(look, index=["b"]), look.upto, lcc.now) is None
    assert lcc.waiting() == [("a", "fetch")]


def test_a_document_that_was_replaced_while_it_was_read_is_read_again(lcc, spider):
    lcc.store_pages("index")
    look = spider.look(lcc.now)
    lcc.push(update("index"))
    lcc.fetch_all(body=b"a newer edition")
    assert spider.advance(look, read(look, index=["a"]), look.upto, lcc.now) == Progress()
    assert scan(lcc, spider, index=["b"]) == Progress(1)
    assert lcc.waiting() == [("b", "fetch")]


def test_no_more_urls_are_known_than_may_be_and_a_higher_limit_goes_on_from_there(lcc):
    few = Spidering(lcc.store, PID, Terms(urls=3), lcc.policy)
    seed(lcc, "index")
    visit(lcc, "index")
    assert scan(lcc, few, index=["a", "b", "c"]) == Progress(2, held_up=True)
    assert not few.is_done(0, full=True)
    for name in ("a", "b"):
        visit(lcc, name)
    assert scan(lcc, few, index=["a", "b", "c"]) == Progress(0, held_up=True, full=True)
    assert few.is_done(0, full=True)
    more = replace(few.terms, urls=4)
    assert scan(lcc, Spidering(lcc.store, PID, more, lcc.policy), index=["a", "b", "c"]) == Progress(1)


def test_no_more_urls_are_asked_for_than_the_quota_has_room_for(lcc, spider):
    lcc.change(filesmax=3)
    seed(lcc, "index")
    visit(lcc, "index")
    assert scan(lcc, spider, index=["a", "b", "c"]) == Progress(2, held_up=True)


def test_a_full_queue_admits_nothing(lcc):
    seed(lcc, "a", "b", "c")
    crowded = Spidering(lcc.store, PID, Terms(queue_max=4), lcc.policy)
    assert not crowded.look(lcc.now).admitted
    assert Spidering(lcc.store, PID, Terms(queue_max=100), lcc.policy).look(lcc.now).admitted


def test_the_scan_passes_over_what_others_have(lcc, spider, monkeypatch):
    monkeypatch.setattr(submitting, "SPAN", 2)
    lcc.add(8)
    lcc.store_pages("x", "y", "z", pid=8)
    lcc.store_pages("index")
    steps = []
    while not (look := spider.look(lcc.now)).at_end:
        steps.append([one.row.curl for one in look.documents])
        spider.advance(look, read(look), look.upto, lcc.now)
    assert steps == [[], [url("index")]]


# --- visiting again ---------------------------------------------------------------------------------


def test_what_was_visited_long_ago_is_visited_again_on_condition(lcc, spider):
    seed(lcc, "a", "dead")
    visit(lcc, "a")
    lcc.settle(lcc.failed(lcc.ticket("dead"), 404, final=True))
    lcc.now += 100
    assert spider.revisit(lcc.now - 100, lcc.now) == 0
    assert not spider.is_done(lcc.now - 50, full=False)
    assert spider.revisit(lcc.now - 50, lcc.now) == 2
    assert spider.revisit(lcc.now - 50, lcc.now) == 0
    tickets = {one.row.curl.removeprefix(SITE): one for one in lcc.tickets()}
    assert (tickets["a"].etag, tickets["dead"].etag) == ('"1"', "")
    before = lcc.cached("a")
    lcc.settle(lcc.not_modified(tickets["a"]), lcc.failed(tickets["dead"], 404, final=True))
    assert lcc.cached("a") == replace(before, confirmed_time=lcc.now, seen=2, confirmed_seq=1)
    assert (known(lcc, "a").visited, known(lcc, "dead").visited) == (lcc.now, lcc.now)


# --- adaptive revisits ------------------------------------------------------------------------

HOUR, DAY = 3600, 86_400


@pytest.fixture
def guessing(lcc):
    return Spidering(lcc.store, PID, Terms(), lcc.policy, adaptive=True)


def settled_visit(lcc, name, *, body=None, code=0, after=0):
    """Visit a page again, ``after`` seconds later: with this body, with a failure, or for a 304."""
    lcc.now += after
    ticket = next((one for one in lcc.tickets() if one.row.furl == url(name)), None)
    assert ticket is not None
    if code:
        lcc.settle(lcc.failed(ticket, code, final=True))
    elif body is None:
        lcc.settle(lcc.not_modified(ticket))
    else:
        lcc.settle(lcc.served(ticket, body, served_type="text/html"))
    return known(lcc, name)


def visit_when_due(lcc, spider, name, **outcome):
    row = known(lcc, name)
    assert spider.revisit(row.due - 1, lcc.now) == 0
    lcc.now = row.due
    assert spider.revisit(row.due, lcc.now) == 1
    assert known(lcc, name) == replace(row, visited=0, due=0)
    return settled_visit(lcc, name, **outcome)


def test_a_url_is_first_due_after_the_interval_that_is_asked_for(lcc, guessing):
    seed(lcc, "a")
    assert known(lcc, "a").due == 0
    visit(lcc, "a")
    row = known(lcc, "a")
    assert (row.answered, row.every, row.changes, row.due) == (lcc.now, DAY, 0, lcc.now + DAY)


def test_what_was_unchanged_is_due_later_and_what_changed_is_due_sooner(lcc, guessing):
    seed(lcc, "a", "b", "c")
    for name in "abc":
        visit(lcc, name, b"first")
        lcc.now += 1
    sooner = visit_when_due(lcc, guessing, "a", body=b"second")
    later = visit_when_due(lcc, guessing, "b")
    same = visit_when_due(lcc, guessing, "c", body=b"first")
    assert HOUR < sooner.every < DAY < later.every == same.every
    assert (sooner.changes, later.changes, same.changes) == (1, 0, 0)
    for row in (sooner, later, same):
        assert row.due == row.visited + row.every == row.answered + row.every


def test_a_failure_says_nothing_of_changes(lcc, guessing):
    seed(lcc, "a")
    visit(lcc, "a", b"first")
    before = visit_when_due(lcc, guessing, "a", body=b"second")
    failed = visit_when_due(lcc, guessing, "a", code=403)
    assert failed == replace(before, visited=lcc.now, code=403, due=lcc.now + before.every)


def test_the_bounds_are_those_of_the_provider_or_else_of_the_policy(lcc):
    lcc.policy = QueuePolicy(revisits=Bounds(100, 90, 110))
    spider = Spidering(lcc.store, PID, Terms(), lcc.policy, adaptive=True)
    seed(lcc, "a")
    visit(lcc, "a", b"first")
    assert known(lcc, "a").every == 100
    assert visit_when_due(lcc, spider, "a").every == 110
    lcc.change(revisit=str(Bounds(10, 5, 20)))
    lcc.now += 21
    assert spider.revisit(lcc.now, lcc.now) == 1
    assert settled_visit(lcc, "a").every == 20


def test_what_a_push_took_over_is_not_guessed_about_any_more(lcc, guessing):
    seed(lcc, "a", "b", "c")
    for name in "abc":
        visit(lcc, name, b"a page")
    lcc.push(update("a", b"a page"), update("c"))
    lcc.fetch("c")
    lcc.now += DAY
    assert guessing.revisit(lcc.now, lcc.now) == 3
    assert lcc.waiting() == [("b", "fetch")]
    assert (known(lcc, "a").due, lcc.cached("a").md5) == (0, update("a", b"a page").declared.md5)
    assert guessing.revisit(lcc.now + 1000 * DAY, lcc.now) == 0


def test_only_so_many_are_looked_at_at_a_time_and_the_earliest_first(lcc, guessing, monkeypatch):
    monkeypatch.setattr(submitting, "VISITS", 2)
    names = ("c", "a", "b")
    seed(lcc, *names)
    for name in names:
        visit(lcc, name)
        lcc.now += 1
    lcc.now += DAY
    assert guessing.revisit(lcc.now, lcc.now) == 2
    assert [name for name, _ in lcc.waiting()] == ["c", "a"]
    assert [guessing.revisit(lcc.now, lcc.now) for _ in range(2)] == [1, 0]


def test_guesses_are_done_when_nothing_was_due(lcc, guessing):
    seed(lcc, "a")
    visit(lcc, "a")
    look = guessing.look(lcc.now)
    guessing.advance(look, read(look), look.upto, lcc.now)
    assert guessing.is_done(lcc.now + DAY - 1, full=False)
    assert not guessing.is_done(lcc.now + DAY, full=False)
    assert guessing.is_done(0, full=False)


def test_visits_at_fixed_intervals_teach_the_guess_too(lcc, spider):
    seed(lcc, "a")
    visit(lcc, "a")
    lcc.now += DAY
    spider.revisit(lcc.now, lcc.now)
    assert settled_visit(lcc, "a").every > DAY


# --- visits and pushes ------------------------------------------------------------------------------


def test_what_its_provider_pushes_is_not_visited_again(lcc, spider):
    seed(lcc, "a", "b")
    lcc.fetch_all()
    lcc.push(update("a", mimetype="text/plain"))
    lcc.now += 100
    assert spider.revisit(lcc.now, lcc.now) == 2
    assert [row for row, _ in lcc.waiting()] == ["a", "b"]
    assert lcc.queued("a", "text/plain").origin == Origin.PUSH


def test_a_document_that_is_served_as_another_type_now_moves_there(lcc, spider):
    seed(lcc, "a")
    visit(lcc, "a")
    lcc.now += 100
    spider.revisit(lcc.now, lcc.now)
    visit(lcc, "a", b"plain", served_type="text/plain")
    assert (lcc.cached("a"), lcc.documents()) == (None, ["a"])
    assert lcc.cached("a", "text/plain").origin == Origin.SPIDER


def test_a_visit_that_finds_nothing_removes_the_copy_unless_the_guard_holds_it(lcc, spider):
    names = [f"p{number:02}" for number in range(50)]
    seed(lcc, *names)
    for name in names:
        visit(lcc, name)
    lcc.now += 100
    spider.revisit(lcc.now, lcc.now)
    lcc.settle(*[lcc.failed(ticket, 404, final=True) for ticket in lcc.tickets()])
    assert (len(lcc.documents()), len(lcc.held())) == (25, 25)
    lcc.now += 100
    spider.revisit(lcc.now, lcc.now)
    assert len(lcc.held()) == 25
    gone, *others = [one for one in lcc.tickets() if one.row.mimetype != ANY_TYPE]
    lcc.settle(lcc.failed(gone, 404, final=True), *[lcc.not_modified(one) for one in others])
    assert lcc.held() == [gone.row.curl.removeprefix(SITE)]


def test_a_push_of_just_what_a_spider_fetched_is_not_fetched_again(lcc):
    seed(lcc, "a", "b")
    visit(lcc, "a", b"a page")
    visit(lcc, "b", b"another")
    lcc.push(update("a", b"a page", declared=Declared(mtime=5)), update("b", b"a newer one"))
    assert lcc.waiting() == [("b", "fetch")]
    row = lcc.cached("a")
    assert (row.origin, row.declared) == (Origin.PUSH, update("a", b"a page", declared=Declared(5)).declared)
    lcc.push(update("a", b"a page"))
    assert lcc.waiting() == [("b", "fetch")]
