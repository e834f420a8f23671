"""The metrics of ``/metrics``: read from the database on request, in short transactions.

No query reads more than the providers, the parts of sets, the named cursors and the workers.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from lcc_scrapy.cache.misses import counts_of
from lcc_scrapy.db.records import AE_FAILED, AE_PAGES, AE_SKIPPED, ANNOTATED, FEED, REFUSED_TYPES
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.misses import first_day, share_missed
from lcc_scrapy.domain.named_cursors import NamedCursor
from lcc_scrapy.domain.selection import happened
from lcc_scrapy.feed.store_feed import StoreFeed
from lcc_scrapy.ops import alert_metrics
from lcc_scrapy.ops.status import sizes_of_sets
from lcc_scrapy.web.ports import Measure

_ENDS = (("annotated", AE_PAGES), ("skipped", AE_SKIPPED), ("failed", AE_FAILED))


def measures(store: Store, spools: Sequence[Path], now: int, grace: float) -> list[Measure]:
    """Return everything; of the ``spools``, those count that are on this machine. ``now`` in epoch seconds.

    ``grace`` (seconds) is how late a push may come that a sample was faster than.
    """
    return [
        *_of_the_queue(store),
        *_of_the_spools(spools),
        *_of_the_processes(store, now),
        *_lags(store, now),
        _not_pushed(store, now, grace),
        *alert_metrics.measures(store, now),
        *_of_the_engine(store, now),
    ]


def _of_the_queue(store: Store) -> Iterator[Measure]:
    with store.read() as tx:
        queued, ledger, tallies, seq = tx.queued_total(), tx.ledger(), tx.tallies(), tx.peek(FEED)
    documents = sum(one.documents for one in ledger.values())
    space = sum(one.space for one in ledger.values())
    held = sum(one.held for one in ledger.values())
    states = [((str(state),), float(one.providers)) for state, one in sorted(ledger.items())]
    tallies.pop(REFUSED_TYPES, 0)
    fetches = [(tuple(name.split(" ")), float(count)) for name, count in sorted(tallies.items())]
    yield _one("lcc_queue_urls", "URLs that wait in the queue", queued)
    yield _one("lcc_documents", "Documents in the cache", documents)
    yield _one("lcc_content_bytes", "Bytes of their contents", space)
    yield _one("lcc_held_removals", "Removals that wait for an operator", held)
    yield _one("lcc_feed_seq", "Number of the newest change", seq)
    yield Measure("lcc_providers", "Providers", states, ("state",))
    yield Measure("lcc_fetches", "Fetches that ended", fetches, ("outcome", "code"), counter=True)


def _of_the_spools(folders: Sequence[Path]) -> Iterator[Measure]:
    """Count the sets that wait; nothing where there is no spool."""
    here = [folder for folder in folders if folder.is_dir()]
    if not here:
        return
    sizes = list(sizes_of_sets(here))
    yield _one("lcc_spool_sets", "Sets that wait in the spools of this machine", len(sizes))
    yield _one("lcc_spool_bytes", "Their size", sum(sizes))


def _of_the_processes(store: Store, now: int) -> Iterator[Measure]:
    with store.read() as tx:
        workers = [one for one in tx.workers() if one.expires > now]
        unses = tx.unses()
    silent = [((one.note, one.uns), float(max(now - one.seen, 0))) for one in unses]
    yield _one("lcc_workers", "Crawl processes at work", len(workers))
    yield _one("lcc_fetch_places", "Fetches that they may do at a time", sum(one.places for one in workers))
    yield _one("lcc_fetch_places_in_use", "Fetches under way", sum(one.in_use for one in workers))
    yield _one("lcc_fetches_paced", "Fetches behind a limit of their own", sum(one.paced for one in workers))
    yield _one("lcc_fetch_bytes_per_second", "Their traffic", sum(one.rate for one in workers))
    jobs = [((one.owner, one.job), one.job_ms / 1000) for one in workers if one.job]
    yield Measure("lcc_store_job_seconds", "Longest job of a store thread of late", jobs, ("worker", "job"))
    yield Measure("lcc_uns_silence_seconds", "Since the last heartbeat of a UNS", silent, ("host", "uns"))


def _lags(store: Store, now: int) -> Iterator[Measure]:
    head = StoreFeed(store).head().seq
    with store.read() as tx:
        cursors = tx.named_cursors()
    labels = ("owner", "name")
    changes = [((one.owner, one.name), float(max(head - one.seq, 0))) for one in cursors]
    seconds = [((one.owner, one.name), _seconds_behind(store, one, head, now)) for one in cursors]
    yield Measure("lcc_cursor_lag_changes", "Changes that a named cursor has before it", changes, labels)
    yield Measure("lcc_cursor_lag_seconds", "Age of the first of them", seconds, labels)


def _seconds_behind(store: Store, cursor: NamedCursor, head: int, now: int) -> float:
    if cursor.seq >= head:
        return 0.0
    with store.read() as tx:
        return _age_of_first(tx, cursor.seq, now)


def _age_of_first(tx: Tx, seq: int, now: int) -> float:
    first = tx.changes(seq, 1)
    return float(max(now - happened(first[0]), 0)) if first else 0.0


def _of_the_engine(store: Store, now: int) -> Iterator[Measure]:
    """Tell of the annotation engine; nothing where it never ran."""
    with store.read() as tx:
        cursor = tx.info(ANNOTATED)
        if cursor is None:
            return
        waiting, behind = tx.waiting_count(), max(tx.peek(FEED) - int(cursor), 0)
        age = _age_of_first(tx, int(cursor), now)
        ends = [((end,), float(tx.peek(name))) for end, name in _ENDS]
        acis = tx.last_aci_number()
    yield _one("lcc_annotation_waiting", "Documents that wait for the annotation engine", waiting)
    yield _one("lcc_annotation_lag_changes", "Changes of the feed that it has before it", behind)
    yield _one("lcc_annotation_lag_seconds", "Age of the first of them", age)
    yield Measure("lcc_annotated", "Documents it is done with", ends, ("end",), counter=True)
    yield Measure("lcc_acis", "ACIs made", [((), float(acis))], counter=True)


def _not_pushed(store: Store, now: int, grace: float) -> Measure:
    with store.read() as tx:
        sampled = [tx.provider(pid) for pid in tx.sampled_providers(first_day(now))]
        shares = [(one.pid, share_missed(counts_of(tx, one, now, grace))) for one in sampled if one]
    values = [((str(pid),), share.value) for pid, share in shares if share]
    return Measure("lcc_not_pushed", "Share of a provider's changes that it did not push", values, ("pid",))


def _one(name: str, meaning: str, value: float) -> Measure:
    return Measure(name, meaning, [((), float(value))])
