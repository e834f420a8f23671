"""Held removals, when the operator says that they were meant."""

from collections.abc import Callable
from dataclasses import replace

from lcc_scrapy.db.records import ABSORBED
from lcc_scrapy.db.retrying import repeated
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.cache import ORPHANED, OUTSIDE_ROOTS
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.queue.unit_of_work import UnitOfWork

CHUNK = 250
"""Documents per transaction: on SQLite nobody else writes for as long."""

CONFIRMED = "removal confirmed by the operator"
"""The reason that their tombstones give."""


def confirm_removals(
    store: Store, pid: int, now: int, policy: QueuePolicy, progress: Callable[[int], None] = lambda _: None
) -> int:
    """Carry out the removals that are held for a provider; returns how many documents went.

    They do not count among those of the day. After a kill, the same call goes on. ``progress`` is told
    the documents so far.
    """
    count, last = 0, b""
    while keys := repeated(_confirm_some, store, pid, last, now, policy):
        count, last = count + len(keys), keys[-1]
        progress(count)
    return count


def _confirm_some(store: Store, pid: int, after: bytes, now: int, policy: QueuePolicy) -> list[bytes]:
    with store.begin() as tx:
        if not tx.lock_providers([pid]):
            return []
        keys = tx.held(pid, CHUNK, after)
        batch = UnitOfWork(tx, [pid], keys, now, policy)
        for key in keys:
            held = batch.cached[key].held
            if held not in {OUTSIDE_ROOTS, ORPHANED}:
                batch.cancel(key, held)
            batch.drop_cached(key, CONFIRMED, guarded=False)
        batch.flush()
        if not keys:
            _forget_holds(tx, pid)
        return keys


def _forget_holds(tx: Tx, pid: int) -> None:
    for pset in tx.held_psets(pid):
        if pset.phase == ABSORBED:
            tx.update_pset(replace(pset, held=0))
