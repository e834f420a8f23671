"""What spiders found once and no stored page leads to any more, on every store."""

import logging
from dataclasses import replace

import pytest
from little_lcc import PID, SITE, START, key, removal, update, url

from lcc_scrapy.db.records import DocumentLink, Ownership
from lcc_scrapy.domain.cache import ORPHANED
from lcc_scrapy.domain.entries import ANY_TYPE, Origin, furlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.removal_guard import FEW
from lcc_scrapy.queue.held_removals import confirm_removals
from lcc_scrapy.queue.unit_of_work import UnitOfWork, keys_of
from lcc_scrapy.spidering import orphans, reachable
from lcc_scrapy.spidering.orphans import NOT_LINKED, OrphanLook
from lcc_scrapy.spidering.submitting import Found, Read, Spidering, Terms, queue_up

DAY = 86_400


class Site:
    """A site that a spider visits: names of pages, each with the names that it links to."""

    def __init__(self, lcc, **pages):
        self.lcc = lcc
        self.pages = pages
        self.spider = Spidering(lcc.store, PID, Terms(), lcc.policy)
        self.spider.seed([url("index")], lcc.now)
        self.visit()

    def visit(self):
        """Fetch what waits and follow the links, until nothing is left."""
        while True:
            for ticket in self.lcc.tickets():
                name = ticket.row.furl.removeprefix(SITE)
                if name in self.pages:
                    body = repr(self.pages[name]).encode()
                    self.lcc.settle(self.lcc.served(ticket, body, served_type="text/html"))
                else:
                    self.lcc.settle(self.lcc.failed(ticket, 404, final=True))
            self.scan()
            if not self.lcc.waiting():
                return

    def scan(self):
        look = self.spider.look(self.lcc.now)
        while not look.at_end:
            self.spider.advance(look, [self._read(one) for one in look.documents], look.upto, self.lcc.now)
            look = self.spider.look(self.lcc.now)

    def _read(self, one):
        names = self.pages.get(one.row.furl.removeprefix(SITE), ())
        links = tuple(DocumentLink(url(name), "a") for name in names)
        return Read(one, links, tuple(Found(link.url, one.depth + 1, one.row.urlkey) for link in links))

    def come_again(self, **pages):
        """Visit everything once more, a day later; these pages link to other ones now, or are gone (None)."""
        self.pages = {name: to for name, to in {**self.pages, **pages}.items() if to is not None}
        self.lcc.now += DAY
        while self.spider.revisit(self.lcc.now, self.lcc.now):
            pass
        visited = sorted(name for name, _ in self.lcc.waiting())
        self.visit()
        return visited

    def look(self):
        """Look for orphans; returns the reasons of what was removed, by name."""
        removed = [one for some in self.begin().run() for one in some]
        return {self._name(docid): reason for docid, reason in removed}

    def begin(self):
        return OrphanLook(self.lcc.store, PID, self.lcc.now, self.lcc.policy)

    def _name(self, docid):
        return next(name for name in (*self.pages, *"abcdef") if key(name) == docid)

    def known(self, name):
        with self.lcc.store.read() as tx:
            return tx.spidered([furlkey(PID, url(name))]).get(furlkey(PID, url(name)))


def small_site(lcc, mode):
    """Return a site whose pages a to d lose their links: c and d link to each other still."""
    site = Site(lcc, index=["a", "b"], a=["index"], b=["c"], c=["d", "index"], d=["c", "d"])
    lcc.change(orphans=mode)
    assert site.look() == {}
    site.come_again(b=["b"], index=["b"])
    return site


def test_what_nothing_leads_to_is_removed_with_what_it_leads_to(lcc):
    site = small_site(lcc, "remove")
    assert site.look() == dict.fromkeys("acd", NOT_LINKED)
    assert lcc.documents() == ["b", "index"]
    assert [one.reason for one in lcc.feed() if one.op == "remove"] == [NOT_LINKED] * 3
    assert (site.known("a"), site.known("b").code, lcc.provider().removed) == (None, 0, 3)
    assert site.come_again() == ["b", "index"]


def test_what_is_linked_again_is_found_again(lcc):
    site = small_site(lcc, "remove")
    site.look()
    site.come_again(index=["b", "c"])
    assert (lcc.documents(), site.look()) == (["b", "c", "d", "index"], {})


def test_orphans_are_kept_and_visited_unless_something_else_was_said(lcc):
    site = small_site(lcc, "keep")
    assert (site.look(), lcc.held(), lcc.documents()) == ({}, [], ["a", "b", "c", "d", "index"])
    assert site.come_again() == ["a", "b", "c", "d", "index"]
    assert lcc.provider().orphans == "keep"


def test_orphans_that_wait_for_the_operator_stay_and_are_not_visited(lcc, caplog):
    site = small_site(lcc, "confirm")
    with caplog.at_level(logging.WARNING):
        assert (site.look(), site.look()) == ({}, {})
    assert (lcc.held(), lcc.documents()) == (["a", "c", "d"], ["a", "b", "c", "d", "index"])
    assert [record.getMessage() for record in caplog.records] == [
        (
            "provider 7: 3 removals are held (no stored page links to it): `lcc provider confirm-removals 7`"
            " carries them out, a link to a document ends its hold"
        )
    ]
    assert site.come_again() == ["b", "index"]
    assert confirm_removals(lcc.store, PID, lcc.now, lcc.policy) == 3
    assert (lcc.held(), lcc.documents()) == ([], ["b", "index"])


def test_a_fetch_that_waits_stays_when_the_operator_removes_an_orphan(lcc):
    site = small_site(lcc, "confirm")
    site.look()
    with lcc.store.begin() as tx:
        entries = [update("a")]
        batch = UnitOfWork(tx, [PID], keys_of(PID, entries), lcc.now, lcc.policy)
        queue_up(batch, PID, entries, Origin.DIRECTIVE)
    confirm_removals(lcc.store, PID, lcc.now, lcc.policy)
    assert (lcc.waiting(), lcc.queued("a").seen < ORPHANED) == ([("a", "fetch")], True)


def test_a_link_ends_the_hold_and_visits_go_on(lcc):
    site = small_site(lcc, "confirm")
    site.look()
    site.come_again(index=["b", "c"])
    assert (site.look(), lcc.held()) == ({}, ["a"])
    assert site.come_again() == ["b", "c", "d", "index"]


def test_a_push_ends_the_hold(lcc):
    site = small_site(lcc, "confirm")
    site.look()
    lcc.push(update("a"))
    lcc.fetch_all()
    assert (site.look(), lcc.held()) == ({}, ["c", "d"])


def test_keeping_them_after_all_ends_the_holds(lcc):
    site = small_site(lcc, "confirm")
    site.look()
    lcc.change(orphans="keep")
    assert (site.look(), lcc.held(), lcc.provider().heldremovals) == ({}, [], 0)
    assert site.come_again() == ["a", "b", "c", "d", "index"]


def test_too_many_orphans_are_held_as_a_whole(lcc, monkeypatch):
    monkeypatch.setattr(reachable, "CHUNK", 7)
    many = [f"p{number}" for number in range(FEW + 1)]
    site = Site(lcc, index=["a", *many], a=[], **{name: [] for name in many})
    lcc.change(orphans="remove")
    site.come_again(index=["a"])
    assert (site.look(), lcc.held()) == ({}, sorted(many))
    site.come_again(index=["a", "p0"])
    assert site.look() == dict.fromkeys(many[1:], NOT_LINKED)  # now they are few enough
    assert (lcc.documents(), lcc.held()) == (["a", "index", "p0"], [])


def test_without_any_document_to_begin_at_nothing_is_an_orphan(lcc):
    site = Site(lcc, index=["a"], a=[])
    lcc.change(orphans="remove")
    site.come_again(index=None)
    assert (lcc.documents(), site.look()) == (["a"], {})


def test_what_pushed_documents_link_to_is_no_orphan_and_pushed_ones_never_are(lcc):
    site = Site(lcc, index=["a"], a=[])
    lcc.push(update("pushed"), update("a"))
    site.pages |= {"pushed": ["b"], "b": []}
    site.visit()
    lcc.change(orphans="remove")
    site.come_again(index=[])
    assert (site.look(), lcc.documents()) == ({}, ["a", "b", "index", "pushed"])
    lcc.push(removal("pushed"))
    site.scan()
    assert site.look() == {"b": NOT_LINKED}


def test_what_somebody_asked_for_is_no_orphan(lcc):
    site = small_site(lcc, "remove")
    with lcc.store.begin() as tx:
        tx.put_owners([Ownership(furlkey(PID, url("c")), "anna", PID, 1, due=False)])
    assert site.look() == {"a": NOT_LINKED}
    assert lcc.documents() == ["b", "c", "d", "index"]


def test_a_dead_link_that_is_gone_is_not_visited_any_more(lcc):
    site = Site(lcc, index=["a", "dead"], a=[])
    lcc.change(orphans="confirm")
    assert (site.look(), site.known("dead").code) == ({}, 404)
    site.come_again(index=["a"])
    assert (site.look(), site.known("dead")) == ({}, None)
    assert site.come_again() == ["a", "index"]


def test_a_link_that_comes_during_the_look_is_followed_before_anything_goes(lcc, monkeypatch):
    site = small_site(lcc, "remove")
    steps = site.begin()
    treat, once = orphans.OrphanLook._treat, []

    def come_between(look, rows):
        if not once:
            once.append(1)
            site.come_again(index=["b", "c"])
        return treat(look, rows)

    monkeypatch.setattr(orphans.OrphanLook, "_treat", come_between)
    assert [one for some in steps.run() for one in some] == [(key("a"), NOT_LINKED)]


def test_a_look_waits_for_documents_that_were_not_read_for_links_yet(lcc):
    site = small_site(lcc, "remove")
    site.pages["index"] = ["b", "a"]
    site.spider.revisit(lcc.now + 1, lcc.now + 1)
    steps = site.begin().run()
    ticket = next(one for one in lcc.tickets() if one.row.furl == url("index"))
    lcc.settle(lcc.served(ticket, b"links to a now", served_type="text/html"))
    assert [next(steps) for _ in range(30)] == [()] * 30
    site.scan()
    assert {docid for some in steps for docid, _ in some} <= {key("c"), key("d")}
    assert "a" in lcc.documents()


def test_what_waits_to_be_visited_is_left_alone(lcc):
    site = small_site(lcc, "remove")
    site.spider.revisit(lcc.now + 1, lcc.now + 1)
    assert (site.look(), lcc.documents()) == ({}, ["a", "b", "c", "d", "index"])


# --- what was refused for its type ------------------------------------------------------------------


@pytest.fixture
def refusing(lcc):
    """Return a spider of a site with a page and an image that was refused."""
    lcc.policy = QueuePolicy(mimetypes=("text/html",))
    spider = Spidering(lcc.store, PID, Terms(), lcc.policy)
    spider.seed([url("index"), url("image")], lcc.now)
    fetch(lcc)
    return spider


def fetch(lcc):
    names = []
    for ticket in lcc.tickets():
        names.append(ticket.row.furl.removeprefix(SITE))
        kind = "image/png" if names[-1] == "image" else "text/html"
        lcc.settle(lcc.served(ticket, served_type=kind))
    return names


def test_what_was_refused_for_its_type_is_not_fetched_at_each_visit(lcc, refusing):
    refusing.advance(refusing.look(lcc.now), [], refusing.look(lcc.now).upto, lcc.now)
    asked = []
    for day in range(1, 32):
        lcc.now = START + day * DAY
        assert refusing.revisit(lcc.now, lcc.now) == 2
        assert refusing.revisit(lcc.now, lcc.now) == 0
        asked.append(fetch(lcc))
    assert asked == [["index"]] * 29 + [["index", "image"], ["index"]]


def test_other_types_let_it_be_fetched_at_the_next_visit(lcc, refusing):
    lcc.now += DAY
    lcc.policy = refusing.policy = QueuePolicy(mimetypes=("*/*",))
    refusing.revisit(lcc.now, lcc.now)
    assert sorted(fetch(lcc)) == ["image", "index"]
    assert lcc.documents() == ["image", "index"]


def test_a_document_that_is_served_as_a_refused_type_now_is_visited_as_ever(lcc, refusing):
    with lcc.store.begin() as tx:
        row = tx.spidered([furlkey(PID, url("index"))])[furlkey(PID, url("index"))]
        tx.visited([replace(row, code=703, due=lcc.now + 30 * DAY)])
    refusing.advance(refusing.look(lcc.now), [], refusing.look(lcc.now).upto, lcc.now)
    lcc.now += DAY
    refusing.revisit(lcc.now, lcc.now)
    assert lcc.queued("index") or lcc.queued("index", ANY_TYPE)


def test_a_page_under_the_name_that_its_host_had_by_idna_2003_is_still_linked(lcc):
    with lcc.store.begin() as tx:
        tx.replace_roots(PID, ["http://strasse.example/"])
    looking = reachable.Reachable(lcc.store, PID)
    now, before = "http://xn--strae-oqa.example/a", "http://strasse.example/a"
    assert looking._make_place(now) == looking._make_place(before) == furlkey(PID, before)
    assert looking._make_place("http://xn--strae-oqb.example/a") == b""
