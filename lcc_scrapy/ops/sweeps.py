"""Sweeps: which process sweeps, and when the last sweep ended; facts in the store (decision 0094)."""

from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.removal_guard import DAY

SWEPT = "swept"
"""The fact (``lccinfo``) when the last sweep ended, in epoch seconds."""

SWEEPING = "sweeping"
"""The fact until when a process has the sweep to itself, and its name: ``1800000000 1/0``."""

CLAIM = 1200
"""Seconds for which a process has the sweep to itself; it says so again when half of them are over."""

_DECIDING = "sweeps"
"""The counter that a process locks to decide."""


class Sweeps:
    """One process's part in the sweeps of all (blocking). ``owner`` is its name; times in epoch seconds."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self._owner = owner
        self._until = 0

    def claim(self, now: int) -> bool:
        """Tell whether this process has to sweep now: a day is over, and no other process sweeps."""
        with self._store.begin() as tx:
            tx.take(_DECIDING, 0)
            if _is_of_today(tx, now) or self._is_of_others(tx, now):
                return False
            self._claim(tx, now)
        return True

    def keep(self, now: int) -> bool:
        """Go on; tells whether the sweep still belongs to this process."""
        if CLAIM // 2 < self._until - now <= CLAIM:
            return True
        with self._store.begin() as tx:
            tx.take(_DECIDING, 0)
            if self._is_of_others(tx, now) or _is_of_today(tx, now):
                return False
            self._claim(tx, now)
        return True

    def end(self, now: int) -> None:
        """Note that the sweep has ended: there is none for a day."""
        with self._store.begin() as tx:
            tx.take(_DECIDING, 0)
            tx.set_info(SWEPT, str(now))
            tx.set_info(SWEEPING, "")

    def _claim(self, tx: Tx, now: int) -> None:
        self._until = now + CLAIM
        tx.set_info(SWEEPING, f"{self._until} {self._owner}")

    def _is_of_others(self, tx: Tx, now: int) -> bool:
        until, _, owner = (tx.info(SWEEPING) or "0 ").partition(" ")
        return owner != self._owner and now < int(until) <= now + CLAIM  # beyond that a clock was wrong


def _is_of_today(tx: Tx, now: int) -> bool:
    return 0 <= now - int(tx.info(SWEPT) or 0) < DAY
