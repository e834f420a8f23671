"""One process of all machines does a part of what watches; another one stands by (decision 150)."""

from collections.abc import Callable

from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.errors import LccError

HELD = 30
"""Seconds for which a claim is good: a stand-by on another machine takes over after as many."""

_SKEW = 10
"""Clocks of machines are apart by less than so many times that; a claim further ahead is none."""


class ClaimLost(LccError):
    """Another process has taken over: what this one was about to write does not count."""


class Claim:
    """The claim on one part, ``name``, in ``lccinfo``: ``1800000000 owner``. ``now`` gives epoch seconds.

    Who has the same ``owner`` takes it over at once: a lock on its data directory lets only one of them run.
    """

    def __init__(self, store: Store, name: str, owner: str, now: Callable[[], float]) -> None:
        self._store = store
        self._name = name
        self._owner = owner[:200]
        self._now = now

    def take(self) -> bool:
        """Take the claim if nobody else has it; tells whether it is this process's now."""
        now = int(self._now())
        with self._store.begin() as tx:
            until, owner = self._read(tx)
            if owner not in {"", self._owner} and now < until <= now + _SKEW * HELD:
                return False
            self._write(tx, now)
        return True

    def hold(self, tx: Tx) -> None:
        """Make sure, inside a writing transaction, that nobody has taken over; raises ``ClaimLost``."""
        now = int(self._now())
        until, owner = self._read(tx)
        if owner != self._owner:
            raise ClaimLost(f"another process does this part now ({owner or 'nobody known'})")
        if not HELD // 2 < until - now <= HELD:
            self._write(tx, now)

    def release(self) -> None:
        """Let another process take it at once."""
        with self._store.begin() as tx:
            if self._read(tx)[1] == self._owner:
                tx.set_info(self._name, "")

    def _read(self, tx: Tx) -> tuple[int, str]:
        tx.take(self._name, 0)  # whoever else wants it waits until this transaction ends
        until, _, owner = (tx.info(self._name) or "0 ").partition(" ")
        return int(until), owner

    def _write(self, tx: Tx, now: int) -> None:
        tx.set_info(self._name, f"{now + HELD} {self._owner}")
