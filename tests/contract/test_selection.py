"""What a content user sees through cursors while the LCC goes on, on every store."""

import random

import pytest
from little_lcc import removal, update

from lcc_scrapy.domain.cache import Tombstone
from lcc_scrapy.domain.cursor import Position, StartOver
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.feed import reader as feed_reader
from lcc_scrapy.feed.reader import Reader
from lcc_scrapy.feed.store_feed import GENERATION, LCC_ID, StoreFeed


@pytest.fixture
def named(lcc):
    with lcc.store.begin() as tx:
        tx.set_info(LCC_ID, "an-lcc")
        tx.set_info(GENERATION, "1")
    return lcc


@pytest.fixture(autouse=True)
def small_pages(monkeypatch):
    monkeypatch.setattr(feed_reader, "PAGE", 3)


class Follower:
    """A content user that keeps a copy of everything by following the feed."""

    def __init__(self, store):
        self.store = store
        self.cursor = None
        self.copy = {}
        self.seqs = []

    def visit(self, limit=0, between=lambda: None):
        since = Position.parse(self.cursor) if self.cursor else None
        reader = Reader(StoreFeed(self.store), Selection(), since, limit)
        for page in reader.pages():
            self.seqs += [row.seq for row in page]
            for row in page:
                if isinstance(row, Tombstone):
                    self.copy.pop(row.urlkey, None)
                else:
                    self.copy[row.urlkey] = row.sha256
            between()
        self.cursor = str(reader.position)


def here(lcc):
    with lcc.store.read() as tx:
        return {row.urlkey: row.sha256 for row in tx.cached_of(7, b"", 1000)}


def test_a_follower_ends_with_what_the_cache_holds(named):
    follower = Follower(named.store)
    named.store_pages(*"abcdefg")
    follower.visit()
    assert follower.copy == here(named)
    named.push(removal("a"), update("b"))
    named.fetch_all(body=b"new")
    named.store_pages("h")
    follower.visit()
    assert follower.copy == here(named)
    assert follower.seqs == sorted(set(follower.seqs))


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_missed_and_nothing_comes_twice_while_everything_changes(named, seed):
    chance = random.Random(seed)
    follower = Follower(named.store)

    def change():
        names = chance.sample("abcdefghij", 3)
        named.push(*[chance.choice((update, removal))(name) for name in names])
        named.fetch_all(body=str(chance.random()).encode())

    for _ in range(6):
        change()
        follower.visit(limit=chance.choice((0, 1, 2, 5)), between=change)
    follower.visit()
    assert follower.copy == here(named)
    assert follower.seqs == sorted(set(follower.seqs))


def test_a_cursor_of_another_lcc_or_generation_says_start_over(named):
    named.store_pages("a")
    feed_ = StoreFeed(named.store)
    head = feed_.head()
    assert head == Position("an-lcc", 1, 1)
    with named.store.begin() as tx:
        tx.set_info(GENERATION, "2")
    with pytest.raises(StartOver):
        Reader(feed_, Selection(), head)


def test_an_answer_is_given_with_the_row_that_it_belongs_to_and_no_other(named):
    named.store_pages("a", "b", "c")
    rows = StoreFeed(named.store).look(0, 10).rows
    named.push(removal("b"), update("c"))
    named.fetch("c", b"another body")
    answers = StoreFeed(named.store).answers(rows)
    assert [row.curl[-1] for row in rows if row.urlkey in answers] == ["a"]
    assert answers[rows[0].urlkey].status_line == "HTTP/1.1 200 OK"
    assert StoreFeed(named.store).rows([row.urlkey for row in rows]).keys() == {
        rows[0].urlkey,
        rows[2].urlkey,
    }


def test_a_database_without_an_lcc_says_so(lcc):
    with pytest.raises(ConfigurationError, match="lcc init"):
        StoreFeed(lcc.store).head()
