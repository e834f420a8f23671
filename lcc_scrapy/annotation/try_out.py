"""Trying a URD against cached pages before it is kept: what would it have found among the newest ones?"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import IO

from lcc_scrapy.annotation.annotating import Finding, Page, Profiles
from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.urd_rules import checked
from lcc_scrapy.domain.urds import EVERYTHING, Urd
from lcc_scrapy.feed.content import ContentGone, ContentLost
from lcc_scrapy.feed.reader import Feed

PAGES = 50
"""Pages in scope that are read, the newest ones."""

LOOKED_AT = 20_000
"""Changes of the feed, the newest ones, among which pages in scope are looked for."""

BODY_MAX = 2_000_000
"""Bytes of a page; longer ones are passed over."""

SECONDS = 5.0
"""After these no other page is begun."""

_PORTION = 1000


@dataclass(frozen=True, slots=True)
class Tried:
    """What a URD found: ``pages`` in scope were read. ``complete``: those are all that there are."""

    pages: int
    complete: bool
    found: tuple[tuple[CachedUrl, Finding], ...]


@dataclass(frozen=True, slots=True)
class TryOut:
    """Tries URDs against a feed and the contents of it. Blocking."""

    feed: Feed
    open: Callable[[CachedUrl], IO[bytes]]
    clock: Callable[[], float] = time.monotonic

    def run(self, urd: Urd, now: int) -> Tried:
        """Return what a URD finds; ``now`` in epoch milliseconds. Raises ``BadUrd``."""
        urd, end = replace(checked(urd), expires=None), self.clock() + SECONDS
        profiles, scope = Profiles([urd]), _Scope(self.feed, urd, lambda: self.clock() > end)
        found: list[tuple[CachedUrl, Finding]] = []
        pages = 0
        for row, owners in scope.rows():
            if pages == PAGES:
                return Tried(pages, complete=False, found=tuple(found))
            body = self._body(row)
            if body is not None:
                pages += 1
                page = Page(row.furl, body, row.mimetype, row.served_charset)
                found += [(row, one) for one in profiles.findings(page, owners, now)]
        return Tried(pages, scope.complete, tuple(found))

    def _body(self, row: CachedUrl) -> bytes | None:
        try:
            with self.open(row) as stream:
                body = stream.read(BODY_MAX + 1)
        except (ContentGone, ContentLost):
            return None
        return body if len(body) <= BODY_MAX else None


class _Scope:
    """The pages in scope of a URD, newest first. ``complete``: when none is left, there are no others."""

    def __init__(self, feed: Feed, urd: Urd, is_late: Callable[[], bool]) -> None:
        self._feed = feed
        self._urd = urd
        self._is_late = is_late
        self.complete = True

    def rows(self) -> Iterator[tuple[CachedUrl, list[str]]]:
        """Yield documents, each with those who have an interest in it by a directive."""
        if self._urd.uri != EVERYTHING and not self._urd.uri.endswith("/") and not self._urd.depth:
            found = self._feed.find(self._urd.uri)
            yield from ((row, []) for row in sorted(found, key=lambda one: one.seq, reverse=True))
            return
        for row in self._newest():
            owners = list(self._feed.owners([row]).get(row.urlkey, ())) if self._urd.depth else []
            if self._urd.names(row.furl) or self._urd.owner in owners:
                yield row, owners
            if self._is_late():
                self.complete = False
                return

    def _newest(self) -> Iterator[CachedUrl]:
        upto = self._feed.head().seq
        lowest = max(0, upto - LOOKED_AT)
        self.complete = not lowest
        while upto > lowest:
            after = max(lowest, upto - _PORTION)
            rows = [row for row in self._feed.look(after, _PORTION).rows if row.seq <= upto]
            yield from (row for row in reversed(rows) if not isinstance(row, Tombstone))
            upto = after
