"""Samples documents that a provider pushed, to find what share of its changes it did not push."""

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from lcc_scrapy.config.config import Config
from lcc_scrapy.db.rounds import Rounds
from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.spidering.sampling import Sampling
from lcc_scrapy.spidering.scanner import Visits

_log = logging.getLogger(__name__)


class Sampler:
    """Draws a sample at the start and, with ``every``, each time so many seconds later.

    While the provider misses too many changes (``lcc provider set --fallback``), it visits everything that it
    pushed and that was not confirmed for ``every``. ``touched`` is called when URLs were queued.
    """

    def __init__(
        self,
        sampling: Sampling,
        thread: StoreThread,
        clock: Clock,
        *,
        visits: Visits,
        poll: float,
        touched: Callable[[], object],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._sampling = sampling
        self._thread = thread
        self._rounds = Rounds(clock, self._go_on, lambda: poll, "look at samples")
        self._visits = visits
        self._touched = touched
        self._now = now
        self._round = 0
        self._drawn = False
        self._falling = False
        self._judged = False
        self._pass: bytes | None = b""

    def start(self) -> None:
        """Begin with a sample."""
        self._rounds.begin_in(0.0)

    def stop(self) -> Deferred[None]:
        """End after the step that is running."""
        return self._rounds.stop()

    def apply(self, config: Config) -> None:
        """Go on with another policy and another limit of the queue."""
        self._sampling.policy = config.policy
        self._sampling.queue_max = config.queue_max

    def is_done(self) -> bool:
        """Tell whether nothing is left to be looked at (in the store's thread)."""
        visited = self._pass is None or not (self._falling and self._visits.every)
        return self._visits.once and self._judged and visited and self._sampling.is_idle()

    # --- steps -----------------------------------------------------------------------------------

    @inlineCallbacks
    def _go_on(self) -> Any:
        """Do what is due now."""
        self._begin_round()
        if not self._drawn:
            yield self._draw()
            self._drawn = True
        falling = yield self._thread.run(self._sampling.judge, self._time())
        self._note(falling)
        while falling and self._visits.every and self._pass is not None and not self._rounds.stopping:
            before = int(self._round - self._visits.every)
            visit = self._sampling.visit_overdue
            portion = yield self._thread.run(visit, self._pass, before, self._time())
            self._pass = portion.after
            self._tell(portion.queued)
            if portion.held_up:
                break

    @inlineCallbacks
    def _draw(self) -> Any:
        """Draw a sample, a portion in each job."""
        drawing = self._sampling.draw(self._visits.sample, self._time())
        while not self._rounds.stopping:
            queued = yield self._thread.run(self._draw_on, drawing)
            if queued is None:
                return
            self._tell(queued)

    @staticmethod
    def _draw_on(drawing: Iterator[int]) -> int | None:
        """Draw the next ones (in the store's thread); None when there are enough."""
        return next(drawing, None)

    def _begin_round(self) -> None:
        """Let a round begin when its time has come: the first at once, others with ``every``."""
        again = not self._visits.once and self._time() >= self._round + self._visits.every
        if not self._round or again:
            self._round = self._time()
            self._drawn = not self._visits.sample
            self._pass = b""

    def _note(self, falling: bool) -> None:
        if falling != self._falling:
            what = "misses too many changes and is visited" if falling else "misses few changes now"
            _log.warning("provider %(pid)s %(what)s", {"pid": self._visits.pid, "what": what})
        self._falling, self._judged = falling, True

    def _tell(self, urls: int) -> None:
        if urls:
            self._touched()

    def _time(self) -> int:
        return int(self._now())
