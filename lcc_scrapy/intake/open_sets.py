"""Sets of a spool that are being absorbed; all that is here runs in the store's thread."""

import logging
import time
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Protocol

from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.absorption import View
from lcc_scrapy.domain.errors import DiskFailed, NotDurable, StoreUnavailable
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.intake import absorbing as intake_module
from lcc_scrapy.intake.absorbing import Intake, SpooledSet, Step
from lcc_scrapy.intake.small_sets import SmallSet, absorb_together, read_small
from lcc_scrapy.uns.spool import ReadySet
from lcc_scrapy.uns.spool_file import DamagedSpoolFile

_log = logging.getLogger(__name__)

STEP = 0.05
"""Seconds after which a job takes no further chunk and no further set: the crawl shares its thread."""

OPEN_SETS = 16
"""Sets kept open; those beyond are opened again when their turn comes."""

_FOR_NOW = (StoreUnavailable, NotDurable, DiskFailed, OSError)
"""Errors that are not about the set that is being absorbed."""


class Spool(Protocol):
    """The spool folder, as far as intake needs it."""

    def open(self, waiting: ReadySet) -> SpooledSet | None:
        """Open a set for reading; None when it had to be set aside."""

    def set_aside(self, waiting: ReadySet, reason: str) -> None:
        """Put a set away that cannot be absorbed, and ask its provider for everything."""

    def remove(self, sets: Sequence[ReadySet]) -> None:
        """Remove absorbed sets, at once or soon."""


Steps = list[tuple[ReadySet, Step | None]]
"""What came of sets, in order; None = it had to be put away."""


class OpenSets:
    """Takes sets forward; the large ones that were worked on last are kept open."""

    def __init__(self, spool: Spool, store: Store, policy: QueuePolicy) -> None:
        self._spool = spool
        self._store = store
        self.policy = policy
        self._open: OrderedDict[ReadySet, Intake] = OrderedDict()

    def take(self, sets: Sequence[ReadySet], view: View, overtaking: Collection[int], now: int) -> Steps:
        """Take the first sets forward, of different providers: small ones together, or one that is not.

        Those of providers in ``overtaking`` may overtake an earlier one. Chunks or sets are added until
        ``STEP`` is over or there is no more room.
        """
        until = time.monotonic() + STEP
        small, aside = self._small_ones(sets, view, overtaking, until)
        if small:
            return self._absorb_together(small, now)
        if aside:
            return [(sets[0], None)]
        first = sets[0]
        return [(first, self._one(first, now, view.room(first.pid), until, first.pid in overtaking))]

    def close(self) -> None:
        """Close all."""
        while self._open:
            self._open.popitem()[1].close()

    # --- small sets ------------------------------------------------------------------------------

    def _small_ones(
        self, sets: Sequence[ReadySet], view: View, overtaking: Collection[int], until: float
    ) -> tuple[list[tuple[ReadySet, SmallSet]], bool]:
        """Return the small sets with which ``sets`` begins, as many as go together; was the next put aside?

        Half of the time is for reading them.
        """
        small: list[tuple[ReadySet, SmallSet]] = []
        urls, reading = 0, until - STEP / 2
        for waiting in sets:
            if not view.admits(waiting.pid, urls) or waiting.pid in overtaking or waiting in self._open:
                break
            one = self._look_into(waiting)
            if not isinstance(one, SmallSet):
                return small, one is None
            small.append((waiting, one))
            urls += len(one.records)
            if urls >= intake_module.NEW_CHUNK or time.monotonic() >= reading:
                break
        return small, False

    def _look_into(self, waiting: ReadySet) -> "SmallSet | Intake | None":
        """Open a set; None when it had to be put away. One that is not small stays open."""
        spooled = self._spool.open(waiting)
        if spooled is None:
            return None
        intake = Intake(self._store, spooled, self.policy)
        try:
            records = read_small(spooled)
        except DamagedSpoolFile as error:
            spooled.close()
            self._put_away(waiting, str(error))
            return None
        if records is None:
            self._keep(waiting, intake)
            return intake
        spooled.close()
        return SmallSet(spooled, records, intake)

    def _absorb_together(self, small: Sequence[tuple[ReadySet, SmallSet]], now: int) -> Steps:
        """Absorb small sets; when they fail together, fewer of them are tried, at last the bad one alone."""
        try:
            steps = absorb_together(self._store, [one for _, one in small], self.policy, now)
        except _FOR_NOW:
            raise
        except Exception as error:  # noqa: BLE001 - a set that cannot be absorbed keeps no other waiting
            if len(small) > 1:
                return self._absorb_together(small[: len(small) // 2], now)
            self._put_away(small[0][0], str(error))
            return [(small[0][0], None)]
        done: Steps = [(waiting, step) for (waiting, _), step in zip(small, steps, strict=True)]
        self._spool.remove([waiting for waiting, step in done if step is not None and step.finished])
        return done

    # --- large sets ------------------------------------------------------------------------------

    def _one(self, waiting: ReadySet, now: int, room: int, until: float, overtakes: bool) -> Step | None:
        intake = self._open.pop(waiting, None) or self._begin(waiting)
        if intake is None:
            return None
        try:
            step = intake.step(
                now, lambda taken: taken < room and time.monotonic() < until, overtakes=overtakes
            )
        except _FOR_NOW:
            intake.close()
            raise
        except Exception as error:  # noqa: BLE001 - a set that cannot be absorbed keeps no other waiting
            intake.close()
            self._put_away(waiting, str(error))
            return None
        if step.finished:
            intake.close()
            self._spool.remove([waiting])
        else:
            self._keep(waiting, intake)
        return step

    def _put_away(self, waiting: ReadySet, reason: str) -> None:
        """Set aside a set that cannot be absorbed."""
        what = {"pid": waiting.pid, "seq": waiting.seq, "reason": reason}
        _log.error("a set of provider %(pid)d (login %(seq)d) cannot be absorbed: %(reason)s", what)
        self._spool.set_aside(waiting, reason)

    def _begin(self, waiting: ReadySet) -> Intake | None:
        spooled = self._spool.open(waiting)
        return None if spooled is None else Intake(self._store, spooled, self.policy)

    def _keep(self, waiting: ReadySet, intake: Intake) -> None:
        self._open[waiting] = intake
        if len(self._open) > OPEN_SETS:
            self._open.popitem(last=False)[1].close()
