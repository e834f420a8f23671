"""The databases of sub-LCCs, kept open by a server, which looks at them from time to time.

Nobody waits for a database that was away at the last look. Threads may share it.
"""

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress

from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import LccError, StoreUnavailable
from lcc_scrapy.domain.front import Load, SubLcc, place
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.silent import Silent
from lcc_scrapy.front.sub_stores import count_urls, open_store


class SubAway(StoreUnavailable):
    """The database of a sub-LCC does not answer."""


class OpenSubs:
    """The sub-LCCs that answer; before the first ``look`` there are none.

    ``silence`` is how many seconds a statement may take in MariaDB or MySQL. Close it.
    """

    def __init__(self, directory: Directory, *, silence: int) -> None:
        self._directory = directory
        self._silence = silence
        self._lock = threading.Lock()
        self._subs: dict[str, SubLcc] = {}
        self._stores: dict[str, SqlStore] = {}
        self._load = Load({})
        self._silent = Silent()

    def close(self) -> None:
        """Give connections back."""
        with self._lock:
            stores, self._stores = self._stores, {}
        for store in stores.values():
            store.close()

    def look(self) -> None:
        """Find out which sub-LCCs there are, which of them answer, and how full these are."""
        subs = {one.name: one for one in self._directory.subs()}
        stores: dict[str, SqlStore] = {}
        urls: dict[str, int] = {}
        silent: dict[str, str] = {}
        for name, sub in subs.items():
            try:
                stores[name] = self._opened(sub)
                urls[name] = count_urls(stores[name])
            except LccError as error:
                silent[name] = f"sub-LCC {name}: {error}"
        load = self._directory.load(urls)
        with self._lock:
            given_back = [one for one in self._stores.values() if one not in stores.values()]
            self._subs, self._stores, self._load = subs, {name: stores[name] for name in urls}, load
        for store in [*given_back, *(stores[name] for name in stores.keys() - urls)]:
            store.close()
        self._silent.note(silent)

    def _opened(self, sub: SubLcc) -> SqlStore:
        if not sub.database:
            raise LccError("its --database is not known (`lcc front set`)")
        with self._lock:
            same = self._stores.get(sub.name) if self._subs.get(sub.name) == sub else None
        return same or open_store(sub, to_write=True, silence=self._silence)

    # --- until the next look ---------------------------------------------------------------------

    def place(self, without: Collection[str] = ()) -> SubLcc:
        """Return the sub-LCC for a new provider, which is counted there; raises ``FrontError`` for none."""
        with self._lock:
            fit = [self._subs[name] for name in self._stores if name not in without]
            found = place(fit, self._load)
            self._load = self._load.with_one_more(found.name)
            return found

    def first(self) -> str:
        """Return the name of the first one; raises ``SubAway`` when there is none."""
        with self._lock:
            found = min(self._stores, default="")
        if not found:
            raise SubAway("no sub-LCC answers")
        return found

    def stores(self) -> Mapping[str, Store]:
        """Return the stores by name."""
        with self._lock:
            return dict(self._stores)

    @contextmanager
    def using(self, name: str) -> Iterator[Store]:
        """Work with a sub-LCC; raises ``SubAway`` when its database does not answer, at once until a look."""
        with self._lock:
            store = self._stores.get(name)
        if store is None:
            raise SubAway(f"sub-LCC {name} does not answer")
        try:
            yield store
        except StoreUnavailable as error:
            self._leave_if_away(name, store)
            raise SubAway(f"sub-LCC {name}: {error}") from error

    def _leave_if_away(self, name: str, store: SqlStore) -> None:
        """Let nobody else wait for a database, unless it was a deadlock and the like."""
        with suppress(LccError):
            count_urls(store)
            return
        with self._lock:
            if self._stores.get(name) is store:
                del self._stores[name]
        store.close()
