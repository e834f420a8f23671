"""Reachability: the URLs of a provider to which stored links lead from the start URLs of spiders."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from lcc_scrapy.db.records import FEED, Spidered
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.entries import Origin, furlkey
from lcc_scrapy.domain.rendering import rendition_key
from lcc_scrapy.domain.roots import HttpUrl, Root, fetch_url, inside, under_former_name

CHUNK = 250
"""Rows per transaction."""

LINKS = 3000
"""Links in one transaction, but those of one document always go together."""

_KNOWN_LINKS = 20_000


class Reachable:
    """Goes from start pages and pushed documents along stored links, in bounded transactions.

    It keeps about 100 bytes in memory for each URL that it comes to.
    """

    def __init__(self, store: Store, pid: int) -> None:
        self._store = store
        self._pid = pid
        self._reached: set[bytes] = set()
        self._ahead: list[bytes] = []
        self.begins = False
        with store.read() as tx:
            self._upto = tx.peek(FEED)
            self._roots = tuple(map(Root.parse, tx.roots(pid)))
        self._place_of = lru_cache(_KNOWN_LINKS)(self._make_place)

    def __contains__(self, place: bytes) -> bool:
        """Tell whether a URL, by its ``furlkey``, was come to."""
        return place in self._reached

    def start(self) -> Iterator[None]:
        """Come to start pages, what somebody asked for, and what pushed documents link to.

        ``begins`` if there is any of these documents.
        """
        for rows in pages_of_found(self._store, self._pid):
            with self._store.read() as tx:
                wanted = tx.owners_of(row.furlkey for row in rows)
                starts = [row.furlkey for row in rows if row.parent is None or row.furlkey in wanted]
                self.begins |= bool(tx.linking_at(starts))
            self._come_to(starts)
            yield
        after = b""
        while True:
            with self._store.read() as tx:
                documents = tx.cached_of(self._pid, after, CHUNK)
                pushed = [one for one in documents if one.origin in {Origin.PUSH, Origin.SOURCE}]
                self._take_links(tx, [one.urlkey for one in pushed])
                self._take_links(tx, [rendition_key(self._pid, one.curl) for one in pushed])
            if not documents:
                return
            self.begins |= bool(pushed)
            after = documents[-1].urlkey
            yield

    def follow(self) -> Iterator[None]:
        """Follow links to their end, and those of documents that changed meanwhile."""
        while self._ahead or not self._look_for_news():
            self._follow_some()
            yield

    def is_current(self, tx: Tx) -> bool:
        """Tell whether everything was followed that is linked now; if not, ``follow`` has work to do.

        It waits for documents that were not read for links yet: what they link to now is not known.
        """
        scan, head = tx.scan(self._pid), tx.peek(FEED)
        read = scan.seq if scan else 0
        changes = tx.changes(self._upto, CHUNK, self._pid, head)
        documents = [row for row in changes if isinstance(row, CachedUrl)]
        self._take_links(tx, [row.urlkey for row in documents if row.seq <= read])
        unread = next((row.seq for row in documents if row.seq > read), 0)
        self._upto = unread - 1 if unread else changes[-1].seq if len(changes) == CHUNK else head
        return not documents and self._upto == head and not self._ahead

    def _look_for_news(self) -> bool:
        with self._store.read() as tx:
            return self.is_current(tx)

    def _follow_some(self) -> None:
        links = 0
        with self._store.read() as tx:
            while self._ahead and links < LINKS:
                place = self._ahead.pop()
                links += 1 + self._take_links(tx, tx.linking_at([place]).get(place, []))

    def _take_links(self, tx: Tx, documents: Sequence[bytes]) -> int:
        """Come to what documents link to, with ``nofollow`` or without; returns how many links they have."""
        count = 0
        for one in documents:
            links = tx.links_of(one)
            self._come_to(self._place_of(link.url) for link in links)
            count += len(links)
        return count

    def _come_to(self, places: Iterable[bytes]) -> None:
        for place in places:
            if place and place not in self._reached:
                self._reached.add(place)
                self._ahead.append(place)

    def _make_place(self, url: str) -> bytes:
        furl = fetch_url(url, self._roots) or self._under_former_name(url)
        return furlkey(self._pid, furl) if furl else b""

    def _under_former_name(self, url: str) -> str:
        """Return how a document is cached that was found while names were those of IDNA 2003."""
        before = under_former_name(HttpUrl.parse(url)) if "xn--" in url else None
        return str(before) if before is not None and inside(before, self._roots) else ""


def pages_of_found(store: Store, pid: int) -> Iterator[list[Spidered]]:
    """Yield what spiders found at a provider's, by rising ``furlkey``, a page in each short transaction."""
    after = b""
    while True:
        with store.read() as tx:
            rows = tx.spidered_of(pid, after, CHUNK)
        if not rows:
            return
        yield rows
        after = rows[-1].furlkey
