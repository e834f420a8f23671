"""Samples pushed documents: some of them, or all while their provider misses changes."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from lcc_scrapy.cache.misses import judge, needs_judging
from lcc_scrapy.db.records import LAST_KEY
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.absorption import View
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.entries import Declared, Origin, UrlEntry
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.queue.unit_of_work import UnitOfWork
from lcc_scrapy.spidering.submitting import queue_up

PORTION = 500
"""Documents that are looked through, or queued, in one transaction."""


@dataclass(frozen=True, slots=True)
class Portion:
    """How far a pass through all documents came: ``after`` is the last key, None = it is at the end.

    ``queued`` URLs were submitted; ``held_up``: the queue has no room for more now.
    """

    after: bytes | None
    queued: int = 0
    held_up: bool = False


class Sampling:
    """Visits of one provider's pushed documents; its verbs run in the store's thread.

    Keys are digests, so documents that follow each other by key have nothing in common: as many of them as
    one likes, from a random key on, are a random sample. Times in epoch seconds.
    """

    def __init__(
        self,
        store: Store,
        pid: int,
        policy: QueuePolicy,
        queue_max: int,
        random_key: Callable[[], bytes] = lambda: secrets.token_bytes(16),
    ) -> None:
        self._store = store
        self._pid = pid
        self.policy = policy
        self.queue_max = queue_max
        self._random_key = random_key

    def draw(self, count: int, now: int) -> Iterator[int]:
        """Submit visits of ``count`` documents, drawn at random.

        It yields how many there were after every look at a portion, for not all documents can be drawn.
        """
        for rows in self._at_random():
            some = rows[:count]
            count -= len(some)
            yield self._visit([row.urlkey for row in some], now)
            if not count:
                return

    def visit_overdue(self, after: bytes, before: int, now: int) -> Portion:
        """Submit visits of documents behind a key that were last confirmed before ``before``."""
        with self._store.read() as tx:
            if not self._admits(tx):
                return Portion(after, held_up=True)
            rows = tx.cached_of(self._pid, after, PORTION)
        due = [row.urlkey for row in rows if _is_pushed(row) and row.confirmed_time < before]
        queued = self._visit(due, now)
        return Portion(rows[-1].urlkey if len(rows) == PORTION else None, queued)

    def judge(self, now: int) -> bool:
        """Judge what was found, and tell whether all documents are to be visited."""
        grace = self.policy.push_grace
        with self._store.read() as tx:
            provider = tx.provider(self._pid)
            if provider is None:
                return False
            if not needs_judging(tx, provider, now, grace):
                return provider.fallingback
        with self._store.begin() as tx:
            return judge(tx, self._pid, now, grace)

    def is_idle(self) -> bool:
        """Tell whether nothing of the provider waits."""
        with self._store.read() as tx:
            return not tx.waiting_urls([self._pid]).get(self._pid)

    def _at_random(self) -> Iterator[list[CachedUrl]]:
        """Yield pushed documents from a random key on, and then those before it."""
        begin = self._random_key()
        yield from self._pushed(begin, LAST_KEY)
        yield from self._pushed(b"", begin)

    def _pushed(self, after: bytes, upto: bytes) -> Iterator[list[CachedUrl]]:
        """Yield those of each portion behind one key and up to another that do not wait."""
        while after < upto:
            with self._store.read() as tx:
                rows = tx.cached_of(self._pid, after, PORTION)
                waiting = tx.queued(row.urlkey for row in rows)
            after = rows[-1].urlkey if len(rows) == PORTION else LAST_KEY
            there = (row for row in rows if row.urlkey <= upto)
            yield [row for row in there if _is_pushed(row) and row.urlkey not in waiting]

    def _visit(self, keys: Sequence[bytes], now: int) -> int:
        """Queue visits of documents that are still there and do not wait to be fetched."""
        if not keys:
            return 0
        with self._store.begin() as tx:
            batch = UnitOfWork(tx, [self._pid], keys, now, self.policy)
            rows = [batch.cached[key] for key in keys if key in batch.cached and key not in batch.queued]
            entries = [_visit_of(row) for row in rows if _is_pushed(row)]
            if entries and self._pid in batch.providers:
                queue_up(batch, self._pid, entries, Origin.SAMPLE)
        return len(entries)

    def _admits(self, tx: Tx) -> bool:
        own = tx.waiting_urls([self._pid])
        return View(self.queue_max, tx.queued_total(), own, ()).admits(self._pid)


def _is_pushed(row: CachedUrl) -> bool:
    """Tell whether a document was pushed and its removal is not held."""
    return not row.held and row.origin == Origin.PUSH


def _visit_of(row: CachedUrl) -> UrlEntry:
    """Return the entry of a visit. It declares nothing, so any content is accepted."""
    return replace(row.as_entry(), declared=Declared())
