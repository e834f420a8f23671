"""What hangs on the names of URLs, as rows, for a root that gets another one."""

from collections.abc import Iterable, Sequence

from sqlalchemy import select

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import DocumentLink, Irrelevant
from lcc_scrapy.db.sql.irrelevant_verbs import DROPPED
from lcc_scrapy.db.sql.link_bodies import unpacked
from lcc_scrapy.db.sql.provider_verbs import OUTCOMES
from lcc_scrapy.db.sql.rows import OnConnection
from lcc_scrapy.db.tx import Tx


class RenamingRows(OnConnection):
    """What one transaction can do for a root that gets another URL."""

    def links_among(self, keys: Iterable[bytes]) -> dict[bytes, list[DocumentLink]]:
        """Return the links of those of these documents that have any, in the order of their pages."""
        c, w = t.links.c, t.linkwords.c
        both = t.links.outerjoin(t.linkwords, w.wordsid == c.words)
        query = select(c.urlkey, c.body, w.body).select_from(both)
        rows = self._rows(query, c.urlkey, keys)
        return {bytes(key): unpacked(bytes(body), bytes(words or b"")) for key, body, words in rows}

    def irrelevant_rows(self, pid: int, after: bytes, limit: int) -> list[Irrelevant]:
        """Return what is left of a provider's dropped documents behind a key, by rising key."""
        c = t.irrelevant.c
        query = DROPPED.select().where(c.pid == pid, c.urlkey > after)
        return DROPPED.read(self._c, query.order_by(c.urlkey).limit(limit))

    def delete_outcomes(self, keys: Sequence[bytes]) -> None:
        """Forget the last outcomes of URLs."""
        OUTCOMES.delete(self._c, keys)


def rows_in(tx: Tx) -> RenamingRows:
    """Return the rows of this app in a transaction."""
    return RenamingRows.over(tx)
