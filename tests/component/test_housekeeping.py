"""When the housekeeping of a crawl process works, in what portions, and that nothing stops it for good."""

import pytest
from same_thread import ByHand, SameThread
from twisted.internet.task import Clock

from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.intake.absorbing import Step
from lcc_scrapy.ops import housekeeping
from lcc_scrapy.ops.housekeeping import BUDGET, CLAIM, LOOK, MOST, PAUSE, SHARE, Housekeeper
from tests.memory_store import MemoryStore

GONE = Step(7, finished=False, removed=((b"key", "why"),))
NOTHING = Step(7, finished=False)
DAY = 86_400


class Work:
    """Stands in for the work: gives its steps, one of which may be an error, and notes when it began.

    ``each`` is how many seconds of ``spent`` a step takes.
    """

    def __init__(self):
        self.began = []
        self.steps = []
        self.spent = 0.0
        self.each = BUDGET

    def __call__(self, _store, _policy, now):
        self.began.append(now)
        for step in self.steps:
            self.spent += self.each
            if isinstance(step, Exception):
                raise step
            yield step


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def work(monkeypatch):
    made = Work()
    monkeypatch.setattr(housekeeping, "sweep", made)
    return made


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def house(store, clock, work):
    """Return what makes the housekeeper of a process; ``told`` has what it told."""

    def make(owner="1/0", thread=None, further=()):
        told = []
        made = Housekeeper(
            store, thread or SameThread(), clock, QueuePolicy(), owner=owner, swept=told.append, further=lambda: further,
            now=lambda: 1_000_000 + clock.seconds(), timer=lambda: work.spent,
        )  # fmt: skip
        made.told = told
        return made

    return make


def pass_time(clock, seconds):
    for _ in range(int(seconds / 60)):
        clock.advance(60)


def test_it_sweeps_at_the_first_start_and_again_when_a_day_is_over(house, clock, work):
    house().start()
    pass_time(clock, 3 * DAY)
    assert len(work.began) == 3
    assert all(DAY <= b - a <= DAY + LOOK + 60 for a, b in zip(work.began, work.began[1:], strict=False))


def test_what_other_parts_have_to_do_is_done_after_the_sweep_step_by_step(house, clock, work, store):
    done = []

    def further(its, now):
        for number in range(2 * MOST):
            done.append((its is store, now, number))
            yield number

    work.steps, work.each = [NOTHING], 0.0
    keeper = house(further=[further, further])
    keeper.start()
    clock.advance(0)
    assert len(done) == MOST - 1
    pass_time(clock, 600)
    assert done == 2 * [(True, 1_000_000, number) for number in range(2 * MOST)]
    assert keeper.told == []
    house(further=[further]).start()
    pass_time(clock, 600)
    assert len(done) == 4 * MOST


def test_a_restart_sweeps_nothing_that_was_swept_today(house, clock, work):
    house().start()
    clock.advance(1)
    for _ in range(5):
        again = house()
        again.start()
        clock.advance(1)
        again.stop()
    assert len(work.began) == 1


def test_of_several_processes_one_sweeps(house, clock, work):
    work.steps = [NOTHING] * 30
    crew = [house(f"1/{number}") for number in range(4)]
    for keeper in crew:
        keeper.start()
    pass_time(clock, DAY)
    assert len(work.began) == 1


def test_the_sweep_of_a_process_that_died_is_begun_anew_by_another(house, clock, work):
    work.steps = [NOTHING] * 30
    first, second = house("1/0"), house("1/1")
    first.start()
    clock.advance(0)
    first.stop()  # and is never heard of again
    second.start()
    pass_time(clock, CLAIM - 120)
    assert len(work.began) == 1
    pass_time(clock, LOOK + 240)
    assert len(work.began) == 2


def test_who_was_taken_for_dead_leaves_the_sweep_to_the_other(house, clock, work):
    work.steps = [NOTHING] * 10
    asleep = ByHand()
    first, second = house("1/0", asleep), house("1/1")
    first.start()
    asleep.work_off()
    clock.advance(0)
    clock.advance(CLAIM + 1)
    second.start()
    clock.advance(0)
    assert asleep.work_off(1) == 1
    clock.pump([1] * 30)
    asleep.work_off()
    clock.pump([1] * 30)
    assert (len(work.began), asleep.work_off()) == (2, 0)


def test_a_job_takes_what_fits_into_its_time_and_leaves_three_times_as_long_to_others(house, clock, work):
    work.steps = [GONE] * 6
    work.each = BUDGET / 2
    keeper = house()
    keeper.start()
    clock.advance(0)
    assert len(keeper.told) == 2
    clock.advance(BUDGET * (1 / SHARE - 1) - 0.001)
    assert len(keeper.told) == 2
    clock.advance(0.002)
    assert len(keeper.told) == 4


def test_a_job_has_a_bound_when_its_steps_take_no_time(house, clock, work):
    work.steps = [GONE] * (MOST + 1)
    work.each = 0.0
    keeper = house()
    keeper.start()
    clock.advance(0)
    assert len(keeper.told) == MOST
    clock.advance(PAUSE)
    assert len(keeper.told) == MOST + 1


def test_after_a_failure_it_begins_anew_some_minutes_later_and_tells_what_went_before(
    house, clock, work, caplog
):
    work.steps = [GONE, StoreUnavailable("gone away")]
    work.each = 0.0
    keeper = house()
    keeper.start()
    clock.advance(0)
    assert keeper.told == [GONE]
    assert caplog.messages == ["cannot look after the providers now, trying again: gone away"]
    work.steps = [GONE]
    clock.advance(LOOK)
    clock.advance(0)
    assert (len(work.began), keeper.told) == (2, [GONE, GONE])


@pytest.mark.parametrize("when", [1, 2])
def test_it_stops_between_two_jobs(house, clock, work, when):
    work.steps = [GONE] * 5
    keeper = house()
    keeper.start()
    clock.advance(0)
    for _ in range(when - 1):
        clock.advance(1)
    keeper.stop()
    pass_time(clock, DAY)
    assert len(keeper.told) == when
    assert clock.getDelayedCalls() == []


def test_stopping_what_was_never_started_does_nothing(house, clock):
    house().stop()
    assert clock.getDelayedCalls() == []


def test_roots_that_a_command_left_half_changed_are_finished_whenever_it_looks(house, store, clock):
    keeper = house()
    keeper.start()
    clock.advance(1)
    with store.begin() as tx:
        tx.insert_provider(Provider(7, "", narrowing=True), ["http://h/"])
    pass_time(clock, LOOK + 120)
    with store.read() as tx:
        assert not tx.provider(7).narrowing
