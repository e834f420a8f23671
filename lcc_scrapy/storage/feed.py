"""The feed of changes out of a store, in short reading transactions."""

from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.storage.tx import FEED, Store, Tx
from lcc_scrapy.users.cursor import Position
from lcc_scrapy.users.feed import Change

LCC_ID = "lcc"
GENERATION = "generation"
"""Facts about an LCC (table ``lccinfo``): its id, and which life of it this is: 1, or, after a backup was
restored, the time of that (epoch seconds). Cursors of another life do not count."""


class StoreFeed:
    """A ``users.feed.Feed`` over a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def head(self) -> Position:
        """Return the position of the newest change."""
        with self._store.read() as tx:
            return head_of(tx)

    def page(self, after: int, limit: int) -> list[Change]:
        """Return the next changes behind a seq."""
        with self._store.read() as tx:
            return list(tx.changes(after, limit))


def head_of(tx: Tx) -> Position:
    """Return where the feed is now."""
    lcc_id, generation = tx.info(LCC_ID), tx.info(GENERATION)
    if not lcc_id or not generation:
        raise ConfigurationError("the database belongs to no LCC yet: run `lcc init`")
    return Position(lcc_id, int(generation), tx.peek(FEED))
