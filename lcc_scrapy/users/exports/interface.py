"""What a format of exports has to do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Protocol

from lcc_scrapy.domain.cache import CachedUrl, UrlMeta
from lcc_scrapy.users.formats import Record

LEVEL = 6
"""Of compression: what gzip itself takes, at a third of the time that the highest one costs."""


@dataclass(frozen=True, slots=True)
class Item:
    """A document to be written: its row, the same as in the manifest, and its name inside an archive.

    ``answer`` is what its site answered, where the format asked for that and it is known.
    """

    row: CachedUrl
    record: Record
    name: str
    answer: UrlMeta | None = None


class Export(Protocol):
    """Writes one export into a stream that cannot be rewound; nothing of a document's size in memory."""

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Write a document; ``content`` gives ``item.row.fetched_len`` bytes."""

    def departure(self, one: Record) -> None:
        """Write a removal or a leave; archives need not, for the manifest has it."""

    def end(self, manifest: IO[bytes], size: int, last: Record) -> None:
        """Write the manifest: JSON lines (``size`` bytes), whose last one is ``last``."""

    def close(self) -> None:
        """Complete the stream, which stays open; called once, after a failure too."""


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """How to make an export; ``answers`` = it wants to know what the sites answered."""

    make: Callable[[IO[bytes]], Export]
    answers: bool = False


class Archive:
    """What most archives have in common: removals are in the manifest only, and nothing is left to close."""

    def departure(self, one: Record) -> None:
        """Leave it to the manifest."""

    def close(self) -> None:
        """Everything is written."""
