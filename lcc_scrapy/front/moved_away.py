"""What a provider leaves behind in an LCC that it moved away from: it goes, without tombstones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lcc_scrapy.db.records import PROVIDERS_CHANGED, FileToDelete
from lcc_scrapy.db.retrying import repeated
from lcc_scrapy.db.sql.move_verbs import BY_PROVIDER, TOLD, Record, keys_of
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.front.moved_documents import DOCUMENT
from lcc_scrapy.front.moved_rows import LINKED, PORTION, key, place
from lcc_scrapy.providers.registration import ProviderHook, gone

_LARGE = {
    "lccurl": "urlkey",
    "tombstones": "urlkey",
    "qdb": "id",
    "outcomes": "urlkey",
    "spidered": "furlkey",
    "irrelevant": "urlkey",
    "owners": "furlkey",
    "urlerrors": "errorid",
}
"""Tables that may have many rows of a provider, which go in portions; the column to name them by."""


@dataclass(frozen=True, slots=True)
class Removal:
    """Removes a provider in bounded transactions, all of which may be done twice.

    Its files are to be deleted ``grace`` seconds after ``now``.
    """

    store: Store
    pid: int
    now: int
    grace: int
    hooks: Sequence[ProviderHook]

    def run(self, say: Callable[[str], object]) -> None:
        """Remove all of it; nothing happens if there is no such provider."""
        for table in _LARGE:
            reached: list[Any] | None = None
            while (more := repeated(self._remove_some, table, reached)) is not None:
                reached = more
            say(f"source: {table} removed")
        while repeated(self._remove_of_apps):
            pass
        repeated(self._remove_provider)

    def _remove_some(self, table: str, reached: list[Any] | None) -> list[Any] | None:
        """Remove the next rows of a table; return the key of the last one, None = there were none."""
        with self.store.begin() as tx:
            if tx.lock_moving(self.pid) is None:
                return None
            rows = tx.records(table, self.pid, key(reached), PORTION)
            if not rows:
                return None
            if table == DOCUMENT:
                self._remove_contents(tx, rows)
            if table in {DOCUMENT, LINKED}:
                tx.drop_records("links", "urlkey", [row["urlkey"] for row in rows])
            if table in TOLD:
                tx.drop_records("unwanted", "urlkey", [row["urlkey"] for row in rows])
            tx.drop_records(table, _LARGE[table], [row[_LARGE[table]] for row in rows])
            return place(rows[-1], keys_of(table))

    def _remove_of_apps(self) -> bool:
        """Let apps remove the next rows of theirs; tells whether there are more."""
        with self.store.begin() as tx:
            if tx.lock_moving(self.pid) is None:
                return False
            return any(one.removed(tx, self.pid, PORTION) for one in self.hooks)

    def _remove_contents(self, tx: Tx, rows: Sequence[Record]) -> None:
        keys = [row["urlkey"] for row in rows]
        kept = [one for some in tx.records_among("versions", "urlkey", keys).values() for one in some]
        not_before = self.now + self.grace
        tx.delete_later(
            [
                FileToDelete(row["fetched_machineid"], row["fetched_fileid"], row["fetched_len"], not_before)
                for row in (*rows, *kept)
            ]
        )
        tx.drop_records("versions", "urlkey", keys)

    def _remove_provider(self) -> None:
        with self.store.begin() as tx:
            provider = tx.lock_moving(self.pid)
            if provider is None:
                return  # an earlier try did it
            for table in BY_PROVIDER:
                tx.drop_records(table, "pid", [self.pid])
            tx.delete_provider(self.pid)
            for table, column, key in (("qpsdb", "pid", self.pid), ("turns", "turnkey", provider.turnkey)):
                tx.drop_records(table, column, [key])
            tx.set_info(gone(self.pid), str(self.now))
            tx.take(PROVIDERS_CHANGED, 1)
