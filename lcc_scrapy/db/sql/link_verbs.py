"""Verbs about the links of documents."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import func, select

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import DocumentLink, LinkingPages
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.link_bodies import grown, names_any, packed, unpacked
from lcc_scrapy.db.sql.rows import OnConnection, chunks

_OF_LINKS = ("urlkey", "words", "body")
_LOOKED_AT = 250
"""Documents whose links are read at a time by ``linking_pages``."""

_BODY_MAX = 64 * 1024
"""Deflated bytes of the links of a document; of more it does not look at any."""

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

    def linking_pages(
        self, urls: Collection[str], pid: int | None, after: bytes, limit: int, most: int
    ) -> LinkingPages:
        """Return which of the next documents behind a key link to one of some URLs.

        At most ``limit`` documents are looked at, of one provider, or (None) of all that have links, and
        about ``most`` bytes of links. A document with very many links is passed over.
        """
        keys = self._next_keys(pid, after, limit)
        found: list[bytes] = []
        words: dict[int, bytes] = {NO_WORDS: b""}
        read = 0
        for part in chunks(keys, _LOOKED_AT):
            for key, number, body in self._bodies(part, words):
                does, length = names_any(body, words[number], urls, most)
                found += [key] if does else []
                read += 1
                most -= length
                if most <= 0:
                    return LinkingPages(found, key, read)
        return LinkingPages(found, keys[-1] if len(keys) == limit else None, read)

    def _bodies(self, keys: list[bytes], words: dict[int, bytes]) -> list[tuple[bytes, int, bytes]]:
        """Return key, number of the dictionary and body of documents by rising key; adds to ``words``.

        A dictionary is larger than most bodies, and most of them share one: each is read once.
        """
        c, w = t.links.c, t.linkwords.c
        query = select(c.urlkey, c.words, c.body).where(func.length(c.body) <= _BODY_MAX)
        rows = sorted(
            (bytes(key), int(number), bytes(body)) for key, number, body in self._rows(query, c.urlkey, keys)
        )
        further = {number for _, number, _ in rows} - set(words)
        its = self._rows(select(w.wordsid, w.body), w.wordsid, further)
        words |= {number: bytes(body) for number, body in its}
        return [row for row in rows if row[1] in words]

    def _next_keys(self, pid: int | None, after: bytes, limit: int) -> list[bytes]:
        u, of_links = t.lccurl.c, t.links.c.urlkey
        if pid is None:
            query = select(of_links).where(of_links > after).order_by(of_links)
        else:
            query = select(u.urlkey).where(u.pid == pid, u.urlkey > after).order_by(u.urlkey)
        return [bytes(key) for key in self._c.execute(query.limit(limit)).scalars()]

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
