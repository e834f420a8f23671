"""Handing changes over as they happen, batch by batch; a position counts only when its batch was taken."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.selection import Change, Selection
from lcc_scrapy.feed.reader import Feed, Reader, Reading

FIRST_WAIT = 1.0
LONGEST_WAIT = 300.0
"""Seconds between tries to hand a batch over: doubled after each failure."""

_log = logging.getLogger(__name__)

P = TypeVar("P")


class Source(Protocol[P]):
    """What is followed."""

    def is_at_end(self, position: P | None) -> bool:
        """Tell, at little cost, whether nothing happened since a position."""

    def read(self, since: P | None, limit: int) -> Reading[P]:
        """Begin to read; raises ``StartOver``, ``BadCursor`` or ``StoreUnavailable``, as its pages do."""


@dataclass(frozen=True, slots=True)
class FeedSource:
    """What is selected of one LCC's feed."""

    feed: Feed
    selection: Selection

    def is_at_end(self, position: Position | None) -> bool:
        """Tell whether nothing at all happened since a position."""
        at, head = position, self.feed.head()
        return at is not None and (at.lcc, at.generation, at.seq) == (head.lcc, head.generation, head.seq)

    def read(self, since: Position | None, limit: int) -> Reader:
        """Begin to read."""
        return Reader(self.feed, self.selection, since, limit)


@dataclass(frozen=True, slots=True)
class Batch(Generic[P]):
    """Some changes, from behind ``since`` to ``position``; ``tries`` counts the failures before."""

    changes: Sequence[Change]
    since: P
    position: P
    tries: int


class Follower(Generic[P]):
    """Reads a source from ``since`` on, for ever or to its end.

    ``deliver`` tells whether a batch was taken; one that was not is read anew, for what it named may have
    changed, and tried again later. ``keep`` makes a position durable. ``pause`` waits some seconds, and
    tells whether to go on.
    """

    def __init__(
        self,
        source: Source[P],
        since: P | None,
        *,
        deliver: Callable[[Batch[P]], bool],
        keep: Callable[[P], None],
        pause: Callable[[float], bool],
        poll: float,
    ) -> None:
        self._source = source
        self.position = since
        self._deliver = deliver
        self._keep = keep
        self._pause = pause
        self._poll = poll
        self._tries = 0

    def run(self, *, limit: int = 0, once: bool = False) -> None:
        """Follow until told to stop, ``limit`` changes (0 = all), or with ``once`` to the end of the feed.

        Raises ``StartOver`` or ``BadCursor``.
        """
        taken = 0
        while True:
            taken += self._round(limit and limit - taken)
            if (limit and taken >= limit) or (once and not self._tries):
                return
            wait = min(FIRST_WAIT * 2 ** (self._tries - 1), LONGEST_WAIT) if self._tries else self._poll
            if not self._pause(wait):
                return

    def _round(self, limit: int) -> int:
        """Hand over what there is; returns how many changes were taken."""
        taken = 0
        try:
            if self._source.is_at_end(self.position):
                return 0
            reader = self._source.read(self.position, limit)
            if self.position is None:
                self._reach(reader.position)
            for page in reader.pages():
                batch = Batch(page, reader.position, reader.reached, self._tries)
                if not self._deliver(batch):
                    self._tries += 1
                    return taken
                self._tries = 0
                taken += len(page)
                self._reach(reader.reached)
                if not self._pause(0):
                    return taken
            self._tries = 0
            self._reach(reader.position)
        except StoreUnavailable as error:
            self._tries += 1
            _log.warning("the database does not answer, trying again: %s", error)
        return taken

    def _reach(self, position: P) -> None:
        if position != self.position:
            self._keep(position)
            self.position = position
