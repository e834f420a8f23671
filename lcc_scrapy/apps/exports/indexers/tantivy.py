"""A tantivy index in a folder (the extra ``tantivy``)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from lcc_scrapy.apps.exports.indexers.interface import IndexFormat
from lcc_scrapy.apps.exports.indexers.pages import page_of
from lcc_scrapy.apps.exports.interface import Item
from lcc_scrapy.domain.errors import LccError, MissingExtra
from lcc_scrapy.feed.row_formats import Record

_HEAP = 64 * 1024 * 1024
"""Bytes that tantivy collects before it writes a segment."""

_PLACE = "place"


class Tantivy:
    """The fields ``docid``, ``link`` (none where there is no link), ``title``, ``body``, ``mimetype`` and
    ``fetched_time``.

    The cursor is the field ``cursor`` of one more document, whose docid is ``place``: it is committed with
    the others, so that each change is taken exactly once. It has no words that a search could find.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tantivy = _module()
        with _in_one_line(path):
            self._index = self._opened(path)
            self._writer = self._index.writer(_HEAP, 1)
            self.cursor = self._cursor()

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Replace or add a document."""
        page = page_of(item, content)
        text = page.text()
        fields = {"docid": page.docid, "title": text.title, "body": text.text, "mimetype": page.mimetype}
        self._put(fields | ({"link": page.link} if page.link else {}), fetched_time=page.time)

    def departure(self, one: Record) -> None:
        """Delete a document."""
        self._writer.delete_documents_by_term("docid", one["docid"])

    def commit(self, cursor: str) -> None:
        """Commit."""
        self._put({"docid": _PLACE, "cursor": cursor})
        with _in_one_line(self._path):
            self._writer.commit()
        self.cursor = cursor

    def close(self) -> None:
        """Drop what was not committed, and wait until the segments are merged."""
        self._writer.rollback()
        self._writer.wait_merging_threads()

    def _put(self, fields: dict[str, str], **numbers: int) -> None:
        with _in_one_line(self._path):
            self._writer.delete_documents_by_term("docid", fields["docid"])
            self._writer.add_document(self._tantivy.Document(**fields, **numbers))

    def _opened(self, path: Path) -> Any:
        path.mkdir(exist_ok=True)
        if not self._tantivy.Index.exists(str(path)) and any(path.iterdir()):
            raise LccError(f"{path} holds something else: name a folder that does not exist yet")
        return self._tantivy.Index(self._schema(), path=str(path))

    def _schema(self) -> Any:
        schema = self._tantivy.SchemaBuilder()
        schema.add_text_field("docid", stored=True, tokenizer_name="raw", index_option="basic")
        for name in ("title", "body"):
            schema.add_text_field(name, stored=True)
        for name in ("link", "mimetype", "cursor"):
            schema.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
        schema.add_integer_field("fetched_time", stored=True, indexed=True)
        return schema.build()

    def _cursor(self) -> str:
        self._index.reload()
        searcher = self._index.searcher()
        query = self._tantivy.Query.term_query(self._index.schema, "docid", _PLACE)
        hits = searcher.search(query, 1).hits
        return str(searcher.doc(hits[0][1])["cursor"][0]) if hits else ""


@contextmanager
def _in_one_line(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError) as error:
        raise LccError(f"{path} cannot be used as an index: {_reason(error)}") from None


def _reason(error: ValueError | OSError) -> str:
    return getattr(error, "strerror", None) or str(error).splitlines()[0]


def _module() -> Any:
    try:
        import tantivy  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("tantivy", "tantivy") from None
    return tantivy


TANTIVY = IndexFormat(Tantivy)
