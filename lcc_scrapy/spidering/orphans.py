"""Orphans: what a spider found once, and no way along links leads to any more (see ``reachable``).

Documents that link to each other only are orphans too. What becomes of them, the provider's ``orphans`` says.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lcc_scrapy.cache.irrelevant import forget
from lcc_scrapy.db.records import Spidered
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.cache import ORPHANED, CachedUrl
from lcc_scrapy.domain.entries import Origin, furlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Orphans, Provider
from lcc_scrapy.queue.unit_of_work import UnitOfWork
from lcc_scrapy.spidering.reachable import CHUNK, Reachable, pages_of_found

NOT_LINKED = "no stored page links to it"
"""The reason that the tombstones of orphans give."""

Removed = tuple[tuple[bytes, str], ...]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Found:
    """Found URLs of one transaction: orphans with their documents, and held documents linked again."""

    lost: list[bytes]
    orphans: list[CachedUrl]
    linked: list[CachedUrl]


class OrphanLook:
    """One look for the orphans of a provider, in bounded transactions. ``now`` in epoch seconds.

    After a kill another look begins anew.
    """

    def __init__(self, store: Store, pid: int, now: int, policy: QueuePolicy) -> None:
        self._store = store
        self._pid = pid
        self._now = now
        self._policy = policy
        self._reachable = Reachable(store, pid)
        self._hold = False

    def run(self) -> Iterator[Removed]:
        """Look once; yields (key, reason) of what was removed after every transaction."""
        with self._store.read() as tx:
            provider = tx.provider(self._pid)
        if provider is None:
            return
        if provider.orphans == Orphans.KEEP:
            if provider.heldremovals:
                yield from self._release_all()
            return
        for _ in self._reachable.start():
            yield ()
        yield from self._follow()
        if self._reachable.begins:  # else nothing says what is linked
            yield from self._decide_on_holding()
            yield from self._treat_all()

    def _follow(self) -> Iterator[Removed]:
        for _ in self._reachable.follow():
            yield ()

    def _decide_on_holding(self) -> Iterator[Removed]:
        """Find out whether all orphans are to be held because they are too many."""
        count = 0
        for rows in pages_of_found(self._store, self._pid):
            with self._store.read() as tx:
                count += len(self._sort(tx, rows).orphans)
            yield ()
        with self._store.begin() as tx:
            batch = self._batch(tx, [])
            self._hold = self._pid in batch.providers and batch.held_by_guard(self._pid, count)

    def _treat_all(self) -> Iterator[Removed]:
        for rows in pages_of_found(self._store, self._pid):
            while (removed := self._treat(rows)) is None:
                yield from self._follow()
            yield removed

    def _treat(self, rows: Sequence[Spidered]) -> Removed | None:
        """Remove or hold orphans, release what is linked again; None when links have to be followed first."""
        with self._store.begin() as tx:
            provider = tx.lock_providers([self._pid]).get(self._pid)
            if provider is None:
                return ()
            if not self._reachable.is_current(tx):
                return None
            found = self._sort(tx, rows)
            batch = self._batch(tx, [one.urlkey for one in (*found.orphans, *found.linked)])
            for one in found.orphans:
                if self._must_stay(batch, provider):
                    batch.hold(one.urlkey, ORPHANED)
                else:
                    batch.drop_cached(one.urlkey, NOT_LINKED)
            self._release(batch, found.linked)
            batch.flush()
            held = {furlkey(row.pid, row.furl) for row in batch.cached.values()}
            tx.visit_again([place for place in found.lost if place in held])
            gone = [place for place in found.lost if place not in held]
            tx.delete_spidered(gone)
            forget(tx, gone)
        if batch.newly_held[self._pid]:
            self._tell_held(batch.newly_held[self._pid])
        return batch.removals()

    def _must_stay(self, batch: UnitOfWork, provider: Provider) -> bool:
        return provider.orphans != Orphans.REMOVE or self._hold or batch.held_by_guard(self._pid, 1)

    def _sort(self, tx: Tx, rows: Sequence[Spidered]) -> _Found:
        """Sort found URLs; what waits, was pushed or is held for something else is left alone."""
        places = [row.furlkey for row in rows]
        waiting, documents = tx.waiting_at(places), tx.cached_at(places)
        lost = [place for place in places if place not in self._reachable and place not in waiting]
        orphans = [one for place in lost for one in documents.get(place, ()) if _concerns(one)]
        held = (one for some in documents.values() for one in some if one.held == ORPHANED)
        linked = [one for one in held if furlkey(one.pid, one.furl) in self._reachable]
        return _Found(lost, orphans, linked)

    def _batch(self, tx: Tx, keys: Sequence[bytes]) -> UnitOfWork:
        return UnitOfWork(tx, [self._pid], keys, self._now, self._policy)

    def _release_all(self) -> Iterator[Removed]:
        after = b""
        while True:
            with self._store.begin() as tx:
                keys = tx.held(self._pid, CHUNK, after)
                batch = self._batch(tx, keys)
                self._release(batch, [row for row in batch.cached.values() if row.held == ORPHANED])
                batch.flush()
            if not keys:
                return
            after = keys[-1]
            yield ()

    def _release(self, batch: UnitOfWork, rows: Sequence[CachedUrl]) -> None:
        """End holds; what was last confirmed by a visit is visited again from now on."""
        for row in rows:
            batch.release(row.urlkey)
        confirmed = {furlkey(row.pid, row.furl): row.confirmed_time for row in rows}
        known = batch.tx.spidered(confirmed)
        batch.tx.visited(
            [replace(row, visited=confirmed[place], due=self._now) for place, row in known.items()]
        )

    def _tell_held(self, count: int) -> None:
        _log.warning(
            "provider %(pid)d: %(count)d removals are held (%(why)s): `lcc provider confirm-removals %(pid)d`"
            " carries them out, a link to a document ends its hold",
            {"pid": self._pid, "count": count, "why": NOT_LINKED},
        )


def _concerns(row: CachedUrl) -> bool:
    return row.origin not in {Origin.PUSH, Origin.SOURCE} and row.held in {0, ORPHANED}
