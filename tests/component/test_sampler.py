"""The rounds in which pushed documents are sampled."""

import pytest
from same_thread import SameThread
from twisted.internet.task import Clock

from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.spidering.sampler import Sampler
from lcc_scrapy.spidering.sampling import Sampling
from lcc_scrapy.spidering.scanner import Visits
from tests.contract.little_lcc import PID, LittleLcc, update
from tests.memory_store import MemoryStore

POLL = 2.0
DAY = 86400
GRACE = 3600


class World:
    """A sampler over a little LCC with ten pushed pages; fetching is up to the test."""

    def __init__(self, **visits):
        self.lcc = LittleLcc(MemoryStore(), QueuePolicy(retry_delays=()))
        self.lcc.add(created=self.lcc.now, fallback=0.2)
        self.names = list("abcdefghij")
        self.lcc.push(*[update(name, name.encode()) for name in self.names])
        self.lcc.fetch_all(body=b"first")  # of which the provider was told
        self.clock = Clock()
        self.touched = 0
        self.sampler = Sampler(
            Sampling(self.lcc.store, PID, self.lcc.policy, 0, lambda: bytes(16)), SameThread(), self.clock,
            visits=Visits(PID, **visits), poll=POLL, touched=self.touch, now=lambda: self.lcc.now,
        )  # fmt: skip
        self.wait(DAY)
        self.sampler.start()
        self.clock.advance(0)

    def touch(self):
        self.touched += 1

    def wait(self, seconds):
        self.lcc.now += seconds
        self.clock.advance(POLL)

    def look(self, changed=()):
        """Carry out the visits that wait; returns how many."""
        tickets = self.lcc.tickets()
        for one in tickets:
            name = one.row.curl[-1]
            same = self.lcc.not_modified(one)
            self.lcc.settle(self.lcc.served(one, b"other") if name in changed else same)
        return len(tickets)


def test_a_sample_is_drawn_once_and_then_it_is_done():
    world = World(sample=4)
    assert (len(world.lcc.waiting()), world.touched) == (4, 1)
    assert not world.sampler.is_done()
    world.look()
    assert world.sampler.is_done()
    world.wait(DAY)
    assert world.lcc.waiting() == []


def test_with_every_a_sample_is_drawn_again_each_time():
    world = World(sample=4, every=float(DAY), once=False)
    assert world.look() == 4
    world.wait(DAY - 1)
    assert world.look() == 0
    world.wait(1)
    assert world.look() == 4
    assert not world.sampler.is_done()


def test_without_a_sample_and_while_all_is_pushed_nothing_is_visited():
    world = World(every=float(DAY), once=False)
    world.wait(2 * DAY)
    assert (world.lcc.waiting(), world.touched) == ([], 0)


def test_a_provider_that_misses_too_many_is_visited_until_it_pushes_again(caplog):
    world = World(sample=10, every=float(DAY), once=False)
    assert world.look(changed=world.names) == 10
    world.wait(GRACE - 1)
    assert not world.lcc.provider().fallingback
    world.wait(1)
    assert world.lcc.provider().fallingback
    assert "provider 7 misses too many changes and is visited" in caplog.text
    assert world.look() == 0
    world.wait(DAY)
    assert world.look() == 10
    with world.lcc.store.begin() as tx:
        tx.add_missed(PID, world.lcc.now // DAY, {"pushed": 90})
    world.wait(1)
    assert not world.lcc.provider().fallingback
    assert "provider 7 misses few changes now" in caplog.text


@pytest.mark.parametrize("sample", [0, 1])
def test_one_pass_for_cron_visits_what_a_falling_provider_pushed(sample):
    world = World(sample=sample, every=3600.0, once=False)
    world.lcc.change(fallingback=True)
    with world.lcc.store.begin() as tx:
        tx.add_missed(PID, world.lcc.now // DAY, {"missed": 9, "sampled": 9, "watched": 9 * DAY})
    world.sampler._visits = Visits(PID, every=3600.0, sample=sample)
    world.wait(1)
    assert not world.sampler.is_done()
    assert world.look() == 10
    assert world.sampler.is_done()


def test_a_database_that_is_away_is_tried_again_and_told_once(caplog, monkeypatch):
    world = World(sample=4, every=float(DAY), once=False)
    world.look()

    def away(*_):
        raise StoreUnavailable("it is away")

    with monkeypatch.context() as patched:
        patched.setattr(world.sampler._sampling, "draw", away)
        world.wait(DAY)
        world.wait(1)
    assert caplog.text.count("cannot look at samples now") == 1
    world.wait(1)
    assert world.look() == 4


def test_it_ends_after_the_step_that_is_running():
    world = World(sample=4, every=float(DAY), once=False)
    world.look()
    ended = []
    world.sampler.stop().addCallback(ended.append)
    world.wait(DAY)
    assert (ended, world.lcc.waiting(), world.clock.getDelayedCalls()) == ([None], [], [])
