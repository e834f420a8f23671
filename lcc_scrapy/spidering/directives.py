"""Crawling directives in queue and cache: who asks for what, and how far that goes (seed 002 section 4).

An owner has an interest in a URL, and in what can be reached from there by so many links: its *reach*. Of
several ownerships of one owner the farthest holds. Interests are passed on along the links that are stored of
documents, with one link less, when somebody digs: for a document that a scan has just read, and for one
whose owners want more than before. So a URL that is known is never fetched for another owner or depth.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lcc_scrapy.cache.owners import tell_owners
from lcc_scrapy.db.records import Ownership
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.directives import NOBODY, Directive, Territories
from lcc_scrapy.domain.entries import Origin, furlkey
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.roots import Root, fetch_url
from lcc_scrapy.providers.registration import all_providers, lock
from lcc_scrapy.spidering.submitting import Found, Progress, Spidering

DUE = 64
"""Interests that are looked at in one transaction, at most."""

INTERESTS = 2000
"""Interests that one transaction passes on, but those of one owner in one URL go together."""


class NotTaken(LccError):
    """Directives cannot be taken now; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class _Page:
    """A URL with interests that are due, and what its documents link to."""

    due: list[Ownership]
    targets: tuple[Found, ...]


def territories(store: Store, pid: int | None = None) -> Territories:
    """Return which providers may have what fetched: all, or one; raises ``NotTaken`` if that may not."""
    open_ones = [one.pid for one in all_providers(store) if one.state in {State.ACTIVE, State.PAUSED}]
    if pid is not None and pid not in open_ones:
        raise NotTaken(f"nothing may be fetched from provider {pid}: see `lcc provider list`")
    pids = open_ones if pid is None else [pid]
    with store.read() as tx:
        of_all = tx.roots_of(pids)
    return Territories((one, Root.parse(root)) for one, roots in of_all.items() for root in roots)


class Directives:
    """The directives about one provider's URLs; verbs run in the store's thread. Times in epoch seconds."""

    def __init__(self, spidering: Spidering) -> None:
        self._spidering = spidering
        self._pid = spidering.pid
        self._store = spidering.store

    def ask(self, asked: Sequence[Directive], now: int) -> int:
        """Take directives, all or none (``NotTaken``); returns how many URLs are to be fetched for them."""
        with self._store.begin() as tx:
            urls, owned = self.ask_in(tx, asked, now)
            tell_owners(tx, owned)
            return urls

    def ask_in(
        self, tx: Tx, asked: Sequence[Directive], now: int, *, by_hand: bool = True
    ) -> tuple[int, set[bytes]]:
        """Take directives in a transaction of the caller's, to be rolled back on ``NotTaken``.

        ``by_hand`` = not for a URD: they hold until they are withdrawn. Returns how many URLs are to be
        fetched, and those with new owners, of whom the caller tells last (``tell_owners``).
        """
        provider = tx.lock_providers([self._pid]).get(self._pid)
        if provider is None or provider.state not in {State.ACTIVE, State.PAUSED}:
            raise NotTaken(f"nothing may be fetched from provider {self._pid}: see `lcc provider list`")
        if not self._spidering.admits(tx):
            raise NotTaken(f"the queue has no room for more of provider {self._pid}: try again later")
        done = self._spidering.submit(tx, self._found(tx, asked), now, now, Origin.DIRECTIVE)
        if done.held_up:
            raise NotTaken(f"provider {self._pid} may have no more files: see `lcc provider set --files`")
        new = self._own(tx, (own for one in asked for own in self._ownerships(one, by_hand=by_hand)))
        return done.urls + self._spidering.fetch_afresh(tx, new, now), new

    def withdraw(self, withdrawn: Sequence[Directive]) -> int:
        """Take directives back, whatever their depth; returns how many there were.

        What their owners reach is computed anew later (``withdrawing``).
        """
        pairs = {
            (furlkey(self._pid, str(one.link)), owner)
            for one in withdrawn
            for owner in one.owners or (NOBODY,)
        }
        with self._store.begin() as tx:
            lock(tx, self._pid)
            there = [row for row in tx.ownerships(pairs).values() if row.asked >= 0]
            tx.put_owners([replace(row, asked=-1) for row in there])
            tx.put_withdrawals({row.owner for row in there})
            return len(there)

    def _found(self, tx: Tx, asked: Sequence[Directive]) -> list[Found]:
        lies_at = {one.parent: furlkey(self._pid, one.parent) for one in asked if one.parent}
        there = tx.cached_at(lies_at.values())
        parents = {url: there[key][0].urlkey for url, key in lies_at.items() if key in there}
        return [Found(str(one.link), 0, parents.get(one.parent)) for one in asked]

    def _ownerships(self, asked: Directive, *, by_hand: bool) -> Iterable[Ownership]:
        key, said = furlkey(self._pid, str(asked.link)), asked.depth if by_hand else -1
        ownerships = (self._ownership(key, owner, asked.depth) for owner in asked.owners or (NOBODY,))
        return [replace(one, asked=said) for one in ownerships]

    def _ownership(self, key: bytes, owner: str, reach: int) -> Ownership:
        return Ownership(key, owner, self._pid, reach, due=reach > 0)

    def _own(self, tx: Tx, ownerships: Iterable[Ownership]) -> set[bytes]:
        """Note interests where they are new or go farther than before; returns the URLs with new owners."""
        farthest: dict[tuple[bytes, str], Ownership] = {}
        for one in ownerships:
            pair = one.furlkey, one.owner
            farthest[pair] = farther(farthest[pair], one) if pair in farthest else one
        there = tx.ownerships(farthest)
        merged = {pair: farther(there[pair], one) for pair, one in farthest.items() if pair in there}
        risen = [one for pair, one in (farthest | merged).items() if one != there.get(pair)]
        tx.put_owners(risen)
        if risen:
            tx.note_risen({one.owner for one in risen})
        return {lies_at for lies_at, owner in farthest.keys() - there.keys() if owner != NOBODY}

    def dig(self, now: int) -> Progress | None:
        """Pass interests that are due on to what is linked; None when none were.

        What cannot be queued for want of room stays due.
        """
        with self._store.read() as tx:
            if not tx.to_dig(self._pid, 1):
                return None
        with self._store.begin() as tx:
            if not tx.lock_providers([self._pid]):
                return None
            pages = self._pages(tx)
            scan = tx.scan(self._pid)
            found = [target for page in pages for target in page.targets]
            done = self._spidering.submit(tx, found, now, scan.since if scan else 0)
            if not done.held_up:
                tx.put_owners([replace(one, due=False) for page in pages for one in page.due])
            new = self._own(tx, (wish for page in pages for wish in self._inherited(page)))
            self._spidering.fetch_afresh(tx, new, now)
            tell_owners(tx, new)
            return done

    def _inherited(self, page: _Page) -> Iterable[Ownership]:
        for one in page.due:
            for target in page.targets:
                yield self._ownership(furlkey(self._pid, target.furl), one.owner, one.reach - 1)

    def _pages(self, tx: Tx) -> list[_Page]:
        roots = tuple(map(Root.parse, tx.roots(self._pid)))
        pages: dict[bytes, _Page] = {}
        interests = 0
        for one in tx.to_dig(self._pid, DUE):
            if one.furlkey not in pages:
                pages[one.furlkey] = _Page([], self._targets(tx, one.furlkey, roots))
            targets = pages[one.furlkey].targets
            if interests and interests + len(targets) > INTERESTS:
                break
            interests += len(targets)
            pages[one.furlkey].due.append(one)
        return [page for page in pages.values() if page.due]

    def _targets(self, tx: Tx, key: bytes, roots: tuple[Root, ...]) -> tuple[Found, ...]:
        """Return where the links of the documents at a URL lead, as far as they may be followed."""
        known = tx.spidered([key]).get(key)
        depth = 1 + (known.depth if known else 0)
        targets: dict[str, Found] = {}
        for document, furl in linked_from(tx, key, roots):
            targets.setdefault(furl, Found(furl, depth, document))
        return tuple(targets.values())


def farther(known: Ownership, one: Ownership) -> Ownership:
    """Return what an interest is when another one in the same URL of the same owner is added."""
    due = known.due or one.reach > known.reach
    return replace(known, reach=max(known.reach, one.reach), asked=max(known.asked, one.asked), due=due)


def linked_from(tx: Tx, key: bytes, roots: tuple[Root, ...]) -> Iterator[tuple[bytes, str]]:
    """Yield documents at a URL with the fetch URLs that they link to, as far as these may be followed."""
    for document in tx.linking_at([key]).get(key, ()):
        links = (link for link in tx.links_of(document) if not link.nofollow)
        for furl in filter(None, (fetch_url(link.url, roots) for link in links)):
            yield document, furl
