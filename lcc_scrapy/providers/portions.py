"""A provider's rows in portions, each read by a transaction of its own behind the key of the one before."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from lcc_scrapy.db.records import LAST_NUMBER
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.queue import QueuedUrl

CHUNK = 250
"""Rows per portion, and so per transaction of those who change them."""

Row = TypeVar("Row")


def by_key(
    store: Store, read: Callable[[Tx, Any], list[Row]], key: Callable[[Row], Any], first: Any = b""
) -> Iterator[list[Row]]:
    """Yield what ``read`` returns behind ``first``, then behind the key of each portion's last row."""
    after = first
    while True:
        with store.read() as tx:
            rows = read(tx, after)
        if not rows:
            return
        yield rows
        after = key(rows[-1])


def documents(store: Store, pid: int) -> Iterator[list[CachedUrl]]:
    """Yield a provider's documents by their keys."""
    return by_key(store, lambda tx, after: tx.cached_of(pid, after, CHUNK), lambda row: row.urlkey)


def waiting(store: Store, pid: int) -> Iterator[list[QueuedUrl]]:
    """Yield a provider's queue in the order in which it was filled."""
    after = 0
    while after != LAST_NUMBER:
        with store.read() as tx:
            rows = tx.queued_of(pid, after, CHUNK)
            after = tx.reach_waiting(pid, after, CHUNK)
        if rows:
            yield rows
