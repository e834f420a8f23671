"""Submitting: what a source lists becomes a set of its provider. All verbs run in the store's thread.

URLs are checked as those of a push are: against the provider's roots, and by the removal guard; quotas and
types count when they are fetched. A set goes into the queue in steps. Each step notes in the same transaction
what it submitted, so that a kill repeats work and loses nothing.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from lcc_scrapy.apps.sources.rules import Change, Entry, Report, Source
from lcc_scrapy.apps.sources.settings import SourceSettings
from lcc_scrapy.apps.sources.store import rows_in
from lcc_scrapy.config.config import Config
from lcc_scrapy.db.records import ABSORBED, ProviderSet
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain import queue, removal_guard
from lcc_scrapy.domain.absorption import View
from lcc_scrapy.domain.entries import ANY_TYPE, Declared, Origin, UrlEntry, furlkey, urlkey
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.queue import Place
from lcc_scrapy.domain.references import http_url
from lcc_scrapy.domain.roots import HttpUrl, Root, inside, not_below, root_to_add
from lcc_scrapy.intake.absorbing import PSETID
from lcc_scrapy.queue.unit_of_work import UnitOfWork, keys_of

STEP = 500
"""URLs that are submitted or removed in one transaction: some 50 ms."""

NOT_LISTED = "not listed by its site any more"
DELETED = "deleted, as its site says"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for what a run submits. ``queue_max`` as LCC_QUEUE_MAX, ``most`` as LCC_SOURCE_URLS."""

    policy: QueuePolicy = field(default_factory=QueuePolicy)
    queue_max: int = 0
    most: int = 1_000_000


def rules_of(config: Config) -> Rules:
    """Return what holds by the settings."""
    return Rules(config.policy, config.queue_max, config.of(SourceSettings).urls)


def checked(
    pid: int, entries: Iterable[Entry], base: str, roots: tuple[Root, ...], report: Report
) -> list[Change]:
    """Return what may be submitted of entries as they were written; the others are counted by their codes."""
    found = []
    for one in entries:
        try:
            url = http_url(one.url, base)
        except UrlRefused as refused:
            report.refuse(refused.code)
            continue
        if not inside(url, roots):
            report.refuse(704)
            note_former_name(url, roots, report)
            continue
        furl = str(url)
        found.append(Change(furlkey(pid, furl), furl, one.stamp, one.gone))
    report.entries += len(found)
    return found


def note_former_name(url: HttpUrl, roots: tuple[Root, ...], report: Report) -> None:
    """Note that a URL outside of the roots was inside while names were those of IDNA 2003."""
    if root_to_add(url, roots) is not None:
        report.former_names = True
        report.note(not_below(roots, url))


class OwnSet:
    """The set that one run makes: it begins with the first URL, and has them all."""

    def __init__(self, store: Store, source: Source, rules: Rules, report: Report) -> None:
        self._store = store
        self._source = source
        self._pid = source.pid
        self._rules = rules
        self._report = report
        self._pset: ProviderSet | None = None
        self._placed = 0

    def submit(self, changes: Sequence[Change], now: int, note: Callable[[Tx], None]) -> bool:
        """Queue up to ``STEP`` URLs; False = nothing was done, as the queue has no room.

        ``note`` notes that in the same transaction.
        """
        with self._store.begin() as tx:
            if not tx.lock_providers([self._pid]) or rows_in(tx).source(self._source.sourceid) is None:
                return False
            if not self._admits(tx):
                self._report.held_up = True
                return False
            if changes:
                self._take_in(tx, changes, now)
            note(tx)
        return True

    def _admits(self, tx: Tx) -> bool:
        own = tx.waiting_urls([self._pid])
        return View(self._rules.queue_max, tx.queued_total(), own, ()).admits(self._pid)

    def _take_in(self, tx: Tx, changes: Sequence[Change], now: int) -> None:
        documents = tx.cached_at(one.key for one in changes)
        entries: list[UrlEntry] = []
        gone: list[bytes] = []
        for one in changes:
            there = [row for row in documents.get(one.key, ()) if not one.gone or row.origin == Origin.SOURCE]
            if one.gone:
                gone += [row.urlkey for row in there]
                gone.append(urlkey(self._pid, one.furl, ANY_TYPE))
            else:
                entries += [_again(row.as_entry()) for row in there] or [_new(one.furl)]
        batch = UnitOfWork(tx, [self._pid], [*keys_of(self._pid, entries), *gone], now, self._rules.policy)
        pset = self._grown(tx, len(changes), now)
        self._queue(batch, entries, pset)
        held = self._remove(batch, gone, pset.psetid, DELETED, hold=False)
        batch.flush()
        tx.update_pset(replace(pset, held=pset.held + held))
        self._pset = replace(pset, held=pset.held + held)

    def _grown(self, tx: Tx, count: int, now: int) -> ProviderSet:
        """Return the set with so many URLs more; the first ones begin it."""
        pset = self._pset
        if pset is None:
            psetid = tx.take(PSETID, 1)
            pset = ProviderSet(psetid, self._pid, 0, "", "", False, 0, ABSORBED, 0, started=now)
            tx.insert_psets([pset])
            self._report.sets += 1
        return replace(pset, received=pset.received + count, absorbed=pset.absorbed + count)

    def _queue(self, batch: UnitOfWork, entries: Sequence[UrlEntry], pset: ProviderSet) -> None:
        """Queue entries; what waits as its provider pushed it is fetched so."""
        # No two in one place: windows are read on behind the last place, and would leave out the second.
        for number, entry in enumerate(entries, self._placed + 1):
            row = batch.queued.get(urlkey(self._pid, entry.curl, entry.mimetype))
            if row is None or row.operation != queue.FETCH or row.origin != Origin.PUSH:
                batch.arrive(self._pid, entry, Place(pset.psetid, number, Origin.SOURCE))
        self._placed += len(entries)
        self._report.queued += len(entries)

    # --- removals --------------------------------------------------------------------------------

    def removable(self, fileid: int, keys: Sequence[bytes]) -> int:
        """Count the documents that go with URLs which a file does not list any more."""
        with self._store.read() as tx:
            gone = set(keys) - rows_in(tx).listed_elsewhere(fileid, keys)
            return sum(row.origin == Origin.SOURCE for rows in tx.cached_at(gone).values() for row in rows)

    def is_too_much(self, removing: int, now: int) -> bool:
        """Tell whether the guard holds so many removals."""
        if removing <= removal_guard.FEW:
            return False
        with self._store.begin() as tx:
            batch = UnitOfWork(tx, [self._pid], [], now, self._rules.policy)
            return self._pid in batch.providers and batch.held_by_guard(self._pid, removing)

    def leave_out(self, fileid: int, keys: Sequence[bytes], now: int, *, removes: bool, hold: bool) -> None:
        """Forget URLs that a file does not list any more; with ``removes``, they are gone."""
        with self._store.begin() as tx:
            if removes and tx.lock_providers([self._pid]):
                self._leave_out(tx, fileid, keys, now, hold=hold)
            rows_in(tx).delete_source_urls(fileid, keys)

    def _leave_out(self, tx: Tx, fileid: int, keys: Sequence[bytes], now: int, *, hold: bool) -> None:
        gone = [key for key in keys if key not in rows_in(tx).listed_elsewhere(fileid, keys)]
        documents = tx.cached_at(gone)
        going = [row.urlkey for rows in documents.values() for row in rows if row.origin == Origin.SOURCE]
        waiting = [] if hold else list(tx.waiting_at(gone).values())
        if not going and not waiting:
            return
        batch = UnitOfWork(tx, [self._pid], [*going, *waiting], now, self._rules.policy)
        brought = (key for key in waiting if key in batch.queued and key not in going)
        found = [key for key in brought if batch.queued[key].origin == Origin.SOURCE]
        pset = self._grown(tx, len(going) + len(found), now)
        held = self._remove(batch, [*going, *found], pset.psetid, NOT_LISTED, hold=hold)
        batch.flush()
        self._pset = replace(pset, held=pset.held + held)
        tx.update_pset(self._pset)

    def _remove(self, batch: UnitOfWork, keys: Iterable[bytes], psetid: int, why: str, *, hold: bool) -> int:
        """Remove documents and cancel what waits; returns how many removals the guard holds."""
        held = 0
        for key in keys:
            if key not in batch.cached:
                batch.cancel(key, psetid)
                continue
            holds = hold or batch.held_by_guard(self._pid, 1)
            batch.remove(key, psetid, why, hold=holds)
            held += holds
            self._report.removed += not holds
        self._report.held += held
        return held

    def end(self) -> None:
        """Tell the operator of removals that are held."""
        if self._report.held:
            why = f"not listed by source {self._source.sourceid}"
            told = removal_guard.notice(self._pid, self._report.held, why)
            _log.warning("%(notice)s", {"notice": told, "pid": self._pid})


def _new(furl: str) -> UrlEntry:
    """Return the entry of a URL whose type its site says when it is fetched."""
    return UrlEntry(furl, ANY_TYPE, furl=furl, burl=furl)


def _again(entry: UrlEntry) -> UrlEntry:
    """Return the entry of a document that has changed: it declares nothing, so any content is accepted."""
    return replace(entry, declared=Declared())
