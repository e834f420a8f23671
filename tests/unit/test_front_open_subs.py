"""Looks at sub-LCCs: one that gives no answer holds up neither the others nor the next look."""

import threading

import pytest

from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.front import Load, SubLcc
from lcc_scrapy.front import open_subs
from lcc_scrapy.front.open_subs import OpenSubs, SubAway


class Directory:
    def __init__(self, *names):
        self.names = names

    def subs(self):
        return [SubLcc(name, "127.0.0.1:9", database=name, capacity=100) for name in self.names]

    def load(self, urls):
        return Load(urls)


class Store:
    def __init__(self, name):
        self.name = name
        self.closed = False

    def close(self):
        self.closed = True


class World:
    """Databases, some of which are stuck until they are ``freed``, or refuse."""

    def __init__(self, monkeypatch):
        self.stuck, self.refusing, self.opened = set(), set(), []
        self.freed = threading.Event()
        monkeypatch.setattr(open_subs, "open_store", self.open)
        monkeypatch.setattr(open_subs, "count_urls", lambda _store: 5)

    def open(self, sub, *, to_write, silence):
        assert to_write
        self.opened.append(sub.name)
        if sub.name in self.stuck:
            self.freed.wait(60)
        if sub.name in self.refusing:
            raise LccError("no")
        return Store(sub.name)


@pytest.fixture
def world(monkeypatch):
    made = World(monkeypatch)
    yield made
    made.freed.set()


def test_one_that_gives_no_answer_is_left_out_and_asked_once_until_it_does(world, monkeypatch):
    monkeypatch.setattr(open_subs, "LOOKS", 0.05)
    subs = OpenSubs(Directory("a", "b"), silence=1)
    world.stuck.add("a")
    subs.look()
    subs.look()
    assert (list(subs.stores()), sorted(world.opened)) == (["b"], ["a", "b"])
    with pytest.raises(SubAway), subs.using("a"):
        pass
    world.freed.set()
    monkeypatch.setattr(open_subs, "LOOKS", 60)
    subs.look()
    assert (sorted(subs.stores()), sorted(world.opened)) == (["a", "b"], ["a", "b"])


def test_one_that_refuses_is_asked_again_and_one_that_is_forgotten_is_given_back(world):
    directory = Directory("a", "b")
    subs = OpenSubs(directory, silence=60)
    world.refusing.add("a")
    subs.look()
    kept = subs.stores()["b"]
    world.refusing.clear()
    directory.names = ("a",)
    subs.look()
    assert (list(subs.stores()), kept.closed, world.opened.count("a")) == (["a"], True, 2)
