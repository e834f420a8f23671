"""File ids: 64 bits, taken in blocks, never given twice (docs/decisions/0003)."""

from collections.abc import Sequence
from itertools import count

from lcc_scrapy.domain.queue import Outcome, Served
from lcc_scrapy.storage.settling import FILEID
from lcc_scrapy.storage.tx import Store

BLOCK = 1000


class FileIds:
    """Hands out the file ids of one process. A block is taken in a transaction of its own, so that no
    rollback gives its ids to another process, which might have stored a document under one by then.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._next = self._end = 0

    def take(self, count: int) -> int:
        """Return the first of ``count`` ids in a row (blocking); what a block lacks for it is lost."""
        if self._next + count > self._end:
            block = max(count, BLOCK)
            with self._store.begin() as tx:
                self._next = tx.take(FILEID, block)
            self._end = self._next + block
        first, self._next = self._next, self._next + count
        return first

    def number(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Give served bodies their file ids (blocking). One that has an id keeps it: a settlement that is
        tried again writes the same files, and leaves none without a row.
        """
        nameless = [one for one in outcomes if isinstance(one, Served) and not one.fileid]
        numbers = count(self.take(len(nameless)))
        return [
            Served(one.ticket, one.answer, one.body, next(numbers))
            if isinstance(one, Served) and not one.fileid
            else one
            for one in outcomes
        ]
