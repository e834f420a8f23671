"""The databases of sub-LCCs, opened for a while; one that does not answer holds up none of the others."""

from collections.abc import Sequence
from typing import Self

from sqlalchemy.exc import SQLAlchemyError

from lcc_scrapy.db import schema
from lcc_scrapy.db.sql.store import SILENCE, SqlStore
from lcc_scrapy.domain.errors import ConfigurationError, LccError
from lcc_scrapy.domain.front import SubLcc
from lcc_scrapy.feed.store_feed import LCC_ID


def open_store(sub: SubLcc, *, to_write: bool, silence: int = SILENCE) -> SqlStore:
    """Open the database of a sub-LCC, whatever is wrong with it is an ``LccError``.

    With ``to_write`` it has to be up to date, and that of the right LCC. ``silence`` is as for ``SqlStore``.
    """
    try:
        return _opened(sub, to_write=to_write, silence=silence)
    except (SQLAlchemyError, ImportError) as error:
        raise LccError(str(getattr(error, "orig", None) or error)) from error


def _opened(sub: SubLcc, *, to_write: bool, silence: int) -> SqlStore:
    if schema.is_missing_file(sub.database):
        raise ConfigurationError("the file of its database is not there")
    if to_write and schema.pending(sub.database):
        raise ConfigurationError("there is no LCC in its --database, or it needs `lcc db upgrade`")
    store = SqlStore(sub.database, silence=silence)
    try:
        lccid = _its_id(store)
    except BaseException:
        store.close()
        raise
    if to_write and sub.lccid != lccid:
        store.close()
        raise ConfigurationError(f"LCC {lccid} is in its --database, not {sub.lccid}")
    return store


def _its_id(store: SqlStore) -> str | None:
    with store.read() as tx:
        found: str | None = tx.info(LCC_ID)
    return found


def count_urls(store: SqlStore) -> int:
    """Count documents and waiting URLs."""
    with store.read() as tx:
        return int(tx.queued_total() + tx.cached_total())


class SubStores:
    """Opens the databases that are known, by the names of their sub-LCCs. Close it.

    ``urls`` counts documents and waiting URLs, ``silent`` says why a database is not there. With ``to_write``
    a database has to be up to date, and that of the right LCC.
    """

    def __init__(self, subs: Sequence[SubLcc], *, to_write: bool = False) -> None:
        self.stores: dict[str, SqlStore] = {}
        self.urls: dict[str, int] = {}
        self.silent: dict[str, str] = {}
        for sub in subs:
            if sub.database:
                self._try(sub, to_write=to_write)

    def close(self) -> None:
        """Give connections back."""
        for store in self.stores.values():
            store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _try(self, sub: SubLcc, *, to_write: bool) -> None:
        try:
            store = open_store(sub, to_write=to_write)
        except LccError as error:
            self.silent[sub.name] = str(error)
            return
        try:
            self.urls[sub.name] = count_urls(store)
        except LccError as error:
            self.silent[sub.name] = str(error)
            store.close()
        else:
            self.stores[sub.name] = store
