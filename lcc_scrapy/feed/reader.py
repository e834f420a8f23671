"""The feed of changes (seed 003 section 9): documents and removals by rising seq, each once.

A document appears with its newest state only. Reading ends where the feed ended when it began, so that
it ends at all, and goes on from there the next time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from lcc_scrapy.db.records import DocumentLink
from lcc_scrapy.domain.cache import CachedUrl, Tombstone, UrlMeta
from lcc_scrapy.domain.cursor import Position, StartOver
from lcc_scrapy.domain.directives import Owners
from lcc_scrapy.domain.front_moves import Came
from lcc_scrapy.domain.selection import Change, Selection
from lcc_scrapy.domain.versions import Version

PAGE = 1000
"""Rows per look into the store: short enough that a reader never keeps a writer waiting."""


@dataclass(frozen=True, slots=True)
class Look:
    """Changes, the position of the newest change when they were read, and what was forgotten by then."""

    rows: Sequence[CachedUrl | Tombstone]
    head: Position
    forgotten: int = 0


class Pages(Protocol):
    """Where a reader gets its pages. Every call is a short transaction of its own.

    Each call may meet another replica of the database. ``seen`` is the newest change that its caller has been
    told of: raises ``StoreUnavailable`` where a replica lacks it.
    """

    @property
    def lags(self) -> bool:
        """Tell whether this is read from replicas, which may lack what was told before."""

    def head(self) -> Position:
        """Return the position of the newest change."""

    def forgotten(self) -> int:
        """Return the highest seq of a removal that is no longer told, 0 = all are."""

    def look(self, after: int, limit: int) -> Look:
        """Return the next changes behind a seq; nothing with a lower seq than the last appears later."""

    def owners(self, rows: Sequence[Change], seen: int = 0) -> Owners:
        """Return who asked for documents with a directive, or for one that leads there, as it is now.

        Of one document, those that a row names: the first ones by name.
        """


class Feed(Pages, Protocol):
    """Where changes come from, and what there is beside them."""

    def documents(self, after: bytes, limit: int, seen: int = 0) -> list[CachedUrl]:
        """Return documents by rising key."""

    def rows(self, keys: Sequence[bytes], seen: int = 0) -> dict[bytes, CachedUrl]:
        """Return the documents among these keys, as they are now."""

    def find(self, url: str) -> list[CachedUrl]:
        """Return the documents with this docid, conceptual URL or fetch URL, by rising key."""

    def versions(self, keys: Iterable[bytes]) -> dict[bytes, list[Version]]:
        """Return the earlier contents that are kept of these documents, newest first."""

    def links(self, key: bytes) -> list[DocumentLink]:
        """Return the links of a document, in the order of the page, as far as a spider read it."""

    def owners_behind(self, row: Change, after: str, limit: int) -> list[str]:
        """Return the owners of a document whose names come behind one; "" = from the first on."""

    def tombstones(self, keys: Sequence[bytes]) -> dict[bytes, Tombstone]:
        """Return the removals of the documents among these keys that are gone."""

    def moved(self, seqs: Sequence[int]) -> Mapping[int, Came]:
        """Return how changes with these seqs came from other sub-LCCs, of those that did."""

    def confirmations_head(self) -> Position:
        """Return the position of the newest confirmation."""

    def confirmed(self, after: int, limit: int) -> Look:
        """Return the next confirmed documents by ``confirmed_seq``; no lower one appears later."""

    def answers(self, rows: Sequence[CachedUrl]) -> dict[bytes, UrlMeta]:
        """Return the answers that these rows came with; of rows that changed since, nothing."""


P_co = TypeVar("P_co", covariant=True)


class Reading(Protocol[P_co]):
    """What hands pages of changes over, with positions as in ``Reader``: one LCC, or a front."""

    @property
    def position(self) -> P_co:
        """Return where to go on, for what has been yielded before the last page."""

    @property
    def reached(self) -> P_co:
        """Return where to go on behind the last page."""

    def pages(self) -> Iterator[list[Change]]:
        """Yield lists of selected changes, never empty."""

    def owners(self, page: Sequence[Change]) -> Owners:
        """Return the owners of the documents of the page that was yielded last."""


class Reader:
    """Reads a feed once, from ``since`` (None = everything) to its end, ``limit`` changes at most (0 = all).

    It looks at ``rows`` changes at a time, 0 = ``PAGE``.

    ``position`` is where the next reader goes on; it holds for what ``pages`` has yielded, once the
    caller asks for the next page or the pages end; ``reached`` is what it will be then. ``end`` is where
    it will be at last. Raises ``BadCursor`` at once, ``StartOver`` at once or while reading.

    A replica that lacks what ``since`` has been told gives no changes: then ``position`` is ``since``.
    """

    def __init__(
        self,
        feed: Pages,
        selection: Selection,
        since: Position | None = None,
        limit: int = 0,
        *,
        rows: int = 0,
    ) -> None:
        self._feed = feed
        self._selection = selection
        self._limit = limit
        self._rows = rows
        self.end = begin(feed, selection)
        self.position = self.reached = since or replace(self.end, seq=0)
        self._check(self.end, feed.forgotten())
        if self.position.is_ahead_of(self.end):
            self.end = self.position

    def pages(self) -> Iterator[list[Change]]:
        """Yield lists of selected changes, never empty, one for each look at most."""
        return filter(None, self.looks())

    def looks(self) -> Iterator[list[Change]]:
        """Yield the same for each look into the store, empty where nothing in a page was selected."""
        left = self._limit or float("inf")
        while left and (page := self._page()):
            wanted = [told for row in page if (told := self._selection.tell(row, self.position.began))]
            reached = page[-1].seq
            if len(wanted) >= left:
                wanted = wanted[: int(left)]
                reached = wanted[-1].seq
            left -= len(wanted)
            self.reached = replace(self.position, seq=reached)
            yield wanted
            self.position = self.reached
        if left:
            self.position = self.reached = replace(self.position, seq=self.end.seq)

    def owners(self, page: Sequence[Change]) -> Owners:
        """Return the owners of documents as they are now; when they change, a document comes again."""
        return self._feed.owners(page, self.reached.seq)

    def at(self, seq: int) -> Position:
        """Return the position right behind a change of the page that was yielded last."""
        return replace(self.position, seq=seq)

    def _page(self) -> list[CachedUrl | Tombstone]:
        look = self._feed.look(self.position.seq, self._rows or PAGE)
        self._check(look.head, look.forgotten)
        if self.position.is_ahead_of(look.head):
            self.end = self.position
            return []
        rows = [row for row in look.rows if row.seq <= self.end.seq]
        if not rows:
            self.end = replace(self.end, seq=min(self.end.seq, look.head.seq))
        return rows

    def _check(self, head: Position, forgotten: int) -> None:
        """Refuse to go on from another life of the LCC, or where removals are missing."""
        self.position.check(replace(head, selection=self._selection.digest), lags=self._feed.lags)
        if forgotten > max(self.position.seq, self.position.began):
            raise StartOver(
                "cursor from before the oldest removal that is still known (LCC_TOMBSTONES_KEEP): start over"
            )


class Inventory:
    """Which documents are there now: all selected ones by rising docid, in short transactions.

    Made for reconciling. What changes meanwhile may be listed as it was or as it is; but who throws away
    what is not listed, takes anew what has another seq, and then reads the feed from ``position``, has
    exactly what there is.
    """

    def __init__(self, feed: Feed, selection: Selection, *, rows: int = 0) -> None:
        self._feed = feed
        self._selection = selection
        self._rows = rows
        self.position = begin(feed, selection)

    def pages(self) -> Iterator[list[CachedUrl]]:
        """Yield lists of documents, never empty, one for each look (of ``rows``, 0 = ``PAGE``) at most."""
        return filter(None, self.looks())

    def looks(self) -> Iterator[list[CachedUrl]]:
        """Yield the same for each look into the store, empty where nothing in a page was selected."""
        last = b""
        while page := self._feed.documents(last, self._rows or PAGE, self.position.seq):
            last = page[-1].urlkey
            yield [row for row in page if self._selection.admits(row)]


def begin(feed: Pages, selection: Selection) -> Position:
    """Return the end of the feed as the position of somebody who begins there with this selection."""
    head = feed.head()
    return replace(head, began=head.seq, selection=selection.digest)
