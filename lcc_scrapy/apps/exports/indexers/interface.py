"""The interface of an index that is updated in place."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from lcc_scrapy.apps.exports.interface import Item
from lcc_scrapy.feed.row_formats import Record


class Index(Protocol):
    """An index on disk. What was given since the last ``commit`` counts only from the next one on."""

    cursor: str
    """The cursor that was committed last; empty = the index is new."""

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Put a document in, in the place of the one with its docid; raises ``NoText`` as exports do."""

    def departure(self, one: Record) -> None:
        """Take the document with ``one["docid"]`` out, if it is there."""

    def commit(self, cursor: str) -> None:
        """Make everything durable and visible at once, this cursor with it."""

    def close(self) -> None:
        """Give the index back; called once, after a failure too."""


@dataclass(frozen=True, slots=True)
class IndexFormat:
    """How to open an index at a path, or make a new one where nothing is."""

    open: Callable[[Path], Index]
