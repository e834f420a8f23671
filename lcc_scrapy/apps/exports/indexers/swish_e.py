"""Pages for ``swish-e -S prog -i stdin`` (SWISH-E 2.4, "The prog document source")."""

from typing import IO

from lcc_scrapy.apps.exports.indexers.pages import Stream, page_of
from lcc_scrapy.apps.exports.interface import ExportFormat, Item
from lcc_scrapy.feed.plain_text import as_ascii


class SwishE(Stream):
    """A hit's path is the link, or ``docid:…`` where there is none; its property ``docid`` the identity."""

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Write a page with its headers."""
        page = page_of(item, content)
        body = f'<meta name="docid" content="{page.docid}">\n'.encode() + as_ascii(page.html)
        self.out.write(
            f"Path-Name: {page.uri or f'docid:{page.docid}'}\n"
            f"Content-Length: {len(body)}\n"
            f"Last-Mtime: {page.time}\n"
            "Document-Type: HTML*\n\n".encode()
        )
        self.out.write(body)


SWISH_E = ExportFormat(SwishE, rebuild="swish-e cannot take documents out of an index")
