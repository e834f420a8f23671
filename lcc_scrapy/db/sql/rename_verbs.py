"""Verbs for a root that moves: what hangs on the keys of documents and URLs gets their new ones."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from sqlalchemy import delete, select

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import DocumentLink, Irrelevant
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.irrelevant_verbs import DROPPED
from lcc_scrapy.db.sql.link_bodies import unpacked
from lcc_scrapy.db.sql.provider_verbs import OUTCOMES
from lcc_scrapy.db.sql.rows import OnConnection, chunks

KEYS = 100
"""Keys that one statement changes."""

OF_DOCUMENTS = (t.versions, t.suspects, t.aci)
"""The tables with keys of documents that nothing else of them follows from."""


class RenameVerbs(OnConnection):
    """Verbs for a root that moves."""

    def rekey_documents(self, keys: Mapping[bytes, bytes]) -> None:
        """Give what belongs to documents their new keys, by the former ones: versions, suspects and ACIs.

        That they concerned nobody is forgotten: the annotation engine is told of them anew.
        """
        for part in chunks(keys):
            self._c.execute(delete(t.unwanted).where(t.unwanted.c.urlkey.in_(part)))
        for table in OF_DOCUMENTS:
            for part in chunks(keys, KEYS):
                self._rekey(table.name, {key: keys[key] for key in part})

    def _rekey(self, table: str, keys: Mapping[bytes, bytes]) -> None:
        """Change keys in one statement; the driver of MariaDB would send one for each row."""
        mark = "?" if self._c.dialect.name == "sqlite" else "%s"
        cast = "::bytea" if self._c.dialect.name == "postgresql" else ""
        cases = f" WHEN {mark} THEN {mark}{cast}" * len(keys)
        places = ",".join([mark] * len(keys))
        statement = f"UPDATE {table} SET urlkey = CASE urlkey{cases} END WHERE urlkey IN ({places})"  # noqa: S608 - names of ours
        self._c.exec_driver_sql(statement, (*chain.from_iterable(keys.items()), *keys))

    def links_among(self, keys: Iterable[bytes]) -> dict[bytes, list[DocumentLink]]:
        """Return the links of those of these documents that have any, in the order of their pages."""
        c, w = t.links.c, t.linkwords.c
        both = t.links.outerjoin(t.linkwords, w.wordsid == c.words)
        query = select(c.urlkey, c.body, w.body).select_from(both)
        rows = self._rows(query, c.urlkey, keys)
        return {bytes(key): unpacked(bytes(body), bytes(words or b"")) for key, body, words in rows}

    def relist(self, places: Mapping[bytes, bytes]) -> None:
        """Let files of sources list URLs under their new ``furlkey`` instead of the former one."""
        names = ("fileid", "furlkey", "stamp")
        for part in chunks(places, KEYS):
            rows = many.select(self._c, t.sourceurls.name, names, "furlkey", part)
            self._c.execute(delete(t.sourceurls).where(t.sourceurls.c.furlkey.in_(part)))
            moved = [(fileid, places[bytes(key)], stamp) for fileid, key, stamp in rows]
            many.insert(
                self._c, t.sourceurls.name, names, moved, keys=names[:2], changes={"stamp": many.REPLACE}
            )

    def irrelevant_rows(self, pid: int, after: bytes, limit: int) -> list[Irrelevant]:
        """Return what is left of a provider's dropped documents behind a key, by rising key."""
        c = t.irrelevant.c
        query = DROPPED.select().where(c.pid == pid, c.urlkey > after)
        return DROPPED.read(self._c, query.order_by(c.urlkey).limit(limit))

    def delete_outcomes(self, keys: Sequence[bytes]) -> None:
        """Forget the last outcomes of URLs."""
        OUTCOMES.delete(self._c, keys)
