"""Expiry (design section 5): what nobody has confirmed for long is asked for, and goes at last.

It looks at providers first, and at the documents of those only that have not confirmed them for that long.
The removal guard holds here too, but by portions: each day as many documents go as it lets pass.
"""

import logging
from collections.abc import Iterator

from lcc_scrapy.cache import full_set_requests
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.confirmation import Age, age
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider, Wanted, gravity
from lcc_scrapy.domain.removal_guard import DAY
from lcc_scrapy.queue.unit_of_work import UnitOfWork

CHUNK = 250
"""Documents per transaction."""

EXPIRED = "not confirmed for too long"
"""The reason that the tombstones of expired documents give."""

Removed = tuple[tuple[bytes, str], ...]
_log = logging.getLogger(__name__)


class Expiry:
    """The documents of one provider, in bounded transactions that any process may repeat at any time."""

    def __init__(self, store: Store, provider: Provider, now: int, policy: QueuePolicy) -> None:
        self._store = store
        self._provider = provider
        self._now = now
        self._policy = policy
        self._asked = gravity(provider.fullsetwanted) >= gravity(Wanted.OLD_FILES)

    def run(self) -> Iterator[Removed]:
        """Expire what has to expire today; yields (key, reason) of what went, after every transaction."""
        count, more = 0, False
        for keys in self._pages():
            removed, more = self._settle(keys) if keys else ((), False)
            count += len(removed)
            yield removed
            if more:
                break
        if count:
            self._tell(count, more=more)

    def _pages(self) -> Iterator[list[bytes]]:
        """Yield the keys of documents about which something is to be done, page by page."""
        last = b""
        while self._concerns(self._age(0, self._provider)):
            with self._store.read() as tx:
                page = tx.confirmations(self._provider.pid, last, CHUNK)
            if not page:
                return
            last = page[-1][0]
            yield [key for key, at in page if self._concerns(self._age(at, self._provider))]

    def _concerns(self, its_age: Age) -> bool:
        return its_age is Age.EXPIRED or (its_age is Age.STALE and not self._asked)

    def _age(self, confirmed: int, provider: Provider) -> Age:
        return age(confirmed, provider.confirmed, self._now, self._policy)

    def _settle(self, keys: list[bytes]) -> tuple[Removed, bool]:
        """Ask for a full set, and remove of these as many as the guard lets go today.

        Everything is looked at again under the lock of the provider, which may be back. The result also
        tells whether some documents had to stay.
        """
        with self._store.begin() as tx:
            batch = UnitOfWork(tx, [self._provider.pid], keys, self._now, self._policy)
            provider = batch.providers.get(self._provider.pid)
            if provider is None:
                return (), True
            ages = {key: self._age(row.confirmed_time, provider) for key, row in batch.cached.items()}
            expired = sorted(key for key, its_age in ages.items() if its_age is Age.EXPIRED)
            going = expired[: batch.room(provider.pid)]
            for key in going:
                batch.drop_cached(key, EXPIRED)
            batch.flush()
            reason = Wanted.EXPIRED_FILES if going else Wanted.OLD_FILES
            if any(ages.values()) and gravity(provider.fullsetwanted) < gravity(reason):
                full_set_requests.want(tx, provider.pid, reason)
        self._asked = True
        return batch.removals(), len(expired) > len(going)

    def _tell(self, count: int, *, more: bool) -> None:
        days = self._policy.expire_after / DAY
        rest = "; more go each day, as many as LCC_MAX_REMOVAL lets pass" if more else ""
        what = {"pid": self._provider.pid, "count": count, "days": days, "rest": rest}
        _log.warning(
            "provider %(pid)d: %(count)d documents expired,"
            " nobody has confirmed them for %(days)g days%(rest)s",
            what,
        )
