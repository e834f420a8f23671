"""URLs that an operator wants fetched again: those that failed, and documents that are there.

They queue as any others do: in a set of their own behind what waits, or in their first place where they wait
to try again. Pages of ``PAGE`` URLs are one transaction each; after an interruption it may be repeated.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lcc_scrapy.cache.last_outcomes import entry_of, origin_of
from lcc_scrapy.db.records import (
    OUTCOME_FAILED,
    OUTCOME_REFUSED,
    OUTCOME_RETRYING,
    OUTCOME_STORED,
    OUTCOME_WITHDRAWN,
    LastOutcome,
)
from lcc_scrapy.db.retrying import repeated
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.absorption import View
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.convergence import MISMATCHES, agrees
from lcc_scrapy.domain.entries import Declared, Origin, UrlEntry, urlkey
from lcc_scrapy.domain.errors import LccError, UrlRefused
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.queue import FETCH, Place, QueuedUrl
from lcc_scrapy.domain.roots import HttpUrl, Root, inside
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.providers.registration import all_providers
from lcc_scrapy.queue.explanation import spellings
from lcc_scrapy.queue.unit_of_work import UnitOfWork, keys_of
from lcc_scrapy.spidering.submitting import unsent_set, visit_of

PAGE = 500
"""URLs of one transaction."""

QUEUED = "queued"
SOONER = "sooner"
WAITING = "waiting"
DONE_SINCE = "done_since"
HELD = "held"
OUTSIDE = "outside_roots"
REFUSED = "refused"
WITHDRAWN = "withdrawn"
UNKNOWN = "unknown"
NO_ROOM = "no_room"
VERDICTS = (QUEUED, SOONER, WAITING, DONE_SINCE, HELD, OUTSIDE, REFUSED, WITHDRAWN, UNKNOWN, NO_ROOM)
"""What becomes of a URL: queued, or fetched sooner than it would have been; the rest are left alone."""

Counts = Counter[str]
"""URLs by what became of them."""


@dataclass(frozen=True, slots=True)
class Terms:
    """``queue_max`` is as in ``absorber.Terms``; ``now`` in epoch seconds; ``dry_run`` changes nothing."""

    policy: QueuePolicy
    queue_max: int
    now: int
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _Asked:
    """A URL to be fetched again. ``failed`` is when that failed (0 = it did not).

    ``verdict`` is there if nothing in queue or cache can change it; ``mismatch``: what came was not declared.
    """

    entry: UrlEntry
    key: bytes
    origin: str = Origin.PUSH
    failed: int = 0
    held: bool = False
    verdict: str = ""
    mismatch: bool = False


def open_pids(store: Store, pids: Sequence[int] = ()) -> list[int]:
    """Return the providers that may be fetched from: all, or these; raises ``LccError`` if one may not."""
    found = [one.pid for one in all_providers(store) if one.state in {State.ACTIVE, State.PAUSED}]
    for pid in pids:
        if pid not in found:
            raise LccError(f"nothing may be fetched from provider {pid}: see `lcc provider list`")
    return list(pids) or found


class Again:
    """Verbs give what became of the URLs, page by page, and end early when the queue has no room."""

    def __init__(self, store: Store, terms: Terms) -> None:
        self._store = store
        self._terms = terms

    def retry(self, pid: int, codes: Sequence[int] = (), since: int = 0) -> Iterator[Counts]:
        """Ask for what failed with one of the codes (none = any) at ``since`` or later."""
        for state in (OUTCOME_FAILED, OUTCOME_STORED, OUTCOME_RETRYING):
            for page in self._failures(pid, state, since):
                wanted = [_failed(one) for one in page if not codes or one.code in codes]
                done = self._ask(pid, wanted)
                yield done
                if done[NO_ROOM]:
                    return

    def refetch(self, pid: int, selection: Selection) -> Iterator[Counts]:
        """Ask for the documents that a selection admits."""
        after = b""
        while True:
            with self._store.read() as tx:
                rows = tx.cached_of(pid, after, PAGE)
            done = self._ask(
                pid, [_document(row) for row in rows if _is_fetched(row) and selection.admits(row)]
            )
            yield done
            if done[NO_ROOM] or len(rows) < PAGE:
                return
            after = rows[-1].urlkey

    def retry_url(self, url: str, pids: Sequence[int]) -> Counts:
        """Ask for a URL (conceptual URL, fetch URL or docid) that failed, of these providers."""
        with self._store.read() as tx:
            found = [row for one in spellings(url) for row in tx.outcomes_named(one)]
        return self._ask_all({row.urlkey: (row.pid, _failed(row)) for row in found}, pids)

    def refetch_url(self, url: str, pids: Sequence[int], selection: Selection) -> Counts:
        """Ask for the documents of a URL that a selection admits."""
        with self._store.read() as tx:
            rows = [row for one in spellings(url) for row in tx.find_url(one)[0]]
        found = (row for row in rows if _is_fetched(row) and selection.admits(row))
        return self._ask_all({row.urlkey: (row.pid, _document(row)) for row in found}, pids)

    def _ask_all(self, found: Mapping[bytes, tuple[int, _Asked]], pids: Sequence[int]) -> Counts:
        done: Counts = Counter()
        for pid in sorted({pid for pid, _ in found.values()} & set(pids)):
            done += self._ask(pid, [one for its, one in found.values() if its == pid])
        return done

    def _failures(self, pid: int, state: str, since: int) -> Iterator[list[LastOutcome]]:
        """Yield what failed until we began; what fails again meanwhile comes behind that."""
        after = (since, b"")
        while True:
            with self._store.read() as tx:
                page = tx.outcomes_in(pid, state, after, self._terms.now, PAGE)
            yield page
            if len(page) < PAGE:
                return
            after = (page[-1].at, page[-1].urlkey)

    def _ask(self, pid: int, asked: Sequence[_Asked]) -> Counts:
        """Submit a page of URLs in one transaction."""
        if not asked:
            return Counter()
        if self._terms.dry_run:
            with self._store.read() as tx:
                keys = [one.key for one in asked]
                return Counter(self._judged(tx, pid, asked, tx.queued(keys), tx.cached(keys)).values())
        return repeated(self._submit, pid, asked)

    def _submit(self, pid: int, asked: Sequence[_Asked]) -> Counts:
        with self._store.begin() as tx:
            entries = {one.key: one for one in asked}
            keys = [*entries, *keys_of(pid, (one.entry for one in asked))]
            batch = UnitOfWork(tx, [pid], keys, self._terms.now, self._terms.policy)
            if pid not in batch.providers:
                return Counter()
            judged = self._judged(tx, pid, asked, batch.queued, batch.cached)
            wanted = [entries[key] for key, verdict in judged.items() if verdict in {QUEUED, SOONER}]
            psetid = unsent_set(batch, pid, len(wanted)) if wanted else 0
            for number, one in enumerate(wanted, 1):
                batch.ask_again(pid, one.entry, Place(psetid, number, one.origin, named=False))
            batch.flush()
        return Counter(judged.values())

    def _judged(
        self,
        tx: Tx,
        pid: int,
        asked: Sequence[_Asked],
        queued: Mapping[bytes, QueuedUrl],
        cached: Mapping[bytes, CachedUrl],
    ) -> dict[bytes, str]:
        """Return the verdict about each URL, by key."""
        roots = tuple(map(Root.parse, tx.roots(pid)))
        view = View(self._terms.queue_max, tx.queued_total(), tx.waiting_urls([pid]), ())
        room = view.room(pid)
        verdicts: dict[bytes, str] = {}
        for one in asked:
            verdict = _verdict(one, queued.get(one.key), cached.get(one.key), roots)
            if verdict == QUEUED:
                verdict = QUEUED if room > 0 else NO_ROOM
                room -= 1
            verdicts[one.key] = verdict
        return verdicts


def _verdict(one: _Asked, row: QueuedUrl | None, cached: CachedUrl | None, roots: tuple[Root, ...]) -> str:
    if row is not None:
        waits = row.operation == FETCH
        return SOONER if waits and row.not_before else WAITING if waits else WITHDRAWN
    if one.verdict:
        return one.verdict
    if one.held or (cached is not None and cached.held):
        return HELD
    if one.failed and cached is not None and _is_done(one, cached):
        return DONE_SINCE
    return QUEUED if _is_inside(one.entry.furl, roots) else OUTSIDE


def _is_done(one: _Asked, cached: CachedUrl) -> bool:
    """Tell whether a document is as it should be, though it failed; a mismatch shows that it exists."""
    if one.mismatch:
        return cached.confirmed_time > one.failed or agrees(cached, one.entry.declared)
    return cached.confirmed_time >= one.failed


def _is_inside(furl: str, roots: tuple[Root, ...]) -> bool:
    try:
        return inside(HttpUrl.parse(furl), roots)
    except UrlRefused:
        return False


_NOT_FAILED = {OUTCOME_REFUSED: REFUSED, OUTCOME_WITHDRAWN: WITHDRAWN}


def _failed(outcome: LastOutcome) -> _Asked:
    entry = entry_of(outcome)
    failed = outcome.state in {OUTCOME_FAILED, OUTCOME_STORED}
    verdict = "" if failed else _NOT_FAILED.get(outcome.state, DONE_SINCE)
    if entry is None:
        entry, verdict = UrlEntry(outcome.curl, outcome.mimetype, furl=outcome.furl), verdict or UNKNOWN
    mismatch = outcome.code in MISMATCHES
    return _Asked(entry, outcome.urlkey, origin_of(outcome), outcome.at, verdict=verdict, mismatch=mismatch)


def _is_fetched(row: CachedUrl) -> bool:
    """Tell whether a document comes from its site, and is no rendition."""
    return row.origin != Origin.RENDERED


def _document(row: CachedUrl) -> _Asked:
    """Ask for a document. The entry declares nothing, so any content is accepted."""
    if row.origin == Origin.PUSH:
        entry = replace(row.as_entry(), declared=Declared())
        return _Asked(entry, row.urlkey, Origin.REFETCH, held=bool(row.held))
    visit = visit_of(row.furl)
    key = urlkey(row.pid, visit.curl, visit.mimetype)
    return _Asked(visit, key, row.origin, held=bool(row.held))
