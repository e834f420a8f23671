"""Confirmations: documents whose site was asked and that were unchanged, in the order of commits.

Each has a place among confirmations (``confirmed_seq``), apart from the feed, so that who follows the feed
hears nothing of them. As in the feed, a document appears once, at its newest place. When its content changes
it leaves them: then the feed tells of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from types import GenericAlias, UnionType

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.directives import Owners
from lcc_scrapy.domain.selection import Change, Selection
from lcc_scrapy.feed.reader import Feed, Look, Reader
from lcc_scrapy.feed.row_formats import Record

TYPES: dict[str, type | UnionType | GenericAlias] = {
    "op": str,
    "docid": str,
    "seq": int,
    "pid": int,
    "curl": str,
    "furl": str,
    "mimetype": str,
    "subtype": str | None,
    "confirmed_time": int,
    "fetched_time": int,
    "len": int,
    "sha256": str,
    "owners": list[str],
}
"""The columns of a confirmation; ``seq`` is its place among confirmations."""
COLUMNS = tuple(TYPES)


def records(rows: Iterable[Change], owners: Owners) -> Iterator[Record]:
    """Yield the columns of confirmations, as a ``Confirmations`` reads them."""
    return (_record(row, owners) for row in rows if isinstance(row, CachedUrl))


def _record(row: CachedUrl, owners: Owners) -> Record:
    return {
        "op": "confirm",
        "docid": row.docid,
        "seq": row.seq,
        "pid": row.pid,
        "curl": row.curl,
        "furl": row.furl,
        "mimetype": row.mimetype,
        "subtype": row.subtype or None,
        "confirmed_time": row.confirmed_time,
        "fetched_time": row.fetched_time,
        "len": row.fetched_len,
        "sha256": row.sha256,
        "owners": list(owners.get(row.urlkey, ())),
    }


class Confirmations(Reader):
    """Reads confirmations as ``Reader`` reads the feed; ``seq`` of its rows is their place among them.

    Its cursors are of their own: one of the feed is a ``BadCursor`` here, and the other way round.
    """

    def __init__(
        self,
        feed: Feed,
        selection: Selection,
        since: Position | None = None,
        limit: int = 0,
        *,
        rows: int = 0,
    ) -> None:
        super().__init__(_Confirmed(feed), replace(selection, confirmed=True), since, limit, rows=rows)


class _Confirmed:
    """A feed of confirmations, as far as a ``Reader`` asks."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    @property
    def lags(self) -> bool:
        return self._feed.lags

    def head(self) -> Position:
        return self._feed.confirmations_head()

    def forgotten(self) -> int:
        return 0  # what is no longer among them is in the feed

    def look(self, after: int, limit: int) -> Look:
        found = self._feed.confirmed(after, limit)
        rows = (row for row in found.rows if isinstance(row, CachedUrl))
        return replace(found, rows=[row.told(row.confirmed_seq, row.subtype_seq) for row in rows])

    def owners(self, rows: Sequence[Change], seen: int = 0) -> Owners:
        del seen  # a place among confirmations
        return self._feed.owners(rows)
