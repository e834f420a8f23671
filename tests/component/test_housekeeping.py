"""When the housekeeping of a crawl process works, and that nothing stops it for good."""

import pytest
from same_thread import SameThread
from twisted.internet.task import Clock

from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.storage import housekeeping
from lcc_scrapy.storage.housekeeping import DAY, PAUSE, RETRY, Housekeeper
from lcc_scrapy.storage.intake import Step
from lcc_scrapy.storage.memory import MemoryStore

GONE = Step(7, finished=False, removed=((b"key", "why"),))
NOTHING = Step(7, finished=False)


class Sweeps:
    """Stands in for the work: gives its steps, one of which may be an error, and notes when it began."""

    def __init__(self, clock):
        self.clock = clock
        self.began = []
        self.steps = []

    def __call__(self, _store, _policy, now):
        self.began.append(now)
        for step in self.steps:
            if isinstance(step, Exception):
                raise step
            yield step


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def sweeps(clock, monkeypatch):
    made = Sweeps(clock)
    monkeypatch.setattr(housekeeping, "sweep", made)
    return made


@pytest.fixture
def keeper(clock):
    told = []
    made = Housekeeper(
        MemoryStore(), SameThread(), clock, QueuePolicy(), swept=told.append, now=lambda: 1000 + clock.seconds()
    )  # fmt: skip
    made.told = told
    return made


def test_it_begins_at_the_start_and_again_every_day(keeper, clock, sweeps):
    keeper.start()
    clock.pump([DAY - 1, 1, DAY])
    assert sweeps.began == [1000, 1000 + DAY, 1000 + 2 * DAY]


def test_it_leaves_a_pause_between_transactions_and_tells_what_went(keeper, clock, sweeps):
    sweeps.steps = [NOTHING, GONE, GONE]
    keeper.start()
    assert keeper.told == []
    clock.advance(PAUSE)
    assert keeper.told == [GONE]
    clock.advance(PAUSE)
    assert keeper.told == [GONE, GONE]
    assert sweeps.began == [1000]


def test_after_a_failure_it_begins_anew_some_minutes_later(keeper, clock, sweeps, caplog):
    sweeps.steps = [NOTHING, StoreUnavailable("gone away")]
    keeper.start()
    clock.advance(PAUSE)
    assert caplog.messages == ["cannot look after the providers now, trying again: gone away"]
    sweeps.steps = [GONE]
    clock.advance(RETRY)
    assert (len(sweeps.began), keeper.told) == (2, [GONE])


@pytest.mark.parametrize("when", [0, 1])
def test_it_stops_between_two_steps(keeper, clock, sweeps, when):
    sweeps.steps = [GONE] * 5
    keeper.start()
    for _ in range(when):
        clock.advance(PAUSE)
    keeper.stop()
    clock.advance(10 * DAY)
    assert len(keeper.told) == when + 1
    assert clock.getDelayedCalls() == []


def test_stopping_what_was_never_started_does_nothing(keeper, clock):
    keeper.stop()
    assert clock.getDelayedCalls() == []
