"""The interface of an export format."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Protocol

from lcc_scrapy.domain.cache import CachedUrl, UrlMeta
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.feed.row_formats import Record
from lcc_scrapy.feed.text import PageText

LEVEL = 6
"""Of compression: what gzip itself takes, at a third of the time that the highest one costs."""


@dataclass(frozen=True, slots=True)
class Item:
    """A document to be written: its row, the same as in the manifest, and its name inside an archive.

    ``answer`` is what its site answered, where the format asked for that and it is known; ``text`` what
    there is to read in it, where somebody asked for that.
    """

    row: CachedUrl
    record: Record
    name: str
    answer: UrlMeta | None = None
    text: PageText | None = None


def text_fields(item: Item) -> Record:
    """Return the columns of a document's text: none when nobody asked for it, null when there is none."""
    return {"title": item.text.title, "text": item.text.text} if item.text else {}


class NoText(LccError):
    """There is no text in a document, for a format that is about text."""


class Export(Protocol):
    """Writes one export into a stream that cannot be rewound; nothing of a document's size in memory."""

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Write a document; ``content`` gives ``item.row.fetched_len`` bytes.

        Raises ``NoText``: it counts as departed, so that nothing is found of what it was before.
        """

    def departure(self, one: Record) -> None:
        """Write a removal or a leave; archives need not, for the manifest has it."""

    def end(self, manifest: IO[bytes], size: int, last: Record) -> None:
        """Write the manifest: JSON lines (``size`` bytes), whose last one is ``last``."""

    def close(self) -> None:
        """Complete the stream, which stays open; called once, after a failure too."""


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """How to make an export; ``answers`` = it wants to know what the sites answered.

    ``rows`` = it writes rows, which can hold a text, and ``make`` takes ``content=False``. ``rebuild`` says
    why whoever takes the export cannot take changes, so that it has to be given everything every time;
    empty = it can.
    """

    make: Callable[..., Export]
    answers: bool = False
    rows: bool = False
    rebuild: str = ""


class Archive:
    """What most archives have in common: removals are in the manifest only, and nothing is left to close."""

    def departure(self, one: Record) -> None:
        """Leave it to the manifest."""

    def close(self) -> None:
        """Everything is written."""
