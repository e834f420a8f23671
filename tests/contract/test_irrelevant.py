"""Pages that concern nobody, on every store: content goes, what the next visit needs stays, and they come back."""

from dataclasses import replace

import pytest
from little_lcc import PID, SITE, START, key, update, url
from test_directives import ask, asked, dig, owners, scan, spider
from test_withdrawing import TREE

from lcc_scrapy.annotation import irrelevant as module
from lcc_scrapy.annotation.irrelevant import Irrelevance, note_unwanted_by
from lcc_scrapy.annotation.requests import RequestRounds
from lcc_scrapy.cache.irrelevant import forget, sweep
from lcc_scrapy.db.records import LAST_KEY, Irrelevant, Unwanted
from lcc_scrapy.domain.acis import Aci
from lcc_scrapy.domain.cache import IRRELEVANT
from lcc_scrapy.domain.entries import furlkey
from lcc_scrapy.domain.providers import Render
from lcc_scrapy.domain.queue import NotModified
from lcc_scrapy.domain.rendering import rendition_of
from lcc_scrapy.domain.urds import Keyword, Process, Urd
from lcc_scrapy.providers.registration import remove
from lcc_scrapy.queue.settlement import DISCARDED, STORED

SOMEBODY = Urd(0, "zoe", "http://elsewhere.example/", keywords=(Keyword("x"),))


@pytest.fixture
def dropping(lcc):
    """An LCC that drops what concerns nobody; somebody has a URD about something else."""
    lcc.policy = replace(lcc.policy, drop_irrelevant=True)
    add(lcc, SOMEBODY)
    return lcc


def add(lcc, *urds):
    """Add URDs that were run over the cache already."""
    with lcc.store.begin() as tx:
        added = tx.add_urds(urds)
        tx.note_run([one.revision for one in added], None)
    return added


def at(name):
    return furlkey(PID, url(name))


def visit(lcc, *names, body=b""):
    for name in names:
        ticket = next(one for one in lcc.tickets() if one.row.furl == url(name))
        [done] = lcc.settle(lcc.served(ticket, body or name.encode(), served_type="text/html"))
    return done


def cached(lcc, name):
    with lcc.store.read() as tx:
        return next(iter(tx.cached_at([at(name)]).get(at(name), ())), None)


def note(lcc, *names):
    rows = [cached(lcc, name) for name in names]
    with lcc.store.begin() as tx:
        note_unwanted_by(lcc.policy)(tx, rows, lcc.now * 1000)
    return rows


def irrelevance(lcc):
    return Irrelevance(lcc.store, lcc.policy, lambda: lcc.now)


def found(lcc, *names, depth=0):
    """Fetch and read pages that bert asked for."""
    ask(lcc, *(asked(name, depth, "bert") for name in names))
    visit(lcc, *names)
    scan(lcc, **{name: list(to) for name, to in TREE.items()})


def tickets(lcc):
    return {one.row.furl.removeprefix(SITE): one for one in lcc.tickets()}


def test_what_concerns_nobody_goes_and_its_next_visit_needs_no_content(dropping):
    found(dropping, "a", "b")
    [a, _] = note(dropping, "a", "b")
    with dropping.store.begin() as tx:
        links = tx.links_of(a.urlkey)
        files, space = tx.provider(PID).fileused, tx.provider(PID).spaceused
    assert irrelevance(dropping).round() == 2
    assert cached(dropping, "a") is None
    with dropping.store.read() as tx:
        [tombstone] = [one for one in tx.changes(0, 99) if one.urlkey == a.urlkey]
        assert tombstone.reason == IRRELEVANT
        assert tx.links_of(a.urlkey) == links != []
        [left] = tx.irrelevant_at([at("a")])[at("a")]
        assert (left.etag, left.last_modified, left.sha256) == (a.etag, a.last_modified, a.sha256)
        assert tx.linking_at([at("a"), at("never")]) == {at("a"): [a.urlkey]}
        assert tx.unwanted(b"", 9) == []
        assert (tx.provider(PID).fileused, tx.provider(PID).spaceused) < (files, space)
        assert tx.provider(PID).removed == 0
        assert [one.fileid for one in tx.files_to_delete(a.fetched_machineid, 1 << 40, 9)]
    assert irrelevance(dropping).round() == 0


def test_validators_of_where_a_page_had_moved_to_do_not_stay(dropping):
    """The next visit begins at its own URL, to which they say nothing."""
    found(dropping, "a")
    [a] = note(dropping, "a")
    with dropping.store.begin() as tx:
        tx.update_cached([replace(a, final_url=url("moved"))])
    irrelevance(dropping).round()
    with dropping.store.read() as tx:
        [left] = tx.irrelevant_at([at("a")])[at("a")]
    assert (left.etag, left.last_modified, left.sha256) == ("", "", a.sha256)


def test_a_page_that_a_browser_rendered_stays_for_its_rendition_may_concern_somebody(dropping):
    dropping.change(render=Render.YES)
    ask(dropping, asked("a", 0, "bert"))
    (ticket,) = dropping.tickets()
    served = dropping.served(ticket, b"a shell", served_type="text/html")
    body = dropping.served(ticket, b"what it says").body
    dropping.settle(replace(served, rendition=rendition_of(ticket, served.answer, body)))
    scan(dropping, a=[])
    note(dropping, "a")
    assert irrelevance(dropping).round() == 0
    assert sorted(dropping.documents()) == ["a", "a"]


def test_its_next_visit_is_a_304_and_depth_goes_on(dropping):
    found(dropping, "a")
    [a] = note(dropping, "a")
    irrelevance(dropping).round()
    with dropping.store.begin() as tx:
        assert spider(dropping).ask_again(tx, [at("a")], dropping.now) == 1
    again = tickets(dropping)["a"]
    assert (again.etag, again.last_modified) == (a.etag, a.last_modified)
    [done] = dropping.settle(NotModified(again, dropping.now))
    assert (done.result, done.row) == (DISCARDED, None)
    assert tickets(dropping) == {}
    ask(dropping, asked("x", 3, "anna"))
    visit(dropping, "x")
    scan(dropping, x="a")
    while dig(dropping) is not None:
        pass
    assert (owners(dropping, "a"), owners(dropping, "b")) == ({"anna": 2, "bert": 0}, {"anna": 1})
    assert "b" in tickets(dropping)


def test_the_same_content_again_is_not_stored_and_another_one_is(dropping):
    found(dropping, "a")
    note(dropping, "a")
    irrelevance(dropping).round()
    for body, result in ((b"a", DISCARDED), (b"new", STORED)):
        with dropping.store.begin() as tx:
            spider(dropping).ask_again(tx, [at("a")], dropping.now)
        assert visit(dropping, "a", body=body).result == result
    with dropping.store.read() as tx:
        assert tx.irrelevant_at([at("a")]) == {}
    assert cached(dropping, "a") is not None


def test_links_to_it_do_not_queue_it(dropping):
    found(dropping, "a")
    note(dropping, "a")
    irrelevance(dropping).round()
    ask(dropping, asked("x", 0, "anna"))
    visit(dropping, "x")
    scan(dropping, x="a")
    assert tickets(dropping) == {}


def test_a_page_gone_from_its_site_is_forgotten(dropping):
    found(dropping, "a")
    [a] = note(dropping, "a")
    irrelevance(dropping).round()
    with dropping.store.begin() as tx:
        spider(dropping).ask_again(tx, [at("a")], dropping.now)
    dropping.settle(dropping.failed(tickets(dropping)["a"], 404, final=True))
    with dropping.store.read() as tx:
        assert (tx.irrelevant_at([at("a")]), tx.links_of(a.urlkey)) == ({}, [])


def test_pushed_pages_are_never_dropped(dropping):
    dropping.push(update("a"))
    dropping.fetch_all()
    note(dropping, "a")
    with dropping.store.begin() as tx:
        assert tx.unwanted(b"", 9) == []
        tx.put_unwanted([Unwanted(key("a"), cached(dropping, "a").seq)])
    assert irrelevance(dropping).round() == 0
    assert cached(dropping, "a") is not None


def test_without_the_setting_nothing_is_noted_or_dropped(dropping):
    found(dropping, "a")
    note(dropping, "a")
    dropping.policy = replace(dropping.policy, drop_irrelevant=False)
    assert irrelevance(dropping).round() == 0
    with dropping.store.begin() as tx:
        tx.delete_unwanted([cached(dropping, "a").urlkey])
    note(dropping, "a")
    with dropping.store.read() as tx:
        assert tx.unwanted(b"", 9) == []


@pytest.mark.parametrize(
    "why", ["not read", "told", "changed", "compared", "compared by owner", "new urd", "no urds"]
)
def test_what_may_concern_somebody_stays(dropping, why):
    ask(dropping, asked("a", 0, "bert"))
    visit(dropping, "a")
    scan(dropping, a="b")
    if why == "not read":
        visit_again(dropping, "a", b"newer")
    [row] = note(dropping, "a")
    with dropping.store.begin() as tx:
        if why == "told":
            tx.put_acis([_aci(row)])
        if why == "new urd":
            tx.add_urds([replace(SOMEBODY, owner="yan")])
        if why == "no urds":
            tx.remove_urds([one.urdid for one in tx.all_urds(0, 9)])
    if why == "compared":
        add(dropping, Urd(0, "anna", SITE, processtype=Process.CHANGE))
    if why == "compared by owner":
        add(dropping, Urd(0, "bert", SITE + "elsewhere", processtype=Process.CHANGE))
    if why == "changed":
        visit_again(dropping, "a", b"newer")
        scan(dropping, a="b")
    assert irrelevance(dropping).round() == 0
    assert cached(dropping, "a") is not None


def visit_again(lcc, name, body):
    with lcc.store.begin() as tx:
        spider(lcc).ask_again(tx, [at(name)], lcc.now)
    visit(lcc, name, body=body)


def _aci(row):
    return Aci(
        row.urlkey, row.seq, "zoe", 1, 1, PID, "html", "html", 5, 0, 0, row.furl, 1,
        module.docbase_of(row), False, "", "", "{}", 0,
    )  # fmt: skip


@pytest.mark.parametrize("uri", [SITE + "a", SITE, "*"])
def test_a_new_urd_fetches_what_it_names_afresh(dropping, uri):
    found(dropping, "a")
    note(dropping, "a")
    irrelevance(dropping).round()
    add(dropping, replace(SOMEBODY, uri=uri))
    irrelevance(dropping).round()
    again = tickets(dropping)["a"]
    assert (again.etag, again.last_modified) == ("", "")
    assert visit(dropping, "a").result == STORED
    assert irrelevance(dropping).round() == 0


def test_a_urd_of_an_owner_who_reaches_a_page_fetches_it_afresh_and_others_do_not(dropping):
    found(dropping, "a")
    note(dropping, "a")
    irrelevance(dropping).round()
    add(dropping, replace(SOMEBODY, uri=SITE + "b"), replace(SOMEBODY, uri=SITE + "a/"))
    irrelevance(dropping).round()
    assert tickets(dropping) == {}
    add(dropping, replace(SOMEBODY, owner="bert"))
    irrelevance(dropping).round()
    assert list(tickets(dropping)) == ["a"]


def test_an_owner_who_newly_reaches_a_page_fetches_it_afresh(dropping):
    found(dropping, "a")
    note(dropping, "a")
    irrelevance(dropping).round()
    ask(dropping, asked("a", 0, "bert"))
    assert tickets(dropping) == {}
    assert ask(dropping, asked("a", 0, "anna")) == 1
    assert tickets(dropping)["a"].etag == ""


def test_a_urd_that_is_due_asks_for_a_dropped_page_conditionally(dropping):
    [one] = add(dropping, Urd(0, "bert", url("a"), timing=60_000, keywords=(Keyword("x"),)))
    rounds = RequestRounds(dropping.store, dropping.policy, 0, lambda: dropping.now)
    assert rounds.look(dropping.now * 1000).queued == 1
    visit(dropping, "a")
    scan(dropping, a="b")
    [row] = note(dropping, "a")
    assert rounds.look(dropping.now * 1000).dropped == 1
    assert rounds.look(dropping.now * 1000 + 60_000).queued == 1
    assert tickets(dropping)["a"].etag == row.etag
    assert one.urdid


def test_other_terms_of_a_spider_have_it_read_again(dropping):
    found(dropping, "a")
    note(dropping, "a")
    irrelevance(dropping).round()
    other = spider(dropping, replace(spider(dropping).terms, depth=3))
    assert other.seed([url("a")], dropping.now).urls == 1
    assert tickets(dropping)["a"].etag == ""


def test_what_is_left_goes_with_its_provider(dropping):
    found(dropping, "a")
    [a] = note(dropping, "a")
    irrelevance(dropping).round()
    remove(dropping.store, PID, dropping.now, dropping.policy)
    with dropping.store.read() as tx:
        assert (tx.irrelevant_behind(b"", 9), tx.links_of(a.urlkey)) == ([], [])


def test_housekeeping_forgets_what_is_back_and_what_spiders_forgot(dropping):
    found(dropping, "a", "b", "c")
    a, b, c = (cached(dropping, name) for name in "abc")
    note(dropping, "b", "c")
    irrelevance(dropping).round()
    with dropping.store.begin() as tx:
        tx.put_irrelevant([Irrelevant(a.urlkey, PID, a.furl, "", "", "", "", 0)])
        tx.delete_spidered([at("b")])
    for _ in sweep(dropping.store, 1):
        pass
    with dropping.store.read() as tx:
        assert [one.urlkey for one in tx.irrelevant_behind(b"", 9)] == [c.urlkey]
        assert [bool(tx.links_of(one.urlkey)) for one in (a, b, c)] == [True, False, True]


@pytest.mark.parametrize("kept", range(1, 5))
def test_a_round_that_is_killed_between_transactions_is_done_by_the_next_one(dropping, kept, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 1)
    found(dropping, "a", "b", "c")
    note(dropping, "a", "b", "c")
    calls = []
    real = module.UnitOfWork.flush

    def killed(self):
        calls.append(1)
        if len(calls) == kept:
            raise KeyboardInterrupt
        real(self)

    with monkeypatch.context() as patch:
        patch.setattr(module.UnitOfWork, "flush", killed)
        if kept < 4:
            with pytest.raises(KeyboardInterrupt):
                irrelevance(dropping).round()
    irrelevance(dropping).round()
    assert [cached(dropping, name) for name in "abc"] == [None] * 3
    with dropping.store.read() as tx:
        assert len(tx.irrelevant_behind(b"", 9)) == 3


def test_what_is_left_comes_back_as_it_was_put_in(lcc):
    rows = [
        Irrelevant(key(n), PID, url(n), f'"{n}"', "yesterday", "5" * 64, "terms", START) for n in sorted("ab")
    ]
    with lcc.store.begin() as tx:
        tx.put_irrelevant(rows)
        tx.put_irrelevant([replace(rows[0], dropped=START + 1)])
        tx.put_unwanted([Unwanted(key("a"), 5), Unwanted(key("a"), 6)][1:])
        tx.put_unwanted([Unwanted(key("a"), 7)])
    rows[0] = replace(rows[0], dropped=START + 1)
    with lcc.store.begin() as tx:
        assert tx.irrelevant_behind(b"", 9) == sorted(rows, key=lambda one: one.urlkey)
        assert tx.irrelevant_behind(LAST_KEY, 9) == []
        assert tx.irrelevant_at([at("a"), at("z")]) == {at("a"): [rows[0]]}
        assert len(tx.irrelevant_of(PID, 1)) == 1
        assert tx.irrelevant_of(PID + 1, 9) == []
        assert tx.unwanted(b"", 9) == [Unwanted(key("a"), 7)]
        tx.wanted_again([key("a")])
        [row] = tx.irrelevant_at([at("a")])[at("a")]
        assert (row.etag, row.last_modified, row.sha256) == ("", "", "")
        forget(tx, [at("a"), at("b")])
        assert not tx.has_irrelevant()
