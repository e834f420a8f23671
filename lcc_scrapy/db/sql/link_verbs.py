"""Verbs about the links of documents."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import select

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import DocumentLink
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.link_bodies import grown, packed, unpacked
from lcc_scrapy.db.sql.rows import OnConnection, chunks

_OF_LINKS = ("urlkey", "words", "body")
NO_WORDS = 0
"""The number of no dictionary."""


class LinkVerbs(OnConnection):
    """Verbs about the links of documents, each row of which needs the dictionary that it names."""

    def put_links(self, links: Mapping[bytes, Sequence[DocumentLink]], pid: int = 0) -> None:
        """Set the links of documents of a provider, in the order of their pages.

        Without ``pid``, 0, they are stored without a dictionary, which takes more room.
        """
        self.delete_links(list(links))
        found = {key: one for key, one in links.items() if one}
        number, words = self._words_for(pid, found) if pid and found else (NO_WORDS, b"")
        rows = [(key, number, packed(one, words)) for key, one in found.items()]
        many.insert(self._c, t.links.name, _OF_LINKS, rows)

    def links_of(self, key: bytes) -> list[DocumentLink]:
        """Return the links of a document, in the order of the page."""
        w = t.linkwords.c
        both = t.links.outerjoin(t.linkwords, w.wordsid == t.links.c.words)
        query = select(t.links.c.body, w.body).select_from(both).where(t.links.c.urlkey == key)
        row = self._c.execute(query).one_or_none()
        return unpacked(bytes(row[0]), bytes(row[1] or b"")) if row else []

    def delete_links(self, keys: Iterable[bytes]) -> None:
        """Forget the links of documents."""
        for part in chunks(keys):
            many.delete(self._c, t.links.name, "urlkey", part)

    def _words_for(self, pid: int, links: Mapping[bytes, Sequence[DocumentLink]]) -> tuple[int, bytes]:
        """Return the newest dictionary of a provider with its number, grown by these links if that helps.

        Of two that grow it at the same time, each makes its own: none is ever changed.
        """
        w = t.linkwords.c
        newest = select(w.wordsid, w.body).where(w.pid == pid).order_by(w.wordsid.desc()).limit(1)
        row = self._c.execute(newest).one_or_none()
        number, words = (int(row[0]), bytes(row[1])) if row else (NO_WORDS, b"")
        larger = grown(words, links.values())
        if larger == words:
            return number, words
        made = self._c.execute(t.linkwords.insert().values(pid=pid, body=larger))
        assert made.inserted_primary_key is not None
        return int(made.inserted_primary_key[0]), larger
