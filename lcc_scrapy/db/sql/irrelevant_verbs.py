"""Verbs about documents that concern nobody: those to be dropped, and what is kept of those that were."""

from collections.abc import Iterable, Sequence

from sqlalchemy import select, update

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import Irrelevant, Unwanted
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf, chunks
from lcc_scrapy.domain.entries import furlkey

DROPPED = RowsOf(t.irrelevant, Irrelevant, {"furlkey": lambda row: furlkey(row.pid, row.furl)})
_UNWANTED = RowsOf(t.unwanted, Unwanted)
_ANY = select(t.irrelevant.c.urlkey).limit(1)
NO_TERMS = "-"
"""The terms of no scan."""


class IrrelevantVerbs(OnConnection):
    """Verbs about documents that concern nobody."""

    def put_unwanted(self, rows: Sequence[Unwanted]) -> None:
        """Note documents that concern nobody."""
        _UNWANTED.replace(self._c, rows)

    def unwanted(self, after: bytes, limit: int) -> list[Unwanted]:
        """Return such documents by rising key."""
        c = t.unwanted.c.urlkey
        return _UNWANTED.read(self._c, _UNWANTED.select().where(c > after).order_by(c).limit(limit))

    def delete_unwanted(self, keys: Sequence[bytes]) -> None:
        """Forget that they concerned nobody."""
        _UNWANTED.delete(self._c, keys)

    def put_irrelevant(self, rows: Sequence[Irrelevant]) -> None:
        """Keep what is left of dropped documents."""
        DROPPED.replace(self._c, rows)

    def has_irrelevant(self) -> bool:
        """Tell whether any document was dropped."""
        return self._c.execute(_ANY).first() is not None

    def irrelevant_at(self, furlkeys: Iterable[bytes]) -> dict[bytes, list[Irrelevant]]:
        """Return the dropped documents that are fetched from these URLs, by furlkey; if any."""
        found: dict[bytes, list[Irrelevant]] = {}
        query = DROPPED.select()
        for row in self._rows(query, t.irrelevant.c.furlkey, set(furlkeys)):
            one = DROPPED.make(row)
            found.setdefault(furlkey(one.pid, one.furl), []).append(one)
        return found

    def irrelevant_behind(self, after: bytes, limit: int) -> list[Irrelevant]:
        """Return dropped documents by rising key."""
        c = t.irrelevant.c.urlkey
        return DROPPED.read(self._c, DROPPED.select().where(c > after).order_by(c).limit(limit))

    def irrelevant_of(self, pid: int, limit: int) -> list[bytes]:
        """Return keys of a provider's dropped documents."""
        c = t.irrelevant.c
        keys = self._c.execute(select(c.urlkey).where(c.pid == pid).order_by(c.urlkey).limit(limit))
        return [bytes(key) for key in keys.scalars()]

    def wanted_again(self, keys: Sequence[bytes]) -> None:
        """Let dropped documents be asked for as if they had never been there; their links stay."""
        changed = update(t.irrelevant).values(etag="", last_modified="", sha256="", terms=NO_TERMS)
        self._change(changed, t.irrelevant.c.urlkey, keys)

    def delete_irrelevant(self, keys: Sequence[bytes]) -> None:
        """Forget dropped documents; their links stay."""
        DROPPED.delete(self._c, keys)

    def linking_at(self, furlkeys: Iterable[bytes]) -> dict[bytes, list[bytes]]:
        """Return the keys of documents at these URLs, dropped ones too, by furlkey; if any."""
        found: dict[bytes, list[bytes]] = {}
        for part in chunks(set(furlkeys)):
            for table in (t.lccurl, t.irrelevant):
                for at, key in many.select(self._c, table.name, ("furlkey", "urlkey"), "furlkey", part):
                    found.setdefault(bytes(at), []).append(bytes(key))
        return {at: sorted(set(keys)) for at, keys in found.items()}
