"""Handing ACIs over as they are found, in portions; a position counts only when its portion was taken."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.acis import Aci
from lcc_scrapy.domain.cursor import SELECTION_MAX, Position
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.feed.following import FIRST_WAIT, LONGEST_WAIT
from lcc_scrapy.feed.store_feed import head_of

PORTION = 100
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Portion:
    """Some ACIs, from behind ``since`` to ``position``; ``tries`` counts the failures before."""

    acis: Sequence[Aci]
    since: Position
    position: Position
    tries: int


@dataclass(slots=True)
class AciFollower:
    """Reads ACIs (of one owner, None = of all) behind a position, for ever or to the newest.

    ``deliver`` tells whether a portion was taken; one that was not is tried again later. ``keep`` makes a
    position durable. ``pause`` waits some seconds, and tells whether to go on.
    """

    store: Store
    owner: str | None
    position: Position | None
    deliver: Callable[[Portion], bool]
    keep: Callable[[Position], None]
    pause: Callable[[float], bool]
    poll: float
    _tries: int = field(default=0, init=False)

    def run(self, *, limit: int = 0, once: bool = False) -> None:
        """Follow until told to stop, ``limit`` ACIs (0 = all), or with ``once`` to the newest one.

        Raises ``StartOver``, or ``BadCursor`` for a position in the feed or of another owner.
        """
        taken = 0
        while True:
            count = self._portion(min(limit - taken, PORTION) if limit else PORTION)
            taken += count
            if (limit and taken >= limit) or (once and not count and not self._tries):
                return
            wait = min(FIRST_WAIT * 2 ** (self._tries - 1), LONGEST_WAIT) if self._tries else self.poll
            if not self.pause(0 if count else wait):
                return

    def _portion(self, limit: int) -> int:
        """Hand over what there is; returns how many ACIs were taken."""
        try:
            with self.store.read() as tx:
                since = self._begun(tx)
                acis = tx.acis_after(since.seq, self.owner, limit)
        except StoreUnavailable as error:
            self._tries += 1
            _log.warning("the database does not answer, trying again: %s", error)
            return 0
        return self._hand_over(acis, since) if acis else 0

    def _begun(self, tx: Tx) -> Position:
        """Return where to go on; without a position, before the first ACI."""
        whose = "" if self.owner is None else self.owner
        selection = sha256(f"acis {whose}".encode()).hexdigest()[:SELECTION_MAX]
        head = replace(head_of(tx), seq=tx.last_aci_number(), selection=selection)
        if self.position is None:
            self._reach(replace(head, seq=0))
        assert self.position is not None
        self.position.check(head)
        return self.position

    def _hand_over(self, acis: Sequence[Aci], since: Position) -> int:
        behind = replace(since, seq=acis[-1].number)
        if not self.deliver(Portion(acis, since, behind, self._tries)):
            self._tries += 1
            return 0
        self._tries = 0
        self._reach(behind)
        return len(acis)

    def _reach(self, position: Position) -> None:
        self.keep(position)
        self.position = position
