"""Whoever follows the feed ends up with exactly what there is: whatever is written, filtered or forgotten.

``LCC_FEED_SECONDS`` says how long the writers go on in the test with threads (default 2; ``make soak``
takes 60).
"""

import os
import random
import threading
import time
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from mirror import NAMES, PIDS, SELECTIONS, Mirror, change, prepare

from lcc_scrapy.cache.tombstones import forget_tombstones
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.feed import reader
from lcc_scrapy.feed.store_feed import StoreFeed
from tests.harness import wait_for
from tests.memory_store import MemoryStore

SECONDS = float(os.environ.get("LCC_FEED_SECONDS", "2"))
WRITERS = 8
KEPT = 6
"""For how many tenths of a second a removal is remembered while the threads write."""


class Following(RuleBasedStateMachine):
    """Every order of writing, forgetting, reading by small steps, and crashing in between."""

    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed):
        self.chance = random.Random(seed)
        self.store = MemoryStore()
        prepare(self.store)
        self.users = [Mirror(self.store, selection, self.chance) for selection in SELECTIONS]
        self.page = reader.PAGE
        reader.PAGE = 2

    @rule(pid=st.sampled_from(PIDS[:2]), names=st.sets(st.sampled_from(NAMES[:4]), min_size=1))
    def write(self, pid, names):
        change(self.store, self.chance, pid, sorted(names), 1000)

    @rule(user=st.integers(0, len(SELECTIONS) - 1), steps=st.integers(1, 6))
    def read(self, user, steps):
        for _ in range(steps):
            self.users[user].step()

    @rule(user=st.integers(0, len(SELECTIONS) - 1))
    def crash(self, user):
        self.users[user].crash()

    @rule()
    def forget(self):
        sum(forget_tombstones(self.store, 2000))

    @rule(user=st.integers(0, len(SELECTIONS) - 1))
    def catch_up(self, user):
        self.users[user].catch_up()
        assert self.users[user].copy == self.users[user].should_have()

    def teardown(self):
        for user in getattr(self, "users", []):
            user.catch_up()
            assert user.copy == user.should_have()
        if hasattr(self, "page"):
            reader.PAGE = self.page


TestFollowing = Following.TestCase
TestFollowing.settings = settings(
    max_examples=int(os.environ.get("LCC_FEED_EXAMPLES", "60")), stateful_step_count=40, deadline=None
)


class Replicas:
    """Several copies of a store behind one address; each is as the store was when ``replay`` was called last."""

    def __init__(self, store, chance):
        self._store, self._chance = store, chance
        self._copies = [MemoryStore() for _ in range(3)]
        self.replay(*range(3))

    def replay(self, *numbers):
        for number in numbers:
            self._copies[number]._tables = self._store._tables

    def read(self):
        return self._chance.choice(self._copies).read()


@pytest.mark.parametrize("removals_are_forgotten", [False, True])
def test_followers_of_replicas_that_lag_miss_nothing(monkeypatch, removals_are_forgotten):
    monkeypatch.setattr(reader, "PAGE", 2)
    started_over = 0
    for seed in range(150):
        chance = random.Random(seed)
        store = MemoryStore()
        prepare(store)
        replicas = Replicas(store, chance)
        users = [
            Mirror(store, one, chance, feed=StoreFeed(replicas, lags=True), reconciles=chance.random() < 0.2)
            for one in SELECTIONS
        ]
        for _ in range(100):
            if chance.random() < 0.3:
                change(store, chance, chance.choice(PIDS[:2]), chance.sample(NAMES[:6], 3), 1000)
            if chance.random() < 0.3:
                replicas.replay(chance.randrange(3))
            if removals_are_forgotten and chance.random() < 0.02:
                sum(forget_tombstones(store, 2000))
            user = chance.choice(users)
            user.step()
            if chance.random() < 0.05:
                user.crash()
        replicas.replay(*range(3))
        for user in users:
            user.catch_up()
            assert user.copy == user.should_have()
        started_over += sum(user.started_over for user in users)
    assert bool(started_over) == removals_are_forgotten


class Threads:
    """Runs workers until it is told to stop; what a busy database refuses is tried again."""

    def __init__(self):
        self.stopping = threading.Event()
        self.problems = []
        self.done = Counter()
        self._threads = []

    def start(self, name, work):
        self._threads.append(threading.Thread(target=self._run, args=(name, work)))
        self._threads[-1].start()

    def _run(self, name, work):
        try:
            while not self.stopping.is_set():
                try:
                    work()
                    self.done[name] += 1
                except StoreUnavailable:
                    self.done["refused"] += 1
        except BaseException as error:
            self.problems.append(error)
            self.stopping.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Leave no thread behind, whatever happened: it would go on writing beneath the next tests."""
        self.stopping.set()
        for thread in self._threads:
            thread.join()


def now():
    return int(time.monotonic() * 10)


@pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)
def test_followers_beside_eight_writers_miss_nothing(store, monkeypatch):
    monkeypatch.setattr(reader, "PAGE", 20)
    prepare(store)
    users = [Mirror(store, selection, random.Random()) for selection in SELECTIONS]
    sleeper = Mirror(store, SELECTIONS[1], random.Random())
    threads = Threads()

    def writer(number):
        chance = random.Random(number)
        pid = PIDS[number % len(PIDS)]
        return lambda: change(store, chance, pid, chance.sample(NAMES, chance.randint(1, 5)), now())

    def forget():
        threads.stopping.wait(0.1)
        sum(forget_tombstones(store, now() - KEPT))

    def oversleep():
        threads.stopping.wait(KEPT / 10 * 2)
        while sleeper.step() and not threads.stopping.is_set():
            pass

    def enough():
        told = [user.told for user in users]
        return (
            threads.done["written"] > WRITERS
            and all(one["upsert"] for one in told[:3])
            and any(one["leave"] for one in told[1:])
        )

    with threads:
        for number in range(WRITERS):
            threads.start("written", writer(number))
        for user in users:
            threads.start("read", user.step)
        threads.start("forgotten", forget)
        threads.start("overslept", oversleep)
        threads.stopping.wait(SECONDS)
        wait_for(lambda: threads.problems or enough(), what="all kinds of changes to be told")
    assert threads.problems == []
    head = users[0].head()
    for user in (*users, sleeper):
        user.catch_up()
        assert user.copy == user.should_have()
    overs = [user.started_over for user in (*users, sleeper)]
    told = [user.told for user in users]
    print(
        f"\n{store.engine.dialect.name}: {head} changes, {dict(threads.done)}, started over {overs}, told {told}"
    )
    assert threads.done["written"] > WRITERS
    assert all(user.told["upsert"] for user in users[:3])
    assert sum(user.told["leave"] for user in users[1:])
    assert users[0].told["leave"] == 0
