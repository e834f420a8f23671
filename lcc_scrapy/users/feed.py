"""The feed of changes (seed 003 section 9): documents and tombstones by rising seq, each once.

A document appears with its newest state only. Reading ends where the feed ended when it began, so that
it ends at all, and goes on from there the next time.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.users.cursor import Position
from lcc_scrapy.users.selection import Selection

PAGE = 1000
"""Changes per look into the store: short enough that a reader never keeps a writer waiting."""

Change = CachedUrl | Tombstone


class Feed(Protocol):
    """Where changes come from."""

    def head(self) -> Position:
        """Return the position of the newest change."""

    def page(self, after: int, limit: int) -> list[Change]:
        """Return the next changes behind a seq; nothing with a lower seq than the last appears later."""


class Reader:
    """Reads a feed once, from ``since`` (None = everything) to its end, ``limit`` changes at most (0 = all).

    ``position`` is where the next reader goes on; it holds for what ``pages`` has yielded, once the
    caller asks for the next page or the pages end. Raises ``StartOver``.
    """

    def __init__(
        self, feed: Feed, selection: Selection, since: Position | None = None, limit: int = 0
    ) -> None:
        self._feed = feed
        self._selection = selection
        self._limit = limit
        self._end = feed.head()
        if since is not None:
            since.check(self._end)
        self.position = since or replace(self._end, seq=0)

    def pages(self) -> Iterator[list[Change]]:
        """Yield lists of selected changes."""
        left = self._limit or float("inf")
        while left and (page := self._page()):
            wanted = [row for row in page if self._selection.admits(row)]
            reached = page[-1].seq
            if len(wanted) >= left:
                wanted = wanted[: int(left)]
                reached = wanted[-1].seq
            left -= len(wanted)
            if wanted:
                yield wanted
            self._reach(reached)
        if left:
            self._reach(self._end.seq)

    def _page(self) -> list[Change]:
        page = self._feed.page(self.position.seq, PAGE)
        return [row for row in page if row.seq <= self._end.seq]

    def _reach(self, seq: int) -> None:
        self.position = replace(self.position, seq=seq)
