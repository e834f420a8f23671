"""JSON lines for servers: the bulk interface of OpenSearch and Elasticsearch, and documents for Meilisearch.

They are written after the documentation of these servers ("Bulk", "Add or replace documents").
"""

import json
import shutil
import tempfile
from typing import IO

from lcc_scrapy.apps.exports.indexers.pages import Page, Stream, page_of
from lcc_scrapy.apps.exports.interface import ExportFormat, Item
from lcc_scrapy.feed.row_formats import Record

_IN_MEMORY = 1 << 20


class OpenSearch(Stream):
    """Two lines for a document, one for a departure; ``_id`` is the docid, and the request names the index.

    Departures come last, so that the lines may be cut into requests behind any even number of them. (No
    docid is in an export twice, so that their order does not matter.)
    """

    def __init__(self, out: IO[bytes]) -> None:
        super().__init__(out)
        self._departures = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - see close

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Write what replaces a document, or adds it."""
        page = page_of(item, content)
        self.out.write(_line({"index": {"_id": page.docid}}) + _line(_fields(page)))

    def departure(self, one: Record) -> None:
        """Remember what is to be deleted."""
        self._departures.write(_line({"delete": {"_id": one["docid"]}}))

    def end(self, manifest: IO[bytes], size: int, last: Record) -> None:
        """Write what is to be deleted."""
        del manifest, size, last
        self._departures.seek(0)
        shutil.copyfileobj(self._departures, self.out)

    def close(self) -> None:
        """Everything is written."""
        self._departures.close()


class Meilisearch(Stream):
    """A line for each document; a departure is a document without words, with ``departed`` true.

    One request to ``documents/delete`` with the filter ``departed = true`` then takes those away.
    """

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Write a document."""
        page = page_of(item, content)
        self.out.write(_line({"docid": page.docid, **_fields(page), "departed": False}))

    def departure(self, one: Record) -> None:
        """Write what stands in the place of a document until it is deleted."""
        self.out.write(_line({"docid": one["docid"], "departed": True}))


def _fields(page: Page) -> dict[str, object]:
    text = page.text()
    return {
        "title": text.title,
        "body": text.text,
        "link": page.link or None,
        "mimetype": page.mimetype,
        "fetched_time": page.time,
    }


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


OPENSEARCH = ExportFormat(OpenSearch)
MEILISEARCH = ExportFormat(Meilisearch)
