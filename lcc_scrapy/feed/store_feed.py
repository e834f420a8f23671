"""The feed of changes out of a store, in short reading transactions."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from lcc_scrapy.cache.owners import owners_of
from lcc_scrapy.db.records import CONFIRMED, FEED, FORGOTTEN, DocumentLink
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.cache import CachedUrl, Tombstone, UrlMeta
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.directives import Owners
from lcc_scrapy.domain.entries import furlkey
from lcc_scrapy.domain.errors import ConfigurationError, StoreUnavailable
from lcc_scrapy.domain.front_moves import Came
from lcc_scrapy.domain.selection import Change
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.reader import Look
from lcc_scrapy.queue.explanation import spellings

LCC_ID = "lcc"
GENERATION = "generation"
"""Facts about an LCC (table ``lccinfo``): its id, and which life of it this is: 1, or, after a backup was
restored, the time of that (epoch seconds). Cursors of another life do not count."""


class StoreFeed:
    """A ``feed.reader.Feed`` over a store, or over replicas of it (``lags``)."""

    def __init__(self, store: Store, *, lags: bool = False) -> None:
        self._store = store
        self.lags = lags

    def head(self) -> Position:
        """Return the position of the newest change."""
        with self._store.read() as tx:
            return head_of(tx)

    def forgotten(self) -> int:
        """Return the highest seq of a removal that is no longer told."""
        with self._store.read() as tx:
            return tx.peek(FORGOTTEN)

    def look(self, after: int, limit: int) -> Look:
        """Return the next changes behind a seq."""
        with self._store.read() as tx:
            head = head_of(tx)
            rows = tx.changes(after, limit, upto=head.seq)
            return Look(rows, head, tx.peek(FORGOTTEN))  # the last: what these rows lack is forgotten by now

    def documents(self, after: bytes, limit: int, seen: int = 0) -> list[CachedUrl]:
        """Return documents by rising key."""
        with self._read(seen) as tx:
            return tx.documents(after, limit)

    def rows(self, keys: Sequence[bytes], seen: int = 0) -> dict[bytes, CachedUrl]:
        """Return the documents among these keys."""
        with self._read(seen) as tx:
            return tx.cached(keys)

    def find(self, url: str) -> list[CachedUrl]:
        """Return the documents with this docid, conceptual URL or fetch URL, by rising key."""
        with self._store.read() as tx:
            found = {row.urlkey: row for spelling in spellings(url) for row in tx.find_url(spelling)[0]}
        return [found[key] for key in sorted(found)]

    def versions(self, keys: Iterable[bytes]) -> dict[bytes, list[Version]]:
        """Return the earlier contents that are kept of these documents, newest first."""
        with self._store.read() as tx:
            return tx.versions(keys)

    def links(self, key: bytes) -> list[DocumentLink]:
        """Return the links of a document, in the order of the page."""
        with self._store.read() as tx:
            return tx.links_of(key)

    def owners(self, rows: Sequence[Change], seen: int = 0) -> Owners:
        """Return who asked for documents with a directive, or for one that leads there."""
        with self._read(seen) as tx:
            return owners_of(tx, rows)

    def owners_behind(self, row: Change, after: str, limit: int) -> list[str]:
        """Return the owners of a document whose names come behind one."""
        with self._store.read() as tx:
            return tx.owners_behind(furlkey(row.pid, row.furl), after, limit)

    def tombstones(self, keys: Sequence[bytes]) -> dict[bytes, Tombstone]:
        """Return the removals of the documents among these keys that are gone."""
        with self._store.read() as tx:
            return tx.tombstones(keys)

    def moved(self, seqs: Sequence[int]) -> dict[int, Came]:
        """Return how changes with these seqs came from other sub-LCCs, of those that did."""
        with self._read(max(seqs, default=0)) as tx:
            return tx.moved(seqs)

    def confirmations_head(self) -> Position:
        """Return the position of the newest confirmation."""
        with self._store.read() as tx:
            return replace(head_of(tx), seq=tx.peek(CONFIRMED))

    def confirmed(self, after: int, limit: int) -> Look:
        """Return the next confirmed documents behind a place among confirmations."""
        with self._store.read() as tx:
            head = replace(head_of(tx), seq=tx.peek(CONFIRMED))
            return Look(tx.confirmed(after, limit, head.seq), head)

    def answers(self, rows: Sequence[CachedUrl]) -> dict[bytes, UrlMeta]:
        """Return the answers that rows came with.

        A row and its answer change in one transaction: where the row is still the same after the answer
        was read, they belong together.
        """
        with self._store.read() as tx:
            found = tx.metas(row.urlkey for row in rows)
            now = tx.cached(found)
        same = (row for row in rows if row.urlkey in now and _is_same(row, now[row.urlkey]))
        return {row.urlkey: found[row.urlkey] for row in same}

    @contextmanager
    def _read(self, seen: int) -> Iterator[Tx]:
        with self._store.read() as tx:
            if self.lags and (newest := tx.peek(FEED)) < seen:
                raise StoreUnavailable(f"this replica of the database has come to change {newest} of {seen}")
            yield tx


def _is_same(row: CachedUrl, other: CachedUrl) -> bool:
    return row.fetched_fileid == other.fetched_fileid


def head_of(tx: Tx) -> Position:
    """Return where the feed is now."""
    lcc_id, generation = tx.info(LCC_ID), tx.info(GENERATION)
    if not lcc_id or not generation:
        raise ConfigurationError(
            "the database belongs to no LCC: `lcc db restore FILE` brings one back,"
            " `lcc init` begins a new one"
        )
    return Position(lcc_id, int(generation), tx.peek(FEED))
