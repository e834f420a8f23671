"""Sources in a crawl process: when it is looked for those that a wrong clock has put off."""

from twisted.internet.defer import succeed
from twisted.internet.task import Clock

from lcc_scrapy.apps.sources.runner import WAKE_EVERY, DueSources

POLL = 5.0


class World:
    """A machine whose clock is moved; it is its own runner, registry and thread."""

    def __init__(self):
        self.clock, self.ahead, self.woken = Clock(), 0.0, []
        self.registry = self
        self.sources = DueSources(self, self, self.clock, POLL, lambda: False)
        self.sources.start()
        self.pass_time(0)

    def now(self):
        return 10_000 + self.clock.seconds() + self.ahead

    def run(self, work, *args):
        return succeed(work(*args))

    def wake(self, now):
        self.woken.append(now)

    def claim_due(self, _):
        return None

    def pass_time(self, seconds):
        """Let time pass; return when it was looked for sources that were put off."""
        before = len(self.woken)
        self.clock.pump([1.0] * seconds or [0])
        return self.woken[before:]


def test_what_a_clock_put_off_is_looked_for_at_the_start_and_every_ten_minutes():
    world = World()
    assert world.woken == [10_000]
    assert world.pass_time(599) == []
    assert world.pass_time(5) == [10_000 + WAKE_EVERY]
    assert world.pass_time(590) == []


def test_it_is_looked_for_at_once_when_the_clock_was_moved():
    world = World()
    world.ahead = 3600.0
    assert world.pass_time(5) == [13_605]
    assert world.pass_time(100) == []
    world.ahead = -3600.0
    assert world.pass_time(5) == [10_110 - 3600]
