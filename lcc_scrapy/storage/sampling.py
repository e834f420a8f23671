"""Looks at pushed documents by guess: at a sample of them, or at all while their provider misses changes."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from lcc_scrapy.domain.absorption import View
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.entries import Declared, Origin, UrlEntry
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.storage.batch import Batch
from lcc_scrapy.storage.misses import judge, needs_judging
from lcc_scrapy.storage.spidering import queue_up
from lcc_scrapy.storage.tx import Store, Tx

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

    def draw(self, count: int, now: int) -> int:
        """Submit visits of ``count`` documents, drawn at random; returns how many there were."""
        keys = [row.urlkey for row in islice(self._at_random(), count)]
        return sum(self._visit(keys[at : at + PORTION], now) for at in range(0, len(keys), PORTION))

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

    def _at_random(self) -> Iterator[CachedUrl]:
        """Yield pushed documents from a random key on, and then those before it."""
        begin = self._random_key()
        yield from self._pushed(begin)
        for row in self._pushed(b""):
            if row.urlkey > begin:
                return
            yield row

    def _pushed(self, after: bytes) -> Iterator[CachedUrl]:
        while True:
            with self._store.read() as tx:
                rows = tx.cached_of(self._pid, after, PORTION)
                waiting = tx.queued(row.urlkey for row in rows)
            yield from (row for row in rows if _is_pushed(row) and row.urlkey not in waiting)
            if len(rows) < PORTION:
                return
            after = rows[-1].urlkey

    def _visit(self, keys: Sequence[bytes], now: int) -> int:
        """Queue visits of documents that are still there and do not wait to be fetched."""
        if not keys:
            return 0
        with self._store.begin() as tx:
            batch = Batch(tx, [self._pid], keys, now, self.policy)
            rows = [batch.cached[key] for key in keys if key in batch.cached and key not in batch.queued]
            entries = [_visit_of(row) for row in rows if _is_pushed(row)]
            if entries and self._pid in batch.providers:
                queue_up(batch, self._pid, entries, Origin.SAMPLE)
        return len(entries)

    def _admits(self, tx: Tx) -> bool:
        own = tx.waiting_urls([self._pid])
        return View(self.queue_max, tx.queued_total(), own, ()).admits(self._pid)


def _is_pushed(row: CachedUrl) -> bool:
    """Tell whether a document was pushed, and nobody wants it gone."""
    return not row.held and row.origin == Origin.PUSH


def _visit_of(row: CachedUrl) -> UrlEntry:
    """Return the entry of a visit: it declares nothing, so that whatever is served will do."""
    return replace(row.as_entry(), declared=Declared())
