"""Keeping earlier contents of documents, and letting them go: their files go to the delete manager then.

Whoever changes the versions of a document has locked its provider.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from lcc_scrapy.db.records import FileToDelete
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.versions import KEEP_NONE, Keep, Version, outlived, version_of

Item = TypeVar("Item")

PORTION = 100
"""Documents whose versions are in memory at a time."""

PAGE = 1000
"""Versions that are looked at in one transaction; more than one document has."""


def put_aside(tx: Tx, replaced: Sequence[CachedUrl], keep: Keep, now: int) -> list[CachedUrl | Version]:
    """Keep contents that were replaced; returns what is not kept, or not any longer."""
    if not keep:
        return list(replaced)  # what was kept under an earlier setting is for ``trim``
    surplus: list[CachedUrl | Version] = []
    for rows in portions(replaced):
        fresh = {row.urlkey: version_of(row, now) for row in rows}
        known = tx.versions(fresh)
        tx.insert_versions(list(fresh.values()))
        surplus += _drop_outlived(tx, [[one, *known.get(key, ())] for key, one in fresh.items()], keep, now)
    return surplus


def drop_versions(tx: Tx, keys: Sequence[bytes]) -> list[Version]:
    """Drop all versions of documents that are no longer there; returns them."""
    gone: list[Version] = []
    for part in portions(keys):
        gone += _drop_outlived(tx, tx.versions(part).values(), KEEP_NONE, 0)
    return gone


def trim(store: Store, pid: int, now: int, policy: QueuePolicy) -> Iterator[int]:
    """Drop a provider's versions that are too old or too many, for the setting may have changed.

    Yields how many after every transaction; any number of processes may do it at the same time.
    """
    after = b""
    while True:
        with store.read() as tx:
            page = tx.version_times(pid, after, PAGE)
        found = _by_document(page)
        if len(page) == PAGE and len(found) > 1:
            found.popitem()  # the page may have cut it; the next one begins with it
        for keys in portions(_outgrown(found, policy.versions, now)):
            yield _trim_some(store, pid, list(keys), now, policy)
        if len(page) < PAGE:
            return
        after = next(reversed(found))
        yield 0


def _by_document(page: Iterable[tuple[bytes, int]]) -> dict[bytes, list[int]]:
    """Return when the versions of each document were replaced."""
    found: dict[bytes, list[int]] = {}
    for key, replaced in page:
        found.setdefault(key, []).append(replaced)
    return found


def _outgrown(found: Mapping[bytes, Sequence[int]], keep: Keep, now: int) -> list[bytes]:
    before = keep.replaced_before(now)
    return [key for key, times in found.items() if len(times) > keep.most or min(times) <= before]


def _trim_some(store: Store, pid: int, keys: list[bytes], now: int, policy: QueuePolicy) -> int:
    with store.begin() as tx:
        tx.lock_providers([pid])
        gone = _drop_outlived(tx, tx.versions(keys).values(), policy.versions, now)
        tx.delete_later([to_delete(one, now, policy) for one in gone])
    return len(gone)


def _drop_outlived(tx: Tx, documents: Iterable[Sequence[Version]], keep: Keep, now: int) -> list[Version]:
    gone = [one for versions in documents for one in outlived(versions, keep, now)]
    tx.delete_versions([one.seq for one in gone])
    return gone


def to_delete(one: CachedUrl | Version, now: int, policy: QueuePolicy) -> FileToDelete:
    """Return the order to delete the file of a content, when the grace is over."""
    not_before = now + int(policy.file_grace)
    return FileToDelete(one.fetched_machineid, one.fetched_fileid, one.fetched_len, not_before)


def portions(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Cut keys or rows into portions."""
    for start in range(0, len(items), PORTION):
        yield items[start : start + PORTION]
