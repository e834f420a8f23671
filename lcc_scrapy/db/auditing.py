"""The audit log, written in the transaction of what it tells of."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.audit import AuditEntry


class Audited:
    """A store that one action is done with: its first writing transaction has the entry of the audit log too.

    What changes nothing leaves no entry. When it is not known whether a commit happened, and it is done
    again, there may be two.
    """

    def __init__(self, store: Store, entry: AuditEntry) -> None:
        self._store = store
        self._entry = entry
        self._written = False

    @contextmanager
    def begin(self) -> Iterator[Tx]:
        """Open a writing transaction."""
        with self._store.begin() as tx:
            yield tx
            if not self._written:
                tx.add_audit(self._entry)
        self._written = True

    def read(self) -> AbstractContextManager[Tx]:
        """Open a short reading transaction."""
        return self._store.read()

    def snapshot(self) -> AbstractContextManager[Tx]:
        """Open a reading transaction, all of whose answers are of one moment."""
        return self._store.snapshot()

    def close(self) -> None:
        """Give connections back."""
        self._store.close()
