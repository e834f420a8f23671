"""What queries are answered from: one LCC here, several behind a front elsewhere. All calls block."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Protocol

from lcc_scrapy.apps.query.wire.messages import Missing
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.directives import Owners
from lcc_scrapy.domain.errors import Refusal
from lcc_scrapy.domain.selection import Change, Selection
from lcc_scrapy.feed.library import Library
from lcc_scrapy.feed.reader import Inventory, Reader, begin

ROWS = 200
"""Changes per look at the feed: what a slow reader keeps in memory."""


class Told(Protocol):
    """Changes of a feed, read once; positions are those of ``feed.reader.Reading``."""

    @property
    def position(self) -> object:
        """Return where to go on; its text is a cursor."""

    @property
    def reached(self) -> object:
        """Return where to go on behind the last look."""

    def looks(self) -> Iterator[Sequence[Change]]:
        """Yield selected changes for each look, also when these are none."""

    def owners(self, page: Sequence[Change]) -> Owners:
        """Return the owners of the look that was yielded last."""


@dataclass(frozen=True, slots=True)
class Found:
    """Documents that are there now; the feed goes on at ``position``. Each page comes with its owners.

    ``failed`` says of sub-LCCs by name why they were not asked, as far as the pages were read.
    """

    position: object
    pages: Iterable[tuple[Sequence[CachedUrl], Owners]]
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listed:
    """Docids by rising docid with their seqs; the feed goes on at ``position``. Pages may be empty."""

    position: object
    pages: Iterable[Sequence[tuple[str, int]]]


class Source(Protocol):
    """What answers queries. Raises ``StartOver``, ``BadCursor``, ``StoreUnavailable`` and ``Refusal``."""

    has_files: bool
    """Whether who asks may have the content files."""

    def lcc(self, position: object) -> str:
        """Return the id of the LCC that a position is in; of a front it is empty."""

    def changes(self, selection: Selection, since: str, limit: int, anew: Sequence[str]) -> Told:
        """Begin to read what changed behind a cursor, "" = everything."""

    def later(self, told: Told, selection: Selection, limit: int) -> Told | None:
        """Begin to read on where it ended, None = nothing has changed since."""

    def missing(self, told: Told | Found | Listed) -> Sequence[Missing]:
        """Return which sub-LCCs were not read, when the looks or pages have ended."""

    def inventory(self, selection: Selection) -> Listed:
        """Begin to list what is there now."""

    def rows(self, selection: Selection, keys: Sequence[bytes]) -> Found:
        """Find the newest rows of documents."""

    def open(self, row: CachedUrl) -> IO[bytes]:
        """Return the content of a document, decoded, as a stream to be closed (see ``Library.open``)."""


class OneLcc:
    """The source that one LCC is."""

    has_files = True

    def __init__(self, library: Library) -> None:
        self._library = library
        self._feed = library.feed

    def lcc(self, position: object) -> str:
        """Return its id."""
        assert isinstance(position, Position)
        return position.lcc

    def changes(self, selection: Selection, since: str, limit: int, anew: Sequence[str]) -> Reader:
        """Begin to read on."""
        if anew:
            raise Refusal(805, "anew goes with a front of several sub-LCCs")
        position = Position.parse(since) if since else None
        return Reader(self._feed, selection, position, limit, rows=ROWS)

    def later(self, told: Told, selection: Selection, limit: int) -> Reader | None:
        """Begin to read on if the feed has gone on."""
        position = told.position
        assert isinstance(position, Position)
        if self._feed.head() == replace(position, began=0, selection=""):
            return None
        return Reader(self._feed, selection, position, limit, rows=ROWS)

    def missing(self, told: Told | Found | Listed) -> Sequence[Missing]:
        """Return nothing: where something is missing there is no answer."""
        del told
        return ()

    def inventory(self, selection: Selection) -> Listed:
        """Begin to list what is there now."""
        inventory = Inventory(self._feed, selection, rows=ROWS)
        pages = ([(row.docid, row.seq) for row in page] for page in inventory.looks())
        return Listed(inventory.position, pages)

    def rows(self, selection: Selection, keys: Sequence[bytes]) -> Found:
        """Find rows."""
        position = begin(self._feed, selection)
        return Found(position, self._rows(selection, keys, position.seq))

    def _rows(
        self, selection: Selection, keys: Sequence[bytes], seen: int
    ) -> Iterator[tuple[Sequence[CachedUrl], Owners]]:
        for start in range(0, len(keys), ROWS):
            found = self._feed.rows(keys[start : start + ROWS], seen).values()
            rows = [row for row in found if selection.admits(row)]
            yield rows, self._feed.owners(rows, seen)

    def open(self, row: CachedUrl) -> IO[bytes]:
        """Open a content."""
        return self._library.open(row)
