"""Parts of commands that watch, each done by one process of an LCC at a time; others stand by.

On one machine a lock in the data directory tells which process it is, so that another one takes over at once
from one that was killed. Between machines a claim in the database does (``claim``).
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Protocol

from lcc_scrapy.db.claim import Claim, ClaimLost
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import InUse, StoreUnavailable
from lcc_scrapy.machine.sole_process import SoleProcess

STAND_BY = 0.5
"""Seconds between two looks of a stand-by at the lock of its machine."""

AGAIN = 5.0
"""Seconds between two looks of a stand-by at the claim in the database."""

_log = logging.getLogger(__name__)


class Part(Protocol):
    """One part."""

    @property
    def name(self) -> str:
        """Its name, as in ``--only``."""

    def run(self, claim: Claim, stop: Event, *, once: bool) -> None:
        """Work until told to stop, or with ``once`` until nothing is left to do; raises ``ClaimLost``."""


class Turns:
    """Whose turn it is to do a part: this process's, when it has the lock and the claim."""

    def __init__(self, store: Store, folder: Path, owner: str, now: Callable[[], float]) -> None:
        self._store = store
        self._folder = folder
        self._owner = owner
        self._now = now

    def run(self, part: Part, stop: Event, *, once: bool) -> None:
        """Do a part whenever it is this process's turn; with ``once`` raises ``InUse`` when it is not."""
        lock = SoleProcess(self._folder, f"annotate-{part.name}")
        claim = Claim(self._store, f"annotating {part.name}", self._owner, self._now)
        try:
            while self._has_turn(lock, claim, part, stop, once=once):
                if self._done(claim, part, stop, once=once):
                    return
        finally:
            lock.release()

    @staticmethod
    def _done(claim: Claim, part: Part, stop: Event, *, once: bool) -> bool:
        """Do a part; False = another process has taken over."""
        try:
            part.run(claim, stop, once=once)
        except ClaimLost as error:
            _log.warning("%s: %s", part.name, error)
            return False
        finally:
            with suppress(StoreUnavailable):
                claim.release()
        return True

    def _has_turn(self, lock: SoleProcess, claim: Claim, part: Part, stop: Event, *, once: bool) -> bool:
        """Wait until it is this process's turn; False = it is to stop."""
        told = False
        while not stop.is_set():
            locked = lock.take()
            if locked and _taken(claim):
                return True
            if once:
                raise InUse(f"another process does the {part.name} part of `lcc annotate` now")
            if not told:
                _log.info("another process does the %s part: standing by", part.name)
                told = True
            stop.wait(AGAIN if locked else STAND_BY)
        return False


def _taken(claim: Claim) -> bool:
    try:
        return claim.take()
    except StoreUnavailable as error:
        _log.warning("the database does not answer, trying again: %s", error)
        return False


def run_all(turns: Turns, parts: Sequence[Part], stop: Event, *, once: bool) -> None:
    """Do parts beside each other, with ``once`` one after the other; the first that fails ends all."""
    if once or len(parts) == 1:
        for part in parts:
            turns.run(part, stop, once=once)
        return
    failures: list[BaseException] = []
    threads = [
        Thread(target=_run, args=(turns, part, stop, failures), name=f"lcc-{part.name}") for part in parts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _run(turns: Turns, part: Part, stop: Event, failures: list[BaseException]) -> None:
    try:
        turns.run(part, stop, once=False)
    except BaseException as error:  # noqa: BLE001 - whoever waits for the threads raises it
        failures.append(error)
        stop.set()
