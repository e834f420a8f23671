"""A Redis that fails in every way while two machines crawl slow sites: nothing is lost, nobody is disturbed.

Redis is killed, restarted empty, frozen, and cut off from one of the machines, whose clock is moved, too; one that Sentinel watches is killed
until its replica has taken over, and becomes the replica itself. It wakes the crawls (``LCC_WAKE_REDIS``), and half
of all URLs come by keys in it (``LCC_REDIS_URL``). ``LCC_REDIS_FAULTS`` says how many faults there are (default 5, one
of each kind; a quarter as many failovers), ``LCC_REDIS_PAGES`` how many pages (default 400); ``make soak`` takes 100
and 20,000.
"""

import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lcc_scrapy.domain.providers import Provider
from tests.faults.machine import MovedClock
from tests.harness import Lcc, wait_for
from tests.own_redis import OwnRedis, own_redis
from tests.relay import Relay, relay
from tests.slow_sites import SlowSites, serving
from tests.watched_redis import WatchedRedis, watched_redis

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(3600)]

FAULTS = int(os.environ.get("LCC_REDIS_FAULTS", "5"))
PAGES = int(os.environ.get("LCC_REDIS_PAGES", "400"))
PUSHING, DRAINED = range(1, 7), range(7, 13)
"""Providers that push to the UNS, and those whose URLs producers put into Redis."""

SHORT, LONG = 0.3, 7.0
"""Seconds of a fault; commands of the LCC wait 5 s for Redis."""


@dataclass
class Scene:
    """Two machines on one database, sites, and the Redis; the second machine may reach it by a relay.

    ``clock`` is that of the second machine.
    """

    here: Lcc
    there: Lcc
    clock: MovedClock
    sites: SlowSites
    redis: Any
    """An ``OwnRedis``, or a ``WatchedRedis``."""

    way: Relay | None = None
    given: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Paths that were accepted, by provider."""

    again: int = 0
    """Items that producers gave once more, as Redis had lost them."""

    def register(self) -> None:
        """Add all providers; the URLs of some come by a key of Redis."""
        pids = [*PUSHING, *DRAINED]
        self.here.register(
            *(Provider(pid, "", allowprivate=True) for pid in pids),
            roots=[[self._root(pid)] for pid in pids],
        )
        for pid in DRAINED:
            self.here.lcc("source", "add", str(pid), "--redis-key", f"key{pid}", "--every", "1s")

    def _root(self, pid: int) -> str:
        return f"http://127.0.0.1:{self.sites.ports[str(pid)]}/"

    def _new(self, pid: int, count: int) -> list[str]:
        """Name further pages of a provider; returns their URLs."""
        known = len(self.given[pid])
        names = [f"{number:06d}.html" for number in range(known, known + count)]
        self.given[pid] += [f"/{name}" for name in names]
        return [self._root(pid) + name for name in names]

    def produce(self, pid: int, count: int) -> None:
        """Put URLs of a provider into its key."""
        with self.redis.client() as client:
            client.rpush(f"key{pid}", *self._new(pid, count))
        self.keep()

    def keep(self) -> None:
        """See that a failover does not lose what producers have given."""
        if isinstance(self.redis, WatchedRedis):
            self.redis.wait_until_replicated()

    def push(self, pid: int, count: int) -> None:
        """Push URLs of a provider to the UNS."""
        urls: list[dict[str, object]] = [
            {"curl": url, "mimetype": "text/html"} for url in self._new(pid, count)
        ]
        done = self.here.push_urls(pid, urls)
        assert done.returncode == 0, done.stderr

    def held_by_redis(self) -> dict[str, list[bytes]]:
        """Return the items that the LCC has not taken for good, by key."""
        held = {}
        with self.redis.client() as client:
            for pid in DRAINED:
                lists = [f"key{pid}", *client.scan_iter(f"{{key{pid}}}:lcc:*:batch")]
                items = [item for name in lists for item in client.lrange(name, 0, -1)]
                held[f"key{pid}"] = [item for item in items if item.startswith(b"http")]
        return held

    def give_again(self, held: dict[str, list[bytes]]) -> None:
        """Do what producers have to do when Redis has lost everything."""
        self.again += sum(map(len, held.values()))
        with self.redis.client() as client:
            for key, items in held.items():
                if items:
                    client.rpush(key, *items)

    def wait_until_fetched(self) -> None:
        """Wait until nothing waits, in Redis, the spool or the queue."""
        wait_for(lambda: not any(self.held_by_redis().values()), 600, "Redis to be drained")
        self.here.wait_until_fetched(600)


Fault = Callable[[Scene, float], Iterator[None]]


def killed(scene: Scene, seconds: float) -> Iterator[None]:
    scene.redis.kill()
    yield
    time.sleep(seconds)
    scene.redis.start()


def emptied(scene: Scene, seconds: float) -> Iterator[None]:
    held = scene.held_by_redis()
    scene.redis.kill()
    scene.redis.empty()
    yield
    time.sleep(seconds)
    scene.redis.start()
    scene.give_again(held)


def frozen(scene: Scene, seconds: float) -> Iterator[None]:
    scene.redis.freeze()
    yield
    time.sleep(seconds)
    scene.redis.thaw()


def moved(scene: Scene, seconds: float) -> Iterator[None]:
    scene.clock.move(random.choice((3600, -3600)))
    yield
    time.sleep(seconds)
    scene.clock.move(0)


def cut_off(scene: Scene, seconds: float) -> Iterator[None]:
    assert scene.way is not None
    scene.way.cut()
    yield
    time.sleep(seconds)
    scene.way.mend()


def failed_over(scene: Scene, seconds: float) -> Iterator[None]:
    old = scene.redis.fail_over()
    yield
    time.sleep(seconds)
    old.start()
    scene.keep()  # so it has become the replica


KINDS: tuple[Fault, ...] = (killed, emptied, frozen, moved, cut_off)


@contextmanager
def alone(folder: Path) -> Iterator[tuple[OwnRedis, str, Relay]]:
    """Give a Redis, its URL for the second machine, and the relay on that way."""
    with own_redis(folder) as redis, relay(redis.port) as way:
        yield redis, f"redis://127.0.0.1:{way.port}/0", way


@contextmanager
def watched(folder: Path) -> Iterator[tuple[WatchedRedis, str, None]]:
    """Give a Redis that Sentinel watches, which all machines ask for it."""
    with watched_redis(folder) as redis:
        yield redis, redis.url, None


@contextmanager
def two_machines(make_lcc: Callable[..., Lcc], folder: Path, kind: Any = alone) -> Iterator[Scene]:
    """Give a scene whose crawls run, and see that they end in order."""
    names = [str(pid) for pid in (*PUSHING, *DRAINED)]
    with kind(folder / "redis") as (redis, far, way), serving(*names) as sites:
        settings = {"LCC_POLL": "1s", "LCC_HOST_BACKOFF": "1s"}
        here = make_lcc("mariadb", LCC_REDIS_URL=redis.url, LCC_WAKE_REDIS=redis.url, **settings)
        there = make_lcc(beside=here, LCC_REDIS_URL=far, LCC_WAKE_REDIS=far, LCC_UNS_ENDPOINTS="", **settings)
        clock = MovedClock(folder / "clock")
        there.settings |= clock.environment
        scene = Scene(here, there, clock, sites, redis, way)
        scene.register()
        here.start("-s", "USER_AGENT=here")
        there.start("-s", "USER_AGENT=there")
        yield scene
        assert (there.stop(), here.stop()) == (0, 0)
        for lcc in (here, there):
            assert "Traceback" not in lcc.log_text()


def test_a_redis_that_fails_loses_nothing_and_lets_no_site_be_asked_twice_at_a_time(
    make_lcc: Callable[..., Lcc], tmp_path: Path
) -> None:
    with two_machines(make_lcc, tmp_path) as scene:
        fail(scene, [KINDS[number % len(KINDS)] for number in range(FAULTS)])
        assert 0 <= see_what_the_sites_saw(scene) <= scene.again, "only what was given again"


@pytest.mark.soak
def test_a_redis_that_sentinel_fails_over_loses_nothing_either(
    make_lcc: Callable[..., Lcc], tmp_path: Path
) -> None:
    with two_machines(make_lcc, tmp_path, watched) as scene:
        fail(scene, [failed_over] * -(-FAULTS // 4))
        see_what_the_sites_saw(scene)  # what had not reached the replica may be fetched again


def fail(scene: Scene, kinds: list[Fault]) -> None:
    """Let Redis fail while URLs come, and wait until all were fetched."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    chance.shuffle(kinds)
    begun = time.monotonic()
    portion = PAGES // FAULTS // 2
    for number, kind in enumerate(kinds):
        scene.produce(DRAINED[number % len(DRAINED)], portion)
        with contextmanager(kind)(scene, chance.uniform(SHORT, LONG)):
            scene.push(PUSHING[number % len(PUSHING)], portion)
    scene.wait_until_fetched()
    took = time.monotonic() - begun
    print(f"{len(kinds)} faults {dict(Counter(one.__name__ for one in kinds))}, {took:.0f} s")


def see_what_the_sites_saw(scene: Scene) -> int:
    """Check by what the sites noted themselves: all was fetched, and never two pages of one at a time.

    Returns how many were fetched again.
    """
    asked = {pid: scene.sites.asked[str(pid)] for pid in scene.given}
    more = sum(map(len, asked.values())) - sum(map(len, scene.given.values()))
    print(
        f"{sum(map(len, scene.given.values()))} pages, {more} fetched again of {scene.again} that were given again;"
        f" by {dict(scene.sites.agents)}"
    )
    for pid, paths in scene.given.items():
        assert set(asked[pid]) == set(paths), f"what was lost of provider {pid}"
    assert {name: most for name, most in scene.sites.most.items() if most > 1} == {}
    assert set(scene.sites.agents) == {"here", "there"}
    stored = sum(map(len, scene.given.values()))
    assert scene.here.sql("select count(*), count(distinct curl) from lccurl") == [(stored, stored)]
    assert scene.here.sql("select sum(nurlerrs), sum(nurlproc) from pidb") == [(0, 0)]
    return more
