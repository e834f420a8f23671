"""Watches how long the jobs of a thread take: everything else in that thread waits for as long."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

Result = TypeVar("Result")

WARN = 0.25
"""Seconds of a job from which on it is told, unless the settings say otherwise."""

PERIOD = 60.0
"""Seconds between two lines in the log, and after which the longest job begins to be forgotten."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """How long a job took: in all, and of that computing (seconds)."""

    name: str = ""
    seconds: float = 0.0
    cpu: float = 0.0


NO_JOB = Job()


class JobWatch:
    """Measures jobs; ``run`` belongs to the thread that is watched, all else to any.

    ``warn`` (seconds, 0 = never) may be changed at any time. ``longest_by_name``: by CPU time.
    """

    def __init__(
        self,
        warn: float = WARN,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self.warn = warn
        self.longest_by_name: dict[str, Job] = {}
        self._clock = clock
        self._cpu = cpu
        self._began: float | None = None
        self._before = self._current = NO_JOB
        self._period_ends = clock() + PERIOD
        self._told = -PERIOD

    @property
    def longest(self) -> Job:
        """Return the longest job of this period and the one before: of the last one or two minutes."""
        if self._clock() >= self._period_ends + PERIOD:
            return NO_JOB
        return max(self._before, self._current, key=lambda job: job.seconds)

    def under_way(self) -> float:
        """Return for how many seconds the present job has been running, 0 = there is none."""
        began = self._began
        return 0.0 if began is None else self._clock() - began

    def run(self, job: Callable[..., Result], *args: Any) -> Result:
        """Run a job and measure it, whatever comes of it."""
        began, computed = self._clock(), self._cpu()
        self._began = began
        try:
            return job(*args)
        finally:
            self._began = None
            self._ended(Job(name_of(job), self._clock() - began, self._cpu() - computed))

    def _ended(self, job: Job) -> None:
        now = self._clock()
        if now >= self._period_ends:
            is_old = now >= self._period_ends + PERIOD
            self._before, self._current = NO_JOB if is_old else self._current, NO_JOB
            self._period_ends = now + PERIOD
        if job.seconds > self._current.seconds:
            self._current = job
        if job.cpu >= self.longest_by_name.get(job.name, NO_JOB).cpu:
            self.longest_by_name[job.name] = job
        self._tell(job, now)

    def _tell(self, job: Job, now: float) -> None:
        if not self.warn or job.seconds < self.warn or now - self._told < PERIOD:
            return
        self._told = now
        what = {"job": job.name, "ms": job.seconds * 1000, "cpu": job.cpu * 1000}
        _log.warning(
            "database work waited %(ms).0f ms for %(job)s, which computed for %(cpu).0f ms;"
            " told once a minute",
            what,
        )  # fmt: skip


def name_of(job: Callable[..., Any]) -> str:
    """Return what a job is called in the code."""
    while isinstance(job, partial):
        job = job.func
    return str(getattr(job, "__qualname__", type(job).__qualname__))
