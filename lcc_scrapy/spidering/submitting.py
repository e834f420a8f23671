"""Submitting: spiders queue the URLs that they found, and those that are due for a revisit.

Seed 001, "Using the LCC for traditional spidering". A *scan* goes through the feed of a provider's
documents; the links of a few of them, the URLs that follow from these, and how far it came are one
transaction, so that a kill repeats and skips nothing.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from lcc_scrapy.cache.irrelevant import current_at
from lcc_scrapy.db.records import ABSORBED, FEED, LAST_NUMBER, DocumentLink, ProviderSet, Scan, Spidered
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.absorption import View
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.entries import ANY_TYPE, Declared, Origin, UrlEntry, furlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Orphans, Provider
from lcc_scrapy.domain.queue import Place
from lcc_scrapy.domain.revisits import bounds_of, may_be_guessed
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.intake.absorbing import PSETID
from lcc_scrapy.queue.unit_of_work import UnitOfWork, keys_of
from lcc_scrapy.queue.visits import is_needless
from lcc_scrapy.spidering.orphans import OrphanLook

PAGES = 64
"""Documents that are looked at together: of the order of what one commit of fetched pages brings."""

KNOWN_LINKS = 3000
"""Links that a look takes from the table; those of its first document always."""

SPAN = 20_000
"""Changes of the feed that are looked through at a time for those of one provider."""

VISITS = 500
"""URLs that are submitted at a time to be visited again."""

LOCATED = 1000
"""Waiting URLs that are made known to spiders at a time."""

NO_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True)
class Terms:
    """What a scan follows. ``depth``: links from a start page at most, None = any number of them.

    ``urls``: how many URLs of the provider spiders may know in all, 0 = no limit; ``queue_max`` as in
    LCC_QUEUE_MAX. ``rules``: what decides which links a document has, ``start``: what else decides where a
    scan comes, as text.
    """

    depth: int | None = None
    urls: int = 0
    queue_max: int = 0
    rules: str = ""
    start: str = ""

    def permits(self, depth: int) -> bool:
        """Tell whether URLs so many links from a start page are visited."""
        return self.depth is None or depth <= self.depth


@dataclass(frozen=True, slots=True)
class Found:
    """A URL to visit, ``depth`` links from a start page; ``parent`` is the document that names it."""

    furl: str
    depth: int = 0
    parent: bytes | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A document to be read for links; ``headers`` are those that it was served with.

    ``links`` are those that were taken from this content before, by the same rules; None = it has to be read.
    """

    row: CachedUrl
    depth: int
    headers: tuple[tuple[str, str], ...] = ()
    links: tuple[DocumentLink, ...] | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What a scan is to do next: read ``documents``, which brings it to ``upto`` in the feed.

    ``admitted``: the queue has room for more of this provider. ``scan`` is how far it was.
    """

    scan: Scan
    upto: int
    head: int
    admitted: bool
    documents: tuple[Reading, ...]
    roots: tuple[Root, ...]

    @property
    def at_end(self) -> bool:
        """Tell whether there is nothing to be read."""
        return not self.documents and self.upto >= self.head

    def first(self, count: int) -> "Look":
        """Return a look at the first documents only; the others come with the next one."""
        if count >= len(self.documents):
            return self
        return replace(self, documents=self.documents[:count], upto=self.documents[count - 1].row.seq)


@dataclass(frozen=True, slots=True)
class Read:
    """The links of one document, and the URLs of them that may be visited; ``cut``: it was read in part."""

    reading: Reading
    links: tuple[DocumentLink, ...]
    found: tuple[Found, ...]
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """What a step of a scan did: ``urls`` were submitted.

    ``held_up``: further ones may not be, so it went no further; ``full``: and nothing that waits can change
    that.
    """

    urls: int = 0
    held_up: bool = False
    full: bool = False


class Spidering:
    """The spidering of one provider; its verbs run in the store's thread. Times in epoch seconds.

    ``adaptive``: URLs are visited again when they are due, and not all after the same time.
    """

    def __init__(
        self, store: Store, pid: int, terms: Terms, policy: QueuePolicy, *, adaptive: bool = False
    ) -> None:
        self.store = store
        self.pid = pid
        self._adaptive = adaptive
        self._located = 0
        self.terms = terms
        self.policy = policy

    def look(self, now: int, scan: Scan | None = None) -> Look:
        """Return the next documents to be read: those after ``scan``, or after how far the scan has come."""
        with self.store.read() as tx:
            roots = tx.roots(self.pid)
            scan = scan or self._scan(tx, roots, now)
            head = tx.peek(FEED)
            upto = min(head, scan.seq + SPAN)
            changes = tx.changes(scan.seq, PAGES, self.pid, upto)
            rows = [row for row in changes if isinstance(row, CachedUrl)]
            look = Look(
                scan,
                changes[-1].seq if len(changes) == PAGES else upto,
                head,
                self.admits(tx),
                tuple(self._readings(tx, rows)),
                tuple(map(Root.parse, roots)),
            )
            return self._with_known_links(tx, look)

    def _scan(self, tx: Tx, roots: Sequence[str], now: int) -> Scan:
        """Return how far the scan is; where other terms hold than before, it begins anew."""
        scan, said = tx.scan(self.pid) or Scan(self.pid), self.terms
        rules = _digest(said.rules)
        if scan.rules != rules:
            scan = replace(scan, rules=rules, taken=0)
        provider = tx.provider(self.pid)
        types = provider.accepted_types(self.policy.mimetypes) if provider else ()
        terms = _digest([said.depth, said.rules, said.start, sorted(roots), types])
        return scan if scan.terms == terms else replace(scan, seq=0, terms=terms, since=now)

    def admits(self, tx: Tx) -> bool:
        """Tell whether the queue has room for more of this provider."""
        own = tx.waiting_urls([self.pid])
        return View(self.terms.queue_max, tx.queued_total(), own, ()).admits(self.pid)

    def _readings(self, tx: Tx, rows: Sequence[CachedUrl]) -> Iterable[Reading]:
        lies_at = {row.urlkey: furlkey(row.pid, row.furl) for row in rows}
        known, metas = tx.spidered(lies_at.values()), tx.metas(lies_at)
        for row in rows:
            found, meta = known.get(lies_at[row.urlkey]), metas.get(row.urlkey)
            headers = tuple((name, value) for name, value in json.loads(meta.headers)) if meta else ()
            yield Reading(row, found.depth if found else 0, headers)

    def _with_known_links(self, tx: Tx, look: Look) -> Look:
        """Add their links to the documents that were read before, as far as these are few enough."""
        documents, room = list(look.documents), KNOWN_LINKS
        for number, reading in enumerate(documents):
            if reading.row.seq > look.scan.taken:
                break
            if room <= 0:
                return replace(look, documents=tuple(documents)).first(number)
            links = tuple(tx.links_of(reading.row.urlkey))
            documents[number] = replace(reading, links=links)
            room -= len(links)
        return replace(look, documents=tuple(documents))

    def locate(self) -> bool:
        """Look at some of what waits, and make it known to spiders; tell whether there is more.

        It is for providers that were never spidered, whose URLs arrive without a ``furlkey``; ``submit``
        does the rest: what arrived since.
        """
        with self.store.begin() as tx:
            if not tx.lock_providers([self.pid]) or tx.scan(self.pid) is not None:
                return False
            upto = self._locate_some(tx, self._located)
        if upto < LAST_NUMBER:
            self._located = upto
        return upto < LAST_NUMBER

    def _locate_rest(self, tx: Tx) -> None:
        """Mark the provider, which has to be locked, as one whose URLs arrive with a ``furlkey``."""
        if tx.scan(self.pid) is not None:
            return
        upto = self._located
        while upto < LAST_NUMBER:
            upto = self._locate_some(tx, upto)
        tx.put_scan(Scan(self.pid))

    def _locate_some(self, tx: Tx, after: int) -> int:
        """Return up to where; ``LAST_NUMBER`` = there is no more."""
        upto = tx.reach_waiting(self.pid, after, LOCATED)
        tx.locate(self.pid, after, upto)
        return upto

    def seed(self, furls: Sequence[str], now: int) -> Progress:
        """Submit start pages that are not known, or could not be had."""
        with self.store.begin() as tx:
            self._begin_anew(tx, now)
            return self.submit(tx, [Found(furl) for furl in furls], now, now)

    def _begin_anew(self, tx: Tx, now: int) -> None:
        """Note other terms at once where pages were dropped: on these, they are to be read again."""
        known = tx.scan(self.pid) if tx.has_irrelevant() else None
        if known is not None:
            tx.put_scan(self._scan(tx, tx.roots(self.pid), now))

    def advance(self, look: Look, read: Sequence[Read], upto: int, now: int) -> Progress | None:
        """Take in what was read, which brings the scan to ``upto``; None when another one was faster."""
        with self.store.begin() as tx:
            if not tx.lock_providers([self.pid]):
                return Progress(held_up=True)
            self._locate_rest(tx)
            scan = self._scan(tx, tx.roots(self.pid), look.scan.since)
            if (scan.seq, scan.terms) != (look.scan.seq, look.scan.terms):
                return None
            same = self._unchanged(tx, read)
            fresh = [one for one in same if one.reading.links is None]
            tx.put_links({one.reading.row.urlkey: one.links for one in fresh}, self.pid)
            tx.let_dig(furlkey(self.pid, one.reading.row.furl) for one in same)
            found = [url for one in same for url in one.found]
            done = self.submit(tx, found, now, scan.since)
            seq = scan.seq if done.held_up else upto
            pages, urls = scan.pages + len(fresh), scan.urls + done.urls
            taken = max(scan.taken, seq)
            tx.put_scan(replace(scan, seq=seq, at=now, pages=pages, urls=urls, taken=taken))
            return done

    def _unchanged(self, tx: Tx, read: Sequence[Read]) -> list[Read]:
        """Leave out documents that were replaced or removed since: they come again, or not at all."""
        rows = tx.cached(one.reading.row.urlkey for one in read)
        now = {key: row.fetched_fileid for key, row in rows.items()}
        return [one for one in read if now.get(one.reading.row.urlkey) == one.reading.row.fetched_fileid]

    def revisit(self, before: int, now: int) -> int:
        """Submit URLs whose time came before ``before``; returns how many were looked at.

        What a provider pushes is not visited any more.
        """
        with self.store.begin() as tx:
            if not tx.lock_providers([self.pid]):
                return 0
            looked_at = self._overdue(tx, before, VISITS)
            overdue = self._without_needless(tx, looked_at, now)
            keys = [row.furlkey for row in overdue]
            documents, waiting = tx.cached_at(keys), tx.waiting_at(keys)
            entries: defaultdict[str, list[UrlEntry]] = defaultdict(list)
            for row in overdue:
                there = documents.get(row.furlkey, [])
                if row.furlkey not in waiting and all(may_be_guessed(one.origin) for one in there):
                    for one in there:
                        entries[one.origin].append(one.as_entry())
                    if not there:
                        entries[Origin.SPIDER].append(visit_of(row.furl))
            tx.visit_again(keys)
            for origin, visits in entries.items():
                self._queue(tx, visits, now, origin, ifabsent=False)
            return len(looked_at)

    def ask_again(self, tx: Tx, furlkeys: Sequence[bytes], now: int) -> int:
        """Queue the documents at these URLs to be fetched again; returns how many did not wait already.

        The fetches declare nothing, or what is as declared would not be fetched. What the provider of a
        pushed document declared stays.
        """
        documents, waiting = tx.cached_at(furlkeys), tx.waiting_at(furlkeys)
        entries: defaultdict[str, list[UrlEntry]] = defaultdict(list)
        for key in dict.fromkeys(furlkeys):
            for one in documents.get(key, ()) if key not in waiting else ():
                origin = Origin.REFETCH if one.origin == Origin.PUSH else one.origin
                entries[origin].append(replace(one.as_entry(), declared=Declared()))
        left = current_at(tx, set(furlkeys) - documents.keys() - waiting.keys())
        entries[Origin.DIRECTIVE] += [visit_of(one.furl) for one in left.values()]
        tx.visit_again([key for key in (*documents, *left) if key not in waiting])
        for origin, asked in entries.items():
            self._queue(tx, asked, now, origin, ifabsent=False, named=origin != Origin.REFETCH)
        return sum(map(len, entries.values()))

    def fetch_afresh(self, tx: Tx, furlkeys: Iterable[bytes], now: int) -> int:
        """Queue dropped documents at these URLs that are wanted now: as if they had never been there."""
        if not tx.has_irrelevant() or not tx.lock_providers([self.pid]):
            return 0
        at = tx.irrelevant_at(furlkeys)
        waiting = tx.waiting_at(at)
        tx.wanted_again([one.urlkey for rows in at.values() for one in rows])
        visits = [visit_of(rows[0].furl) for key, rows in at.items() if key not in waiting]
        tx.visit_again(list(at))
        self._queue(tx, visits, now, Origin.DIRECTIVE, ifabsent=False)
        return len(visits)

    def _without_needless(self, tx: Tx, overdue: Sequence[Spidered], now: int) -> list[Spidered]:
        """Leave out what would be refused again, and note it as visited; what has a document stays."""
        since = self._scan(tx, tx.roots(self.pid), now).since
        refused = [row for row in overdue if is_needless(row, since, now)]
        there = tx.cached_at(row.furlkey for row in refused)
        needless = {row.furlkey: replace(row, visited=now) for row in refused if row.furlkey not in there}
        tx.visited(list(needless.values()))
        return [row for row in overdue if row.furlkey not in needless]

    def orphans(self, now: int) -> OrphanLook:
        """Return a look for orphans."""
        return OrphanLook(self.store, self.pid, now, self.policy)

    def may_have_orphans(self) -> bool:
        """Tell whether anything is to be done about orphans: about what is held too, when they may stay."""
        with self.store.read() as tx:
            provider = tx.provider(self.pid)
        return provider is not None and (provider.orphans != Orphans.KEEP or provider.heldremovals > 0)

    def _overdue(self, tx: Tx, before: int, limit: int) -> list[Spidered]:
        """Return URLs that were last visited before ``before``, or whose guessed time had come then.

        Where the longest interval is a shorter one now, that holds at once.
        """
        provider = tx.provider(self.pid) if before else None
        if provider is None:
            return []
        if not self._adaptive:
            return tx.overdue(self.pid, before, limit)
        longest = bounds_of(provider.revisit, self.policy.revisits).longest
        return tx.due(self.pid, before, limit) or tx.overdue(self.pid, before - longest, limit)

    def is_done(self, before: int, *, full: bool) -> bool:
        """Tell whether nothing waits, is to be read, or had its time before ``before``.

        ``full``: what is to be read may not be followed anyway.
        """
        with self.store.read() as tx:
            scan = self._scan(tx, tx.roots(self.pid), 0)
            if tx.waiting_urls([self.pid]).get(self.pid) or self._overdue(tx, before, 1):
                return False
            to_be_read = tx.changes(scan.seq, 1, self.pid, scan.seq + SPAN)
            return full or not (to_be_read or tx.to_dig(self.pid, 1))

    # --- submitting ------------------------------------------------------------------------------

    def submit(
        self, tx: Tx, found: Sequence[Found], now: int, since: int, origin: Origin = Origin.SPIDER
    ) -> Progress:
        """Queue the URLs that are not present; those that failed since ``since`` are not tried again."""
        provider = tx.lock_providers([self.pid]).get(self.pid)
        first: dict[str, Found] = {}
        for one in found:
            first.setdefault(one.furl, one)
        by_key = {furlkey(self.pid, furl): one for furl, one in first.items()}
        if provider is None or not by_key:
            return Progress()
        self._locate_rest(tx)
        present = tx.present_at(by_key)
        present |= current_at(tx, by_key.keys() - present).keys()
        known = tx.spidered(key for key in by_key if key not in present)
        absent = [key for key in by_key if key not in present and not _has_failed(known.get(key), since)]
        room = self._room(tx, provider)
        new = [key for key in absent if key not in known]
        taken = absent if len(new) <= room else new[:room]
        self._queue(tx, [visit_of(by_key[key].furl) for key in taken], now, origin, ifabsent=True)
        tx.insert_spidered([_row(self.pid, key, by_key[key], now) for key in taken if key not in known])
        tx.visit_again([key for key in taken if key in known])
        held_up = len(taken) < len(absent)
        return Progress(len(taken), held_up, full=held_up and not taken and not provider.nurlproc)

    def _room(self, tx: Tx, provider: Provider) -> int:
        """Return how many URLs more spiders may know."""
        rooms = [NO_LIMIT]
        if self.terms.urls:
            rooms.append(self.terms.urls - tx.count_spidered(self.pid))
        if provider.filesmax:
            rooms.append(provider.filesmax - provider.fileused - provider.nurlproc)
        return max(0, min(rooms))

    def _queue(
        self,
        tx: Tx,
        entries: Sequence[UrlEntry],
        now: int,
        origin: str,
        *,
        ifabsent: bool,
        named: bool = True,
    ) -> None:
        if entries:
            batch = UnitOfWork(tx, [self.pid], keys_of(self.pid, entries), now, self.policy)
            queue_up(batch, self.pid, entries, origin, ifabsent=ifabsent, named=named)


def queue_up(
    batch: UnitOfWork,
    pid: int,
    entries: Sequence[UrlEntry],
    origin: str,
    *,
    ifabsent: bool = False,
    named: bool = True,
) -> None:
    """Queue URLs as a set of the LCC itself; the unit of work has their ``keys_of``, and is written."""
    psetid = unsent_set(batch, pid, len(entries))
    for number, entry in enumerate(entries, 1):
        batch.arrive(pid, entry, Place(psetid, number, origin, named=named), ifabsent=ifabsent)
    batch.flush()


def unsent_set(batch: UnitOfWork, pid: int, count: int) -> int:
    """Note a set of the LCC itself, of ``count`` URLs; returns its number."""
    psetid = batch.tx.take(PSETID, 1)
    batch.tx.insert_psets([
        ProviderSet(
            psetid, pid, 0, "", "", full=False, received=count, phase=ABSORBED, progress=0,
            absorbed=count, started=batch.now,
        )
    ])  # fmt: skip
    return psetid


def _digest(said: object) -> str:
    return sha256(json.dumps(said).encode()).hexdigest()


def _has_failed(row: Spidered | None, since: int) -> bool:
    """Tell whether a URL could not be had when it was last visited, not before ``since``."""
    return row is not None and bool(row.code) and row.visited >= since


def visit_of(furl: str) -> UrlEntry:
    """Return the entry of a URL that is visited without regard to its type."""
    return UrlEntry(furl, ANY_TYPE, furl=furl, burl=furl)


def _row(pid: int, key: bytes, found: Found, now: int) -> Spidered:
    return Spidered(key, pid, found.furl, found.depth, found.parent, now)
