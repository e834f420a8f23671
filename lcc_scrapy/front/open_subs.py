"""The databases of sub-LCCs, kept open by a server, which looks at them from time to time.

Nobody waits for a database that was away at the last look. Threads may share it.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial

from sqlalchemy.exc import ProgrammingError

from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import LccError, StoreUnavailable
from lcc_scrapy.domain.front import Load, SubLcc, place
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.silent import Silent
from lcc_scrapy.front.sub_stores import count_urls, open_store

LOOKS = 2
"""Times ``silence`` that a look takes at most: a connection, and a statement."""


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
        self._looks: dict[SubLcc, _Look] = {}

    def close(self) -> None:
        """Give connections back."""
        with self._lock:
            stores, self._stores = self._stores, {}
        for store in stores.values():
            store.close()

    def look(self) -> None:
        """Find out which sub-LCCs there are, which of them answer in time, and how full these are."""
        looks = self._looked()
        found = {sub.name: look.answer for sub, look in looks.items()}
        silent = {sub.name: look.why for sub, look in looks.items() if found[sub.name] is None}
        answers = {name: answer for name, answer in found.items() if answer is not None}
        load = self._directory.load({name: urls for name, (_, urls) in answers.items()})
        stores = {name: store for name, (store, _) in answers.items()}
        with self._lock:
            given_back = [one for one in self._stores.values() if one not in stores.values()]
            self._subs, self._stores, self._load = {sub.name: sub for sub in looks}, stores, load
        for store in given_back:
            store.close()
        self._silent.note({name: f"sub-LCC {name}: {why}" for name, why in silent.items()})

    def _looked(self) -> dict[SubLcc, "_Look"]:
        """Look at all at the same time; who gives no answer is not asked again before it does."""
        looks = {sub: self._looks.get(sub) or self._begun(sub) for sub in self._directory.subs()}
        end = time.monotonic() + LOOKS * self._silence
        for look in looks.values():
            look.join(max(0.0, end - time.monotonic()))
        self._looks = {sub: look for sub, look in looks.items() if look.is_alive()}
        return looks

    def _begun(self, sub: SubLcc) -> "_Look":
        look = _Look(partial(self._opened, sub))
        look.start()
        return look

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
        except (StoreUnavailable, ProgrammingError) as error:  # the last: tables are not there
            self._leave_if_away(name, store)
            raise SubAway(f"sub-LCC {name}: {getattr(error, 'orig', None) or error}") from error

    def _leave_if_away(self, name: str, store: SqlStore) -> None:
        """Let nobody else wait for a database, unless it was a deadlock and the like."""
        with suppress(LccError):
            count_urls(store)
            return
        with self._lock:
            if self._stores.get(name) is store:
                del self._stores[name]
        store.close()


class _Look(threading.Thread):
    """A look at one sub-LCC: ``answer`` is its store and how many URLs it has; else ``why`` tells."""

    def __init__(self, opened: Callable[[], SqlStore]) -> None:
        super().__init__(name="lcc-look", daemon=True)
        self.answer: tuple[SqlStore, int] | None = None
        self.why = "it gives no answer"
        self._opened = opened

    def run(self) -> None:
        """Ask it."""
        store = None
        try:
            store = self._opened()
            self.answer = store, count_urls(store)
        except LccError as error:
            self.why = str(error)
            if store is not None:
                store.close()
