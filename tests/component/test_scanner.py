"""Reading documents for links, and the steps in which a scan goes through them."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from io import BytesIO
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_thread import ByHand, SameThread
from twisted.internet.task import Clock

from lcc_scrapy.db.records import DocumentLink
from lcc_scrapy.domain.directives import Directive
from lcc_scrapy.domain.errors import ConfigurationError, StoreUnavailable
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.roots import HttpUrl, Root
from lcc_scrapy.feed.content import ContentElsewhere
from lcc_scrapy.links import effort
from lcc_scrapy.links.effort import Effort
from lcc_scrapy.links.rules import DOCUMENTS, REQUISITES, LinkRules
from lcc_scrapy.queue.group_commit import COMMIT_PAGES
from lcc_scrapy.spidering.directives import Directives
from lcc_scrapy.spidering.scanner import (
    BUDGET,
    LINKS,
    SOON,
    Reader,
    Scanner,
    Visits,
    fetch_url,
    portions,
    start_pages,
    terms_of,
)
from lcc_scrapy.spidering.submitting import Read, Reading, Spidering, Terms
from lcc_scrapy.spiders.lcc_spider import read_arguments
from tests.contract.little_lcc import PID, SITE, START, LittleLcc, update, url
from tests.memory_store import MemoryStore

POLL = 2.0
DAY = 86_400
TYPES = {"xml": "application/xml", "txt": "text/plain"}


class Pages:
    """The content of documents, by fetch URL; ``trouble`` is raised instead."""

    def __init__(self, **pages):
        self.pages = pages
        self.trouble = {}
        self.opened = []

    def open(self, row):
        name = row.furl.removeprefix(SITE)
        self.opened.append(name)
        if name in self.trouble:
            raise self.trouble[name]
        return BytesIO(self.pages.get(name, "").encode())


class World:
    """A scanner over a little LCC; fetching is up to the test."""

    def __init__(self, pages, **visits):
        self.lcc = LittleLcc(MemoryStore())
        self.lcc.add()
        self.pages = pages
        self.clock = Clock()
        self.touched = 0
        self.counted = Counter()
        self.removed = []
        self.visits = Visits(PID, **{"start": (url("index"),), **visits})
        self.rules = LinkRules()
        self.scanner = None
        self.begin()

    def begin(self, **visits):
        if self.scanner is not None:
            self.scanner.stop()
        self.visits = replace(self.visits, **visits)
        terms = terms_of(self.rules, self.visits, 0)
        adaptive = self.visits.adaptive
        self.spidering = Spidering(self.lcc.store, PID, terms, self.lcc.policy, adaptive=adaptive)
        thread = SameThread()
        self.scanner = Scanner(
            self.spidering, thread, thread, Reader(self.pages, self.rules, terms.permits), self.clock,
            visits=self.visits, poll=POLL, touched=self.touch, count=self.count,
            removed=self.removed.extend, now=lambda: self.lcc.now,
        )  # fmt: skip
        self.scanner.start()
        self.clock.advance(0)

    def touch(self):
        self.touched += 1

    def count(self, name, count):
        self.counted[name] += count

    def fetch(self):
        """Fetch what waits, as often as that leads to more; returns the names in order."""
        names = []
        while self.lcc.waiting():
            for ticket in self.lcc.tickets():
                names.append(ticket.row.furl.removeprefix(SITE))
                kind = TYPES.get(names[-1].rpartition(".")[2], "text/html")
                self.lcc.settle(self.lcc.served(ticket, names[-1].encode(), served_type=kind))
            self.clock.advance(POLL)
        return names

    def come_again(self, changed=()):
        """Visit everything again: what is not ``changed`` answers 304."""
        self.lcc.now += DAY
        self.begin(every=1.0)
        self.clock.advance(POLL)
        confirmed = []
        while tickets := self.lcc.tickets():
            for ticket in tickets:
                name = ticket.row.furl.removeprefix(SITE)
                if name in changed:
                    self.lcc.settle(self.lcc.served(ticket, b"new", served_type="text/html"))
                else:
                    assert ticket.etag
                    self.lcc.settle(self.lcc.not_modified(ticket))
                    confirmed.append(name)
            self.clock.advance(POLL)
        return confirmed


def links(*names):
    return "".join(f"<a href='{name}'>x</a>" for name in names)


def test_it_begins_with_the_start_pages_and_ends_when_nothing_is_left():
    world = World(
        Pages(index=links("a", "b", "#x"), a=links("c", "index"), b=links("c", "http://other.example/"))
    )
    assert (world.lcc.waiting(), world.touched) == ([("index", "fetch")], 1)
    assert not world.scanner.is_done()
    assert world.fetch() == ["index", "a", "b", "c"]
    assert world.scanner.is_done()


def test_links_are_followed_as_deep_as_was_asked_for():
    pages = Pages(index=links("a"), a=links("b"), b=links("c"))
    assert World(pages, depth=0).fetch() == ["index"]
    assert World(pages, depth=2).fetch() == ["index", "a", "b"]


def test_a_limit_of_urls_ends_it_and_a_higher_one_goes_on():
    world = World(Pages(index=links("a", "b", "c")), urls=2)
    assert world.fetch() == ["index", "a"]
    world.clock.advance(POLL)
    assert world.scanner.is_done()
    world.begin(urls=0)
    assert world.fetch() == ["b", "c"]
    assert world.scanner.is_done()


def test_links_that_are_not_to_be_followed_are_kept_but_not_visited():
    pages = Pages(index="<a href=a rel=nofollow>x</a><a href=b>x</a>")
    world = World(pages)
    assert world.fetch() == ["index", "b"]
    with world.lcc.store.read() as tx:
        index = world.lcc.cached("index").urlkey
        assert tx.links_of(index) == [DocumentLink(url("a"), "a", nofollow=True), DocumentLink(url("b"), "a")]


def test_a_document_whose_file_is_elsewhere_or_gone_has_no_links_and_others_have(caplog):
    pages = Pages(index=links("gone", "elsewhere", "a"), a=links("b"))
    pages.trouble = {"gone": FileNotFoundError("x"), "elsewhere": ContentElsewhere("on machine 2")}
    assert World(pages).fetch() == ["index", "gone", "elsewhere", "a", "b"]
    assert [record.getMessage() for record in caplog.records] == ["not read for links: on machine 2"]


def test_news_of_a_stored_document_are_looked_at_soon():
    world = World(Pages(index=links("a")))
    world.lcc.fetch("index", served_type="text/html")
    world.clock.advance(SOON)
    assert world.lcc.waiting() == []
    world.scanner.look_soon()
    world.clock.advance(SOON)
    assert world.lcc.waiting() == [("a", "fetch")]


def test_urls_are_visited_again_when_their_time_has_come():
    world = World(Pages(index=links("a")), every=60.0, once=False)
    assert world.fetch() == ["index", "a"]
    world.lcc.now += 60
    world.clock.advance(POLL)
    assert world.lcc.waiting() == []
    world.lcc.now += 1
    assert not world.scanner.is_done()
    world.clock.advance(POLL)
    assert sorted(world.lcc.waiting()) == [("a", "fetch"), ("index", "fetch")]


def test_urls_are_visited_adaptively_when_each_is_due():
    world = World(Pages(index=links("a")), adaptive=True, once=False)
    assert world.fetch() == ["index", "a"]
    world.lcc.now += DAY - 1
    world.clock.advance(POLL)
    assert (world.lcc.waiting(), world.scanner.is_done()) == ([], False)
    world.lcc.now += 1
    world.clock.advance(POLL)
    assert sorted(world.lcc.waiting()) == [("a", "fetch"), ("index", "fetch")]


def test_once_adaptively_means_what_was_due_when_it_began():
    world = World(Pages(index=links("a")))
    world.fetch()
    world.lcc.now += DAY
    world.begin(adaptive=True)
    world.clock.advance(POLL)
    assert not world.scanner.is_done()
    world.lcc.now += 1000 * DAY
    assert world.fetch() == ["index", "a"]
    world.lcc.now += 1000 * DAY
    world.clock.advance(POLL)
    assert (world.lcc.waiting(), world.scanner.is_done()) == ([], True)


@pytest.mark.parametrize(
    ("said", "every", "adaptive", "once"),
    [({}, 0, False, True), ({"every": "6h"}, 6 * 3600, False, False), ({"every": "auto"}, 0, True, False),
     ({"every": "auto", "stop_when_done": "1"}, 0, True, True)],
)  # fmt: skip
def test_the_argument_every_says_when_to_come_again(said, every, adaptive, once):
    visits = read_arguments({"provider": "7", **said})
    assert (visits.every, visits.adaptive, visits.once) == (every, adaptive, once)
    assert visits.again == bool(said)


def test_once_means_what_was_due_when_it_began():
    world = World(Pages(index=links("a")))
    world.fetch()
    world.lcc.now += 100
    world.begin(every=60.0)
    world.clock.advance(POLL)
    world.lcc.now += 1000
    assert world.fetch() == ["index", "a"]
    world.lcc.now += 1000
    world.clock.advance(POLL)
    assert world.scanner.is_done()


def test_it_goes_on_when_the_database_is_back(caplog):
    world = World(Pages(index=links("a")))
    world.lcc.fetch("index", served_type="text/html")
    look = world.spidering.look

    def away(_):
        raise StoreUnavailable("gone away")

    world.spidering.look = away
    world.clock.advance(POLL)
    world.clock.advance(POLL)
    world.spidering.look = look
    world.clock.advance(POLL)
    assert world.lcc.waiting() == [("a", "fetch")]
    assert len(caplog.records) == 1


def test_stopping_ends_it():
    world = World(Pages(index=links("a")))
    assert world.scanner.stop().called
    world.lcc.fetch("index", served_type="text/html")
    world.scanner.look_soon()
    world.clock.advance(10 * POLL)
    assert (world.lcc.waiting(), world.clock.getDelayedCalls()) == ([], [])


def test_portions_have_about_as_many_links_as_a_transaction_takes():
    world = World(Pages())
    world.lcc.fetch("index", served_type="text/html")
    reading = Reading(world.lcc.cached("index"), 0)
    read = [Read(reading, (DocumentLink("x", "a"),) * size, ()) for size in (5 * LINKS, 1, LINKS - 1, 1, 0)]
    assert [[len(one.links) for one in some] for some in portions(read)] == [
        [5 * LINKS],
        [1, LINKS - 1],
        [1, 0],
    ]
    assert portions([]) == []


@pytest.mark.parametrize(
    ("link", "fetched"),
    [
        ("http://www.example.org/docs/a b", "http://www.example.org/docs/a%20b"),
        ("http://www.example.org/docsx", ""),
        ("http://www.example.org/docs/%2e%2e/x", ""),
        ("https://www.example.org/docs/", "https://www.example.org/docs/"),
        ("http://user@www.example.org/docs/", ""),
        ("http://www.example.org/docs/" + "x" * 3000, ""),
    ],
)
def test_only_what_lies_inside_the_roots_is_fetched(link, fetched):
    assert fetch_url(link, (Root.parse("http://www.example.org/docs/"),)) == fetched


def test_the_roots_are_the_start_pages_unless_others_are_given():
    lcc = LittleLcc(MemoryStore())
    lcc.add()
    with lcc.store.begin() as tx:
        assert start_pages(tx, Visits(PID)) == (SITE,)
        assert start_pages(tx, Visits(PID, (url("a"),))) == (url("a"),)
        with pytest.raises(ConfigurationError, match="no provider 8"):
            start_pages(tx, Visits(8))
        with pytest.raises(ConfigurationError, match=r"http://x.example/ lies outside"):
            start_pages(tx, Visits(PID, (url("a"), "http://x.example/")))
        tx.update_provider(PID, {"state": State.DISABLED})
        with pytest.raises(ConfigurationError, match="disabled"):
            start_pages(tx, Visits(PID))


def test_terms_are_the_same_in_every_process():
    said = (
        "from lcc_scrapy.config.config import load; from scrapy.settings import Settings\n"
        "from lcc_scrapy.spidering.scanner import Visits, terms_of\n"
        "config = load(Settings({'LCC_DATA_DIR': '/nowhere'}))\n"
        "print(terms_of(config.links('lcc'), Visits(7), 0).rules)"
    )
    seeds = ({**os.environ, "PYTHONHASHSEED": seed} for seed in ("1", "2"))
    rules = {subprocess.check_output([sys.executable, "-c", said], env=seed, timeout=60) for seed in seeds}
    assert len(rules) == 1


def test_pages_that_did_not_change_are_not_read_again():
    pages = Pages(index=links("a", "b"), a=links("c"), c=links("index"))
    world = World(pages)
    world.fetch()
    assert sorted(pages.opened) == ["a", "b", "c", "index"]
    pages.opened.clear()
    assert sorted(world.come_again()) == ["a", "b", "c", "index"]
    assert pages.opened == []
    assert "b" in world.come_again(changed={"a"})
    assert pages.opened == ["a"]


def test_pages_that_are_served_whole_but_unchanged_are_not_read_again():
    pages = Pages(index=links("a"))
    world = World(pages, every=60.0, once=False)
    world.fetch()
    pages.opened.clear()
    world.lcc.now += 61
    world.clock.advance(POLL)
    assert sorted(world.fetch()) == ["a", "index"]
    assert pages.opened == []


def test_other_terms_are_followed_without_reading_a_page_again():
    pages = Pages(
        index="<a href=a>x</a><a href=out rel=nofollow>x</a>", a=links("b", "/other/x"), b=links("c")
    )
    world = World(pages, depth=1)
    with world.lcc.store.begin() as tx:
        tx.replace_roots(PID, [url("docs/")])
    world.visits = replace(world.visits, start=(url("docs/index"),))
    pages.pages = {f"docs/{name}": page for name, page in pages.pages.items()}
    world.begin()
    assert world.fetch() == ["index", "docs/index", "docs/a"]
    assert pages.opened == ["index", "docs/index", "docs/a"]
    world.begin(depth=2)
    assert (world.fetch(), pages.opened[3:]) == (["docs/b"], ["docs/b"])
    with world.lcc.store.begin() as tx:
        tx.replace_roots(PID, [url("docs/"), url("other/")])
    assert (world.fetch(), pages.opened[4:]) == ([], [])
    world.clock.advance(POLL)
    assert (world.fetch(), pages.opened[4:]) == (["other/x"], ["other/x"])


def test_other_rules_for_links_make_pages_be_read_again():
    pages = Pages(index="<a href=a>x</a><img src=b>")
    world = World(pages)
    assert world.fetch() == ["index", "a"]
    world.rules = LinkRules(relations=DOCUMENTS | REQUISITES)
    world.begin()
    assert world.fetch() == ["b"]
    assert sorted(pages.opened) == ["a", "a", "b", "index", "index"]


@given(
    st.lists(
        st.tuples(st.sampled_from(["terms", "rules", "change", "look", "push"]), st.sampled_from("abcdef"))
    )
)
@settings(max_examples=60, deadline=None)
def test_the_table_of_links_is_that_of_the_contents_whatever_happens(steps):
    """Contents change between and within looks, which begin anew; nothing is left out, nothing outdated."""
    names = "abcdef"
    pages = Pages(**{name: links(f"{name}0") for name in names})
    lcc = LittleLcc(MemoryStore())
    lcc.add()
    rules, depth = "one", 0
    lcc.store_pages(*names)
    spidering = Spidering(lcc.store, PID, Terms(depth, rules=rules), lcc.policy)

    def look(meanwhile=""):
        seen = spidering.look(lcc.now)
        some = replace(seen, documents=seen.documents[:2])
        reading = Reader(pages, LinkRules(), lambda _: False).read(some)
        change(meanwhile)
        if seen.documents:
            upto = seen.upto if len(seen.documents) <= 2 else some.documents[-1].row.seq
            spidering.advance(some, reading, upto, lcc.now)
        return seen

    def change(name):
        if name:
            pages.pages[name] = links(f"{name}{len(pages.pages[name])}")
            lcc.push(update(name))
            lcc.fetch(name, pages.pages[name].encode(), served_type="text/html")

    for what, name in steps:
        if what == "terms":
            spidering.terms = replace(spidering.terms, depth=spidering.terms.depth + 1)
        elif what == "rules":
            spidering.terms = replace(spidering.terms, rules=spidering.terms.rules + "x")
        elif what == "push":
            change(name)
        else:
            look(name if what == "change" else "")
    while look().documents:
        pass
    with lcc.store.read() as tx:
        for name in names:
            found = Reader(pages, LinkRules(), lambda _: False)._links(Reading(lcc.cached(name), 0), Effort())
            assert tuple(tx.links_of(lcc.cached(name).urlkey)) == found


def test_what_was_pushed_is_read_too():
    world = World(Pages(index="", pushed=links("a")))
    world.fetch()
    world.lcc.push(update("pushed"))
    assert world.fetch() == ["pushed", "a"]
    assert world.lcc.now == START


def test_sitemaps_are_start_pages_and_so_is_what_they_name():
    def sitemap(kind, *names):
        return (
            f"<{kind}set>"
            + "".join(f"<{kind}><loc>{url(name)}</loc></{kind}>" for name in names)
            + f"</{kind}set>"
        )

    pages = {
        "robots.txt": f"User-agent: *\nDisallow:\nSitemap: {url('all.xml')}\n",
        "all.xml": sitemap("sitemap", "one.xml"),
        "one.xml": sitemap("url", "a", "b"),
        "a": links("too-deep"),
    }
    world = World(Pages(**pages), start=(SITE,), sitemaps=True, depth=0)
    with world.lcc.store.read() as tx:
        starts = start_pages(tx, Visits(PID, sitemaps=True))
    assert starts == (SITE, url("robots.txt"), url("sitemap.xml"))
    world.spidering.seed(starts, START)
    assert world.fetch() == ["", "robots.txt", "sitemap.xml", "all.xml", "one.xml", "a", "b"]


def test_sitemaps_outside_of_the_roots_are_not_asked_for():
    lcc = LittleLcc(MemoryStore())
    lcc.add()
    with lcc.store.begin() as tx:
        tx.replace_roots(PID, [SITE + "docs/"])
        assert start_pages(tx, Visits(PID, sitemaps=True)) == (SITE + "docs/",)


# --- directives -------------------------------------------------------------------------------------


def ask(world, name, depth, *owners):
    asked = [Directive(HttpUrl.parse(url(name)), "", depth, owners)]
    return Directives(world.spidering).ask(asked, world.lcc.now)


def test_links_are_followed_as_far_as_directives_reach_and_no_page_is_begun_with():
    pages = Pages(index=links("x"), a=links("b"), b=links("c", "a"), c=links("d"), p=links("q"))
    world = World(pages, start=(), directives=True)
    world.lcc.push(update("p"))
    ask(world, "a", 2, "anna")
    assert not world.scanner.is_done()
    assert world.fetch() == ["p", "a", "b", "c"]
    assert world.scanner.is_done()
    with world.lcc.store.read() as tx:
        assert start_pages(tx, world.visits) == ()


def test_a_directive_that_goes_deeper_reaches_a_scanner_that_is_at_its_end():
    pages = Pages(a=links("b"), b=links("c"), c=links("d"))
    world = World(pages, start=(), directives=True, every=1000.0, once=False)
    ask(world, "a", 0, "anna")
    assert world.fetch() == ["a"]
    world.clock.advance(POLL)
    assert ask(world, "a", 2, "bert") == 0
    world.clock.advance(POLL)
    assert world.fetch() == ["b", "c"]


def test_directives_reach_farther_than_the_depth_of_a_run():
    pages = Pages(index=links("x", "a"), a=links("b"), b=links("c"), c=links("d"), x=links("y"))
    world = World(pages, depth=1)
    ask(world, "a", 2, "anna")
    assert sorted(world.fetch()) == ["a", "b", "c", "index", "x"]


def test_what_a_sitemap_lists_counts_as_linked_for_directives():
    site = f"<urlset><url><loc>{url('a')}</loc></url></urlset>"
    world = World(Pages(**{"map.xml": site, "a": links("b")}), start=(), directives=True)
    ask(world, "map.xml", 1)
    assert world.fetch() == ["map.xml", "a"]


def test_a_page_that_takes_too_long_is_read_in_part_and_counted(monkeypatch, caplog):
    monkeypatch.setattr(effort.Effort.__init__, "__defaults__", (effort.SECONDS, 60, lambda: 0.0))
    world = World(Pages(index=links(*(f"page{number}" for number in range(20))), page0=""))
    assert world.fetch() == ["index", "page0", "page1"]
    assert world.counted == {"lcc/read_in_part": 1}
    assert f"read for links in part, it takes too long: {SITE}index" in caplog.text


def test_the_next_pages_are_read_while_the_last_ones_are_taken_in(monkeypatch):
    monkeypatch.setattr("lcc_scrapy.spidering.submitting.PAGES", 16)
    names = [f"p{number}" for number in range(40)]
    world = World(Pages(index=" ".join(f'<a href="{name}">' for name in names)))
    world.lcc.settle(world.lcc.served(world.lcc.ticket("index"), b"index", served_type="text/html"))
    world.clock.advance(POLL)
    for ticket in world.lcc.tickets():
        world.lcc.settle(world.lcc.served(ticket, b"page", served_type="text/html"))
    store = world.scanner._thread = ByHand()
    del world.pages.opened[:]
    world.clock.advance(POLL)
    read = {}
    while store.jobs:
        name = store.jobs[0][1].__name__
        read.setdefault(name, []).append(len(world.pages.opened))
        store.work_off(1)
    assert read["look"][:2] == [0, 16]
    assert read["_advance"] == [32, 40, 40], "those of the first look are taken in when 32 were read"
    assert not world.lcc.waiting()


def jobs_after_a_commit_of(pages, ticks=lambda: 0.0):
    """Let a scan read what one commit stored, pages of 100 links; return its jobs in the store's thread."""
    names = [f"p{number}" for number in range(pages)]
    world = World(Pages(index=links(*names), **dict.fromkeys(names, links(*names[:100]))))
    world.lcc.settle(world.lcc.served(world.lcc.ticket("index"), b"x", served_type="text/html"))
    world.clock.advance(POLL)
    tickets = world.lcc.tickets(limit=pages)
    world.lcc.settle(*(world.lcc.served(one, b"x", served_type="text/html") for one in tickets))
    world.scanner._thread, world.scanner._ticks = ByHand(), ticks
    world.clock.advance(POLL)
    jobs = Counter()
    while world.scanner._thread.jobs:
        jobs[world.scanner._thread.jobs[0][1].__name__] += 1
        world.scanner._thread.work_off(1)
    assert (len(world.pages.opened), world.lcc.waiting()) == (1 + pages, [])
    return jobs


def test_a_scan_needs_few_jobs_for_what_one_commit_of_fetched_pages_brings():
    """Each of its jobs may wait for another commit: with one for every 16 pages it falls behind."""
    assert jobs_after_a_commit_of(COMMIT_PAGES)["_advance"] <= COMMIT_PAGES / 50


def test_a_job_of_a_scan_ends_when_its_time_is_used_up():
    ticks = count(0.0, 2 * BUDGET)
    assert jobs_after_a_commit_of(100)["_advance"] == 2
    assert jobs_after_a_commit_of(100, lambda: next(ticks))["_advance"] >= 100 * 100 / LINKS


def test_a_look_is_read_until_it_has_so_many_links(monkeypatch):
    monkeypatch.setattr("lcc_scrapy.spidering.scanner.LINKS_READ", 25)
    world = World(Pages(**dict.fromkeys("abcd", links(*map(str, range(10))))), start=(url("a"),))
    world.lcc.store_pages(*"abcd")
    look = world.spidering.look(world.lcc.now)
    read = world.scanner._reader.read(look)
    assert [one.reading for one in read] == list(look.documents[:3])
    assert look.first(3).upto == look.documents[2].row.seq < look.upto == look.first(4).upto


def test_a_look_takes_so_many_known_links_from_the_table(monkeypatch):
    world = World(Pages(**dict.fromkeys("abcd", links(*map(str, range(10))))), start=(url("a"),))
    world.lcc.store_pages(*"abcd")
    world.clock.advance(POLL)
    world.begin(depth=1)
    monkeypatch.setattr("lcc_scrapy.spidering.submitting.KNOWN_LINKS", 15)
    with world.lcc.store.read() as tx:
        scan = replace(tx.scan(PID), seq=0)
    look = world.spidering.look(world.lcc.now, scan)
    assert [len(one.links) for one in look.documents] == [10, 10]
    assert look.upto == look.documents[1].row.seq


def world_with_an_orphan(**visits):
    world = World(Pages(index=links("a", "b")), **visits)
    world.lcc.change(orphans="remove")
    world.fetch()
    world.clock.advance(POLL)
    assert (world.scanner.is_done(), world.removed) == (True, [])
    world.pages.pages["index"] = links("b")
    return world


def test_a_run_ends_with_a_look_for_orphans():
    world = world_with_an_orphan()
    assert sorted(world.come_again(changed=["index"])) == ["a", "b"]
    world.clock.advance(POLL)
    assert world.scanner.is_done()
    assert [reason for _, reason in world.removed] == ["no stored page links to it"]
    assert world.lcc.documents() == ["b", "index"]


def test_a_run_that_goes_on_looks_for_orphans_once_a_day():
    world = world_with_an_orphan()
    world.begin(every=60.0, once=False)
    for seconds in (100, DAY):
        assert world.removed == []
        world.lcc.now += seconds
        world.clock.advance(POLL)
        bodies = {one: str(seconds).encode() for one in world.lcc.tickets()}
        world.lcc.settle(*(world.lcc.served(*one, served_type="text/html") for one in bodies.items()))
        world.clock.advance(POLL)
    assert [reason for _, reason in world.removed] == ["no stored page links to it"]


def test_a_look_for_orphans_that_fails_begins_anew(caplog, monkeypatch):
    world = world_with_an_orphan()
    begin, failures = Spidering.orphans, [StoreUnavailable("gone away")]

    def fail_once(spidering, now):
        if failures:
            raise failures.pop()
        return begin(spidering, now)

    monkeypatch.setattr(Spidering, "orphans", fail_once)
    world.begin()
    assert not world.scanner.is_done()
    world.clock.advance(POLL)
    assert (world.scanner.is_done(), failures, len(caplog.records)) == (True, [], 1)


def test_who_keeps_orphans_waits_for_no_look():
    world = World(Pages(index=links("a")))
    world.fetch()
    assert (world.scanner.is_done(), world.removed) == (True, [])
