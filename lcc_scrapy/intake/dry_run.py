"""A dry run: what a set would do to the documents of its provider, reading everything and changing nothing.

It follows ``intake`` step by step, against the documents and waiting URLs of this moment. Sets that wait
in the spool are not looked at.
"""

from array import array
from collections.abc import Iterable, Iterator
from itertools import islice

from lcc_scrapy.db.records import LAST_KEY, LAST_NUMBER
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain import removal_guard
from lcc_scrapy.domain.entries import Operation, Origin, UrlEntry, urlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.queue import FETCH
from lcc_scrapy.intake.absorbing import CHUNK, SPAN, SpooledSet
from lcc_scrapy.uns.ports import DryRun

EVERY_SET = 1 << 62
"""A set number above all, so that no URL counts as seen."""


class _Distinct:
    """Counts different keys in eight bytes each, however often each is added."""

    def __init__(self) -> None:
        self._buckets = [array("Q") for _ in range(256)]

    def add(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._buckets[key[-1]].append(int.from_bytes(key[:8]))

    def __len__(self) -> int:
        return sum(len(set(bucket)) for bucket in self._buckets)


def dry_run(store: Store, spooled: SpooledSet, policy: QueuePolicy, now: int) -> DryRun:
    """Return what absorbing a set now (epoch seconds) would remove and hold."""
    return (
        _of_full_set(store, spooled, policy, now)
        if spooled.full
        else _of_partial(store, spooled, policy, now)
    )


def _of_partial(store: Store, spooled: SpooledSet, policy: QueuePolicy, now: int) -> DryRun:
    found = _Distinct()
    for keys in _keys(spooled, removals=True):
        with store.read() as tx:
            found.add(tx.cached(keys))
    removing = len(found)
    with store.read() as tx:
        room = _room(tx, spooled.pid, policy, now)
    if spooled.removals > removal_guard.FEW and removing > room:
        return DryRun(0, removing)
    return DryRun(min(removing, room), max(0, removing - room))


def _of_full_set(store: Store, spooled: SpooledSet, policy: QueuePolicy, now: int) -> DryRun:
    named, named_new = _Distinct(), _Distinct()
    for keys in _keys(spooled, removals=False):
        with store.read() as tx:
            cached, queued = tx.cached(keys), tx.queued(keys)
        named.add(key for key, row in cached.items() if row.origin == Origin.PUSH)
        new = (row for key, row in queued.items() if key not in cached and row.origin == Origin.PUSH)
        named_new.add(row.urlkey for row in new if row.operation == FETCH)
    documents, waiting = _pushed(store, spooled.pid)
    leaving = max(0, documents - len(named))
    absent = leaving + max(0, waiting - len(named_new))
    with store.read() as tx:
        room = _room(tx, spooled.pid, policy, now, waiting)
    hold = absent > room or removal_guard.doubts(spooled.urls - spooled.removals, spooled.unreadable)
    return DryRun(0, leaving) if hold else DryRun(leaving)


def _pushed(store: Store, pid: int) -> tuple[int, int]:
    """Count what a provider pushed, some at a time: documents, and what waits for its first fetch."""
    waiting, number = 0, 0
    while number != LAST_NUMBER:
        with store.read() as tx:
            behind, number = number, tx.reach_waiting(pid, number, SPAN)
            waiting += tx.count_waiting(pid, behind, number)
    documents, upto = 0, b""
    while upto != LAST_KEY:
        with store.read() as tx:
            after, upto = upto, tx.reach(pid, upto, SPAN)
            documents += tx.count_absent(pid, EVERY_SET, after, upto)
    return documents, waiting


def _keys(spooled: SpooledSet, *, removals: bool) -> Iterator[list[bytes]]:
    """Yield the keys that decide: in a partial set those that go, in a full one those that stay."""
    entries: Iterator[UrlEntry] = (entry for entry, _ in spooled.entries(0))
    while chunk := list(islice(entries, CHUNK)):
        meant = [entry for entry in chunk if (entry.operation is Operation.REMOVE) is removals]
        yield [urlkey(spooled.pid, entry.curl, entry.mimetype) for entry in meant]


def _room(tx: Tx, pid: int, policy: QueuePolicy, now: int, waiting: int = 0) -> int:
    provider = tx.provider(pid) or Provider(pid, "")
    removed = removal_guard.removed_within_day(provider.removed, provider.removedsince, now)
    return removal_guard.room(removed, provider.fileused + waiting, policy.max_removal)
