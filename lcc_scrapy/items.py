"""The item that carries a fetched document through the pipelines into the cache."""

from dataclasses import dataclass
from typing import IO, Any

from scrapy.extensions.feedexport import ItemFilter
from scrapy.http import Response

from lcc_scrapy.content.stored import open_body
from lcc_scrapy.domain.cache import Answer, Body
from lcc_scrapy.domain.queue import Ticket, found_as


@dataclass(slots=True)
class LccDocument:
    """A document that was served, on its way into the cache.

    A pipeline may look at it and may drop it (``DropItem``), which keeps it out of the cache; it must not
    change it. ``body`` is None when the body is large and lies in a file; ``open()`` reads either.
    """

    ticket: Ticket
    answer: Answer
    content: Body
    response: Response

    @property
    def docid(self) -> str:
        """The document's id, 32 hex digits."""
        return found_as(self.ticket.row, self.answer).urlkey.hex()

    @property
    def pid(self) -> int:
        """The provider's number."""
        return self.ticket.row.pid

    @property
    def url(self) -> str:
        """The conceptual URL (curl)."""
        return self.ticket.row.curl

    @property
    def body(self) -> bytes | None:
        """The decoded body, or None when it lies in a file."""
        return self.content.data

    def open(self) -> IO[bytes]:
        """Open the decoded body for reading."""
        return open_body(self.content)

    def __repr__(self) -> str:
        return f"<LccDocument {self.pid} {self.url!r} {self.content.length} bytes>"


class NoDocuments(ItemFilter):
    """Keeps documents out of Scrapy's feeds: a body is no JSON, and its row is in the LCC's own feed."""

    def accepts(self, item: Any) -> bool:
        """Tell whether an item is a team's own."""
        return not isinstance(item, LccDocument) and bool(super().accepts(item))
