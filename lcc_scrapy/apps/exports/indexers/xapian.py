"""Records for Xapian's ``scriptindex`` (xapian-omega, "scriptindex.rst").

A line is ``field=value``; the lines of a value after its first begin with ``=``; a blank line ends a record.
A record that has nothing but the unique field takes the document out.
"""

from typing import IO

from lcc_scrapy.apps.exports.indexers.pages import Stream, page_of
from lcc_scrapy.apps.exports.interface import ExportFormat, Item
from lcc_scrapy.feed.plain_text import as_ascii
from lcc_scrapy.feed.row_formats import Record


class Xapian(Stream):
    """The fields ``docid`` (unique), ``url`` (only where there is a link), ``title``, ``mtime``, ``body``."""

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Write a record; the body is HTML."""
        page = page_of(item, content)
        lines = [f"docid={page.docid}", f"mtime={page.time}"]
        if page.link:
            lines.append(f"url={page.uri}")
        if title := page.text().title:
            lines.append(f"title={title}")
        self.out.write("\n".join(lines).encode() + b"\nbody=")
        self.out.write(b"\n=".join(as_ascii(page.html).splitlines()) + b"\n\n")

    def departure(self, one: Record) -> None:
        """Write a record with the identity alone."""
        self.out.write(f"docid={one['docid']}\n\n".encode())


XAPIAN = ExportFormat(Xapian)
