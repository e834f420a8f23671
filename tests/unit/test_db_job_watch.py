"""The watch over a thread's jobs tells the longest, and for how long it is told."""

from functools import partial

import pytest

from lcc_scrapy.db.job_watch import NO_JOB, PERIOD, Job, JobWatch


class Time:
    """Seconds that pass, and seconds that are computed."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.computed = 0.0

    def job(self, seconds: float, cpu: float = 0.0) -> str:
        self.now += seconds
        self.computed += cpu
        return "done"

    def fails(self, seconds: float) -> None:
        self.now += seconds
        raise ValueError


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def watch(time: Time) -> JobWatch:
    return JobWatch(0.25, lambda: time.now, lambda: time.computed)


def test_the_longest_job_is_kept_with_its_name_and_its_computing(watch: JobWatch, time: Time) -> None:
    assert watch.run(time.job, 0.2, 0.05) == "done"
    watch.run(partial(time.job, 0.1, 0.1))
    assert watch.longest == Job("Time.job", pytest.approx(0.2), pytest.approx(0.05))  # type: ignore[arg-type]
    assert watch.longest_by_name["Time.job"].cpu == pytest.approx(0.1)


def test_a_job_that_fails_counts_as_well(watch: JobWatch, time: Time) -> None:
    with pytest.raises(ValueError):
        watch.run(time.fails, 0.4)
    assert (watch.longest.name, watch.under_way()) == ("Time.fails", 0.0)


def test_it_is_forgotten_after_a_minute_or_two(watch: JobWatch, time: Time) -> None:
    watch.run(time.job, 0.4)
    time.now += PERIOD
    watch.run(time.job, 0.1)
    assert watch.longest.seconds == pytest.approx(0.4)
    time.now += PERIOD
    watch.run(time.job, 0.1)
    assert watch.longest.seconds == pytest.approx(0.1)


def test_in_a_thread_without_jobs_there_is_none(watch: JobWatch, time: Time) -> None:
    watch.run(time.job, 0.4)
    time.now += 2 * PERIOD
    assert watch.longest == NO_JOB


def test_it_tells_how_long_the_present_job_has_been_running(watch: JobWatch, time: Time) -> None:
    seen: list[float] = []

    def job() -> None:
        time.now += 7
        seen.append(watch.under_way())

    watch.run(job)
    assert (seen, watch.under_way()) == ([7.0], 0.0)


def test_what_takes_too_long_is_told_once_a_minute(
    watch: JobWatch, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(10):
        watch.run(time.job, 0.3, 0.1)
    watch.run(time.job, 0.2)
    assert caplog.messages == [
        "database work waited 300 ms for Time.job, which computed for 100 ms; told once a minute"
    ]
    time.now += PERIOD
    watch.run(time.job, 0.3)
    assert len(caplog.messages) == 2


def test_zero_tells_nothing(watch: JobWatch, time: Time, caplog: pytest.LogCaptureFixture) -> None:
    watch.warn = 0
    watch.run(time.job, 100)
    assert caplog.messages == []
