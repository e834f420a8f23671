"""Runs a source that is a Redis key: its items become sets of the provider.

The number of a batch is noted in the transaction that queues its URLs. So a kill before the batch is
acknowledged neither loses a URL nor submits one again.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lcc_scrapy.apps.sources.files import Files
from lcc_scrapy.apps.sources.redis_items import url_of
from lcc_scrapy.apps.sources.redis_key import Batch, RedisKey
from lcc_scrapy.apps.sources.rules import Change, Entry, Report, Role, Source, SourceFile
from lcc_scrapy.apps.sources.running import Stopped, active_provider, confirm
from lcc_scrapy.apps.sources.store import rows_in
from lcc_scrapy.apps.sources.submitting import OwnSet, Rules, checked
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.feed.store_feed import LCC_ID
from lcc_scrapy.kit.work import Work

BATCHES = 200
"""Batches of one run; the next run goes on, so that a full key leaves room for other sources."""


@dataclass(frozen=True, slots=True)
class Redis:
    """How a Redis key is reached. ``client`` makes a client; ``work`` runs what blocks."""

    client: Callable[[], object]
    encoding: str
    work: Work


@dataclass(slots=True)
class Drain:
    """One run of one source: takes batches until the key is empty, the queue has no room, or ``BATCHES``.

    ``told`` hears after each batch what was done. ``lost``: another process runs the source, so that this
    run ends with ``Stopped``.
    """

    store: Store
    work: Work
    redis: Redis
    source: Source
    rules: Rules
    told: Callable[[Report], object] = lambda _: None
    now: Callable[[], float] = time.time
    report: Report = field(default_factory=Report)
    lost: bool = False
    listed: int = 0
    _roots: tuple[Root, ...] = ()

    async def run(self) -> Report:
        """Drain the key; raises ``RedisAway``, ``CannotFetch`` and ``ConfigurationError``."""
        files = Files(self.store, self.work, self.source, 0)
        known, self._roots = await self.work(self._known)
        files.begin(known)
        noted = await files.named(self.source.url, 0, Role.NEWS)
        key = await self.work(key_of, self.store, self.redis, self.source)
        own = OwnSet(self.store, self.source, self.rules, self.report)
        for _ in range(BATCHES):
            batch = await self.redis.work(key.take)
            if batch is None:
                break
            changes, refused = await self.redis.work(self._read, batch)
            if batch.id != noted.etag:
                noted = replace(noted, etag=batch.id, read=int(self.now()))
                if not await self.work(self._submit, own, changes, noted):
                    break
            await self.redis.work(key.acknowledge, batch, refused)
            self.told(self.report)
            if self.lost:
                raise Stopped
        await self.work(confirm, self.store, self.source.pid, int(self.now()))
        return self.report

    def _known(self) -> tuple[list[SourceFile], tuple[Root, ...]]:
        with self.store.read() as tx:
            active_provider(tx, self.source.pid)
            roots = tuple(map(Root.parse, tx.roots(self.source.pid)))
            return rows_in(tx).source_files(self.source.sourceid), roots

    def _read(self, batch: Batch) -> tuple[list[Change], list[bytes]]:
        """Return what may be submitted of a batch, and the items of which nothing may."""
        changes: list[Change] = []
        refused = []
        for item in batch.items:
            try:
                entry = Entry(url_of(item, self.redis.encoding))
                one = checked(self.source.pid, [entry], "", self._roots, self.report)
            except UrlRefused as error:
                self.report.refuse(error.code)
                one = []
            changes += one
            if not one:
                refused.append(item)
        return list({one.key: one for one in changes}.values()), refused

    def _submit(self, own: OwnSet, changes: Sequence[Change], noted: SourceFile) -> bool:
        """Queue a batch and note it; False = nothing was done, as the queue has no room."""

        def note(tx: Tx) -> None:
            one = rows_in(tx).source(self.source.sourceid)
            if one is None or one.owner != self.source.owner:
                raise Stopped
            rows_in(tx).put_source_files([noted])

        return own.submit(changes, int(self.now()), note)


def key_of(store: Store, redis: Redis, source: Source) -> RedisKey:
    """Return the key of a source; its batches belong to this LCC and this source alone."""
    with store.read() as tx:
        lcc_id = tx.info(LCC_ID) or ""
    return RedisKey(redis.client(), source.url, f"{lcc_id[:8]}-{source.sourceid}")
