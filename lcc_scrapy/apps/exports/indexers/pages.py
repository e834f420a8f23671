"""Documents as indexers want them."""

from dataclasses import dataclass
from typing import IO
from urllib.parse import quote

from lcc_scrapy.apps.exports.interface import Item, NoText
from lcc_scrapy.feed.plain_text import Text, html_of, text_of_html
from lcc_scrapy.feed.row_formats import Record

_OF_URLS = "!#$%&'()*+,/:;=?@[]~"


@dataclass(frozen=True, slots=True)
class Page:
    """A document that can be found.

    ``docid`` is its identity: 32 hex digits. ``link`` is where a hit leads to, its burl; empty = it is not
    browsable. ``time`` is when it was fetched (epoch seconds), ``html`` the document as HTML.
    """

    docid: str
    link: str
    mimetype: str
    time: int
    html: str

    @property
    def uri(self) -> str:
        """The link in printable ASCII, without blanks, quotes and brackets, for formats made of lines."""
        return quote(self.link, safe=_OF_URLS, errors="replace")

    def text(self) -> Text:
        """Return title and text."""
        return text_of_html(self.html)


def page_of(item: Item, content: IO[bytes]) -> Page:
    """Read a document; raises ``NoText``."""
    row = item.row
    html = html_of(content, row.mimetype, row.served_charset)
    if html is None:
        raise NoText(f"there is no text in {row.mimetype}")
    return Page(row.docid, row.burl or "", row.mimetype, row.fetched_time, html)


class Stream:
    """What most streams have in common: they tell of no departures, and end with their last page."""

    def __init__(self, out: IO[bytes]) -> None:
        self.out = out

    def departure(self, one: Record) -> None:
        """Say nothing: what is not told of will not be found."""

    def end(self, manifest: IO[bytes], size: int, last: Record) -> None:
        """Everything has been told."""

    def close(self) -> None:
        """Everything is written."""
