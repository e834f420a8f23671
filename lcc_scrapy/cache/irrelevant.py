"""Documents whose content was dropped because it concerned nobody, and what their next visits need."""

from collections.abc import Iterable, Iterator
from operator import attrgetter

from lcc_scrapy.db.records import Irrelevant
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.entries import furlkey


def current_at(tx: Tx, furlkeys: Iterable[bytes]) -> dict[bytes, Irrelevant]:
    """Return what is left of dropped documents at these URLs, by furlkey, as far as their links are known.

    They are not, if spiders follow links on other terms now than when they were read: then the page has to be
    read again. Costs next to nothing where nothing was dropped.
    """
    if not tx.has_irrelevant():
        return {}
    newest = {at: max(rows, key=attrgetter("dropped")) for at, rows in tx.irrelevant_at(furlkeys).items()}
    terms = {pid: terms_of(tx, pid) for pid in {row.pid for row in newest.values()}}
    return {at: row for at, row in newest.items() if row.terms == terms[row.pid]}


def terms_of(tx: Tx, pid: int) -> str:
    """Return the terms on which spiders follow a provider's links, "" = none ever did."""
    scan = tx.scan(pid)
    return scan.terms if scan else ""


def sweep(store: Store, limit: int) -> Iterator[None]:
    """Forget what is left of documents that are back, and of URLs that spiders do not know any more.

    Yields after every transaction, of ``limit`` documents. After a kill it may begin anew.
    """
    after = b""
    while True:
        with store.begin() as tx:
            rows = tx.irrelevant_behind(after, limit)
            lies_at = {row.urlkey: furlkey(row.pid, row.furl) for row in rows}
            back, known = tx.cached(lies_at), tx.spidered(lies_at.values())
            lost = [key for key, at in lies_at.items() if at not in known and key not in back]
            tx.delete_links(lost)
            tx.delete_irrelevant([*back, *lost])
        if not rows:
            return
        after = rows[-1].urlkey
        yield


def forget(tx: Tx, furlkeys: Iterable[bytes]) -> None:
    """Forget dropped documents at these URLs, with their links: there is nothing any more."""
    if tx.has_irrelevant():
        keys = [row.urlkey for rows in tx.irrelevant_at(furlkeys).values() for row in rows]
        tx.delete_links(keys)
        tx.delete_irrelevant(keys)
