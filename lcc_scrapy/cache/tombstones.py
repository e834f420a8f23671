"""Forgetting removals: tombstones go after ``LCC_TOMBSTONES_KEEP``, oldest first, in small transactions.

How far the feed has been forgotten is noted with them, so that a content user who comes too late is told.
"""

from collections.abc import Iterator

from lcc_scrapy.db.records import FORGOTTEN
from lcc_scrapy.db.tx import Store

CHUNK = 1000
"""Tombstones per transaction."""


def forget_tombstones(store: Store, before: int) -> Iterator[int]:
    """Drop the tombstones of removals before ``before`` (epoch seconds); yields how many, portion by portion.

    Any number of processes may do it at the same time.
    """
    while _is_any(store, before):
        yield _drop_some(store, before)


def _is_any(store: Store, before: int) -> bool:
    with store.read() as tx:
        return bool(tx.old_tombstones(before, 1))


def _drop_some(store: Store, before: int) -> int:
    with store.begin() as tx:
        tx.take(FORGOTTEN, 0)  # locks the counter: one process at a time
        seqs = tx.old_tombstones(before, CHUNK)
        if seqs:
            tx.drop_tombstones(seqs[-1])
            tx.take(FORGOTTEN, max(0, seqs[-1] - tx.peek(FORGOTTEN)))
    return len(seqs)
