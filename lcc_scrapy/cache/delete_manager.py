"""The delete manager (seed 003 section 6 "QM Delete Manager"): files that no row needs any more go.

Each machine deletes its own files; those of a machine that is away wait in ``fsmdb`` until it is back.
"""

import logging
import time
from typing import Any

from lcc_scrapy.content.store import ContentStore
from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.retries import HOST_BACKOFF_MAX

PACE = 200
"""Files per step, so that deleting never keeps settling waiting for long."""

SHARE = 0.1
"""Of its thread's time, while there is a backlog: file systems make files slowly after many were deleted."""

EVERY = 10.0
_log = logging.getLogger(__name__)


def rest_after(took: float) -> float:
    """Return the seconds to rest after a step of so many seconds, so that it keeps to its share."""
    return took * (1 / SHARE - 1)


class DeleteManager:
    """Deletes this machine's files to be deleted when their grace is over, and forgets old outcomes.

    ``outcomes_kept`` (seconds) may be changed at any time.
    """

    def __init__(
        self,
        store: Store,
        thread: StoreThread,
        clock: Clock,
        content: ContentStore,
        *,
        outcomes_kept: float,
    ) -> None:
        self._store = store
        self._thread = thread
        self._clock = clock
        self._content = content
        self.outcomes_kept = outcomes_kept
        self._timer: Any = None
        self._stopped = False

    def start(self) -> None:
        """Begin; one step now and one every ten seconds, or sooner while there is a backlog."""
        stepping = self._thread.run(self._timed_step)
        stepping.addErrback(
            lambda failure: _log.error("cannot delete files now: %s", failure.getErrorMessage())
        )
        stepping.addCallback(self._again)

    def _timed_step(self) -> tuple[int, float]:
        began = time.monotonic()
        return self.step(int(time.time())), time.monotonic() - began

    def _again(self, done: tuple[int, float] | None) -> None:
        deleted, took = done or (0, 0.0)
        if not self._stopped:
            self._timer = self._clock.callLater(rest_after(took) if deleted == PACE else EVERY, self.start)

    def stop(self) -> None:
        """Begin no further step."""
        self._stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def step(self, now: int) -> int:
        """Delete up to ``PACE`` files that are due (blocking); returns how many."""
        with self._store.read() as tx:
            due = [file.fileid for file in tx.files_to_delete(self._content.machineid, now, PACE)]
        gone = self._content.remove(due)
        with self._store.begin() as tx:
            tx.forget_deleted(self._content.machineid, gone)
            tx.forget_outcomes(now - int(self.outcomes_kept))
            tx.forget_turns(now)
            tx.forget_hosts(now - HOST_BACKOFF_MAX)
        return len(gone)
