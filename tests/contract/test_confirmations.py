"""Confirmations behind a cursor of their own: in commit order, each document once, on every store."""

from dataclasses import replace

import pytest
from little_lcc import Crash, key, killed_before_its_commit, removal, update, url

from lcc_scrapy.db.records import CONFIRMED, FEED
from lcc_scrapy.domain.cursor import BadCursor, StartOver
from lcc_scrapy.domain.entries import Declared
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.feed.confirmations import COLUMNS, Confirmations, records
from lcc_scrapy.feed.reader import Reader
from lcc_scrapy.feed.store_feed import GENERATION, LCC_ID, StoreFeed


@pytest.fixture(autouse=True)
def _an_lcc(lcc):
    with lcc.store.begin() as tx:
        tx.set_info(LCC_ID, "an-lcc")
        tx.set_info(GENERATION, "1")


def confirm(lcc, *names):
    """Let documents be asked for again, and be found unchanged."""
    lcc.now += 10
    for name in names:
        lcc.push(update(name, declared=Declared(lcc.now)))
        lcc.settle(lcc.not_modified(lcc.ticket(name)))


def read(lcc, since=None, limit=0, **selected):
    """Return the names of what is read, and the position behind it."""
    reader = Confirmations(StoreFeed(lcc.store), Selection(**selected), since, limit)
    names = [row.curl.rpartition("/")[2] for page in reader.pages() for row in page]
    return names, reader.position


def test_each_document_is_there_once_at_its_newest_confirmation(lcc):
    lcc.store_pages("a", "b", "c")
    assert read(lcc)[0] == []
    confirm(lcc, "a", "b", "a")
    names, position = read(lcc)
    assert (names, position.seq) == (["b", "a"], 3)
    confirm(lcc, "b")
    assert read(lcc, position)[0] == ["b"]
    assert read(lcc, read(lcc, position)[1])[0] == []


def test_identical_content_is_a_confirmation_too(lcc):
    lcc.store_pages("a")
    lcc.push(update("a", declared=Declared(5)))
    lcc.fetch("a", lcc.files[lcc.cached("a").fetched_fileid])
    assert read(lcc)[0] == ["a"]


def test_what_its_provider_says_is_no_confirmation(lcc):
    lcc.push(update("a", b"a body"))
    lcc.fetch("a", b"a body")
    lcc.now += 10
    lcc.push(update("a", b"a body"), full=True)
    assert lcc.cached("a").confirmed_time == lcc.now
    assert read(lcc)[0] == []


def test_a_document_that_changes_leaves_the_confirmations_for_the_feed(lcc):
    lcc.store_pages("a", "b")
    confirm(lcc, "a", "b")
    before = lcc.cached("b").seq
    lcc.push(update("a", declared=Declared(7)))
    lcc.fetch("a", b"new")
    lcc.push(removal("b"))
    assert read(lcc)[0] == []
    assert all(row.seq > before for row in lcc.feed())


def test_nothing_of_the_feed_changes(lcc):
    lcc.store_pages("a")
    before = lcc.cached("a")
    confirm(lcc, "a")
    with lcc.store.read() as tx:
        assert (tx.peek(FEED), tx.peek(CONFIRMED)) == (1, 1)
    assert lcc.feed() == [replace(before, mtime=lcc.now, confirmed_time=lcc.now, seen=2, confirmed_seq=1)]


def test_they_are_read_in_pages_within_bounds(lcc):
    names = [f"p{number}" for number in range(5)]
    lcc.store_pages(*names)
    confirm(lcc, *names)
    seen, position = [], None
    while True:
        page, position = read(lcc, position, 2)
        if not page:
            break
        assert len(page) <= 2
        seen += page
    assert seen == names


def test_they_are_filtered_as_the_feed_is_and_nothing_leaves(lcc):
    lcc.store_pages("a", "b")
    confirm(lcc, "a", "b")
    _, position = read(lcc, url_prefixes=(url("b"),), subtypes=("",))
    lcc.push(update("b", subtype="lang: nl", declared=Declared(9)))
    lcc.settle(lcc.not_modified(lcc.ticket("b")))
    assert read(lcc, position, url_prefixes=(url("b"),), subtypes=("",))[0] == []
    assert read(lcc, url_prefixes=(url("b"),))[0] == ["b"]


def test_cursors_of_feed_and_confirmations_do_not_fit_each_other(lcc):
    lcc.store_pages("a", "b")
    confirm(lcc, "a", "b")
    feed = StoreFeed(lcc.store)
    lcc.store_pages("c")  # the feed has higher numbers now
    with pytest.raises(BadCursor):
        Confirmations(feed, Selection(), Reader(feed, Selection()).end)
    with pytest.raises(BadCursor):
        Reader(feed, Selection(), read(lcc)[1])
    with pytest.raises(StartOver):
        Confirmations(feed, Selection(), replace(read(lcc)[1], seq=99))


def test_a_confirmation_tells_its_columns(lcc):
    lcc.store_pages("a")
    confirm(lcc, "a")
    reader = Confirmations(StoreFeed(lcc.store), Selection())
    ((row,),) = reader.pages()
    (one,) = records([row], {key("a"): ["anna"]})
    assert tuple(one) == COLUMNS
    assert (one["op"], one["seq"], one["confirmed_time"], one["owners"]) == ("confirm", 1, lcc.now, ["anna"])


def test_a_kill_before_the_commit_gives_a_place_out_again(lcc):
    lcc.store_pages("a", "b")
    lcc.push(update("a", declared=Declared(5)))
    outcome = lcc.not_modified(lcc.ticket("a"))
    with pytest.raises(Crash):
        killed_before_its_commit(lcc.store, lambda tx: tx.take(CONFIRMED, 1))
    lcc.settle(outcome)
    assert lcc.cached("a").confirmed_seq == 1
