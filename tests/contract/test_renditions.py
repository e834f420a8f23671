"""What a browser made of pages: a document beside each page, that comes, changes and goes with it."""

import json
from dataclasses import replace
from hashlib import md5, sha256

import pytest
from little_lcc import MACHINE, PID, SITE, key, removal, update, url

from lcc_scrapy.cache.owners import tell_owners
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.db.records import DocumentLink
from lcc_scrapy.domain.cache import Body, Tombstone
from lcc_scrapy.domain.entries import ANY_TYPE, RENDERED, Origin, furlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Render
from lcc_scrapy.domain.rendering import NOT_RENDERED, rendition_of
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.ops.fetch_again import Again, Terms
from lcc_scrapy.ops.housekeeping import sweep
from lcc_scrapy.ops.verification import Kind, Verification
from lcc_scrapy.queue.held_removals import confirm_removals
from lcc_scrapy.queue.settlement import CONFIRMED, STORED
from lcc_scrapy.spidering.reachable import Reachable
from lcc_scrapy.spidering.submitting import Spidering
from lcc_scrapy.spidering.submitting import Terms as SpiderTerms

DAY = 86_400


@pytest.fixture(autouse=True)
def _rendering(lcc):
    lcc.change(render=Render.YES)


def rendered(lcc, ticket, body=b"served", made=b"made", **answer):
    served = lcc.served(ticket, body, **{"served_type": "text/html", **answer})
    if made is None:
        return served
    digests = md5(made).hexdigest(), sha256(made).hexdigest()
    return replace(
        served, rendition=rendition_of(ticket, served.answer, Body(len(made), *digests, data=made))
    )


def fetch(lcc, name="a", body=b"served", made=b"made", **answer):
    return lcc.settle(rendered(lcc, lcc.ticket(name), body, made, **answer))[0]


def store(lcc, *names):
    lcc.push(*map(update, names))
    for name in names:
        fetch(lcc, name, f"served {name}".encode(), f"made {name}".encode())


def rendition(lcc, name="a"):
    return lcc.cached(name, RENDERED)


def tombstones(lcc):
    return {
        (one.curl.removeprefix(SITE), one.mimetype): one.reason
        for one in lcc.feed()
        if isinstance(one, Tombstone)
    }


def test_a_rendition_is_a_document_beside_its_page(lcc):
    lcc.push(update("a", b"served", subtype="lang: nl", burl=None))
    settled = fetch(lcc, headers='[["X", "y"]]')
    page, made = lcc.cached("a"), rendition(lcc)
    assert (settled.result, settled.row) == (STORED, page)
    assert (made.origin, made.served_type, made.served_charset) == (Origin.RENDERED, "text/html", "utf-8")
    assert (made.subtype, made.burl, made.furl) == (page.subtype, page.burl, page.furl)
    assert (made.mtime, made.len, made.md5, made.seen, made.etag) == (None, None, None, 0, "")
    assert lcc.files == {page.fetched_fileid: b"served", made.fetched_fileid: b"made"}
    assert [row.mimetype for row in lcc.feed()] == ["text/html", RENDERED]
    with lcc.store.read() as tx:
        assert json.loads(tx.meta(made.urlkey).headers) == [["Content-Type", "text/html; charset=utf-8"]]


def test_it_counts_for_space_and_not_for_files(lcc):
    store(lcc, "a", "b")
    assert lcc.provider().fileused == 2
    assert lcc.provider().spaceused == sum(map(len, lcc.files.values())) + 2 * (
        lcc.cached("a").head_len + rendition(lcc).head_len
    )


def test_what_has_no_room_is_stored_without_its_rendition(lcc):
    lcc.change(spacemax=10, filesmax=1)
    lcc.push(update("a"))
    assert fetch(lcc, body=b"12345678", made=b"1234567").result == STORED
    assert rendition(lcc) is None
    lcc.change(spacemax=1000)
    lcc.push(update("a"))
    assert fetch(lcc, body=b"12345678", made=b"1234567").result == CONFIRMED
    assert rendition(lcc) is not None, "a limit of files counts pages"


def test_it_changes_while_its_page_does_not(lcc):
    store(lcc, "a")
    before = rendition(lcc)
    lcc.push(update("a"))
    assert fetch(lcc, body=b"served a", made=b"made anew").result == CONFIRMED
    after = rendition(lcc)
    assert after.seq > before.seq
    assert lcc.files[after.fetched_fileid] == b"made anew"
    with lcc.store.read() as tx:
        gone = tx.files_to_delete(MACHINE, lcc.now + DAY, 9)
    assert [one.fileid for one in gone] == [before.fetched_fileid]


def test_the_same_rendition_is_not_told_again(lcc):
    store(lcc, "a")
    before = lcc.feed()
    lcc.push(update("a"))
    fetch(lcc, body=b"served a", made=b"made a")
    assert [row.seq for row in lcc.feed()] == [row.seq for row in before]


@pytest.mark.parametrize(("body", "stays"), [(b"served a", True), (b"another", False)])
def test_where_a_browser_made_nothing_the_former_stays_only_with_the_same_page(lcc, body, stays):
    store(lcc, "a")
    lcc.push(update("a"))
    fetch(lcc, body=body, made=None)
    assert (rendition(lcc) is not None) is stays
    assert tombstones(lcc) == ({} if stays else {("a", RENDERED): NOT_RENDERED})


@pytest.mark.parametrize("answer", ["served", "not modified"])
def test_when_its_provider_is_rendered_no_more_it_goes_with_the_next_fetch(lcc, answer):
    store(lcc, "a")
    lcc.change(render=Render.ENDED)
    lcc.push(update("a"))
    ticket = lcc.ticket("a")
    lcc.settle(lcc.not_modified(ticket) if answer == "not modified" else lcc.served(ticket, b"served a"))
    assert lcc.cached("a") is not None
    assert rendition(lcc) is None
    assert tombstones(lcc) == {("a", RENDERED): NOT_RENDERED}


@pytest.mark.parametrize("render", [Render.YES, Render.ENDED])
@pytest.mark.parametrize("what", ["stored", "changed", "not modified", "removed"])
def test_another_view_of_the_same_curl_does_not_concern_it(lcc, render, what):
    store(lcc, "a")
    pdf = "application/pdf"
    lcc.change(render=render)
    lcc.push(update("a", mimetype=pdf))
    lcc.fetch("a", b"%PDF", served_type=pdf)
    if what == "removed":
        lcc.push(removal("a", mimetype=pdf))
    elif what != "stored":
        lcc.push(update("a", mimetype=pdf))
        ticket = lcc.ticket("a")
        lcc.settle(lcc.not_modified(ticket) if what == "not modified" else lcc.served(ticket, b"%PDF anew"))
    assert rendition(lcc) is not None
    assert (lcc.cached("a", pdf) is None) is (what == "removed")


def test_nor_does_one_that_is_settled_together_with_its_page(lcc):
    store(lcc, "a")
    lcc.push(update("a"), update("a", mimetype="application/pdf"))
    page, view = lcc.tickets()
    lcc.settle(rendered(lcc, page, b"served a", b"made a"), lcc.served(view, b"%PDF"))
    assert rendition(lcc) is not None
    assert lcc.cached("a", "application/pdf") is not None


@pytest.mark.parametrize("render", [Render.YES, Render.ENDED])
def test_it_goes_with_its_page(lcc, render):
    store(lcc, "a", "b", "c", "d")
    lcc.change(render=render)
    lcc.push(removal("a"), update("b"))
    lcc.settle(lcc.failed(lcc.ticket("b"), 410, final=True))
    lcc.push(update("d"), full=True)
    lcc.fetch_all(body=b"served d")
    left = [rendition(lcc, name) is not None for name in "abcd"]
    assert left == [False, False, False, render == Render.YES]
    gone = tombstones(lcc)
    assert all(gone[name, RENDERED] == gone[name, "text/html"] for name in "abc")


def test_a_full_set_that_names_its_page_keeps_it(lcc):
    store(lcc, "a", "b")
    lcc.push(update("a"), update("b"), full=True)
    for name in "ab":
        fetch(lcc, name, f"served {name}".encode(), f"made {name}".encode())
    assert sorted(lcc.documents()) == ["a", "a", "b", "b"]
    assert tombstones(lcc) == {}


def test_the_guard_counts_pages(lcc):
    """Half of the pages is the share that may go, not half of pages and renditions."""
    names = [f"p{number:02}" for number in range(60)]
    store(lcc, *names)
    lcc.push(*map(update, names[:20]), full=True)
    assert len(lcc.held()) == 40, "of pages: 40 are more than half of 60"
    assert all(rendition(lcc, name) is not None for name in names)
    confirm_removals(lcc.store, PID, lcc.now, lcc.policy)
    assert [rendition(lcc, name) is not None for name in names] == [True] * 20 + [False] * 40


def test_it_does_not_expire_before_its_page(lcc):
    store(lcc, "a")
    lcc.now += 179 * DAY
    lcc.push(update("a", b"served a"), full=True)  # unchanged by what it declares, so not fetched
    lcc.change(lastconntime=lcc.now, confirmed=0)
    with lcc.store.begin() as tx:
        tx.update_cached([replace(lcc.cached("a"), confirmed_time=lcc.now)])
    lcc.now += 2 * DAY
    assert [key for step in sweep(lcc.store, lcc.policy, lcc.now) for key, _ in step.removed] == []
    assert rendition(lcc) is not None


def test_of_a_page_that_a_spider_found(lcc):
    spider = Spidering(lcc.store, PID, SpiderTerms(), lcc.policy)
    spider.seed([url("a")], lcc.now)
    (ticket,) = lcc.tickets()
    assert ticket.row.mimetype == ANY_TYPE
    lcc.settle(rendered(lcc, ticket))
    assert (lcc.cached("a").origin, rendition(lcc).origin) == (Origin.SPIDER, Origin.RENDERED)
    spider.seed([url("a")], lcc.now + 1)
    spider.revisit(lcc.now + 10, lcc.now + 10)
    tickets = lcc.tickets()
    assert [one.row.mimetype for one in tickets] == ["text/html"], "it is no URL that is visited"
    lcc.settle(rendered(lcc, tickets[0], made=b"anew", served_type="text/plain"))


def test_its_links_are_followed_from_pushed_pages(lcc):
    store(lcc, "a")
    with lcc.store.begin() as tx:
        tx.put_links({rendition(lcc).urlkey: [DocumentLink(url("found"), "a")]}, PID)
    reachable = Reachable(lcc.store, PID)
    for _ in reachable.start():
        pass
    assert furlkey(PID, url("found")) in reachable


def test_its_owners_are_told_with_it(lcc):
    store(lcc, "a")
    with lcc.store.begin() as tx:
        tx.lock_providers([PID])
        assert tell_owners(tx, [furlkey(PID, url("a"))]) == 2


def test_fetching_it_again_is_fetching_its_page(lcc):
    store(lcc, "a")
    again = Again(lcc.store, Terms(lcc.policy, 0, lcc.now))
    assert sum((sum(one.values()) for one in again.refetch(PID, Selection())), 0) == 1
    assert lcc.waiting() == [("a", "fetch")]


def test_a_lost_one_is_made_again_by_fetching_its_page(lcc, tmp_path):
    store(lcc, "a")
    content = ContentFiles(tmp_path / "content", MACHINE)
    content.prepare()
    page = lcc.cached("a")
    content.keep([(page.fetched_fileid, Body(8, "", "", data=b"served a"))])
    found = Verification(lcc.store, content, lcc.policy, now=lambda: lcc.now, repair=True).run()
    assert [one.kind for one in found] == [Kind.NO_FILE]
    assert (lcc.cached("a"), rendition(lcc)) == (page, None)
    assert fetch(lcc, body=b"served a", made=b"made a").result == CONFIRMED
    assert rendition(lcc) is not None
    assert lcc.cached("a") == replace(page, confirmed_time=lcc.now, confirmed_seq=1)


def test_a_page_served_as_another_type_loses_it(lcc):
    lcc.policy = QueuePolicy(retry_delays=())
    assert lcc.policy.declared == "record"
    store(lcc, "a")
    lcc.push(update("a"))
    lcc.settle(lcc.served(lcc.ticket("a"), b"%PDF", served_type="application/pdf"))
    assert rendition(lcc) is None
    assert key("a") == lcc.cached("a").urlkey
