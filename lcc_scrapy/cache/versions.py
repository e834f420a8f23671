"""Keeping earlier contents of documents, and letting them go: their files go to the delete manager then.

Whoever changes the versions of a document has locked its provider.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lcc_scrapy.db.records import FileToDelete
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.versions import KEEP_NONE, Keep, Version, held_back, outlived, version_of

Item = TypeVar("Item")

PORTION = 100
"""Documents whose versions are in memory at a time."""

PAGE = 1000
"""Versions that are looked at in one transaction; a document with more is read in one piece."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """What of documents stays: what ``keep`` says, and what ``alerts`` (by key) hold for ``hold`` seconds."""

    keep: Keep
    alerts: Mapping[bytes, Sequence[int]]
    hold: float
    now: int

    def gone(self, versions: Sequence[Version]) -> list[Version]:
        """Return which of a document's versions (newest first) are not kept any longer."""
        gone = outlived(versions, self.keep, self.now)
        alerts = self.alerts.get(versions[0].urlkey) if gone else None
        held = held_back(versions, alerts, self.hold, self.now) if alerts else set()
        return [one for one in gone if one.seq not in held]


def put_aside(
    tx: Tx, replaced: Sequence[CachedUrl], policy: QueuePolicy, now: int
) -> list[CachedUrl | Version]:
    """Keep contents that were replaced; returns what is not kept, or not any longer."""
    rule = _rule(tx, [row.urlkey for row in replaced], policy.versions, policy, now)
    if rule.keep:
        return _set_aside(tx, replaced, replaced, rule)
    # what was kept of the others under an earlier setting is for ``trim``
    alerted = [row for row in replaced if row.urlkey in rule.alerts]
    return [row for row in replaced if row.urlkey not in rule.alerts] + _set_aside(tx, alerted, alerted, rule)


def drop(tx: Tx, gone: Sequence[CachedUrl], policy: QueuePolicy, now: int) -> list[CachedUrl | Version]:
    """Let all contents of documents go that are no longer there; returns them.

    What open alerts are about stays: of the last content, too, a version.
    """
    rule = _rule(tx, [row.urlkey for row in gone], KEEP_NONE, policy, now)
    alerted = [row for row in gone if row.urlkey in rule.alerts]
    return [row for row in gone if row.urlkey not in rule.alerts] + _set_aside(tx, gone, alerted, rule)


def _rule(tx: Tx, keys: Sequence[bytes], keep: Keep, policy: QueuePolicy, now: int) -> _Rule:
    alerts: dict[bytes, list[int]] = {}
    for key, seq in tx.open_alerts(keys) if policy.alert_hold else ():
        alerts.setdefault(key, []).append(seq)
    return _Rule(keep, alerts, policy.alert_hold, now)


def _set_aside(
    tx: Tx, rows: Sequence[CachedUrl], kept: Iterable[CachedUrl], rule: _Rule
) -> list[CachedUrl | Version]:
    """Make versions of the contents of ``kept``, then drop what does not stay of any of the documents."""
    fresh_ones = {row.urlkey: version_of(row, rule.now) for row in kept}
    surplus: list[CachedUrl | Version] = []
    for part in portions(rows):
        known = tx.versions(row.urlkey for row in part)
        fresh = [fresh_ones[row.urlkey] for row in part if row.urlkey in fresh_ones]
        tx.insert_versions(fresh)
        for one in fresh:
            known[one.urlkey] = [one, *known.get(one.urlkey, ())]
        surplus += _drop_surplus(tx, known.values(), rule)
    return surplus


def drop_all(tx: Tx, pid: int, now: int, policy: QueuePolicy) -> bool:
    """Drop some versions of a provider, held back or not; returns whether there were any."""
    keys = {key for key, _ in tx.version_times(pid, b"", PORTION)}
    gone = _drop_surplus(tx, tx.versions(keys).values(), _Rule(KEEP_NONE, {}, 0.0, now))
    tx.delete_later([to_delete(one, now, policy) for one in gone])
    return bool(gone)


def trim(store: Store, pid: int, now: int, policy: QueuePolicy) -> Iterator[int]:
    """Drop a provider's versions that nothing keeps any more: neither the setting, nor an alert.

    Those of documents that are gone are there for an alert only. Yields how many after every transaction;
    any number of processes may do it at the same time.
    """
    after = b""
    while True:
        with store.read() as tx:
            page = tx.version_times(pid, after, PAGE)
            found = _by_document(page)
            present = tx.present(list(found))
        if len(page) == PAGE and len(found) > 1:
            found.popitem()  # the page may have cut it; the next one begins with it
        outgrown = [key for key in found if key not in present or _is_outgrown(found[key], policy, now)]
        for keys in portions(outgrown):
            yield _trim_some(store, pid, keys, now, policy)
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


def _is_outgrown(times: Sequence[int], policy: QueuePolicy, now: int) -> bool:
    keep = policy.versions
    return len(times) > keep.most or min(times) <= keep.replaced_before(now)


def _trim_some(store: Store, pid: int, keys: Sequence[bytes], now: int, policy: QueuePolicy) -> int:
    with store.begin() as tx:
        if not tx.lock_providers([pid]):
            return 0
        present, versions = tx.present(keys), tx.versions(keys)
        there = _rule(tx, keys, policy.versions, policy, now)
        away = _Rule(KEEP_NONE, there.alerts, there.hold, now)
        gone = _drop_surplus(tx, [of_one for key, of_one in versions.items() if key in present], there)
        gone += _drop_surplus(tx, [of_one for key, of_one in versions.items() if key not in present], away)
        tx.delete_later([to_delete(one, now, policy) for one in gone])
    return len(gone)


def _drop_surplus(tx: Tx, documents: Iterable[Sequence[Version]], rule: _Rule) -> list[Version]:
    gone = [one for versions in documents for one in rule.gone(versions)]
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
