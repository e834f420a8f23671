"""The library of a content user: the feed, and the contents that its rows name."""

from typing import IO

from lcc_scrapy.content.stored import decoded
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.content import Content, ContentGone, ContentLost
from lcc_scrapy.feed.reader import Feed


class Library:
    """One LCC's feed and contents."""

    def __init__(self, feed: Feed, content: Content) -> None:
        self.feed = feed
        self._content = content

    def open(self, row: CachedUrl | Version) -> IO[bytes]:
        """Return the content of a document, or an earlier one, decoded, as a stream to be closed.

        Raises ``ContentGone`` (read on), ``ContentElsewhere`` or ``ContentLost``.
        """
        try:
            return decoded(self._content.open(row), row.file_encoding)
        except FileNotFoundError:
            there = row.fetched_fileid in self._files_of(row.urlkey)
        if not there:
            raise ContentGone(f"document {row.docid} was replaced or removed meanwhile: read on")
        raise ContentLost(f"the content of document {row.docid} is missing: run `lcc verify --repair`")

    def _files_of(self, key: bytes) -> set[int]:
        """Return the files that a document has now."""
        rows = [*self.feed.rows([key]).values(), *self.feed.versions([key]).get(key, ())]
        return {row.fetched_fileid for row in rows}
