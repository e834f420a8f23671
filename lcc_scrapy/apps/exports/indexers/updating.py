"""Brings an index up to date with what a reader of the feed gives."""

from collections.abc import Callable

from lcc_scrapy.apps.exports.indexers.interface import Index
from lcc_scrapy.apps.exports.interface import Item, NoText
from lcc_scrapy.apps.exports.writing import Open, Written, measured
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.selection import Change
from lcc_scrapy.feed.content import ContentGone
from lcc_scrapy.feed.names import name_of
from lcc_scrapy.feed.reader import Reader
from lcc_scrapy.feed.row_formats import record


class Updating:
    """One update of an index; ``opened`` opens contents as ``ContentUser.open`` does."""

    def __init__(self, index: Index, opened: Open) -> None:
        self.written = Written()
        self._index = index
        self._open = opened

    def run(self, reader: Reader, progress: Callable[[int], object]) -> Position:
        """Take everything, with a commit for every page of the feed; returns the position at the end.

        Raises ``StartOver``, ``ContentLost`` or ``ContentElsewhere``; what was committed stays, and the
        next update goes on from there.
        """
        for page in reader.pages():
            for change in page:
                self._change(change)
                progress(change.seq)
            self._index.commit(str(reader.reached))
        if str(reader.position) != self._index.cursor:
            self._index.commit(str(reader.position))
        return reader.position

    def _change(self, change: Change) -> None:
        one = record(change, lambda *_: "")
        if not isinstance(change, CachedUrl):
            self.written.removals += 1
            self._index.departure(one)
            return
        try:
            self._document(Item(change, one, name_of(change)))
        except ContentGone:
            self.written.changed += 1
        except NoText:
            self.written.textless += 1
            self._index.departure(one)

    def _document(self, item: Item) -> None:
        with self._open(item.row) as stored:
            self._index.document(item, measured(stored, item.row))
        self.written.documents += 1
        self.written.size += item.row.fetched_len
