"""The databases of sub-LCCs, opened for a while; one that does not answer holds up none of the others."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from sqlalchemy.exc import SQLAlchemyError

from lcc_scrapy.db import schema
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.errors import ConfigurationError, LccError
from lcc_scrapy.domain.front import SubLcc
from lcc_scrapy.feed.store_feed import LCC_ID


class SubStores:
    """Opens the databases that are known, by the names of their sub-LCCs. Close it.

    ``urls`` counts documents and waiting URLs, ``silent`` says why a database is not there. With ``to_write``
    a database has to be up to date, and that of the right LCC.
    """

    def __init__(self, subs: Sequence[SubLcc], *, to_write: bool = False) -> None:
        self.stores: dict[str, SqlStore] = {}
        self.urls: dict[str, int] = {}
        self.silent: dict[str, str] = {}
        self._to_write = to_write
        for sub in subs:
            if sub.database:
                self._try(sub)

    def close(self) -> None:
        """Give connections back."""
        for store in self.stores.values():
            store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _try(self, sub: SubLcc) -> None:
        try:
            self._open(sub)
        except LccError as error:
            self.silent[sub.name] = str(error)
        except (SQLAlchemyError, ImportError) as error:
            self.silent[sub.name] = str(getattr(error, "orig", None) or error)
        if sub.name in self.silent:
            with suppress(KeyError):
                self.stores.pop(sub.name).close()

    def _open(self, sub: SubLcc) -> None:
        if schema.is_missing_file(sub.database):
            raise ConfigurationError("the file of its database is not there")
        if self._to_write and schema.pending(sub.database):
            raise ConfigurationError("there is no LCC in its --database, or it needs `lcc db upgrade`")
        store = self.stores[sub.name] = SqlStore(sub.database)
        with store.read() as tx:
            totals, lccid = tx.totals(), tx.info(LCC_ID)
        if self._to_write and sub.lccid != lccid:
            raise ConfigurationError(f"LCC {lccid} is in its --database, not {sub.lccid}")
        self.urls[sub.name] = totals["queued"] + totals["cached"]
