"""A tree of pages for SWISH++ 6, as an uncompressed tar: ``<two digits>/<docid>.html``, and ``links``.

SWISH++ reads bytes, knows a page by its path only, and looks for titles in the first lines.
"""

import html
import io
import tarfile
import tempfile
from typing import IO

from lcc_scrapy.apps.exports.indexers.pages import Stream, page_of
from lcc_scrapy.apps.exports.interface import ExportFormat, Item
from lcc_scrapy.feed.plain_text import as_ascii
from lcc_scrapy.feed.row_formats import Record

_MODE = 0o644
_IN_MEMORY = 1 << 20


class SwishPlusPlus(Stream):
    """``links``, the last member, has a line for every page: its path, a tab, and its link (or nothing)."""

    def __init__(self, out: IO[bytes]) -> None:
        super().__init__(out)
        self._tar = tarfile.open(mode="w|", fileobj=out)  # noqa: SIM115 - see close
        self._links = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - see close

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Write a page, its title in front."""
        page = page_of(item, content)
        path = f"{page.docid[:2]}/{page.docid}.html"
        title = html.escape(page.text().title, quote=False)
        body = as_ascii(f"<title>{title}</title>\n{page.html}")
        self._add(path, page.time, len(body), io.BytesIO(body))
        self._links.write(f"{path}\t{page.uri}\n".encode())

    def end(self, manifest: IO[bytes], size: int, last: Record) -> None:
        """Write the links."""
        del manifest, size, last
        length = self._links.tell()
        self._links.seek(0)
        self._add("links", 0, length, self._links)

    def close(self) -> None:
        """Write the end of the archive."""
        self._links.close()
        self._tar.close()

    def _add(self, path: str, at: int, size: int, content: IO[bytes]) -> None:
        member = tarfile.TarInfo(path)
        member.size, member.mtime, member.mode = size, at, _MODE
        self._tar.addfile(member, content)


SWISH_PLUS_PLUS = ExportFormat(SwishPlusPlus, rebuild="SWISH++ cannot replace documents in an index")
