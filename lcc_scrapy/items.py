"""The item that carries a fetched document through the pipelines into the cache."""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import IO, Any

from itemadapter import ItemAdapter
from itemadapter.adapter import AdapterInterface
from scrapy.extensions.feedexport import ItemFilter
from scrapy.http import Response

from lcc_scrapy.content.stored import open_body
from lcc_scrapy.domain.cache import Answer, Body
from lcc_scrapy.domain.queue import Ticket, found_as


@dataclass(slots=True, eq=False)
class LccDocument(MutableMapping[str, Any]):
    """A document that was served, on its way into the cache.

    A pipeline may look at it and may drop it (``DropItem``), which keeps it out of the cache; it must not
    change what was served. ``body`` is None when the body is large and lies in a file; ``open()`` reads that.

    As a mapping, and for ``ItemAdapter``, it has a team's own fields only: what one pipeline puts there,
    later ones and handlers of signals find. They are not stored.
    """

    ticket: Ticket
    answer: Answer
    content: Body
    response: Response
    rendition: Body | None = None
    """What a browser made of the page: HTML in UTF-8, in memory. None = it was not rendered."""
    fields: dict[str, Any] = field(default_factory=dict)
    withheld: list[Any] = field(default_factory=list)
    """What the callback yielded for it and has not gone to the pipelines yet."""

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

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.fields[name] = value

    def __delitem__(self, name: str) -> None:
        del self.fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __bool__(self) -> bool:
        return True  # a document is there, whether a team gave it fields or not

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<LccDocument {self.pid} {self.url!r} {self.content.length} bytes>"


class DocumentAdapter(AdapterInterface):
    """Shows the fields of a team's own to ``ItemAdapter``, which would take a dataclass for complete."""

    item: LccDocument

    @classmethod
    def is_item_class(cls, item_class: type) -> bool:
        """Tell whether it is for items of a class."""
        return issubclass(item_class, LccDocument)

    def __getitem__(self, name: str) -> Any:
        return self.item[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.item[name] = value

    def __delitem__(self, name: str) -> None:
        del self.item[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.item)

    def __len__(self) -> int:
        return len(self.item)


ItemAdapter.ADAPTER_CLASSES = [DocumentAdapter, *ItemAdapter.ADAPTER_CLASSES]


class NoDocuments(ItemFilter):
    """Keeps documents out of Scrapy's feeds: a body is no JSON, and its row is in the LCC's own feed."""

    def accepts(self, item: Any) -> bool:
        """Tell whether an item is a team's own."""
        return not isinstance(item, LccDocument) and bool(super().accepts(item))
