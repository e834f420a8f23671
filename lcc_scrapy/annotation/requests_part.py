"""Requests as a part of ``lcc annotate``: the pages of URDs are asked for when they are due."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from lcc_scrapy.annotation.requests import Looked
from lcc_scrapy.db.claim import Claim
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import StoreUnavailable

_log = logging.getLogger(__name__)


class Rounds(Protocol):
    """The request scheduler."""

    def look(self, now: int) -> Looked:
        """Ask for what is due at ``now`` (epoch milliseconds)."""


@dataclass(frozen=True, slots=True)
class RequestsPart:
    """Looks whenever something is due, and every ``poll`` seconds; ``wake`` tells crawls of new URLs."""

    store: Store
    rounds: Rounds
    poll: float
    wake: Callable[[], None]
    now: Callable[[], float] = time.time
    name: str = "requests"

    def run(self, claim: Claim, stop: Event, *, once: bool) -> None:
        """Ask for pages until told to stop, or with ``once`` until nothing is due; raises ``ClaimLost``."""
        while not stop.is_set():
            wait = self._look(claim, once=once)
            if once and wait:
                return
            stop.wait(wait)

    def _look(self, claim: Claim, *, once: bool) -> float:
        """Look once; returns after how many seconds to look again."""
        try:
            with self.store.begin() as tx:
                claim.hold(tx)
            looked = self.rounds.look(int(self.now() * 1000))
        except StoreUnavailable as error:
            if once:
                raise
            _log.warning("the database does not answer, trying again: %s", error)
            return self.poll
        if looked.queued:
            self.wake()
        if looked.asked or looked.refused:
            _log.info("requests: %d pages asked for, %d refused", looked.asked, looked.refused)
        left = self.poll if looked.next_due is None else looked.next_due / 1000 - self.now()
        return min(max(left, 0.0), self.poll)
