"""A full-text index in one SQLite file (SQLite's FTS5)."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lcc_scrapy.apps.exports.indexers.interface import IndexFormat
from lcc_scrapy.apps.exports.indexers.pages import Page, page_of
from lcc_scrapy.apps.exports.interface import Item
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.feed.fts5_search import VERSION
from lcc_scrapy.feed.plain_text import Text
from lcc_scrapy.feed.row_formats import Record

_PATIENCE = 30.0
"""Seconds to wait for others who use the file."""

_SCHEMA = f"""
create table documents (
  id integer primary key,
  docid text not null unique,
  link text,
  mimetype text not null,
  fetched_time integer not null
);
create virtual table pages using fts5 (title, body);
create table place (cursor text not null);
insert into place values ('');
pragma user_version = {VERSION};
"""  # noqa: S608 - a number of ours


class Fts5:
    """The tables ``documents`` and ``pages`` (FTS5; its ``rowid`` is ``documents.id``), and the cursor.

    The cursor is changed in the transaction that changes the documents: each change is taken exactly once.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with _in_one_line(path):
            self._database = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
        try:
            with _in_one_line(path):
                self.cursor = self._begin()
        except LccError:
            self.close()
            raise

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Replace or add a document."""
        page = page_of(item, content)
        text = page.text()
        with _in_one_line(self._path):
            self._put(page, text)

    def departure(self, one: Record) -> None:
        """Delete a document."""
        with _in_one_line(self._path):
            self._remove(str(one["docid"]))

    def commit(self, cursor: str) -> None:
        """Commit, and begin the next transaction."""
        with _in_one_line(self._path):
            self._database.execute("update place set cursor = ?", (cursor,))
            self._database.execute("commit")
            self.cursor = self._begin()
        if self.cursor != cursor:
            raise LccError(f"another process writes into {self._path} too: run one at a time")

    def close(self) -> None:
        """Roll back what was not committed."""
        self._database.close()

    def _put(self, page: Page, text: Text) -> None:
        self._remove(page.docid)
        put = self._database.execute(
            "insert into documents (docid, link, mimetype, fetched_time) values (?, ?, ?, ?)",
            (page.docid, page.link or None, page.mimetype, page.time),
        )
        self._database.execute(
            "insert into pages (rowid, title, body) values (?, ?, ?)", (put.lastrowid, text.title, text.text)
        )

    def _begin(self) -> str:
        """Begin to write; returns the cursor as it is now."""
        self._database.execute("begin immediate")
        (version,) = self._database.execute("pragma user_version").fetchone()
        if version == 0 and not self._database.execute("select * from sqlite_master").fetchone():
            for statement in _SCHEMA.split(";\n"):
                self._database.execute(statement)
        elif version != VERSION:
            raise LccError(f"{self._path} is another SQLite database: name a file that does not exist yet")
        (cursor,) = self._database.execute("select cursor from place").fetchone()
        return str(cursor)

    def _remove(self, docid: str) -> None:
        found = self._database.execute("delete from documents where docid = ? returning id", (docid,))
        self._database.executemany("delete from pages where rowid = ?", found.fetchall())


@contextmanager
def _in_one_line(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise LccError(f"{path} cannot be used as an index: {error}") from None


FTS5 = IndexFormat(Fts5)
