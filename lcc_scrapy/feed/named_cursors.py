"""Named cursors, kept in the database."""

from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.named_cursors import MOST, NamedCursor, TooMany


class StoreCursors:
    """The ``domain.named_cursors.NamedCursors`` of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, owner: str) -> list[NamedCursor]:
        """Return all cursors of an owner by name."""
        with self._store.read() as tx:
            return tx.named_cursors(owner)

    def find(self, owner: str, name: str) -> NamedCursor | None:
        """Return a cursor."""
        return next((one for one in self.of(owner) if one.name == name), None)

    def keep(self, cursor: NamedCursor) -> None:
        """Add or move a cursor; raises ``TooMany``."""
        with self._store.begin() as tx:
            names = {one.name for one in tx.named_cursors(cursor.owner)}
            if cursor.name not in names and len(names) >= MOST:
                raise TooMany(f"{cursor.owner} keeps {MOST} cursors already: delete one first")
            tx.put_named_cursor(cursor)

    def drop(self, owner: str, name: str) -> bool:
        """Forget a cursor; tells whether there was one."""
        with self._store.begin() as tx:
            return tx.delete_named_cursor(owner, name)
