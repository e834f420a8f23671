"""After a change of a provider's roots: what lies outside of them goes, through the removal guard.

``providers.change`` marks the provider; the command that changed the roots does the work at once, and the
housekeeping of a crawl process does what an interrupted command left. All of it may be done twice.
"""

import json
import logging
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial

from lcc_scrapy.cache.last_outcomes import of_fetch
from lcc_scrapy.db.records import UrlErrorRecord
from lcc_scrapy.db.retrying import Result, repeated
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain import removal_guard
from lcc_scrapy.domain.cache import OUTSIDE_ROOTS, CachedUrl
from lcc_scrapy.domain.entries import Origin
from lcc_scrapy.domain.errors import UrlRefused, text_of
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.queue import FETCH, QueuedUrl
from lcc_scrapy.domain.roots import HttpUrl, Root, inside, not_below
from lcc_scrapy.providers import portions
from lcc_scrapy.providers.registration import NoSuchProvider
from lcc_scrapy.queue.settlement import url_error
from lcc_scrapy.queue.unit_of_work import UnitOfWork

OUTSIDE = "outside the provider's roots"
"""The reason that the tombstones of removed documents give."""

_REFUSED = 704
_log = logging.getLogger(__name__)
Roots = tuple[Root, ...]


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What became of rows: documents ``removed``, ``held`` or ``released``, and waiting URLs ``dropped``."""

    looked_at: int = 0
    removed: tuple[tuple[bytes, str], ...] = ()
    held: int = 0
    released: int = 0
    dropped: int = 0


class Narrowing:
    """The rows of one provider against its roots, in bounded transactions.

    ``patient`` waits for a database that does not answer. Raises ``NoSuchProvider`` when the provider is
    removed meanwhile.
    """

    def __init__(
        self, store: Store, pid: int, now: int, policy: QueuePolicy, *, patient: bool = True
    ) -> None:
        self._store = store
        self._pid = pid
        self._now = now
        self._policy = policy
        self._patient = patient

    def run(self) -> Iterator[Narrowed]:
        """Do what is to be done, if anything; yields after every transaction.

        When the roots change once more meanwhile, it begins anew.
        """
        while (roots := self._pending()) is not None:
            yield from self._drop_waiting(roots)
            hold = yield from self._decide_on_holding(roots)
            yield from self._remove(roots, hold=hold)
            self._do(partial(self._finish, roots))

    def _pending(self) -> Roots | None:
        with self._store.read() as tx:
            provider = tx.provider(self._pid)
            if provider is None or not provider.narrowing or provider.state == State.IN_TRANSIT:
                return None
            return _roots(tx, self._pid)

    def _finish(self, roots: Roots) -> None:
        with self._store.begin() as tx:
            if tx.lock_providers([self._pid]) and _roots(tx, self._pid) == roots:
                tx.update_provider(self._pid, {"narrowing": False})

    def _do(self, transaction: Callable[[], Result]) -> Result:
        return repeated(transaction) if self._patient else transaction()

    def _batch(self, tx: Tx, keys: list[bytes]) -> UnitOfWork:
        batch = UnitOfWork(tx, [self._pid], keys, self._now, self._policy)
        if self._pid not in batch.providers:
            raise NoSuchProvider(self._pid)
        return batch

    # --- waiting URLs ----------------------------------------------------------------------------

    def _drop_waiting(self, roots: Roots) -> Iterator[Narrowed]:
        for rows in portions.waiting(self._store, self._pid):
            keys = [row.urlkey for row in rows if _waits_outside(row, roots)]
            yield self._do(partial(self._drop, keys)) if keys else Narrowed()

    def _drop(self, keys: list[bytes]) -> Narrowed:
        """Take URLs out of the queue and tell their provider, as their fetch would have done."""
        with self._store.begin() as tx:
            batch = self._batch(tx, keys)
            roots = _roots(tx, self._pid)
            rows = [row for row in batch.queued.values() if _waits_outside(row, roots)]
            rows.sort(key=lambda row: (row.psetid, row.position))
            for row in rows:
                batch.drop_queued(row.urlkey)
            batch.counters[self._pid]["nurlerrs"] += len(rows)
            batch.flush()
            tx.add_errors([_refused(row, roots, self._now) for row in rows], self._policy.errors_kept)
            text = _text(roots)
            tx.put_outcomes([of_fetch(row, _REFUSED, text, self._now) for row in rows])
        return Narrowed(dropped=len(rows))

    # --- documents -------------------------------------------------------------------------------

    def _decide_on_holding(self, roots: Roots) -> Generator[Narrowed, None, bool]:
        """Count the documents that would go; the result tells whether all of them are to be held."""
        count = 0
        for rows in portions.documents(self._store, self._pid):
            count += sum(not row.held and _lies_outside(row, roots) for row in rows)
            yield Narrowed()
        hold = self._do(partial(self._must_hold, count))
        if hold:
            self._tell_held(count)
        return hold

    def _must_hold(self, count: int) -> bool:
        with self._store.begin() as tx:
            return self._batch(tx, []).held_by_guard(self._pid, count)

    def _remove(self, roots: Roots, *, hold: bool) -> Iterator[Narrowed]:
        for rows in portions.documents(self._store, self._pid):
            keys = [row.urlkey for row in rows if _is_wrong(row, roots)]
            done = self._do(partial(self._put_right, keys, hold=hold)) if keys else Narrowed()
            if done.held and not hold:
                self._tell_held(done.held)
            yield replace(done, looked_at=len(rows))

    def _tell_held(self, count: int) -> None:
        told = removal_guard.notice(self._pid, count, "outside its roots")
        _log.warning("%(notice)s", {"notice": told, "pid": self._pid})

    def _put_right(self, keys: list[bytes], *, hold: bool) -> Narrowed:
        """Remove or hold what lies outside, release what lies inside again; a provider is told what went."""
        with self._store.begin() as tx:
            batch = self._batch(tx, keys)
            roots = _roots(tx, self._pid)
            wrong = [row for row in batch.cached.values() if _is_wrong(row, roots)]
            gone: list[CachedUrl] = []
            for row in wrong:
                if row.held:
                    batch.release(row.urlkey)
                elif hold or batch.held_by_guard(self._pid, 1):
                    batch.hold(row.urlkey, OUTSIDE_ROOTS)
                else:
                    batch.drop_cached(row.urlkey, OUTSIDE)
                    if row.origin == Origin.PUSH:
                        gone.append(row)
            batch.counters[self._pid]["nurlerrs"] += len(gone)
            batch.flush()
            tx.add_errors([_gone(row, self._now) for row in gone], self._policy.errors_kept)
        removed, held = batch.removals(), batch.newly_held[self._pid]
        return Narrowed(removed=removed, held=held, released=len(wrong) - len(removed) - held)


def _roots(tx: Tx, pid: int) -> Roots:
    return tuple(Root.parse(root) for root in tx.roots(pid))


def _is_inside(url: str, roots: Roots) -> bool:
    try:
        return inside(HttpUrl.parse(url), roots)
    except UrlRefused:
        return False


def _waits_outside(row: QueuedUrl, roots: Roots) -> bool:
    return row.operation == FETCH and not _is_inside(row.furl, roots)


def _lies_outside(row: CachedUrl, roots: Roots) -> bool:
    """Tell whether a document was asked for, or came at last, from outside the roots."""
    return not all(_is_inside(url, roots) for url in {row.furl, row.final_url or row.furl})


def _is_wrong(row: CachedUrl, roots: Roots) -> bool:
    """Tell whether a document lies outside without being held, or is held for that though it lies inside."""
    outside = _lies_outside(row, roots)
    return (not row.held and outside) or (row.held == OUTSIDE_ROOTS and not outside)


def _text(roots: Roots) -> str:
    return f"{text_of(_REFUSED)}: {not_below(roots)}"


def _refused(row: QueuedUrl, roots: Roots, now: int) -> UrlErrorRecord:
    return url_error(row, _REFUSED, _text(roots), now)


def _gone(row: CachedUrl, now: int) -> UrlErrorRecord:
    """Return what the provider is told of a document that went, so that it pushes it again one day."""
    named = json.dumps({"curl": row.curl, "mimetype": row.mimetype})
    return UrlErrorRecord(row.pid, _REFUSED, text_of(_REFUSED), row.furl, named, now)
