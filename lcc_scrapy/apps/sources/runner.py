"""Runs sources: one on demand, or all that are due while a crawl is at work."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from lcc_scrapy.apps.sources.draining import Drain, Redis
from lcc_scrapy.apps.sources.registry import Registry
from lcc_scrapy.apps.sources.rules import CLAIM, Kind, Report, Source
from lcc_scrapy.apps.sources.running import Run, Stopped
from lcc_scrapy.apps.sources.store import rows_in
from lcc_scrapy.apps.sources.submitting import Rules, rules_of
from lcc_scrapy.apps.sources.subscribing import Subscriber
from lcc_scrapy.config.config import Config
from lcc_scrapy.db.rounds import Rounds
from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.steady_clock import SteadyClock
from lcc_scrapy.kit.fetching import CannotFetch, Fetcher
from lcc_scrapy.kit.work import Work

AT_A_TIME = 4
"""Sources that one process runs at a time: a slow site holds up no other."""

WAKE_EVERY = 600.0
"""Seconds until it is looked anew for sources that clocks of other machines have put off."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Runner:
    """Runs claimed sources. ``told`` hears how far a run is, ``touched`` of providers with new URLs.
    Without a ``subscriber``, no hub is asked.
    """

    registry: Registry
    work: Work
    fetcher: Fetcher
    rules: Rules
    redis: Redis
    touched: Callable[[int], object] = lambda _: None
    told: Callable[[Report], object] = lambda _: None
    now: Callable[[], float] = time.time
    subscriber: Subscriber | None = None

    async def run(self, source: Source) -> tuple[Report, str]:
        """Run a source that this process has claimed; returns what it did, and why it failed, if it did."""
        run = self._drain(source) if source.kind == Kind.REDIS else self.made(source)
        keeping = asyncio.ensure_future(self._keep(run))
        try:
            return await self._run(run)
        except asyncio.CancelledError:
            with suppress(LccError):
                await self.work(self.registry.released, source, self._time())
            raise
        finally:
            keeping.cancel()

    async def _run(self, run: Run | Drain) -> tuple[Report, str]:
        source = run.source
        try:
            report = await run.run()
            if isinstance(run, Run) and source.kind == Kind.WEBSUB and self.subscriber is not None:
                await self.subscriber.renew(run, self._time())
        except Stopped:
            return run.report, "another process runs it now"
        except LccError as error:
            wait = error.retry_after if isinstance(error, CannotFetch) else 0.0
            await self.work(self.registry.failed, source, str(error), run.report, self._time(), wait)
            return run.report, str(error)
        except Exception as error:
            # it would be due again as soon as its claim ends
            why = f"an error inside this LCC: {type(error).__name__}"
            await self.work(self.registry.failed, source, why, run.report, self._time(), 0.0)
            raise
        await self.work(self.registry.succeeded, source, report, run.listed, self._time())
        return report, ""

    def made(self, source: Source) -> Run:
        """Return a run of a source that has not begun."""
        told = partial(self._tell, source.pid)
        return Run(self.registry.store, self.work, self.fetcher, source, self.rules, told, self.now)

    def _drain(self, source: Source) -> Drain:
        told = partial(self._tell, source.pid)
        return Drain(self.registry.store, self.work, self.redis, source, self.rules, told, self.now)

    def _tell(self, pid: int, report: Report) -> None:
        self.told(report)
        self.touched(pid)

    async def _keep(self, run: Run | Drain) -> None:
        """Claim the source again and again; a run that lost it ends at its next step."""
        while not run.lost:
            await asyncio.sleep(CLAIM / 3)
            with suppress(LccError):
                run.lost = not await self.work(self.registry.keep, run.source, self._time())

    def _time(self) -> int:
        return int(self.now())


class DueSources:
    """Runs the sources that are due, in a live crawl. ``poll``: seconds between two looks."""

    def __init__(
        self, runner: Runner, thread: StoreThread, clock: Clock, poll: float, short: Callable[[], bool]
    ) -> None:
        self._runner = runner
        self._thread = thread
        self._short = short
        self._rounds = Rounds(clock, self._look, lambda: poll, "look at sources")
        self._running: set[asyncio.Task[None]] = set()
        self._clock = SteadyClock(runner.now, clock.seconds)
        self._wake_at = 0.0

    def start(self) -> None:
        """Look for the first time."""
        self._rounds.begin_in(0.0)

    @inlineCallbacks
    def stop(self) -> Any:
        """Give up what is running: it goes on where it was, elsewhere or later."""
        yield self._rounds.stop()
        running = list(self._running)
        for task in running:
            task.cancel()
        if running:
            yield Deferred.fromFuture(asyncio.gather(*running, return_exceptions=True))
        yield Deferred.fromFuture(asyncio.ensure_future(self._runner.fetcher.close()))

    def apply(self, config: Config) -> None:
        """Go on with other rules; runs under way keep theirs."""
        self._runner.rules = rules_of(config)

    def is_done(self) -> bool:
        """Tell whether nothing runs and nothing is due (in the store's thread)."""
        with self._runner.registry.store.read() as tx:
            return not self._running and not rows_in(tx).due_sources(int(self._runner.now()), 1)

    @inlineCallbacks
    def _look(self) -> Any:
        """Begin what is due, as far as there is a place."""
        steady = self._clock.since_start()
        if self._clock.follow() or steady >= self._wake_at:
            yield self._thread.run(self._runner.registry.wake, int(self._runner.now()))
            self._wake_at = steady + WAKE_EVERY
        while len(self._running) < AT_A_TIME and not self._rounds.stopping and not self._short():
            now = int(self._runner.now())
            source: Source | None = yield self._thread.run(self._runner.registry.claim_due, now)
            if source is None:
                return
            task = asyncio.ensure_future(self._run(source))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self, source: Source) -> None:
        try:
            report, why = await self._runner.run(source)
        except LccError as error:
            report, why = Report(), str(error)
        except Exception:  # noqa: BLE001 - a defect met in one source must not end the others
            _log.exception("source %d of provider %d failed", source.sourceid, source.pid)
            return
        _tell(source, report, why)


def _tell(source: Source, report: Report, why: str) -> None:
    """Log what a run did, unless that is nothing."""
    said = {"source": source.sourceid, "pid": source.pid, "why": why}
    if why:
        _log.warning("source %(source)s of provider %(pid)s: %(why)s", said)
    elif report.sets:
        said |= {"queued": report.queued, "removed": report.removed}
        text = "source %(source)s of provider %(pid)s: %(queued)s URLs queued, %(removed)s removed"
        _log.info(text, said)
