"""Owners of documents: who asked for their URLs, or for what leads there (decision 74)."""

from collections.abc import Collection
from itertools import chain
from operator import attrgetter
from typing import Protocol

from lcc_scrapy.db.records import FEED
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.directives import NO_OWNERS, Owners
from lcc_scrapy.domain.entries import furlkey

TOLD = 100
"""Owners that a row names: a page may have thousands, and so may all that is linked there."""


class Located(Protocol):
    """A document, a removal, or a leave: what has a key and lies at a URL of a provider."""

    @property
    def urlkey(self) -> bytes:
        """The key of the document."""

    @property
    def pid(self) -> int:
        """Its provider."""

    @property
    def furl(self) -> str:
        """From where it is, or was, fetched."""


def owners_of(tx: Tx, rows: Collection[Located]) -> Owners:
    """Return who owns these documents, by name, ``TOLD`` of each at most.

    Costs next to nothing where nobody owns anything.
    """
    if not rows or not tx.has_owners():
        return NO_OWNERS
    lies_at = {row.urlkey: furlkey(row.pid, row.furl) for row in rows}
    names = tx.first_owners(set(lies_at.values()), TOLD)
    return {key: names[at] for key, at in lies_at.items() if at in names}


def tell_owners(tx: Tx, furlkeys: Collection[bytes]) -> int:
    """Tell content users that the owners of the documents at these URLs changed; returns of how many.

    Their provider has to be locked. It locks ``FEED``, so it comes last in a transaction.
    """
    at_urls = tx.cached_at(furlkeys, renditions=True).values() if furlkeys else ()
    rows = sorted(chain.from_iterable(at_urls), key=attrgetter("urlkey"))
    if rows:
        first = tx.take(FEED, len(rows))
        tx.update_cached([row.owned_anew(seq) for seq, row in enumerate(rows, first)])
    return len(rows)
