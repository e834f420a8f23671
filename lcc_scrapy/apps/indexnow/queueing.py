"""From the portions of good keys into the queue, each portion in one transaction.

A portion leaves the table in the transaction that queues its URLs, so a kill neither loses one nor queues it
twice. IndexNow says no md5: what is cached is fetched again, and goes when its site says that it is gone.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import Enum

from lcc_scrapy.apps.indexnow.keys import rooted_at
from lcc_scrapy.apps.indexnow.rules import Owners, Portion
from lcc_scrapy.apps.indexnow.store import rows_in
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.absorption import View
from lcc_scrapy.domain.entries import Declared, Origin, UrlEntry, furlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.roots import HttpUrl, Root
from lcc_scrapy.queue.unit_of_work import UnitOfWork, keys_of
from lcc_scrapy.spidering.submitting import queue_up, visit_of

_log = logging.getLogger(__name__)

_OPEN = frozenset({State.ACTIVE, State.PAUSED})


class Step(Enum):
    """What became of a portion."""

    GONE = "gone"
    """It is queued or refused, or somebody else took it."""
    MORE = "more"
    """URLs of a further provider are left in it."""
    HELD = "held"
    """It waits: for room in the queue, or until its provider is approved."""


class Queueing:
    """Queues portions; ``queue_max`` as in LCC_QUEUE_MAX. All verbs block.

    ``queued`` wakes whoever fetches: it is called when a portion has been dealt with.
    """

    def __init__(
        self,
        store: Store,
        policy: QueuePolicy,
        queue_max: int,
        queued: Callable[[], object] = lambda: None,
    ) -> None:
        self.queued = queued
        self._store = store
        self._policy = policy
        self._queue_max = queue_max

    def ready(self, after: int, limit: int = 100) -> list[int]:
        """Return the next portions whose keys are good."""
        with self._store.read() as tx:
            return rows_in(tx).portions_of_good_keys(after, limit)

    def queue(self, portionid: int, now: int) -> Step:
        """Queue the URLs of a portion that belong to one provider, the one with the lowest pid."""
        with self._store.begin() as tx:
            portion = rows_in(tx).lock_portion(portionid)
            if portion is None:
                return Step.GONE
            whose = _by_owner(portion, _rooted(tx, portion))
            refused = whose.pop(None, [])
            pid = min((one for one in whose if one is not None), default=None)
            if pid is None:
                return self._end(tx, portion, refused, [])
            provider = tx.lock_providers([pid]).get(pid)
            if provider is None and tx.provider(pid) is not None:
                return Step.HELD  # in transit to another LCC
            if provider is not None and not self._may_wait(tx, provider):
                return Step.HELD
            urls = whose.pop(pid)
            if provider is None or provider.state not in _OPEN:
                refused += urls
            else:
                self._queue(tx, pid, urls, now)
            rest = [url for some in whose.values() for url in some]
            return self._end(tx, portion, refused, rest)

    def _may_wait(self, tx: Tx, provider: Provider) -> bool:
        """Tell whether URLs of a provider may go on now: into the queue, or away."""
        if provider.state == State.PENDING:
            return False
        own = {provider.pid: provider.nurlproc}
        return provider.state not in _OPEN or View(self._queue_max, tx.queued_total(), own, ()).admits(
            provider.pid
        )

    def _end(self, tx: Tx, portion: Portion, refused: Sequence[HttpUrl], rest: Iterable[HttpUrl]) -> Step:
        """Take what was dealt with out of a portion."""
        left = [str(url) for url in rest]
        rows_in(tx).cut_portion(portion.portionid, json.dumps(left), len(left))
        if refused:
            self._tell_refused(tx, portion, refused)
        return Step.MORE if left else Step.GONE

    def _tell_refused(self, tx: Tx, portion: Portion, refused: Sequence[HttpUrl]) -> None:
        row = rows_in(tx).lock_site_key(portion.digest)
        if row is not None:
            rows_in(tx).put_site_key(replace(row, refused=row.refused + len(refused)))
        facts = {"count": len(refused), "site": portion.site, "first": str(refused[0])}
        _log.warning("IndexNow: refused %(count)d URLs of %(site)s: nobody's root has %(first)s", facts)

    def _queue(self, tx: Tx, pid: int, urls: Sequence[HttpUrl], now: int) -> None:
        for origin, entries in _entries(tx, pid, [str(url) for url in urls]).items():
            batch = UnitOfWork(tx, [pid], keys_of(pid, entries), now, self._policy)
            queue_up(batch, pid, entries, origin)


def _rooted(tx: Tx, portion: Portion) -> list[tuple[int, Root]]:
    """Return the roots at the host of a portion, those of providers that may not push left out if others may.

    They are left in where nobody else has any, so that what becomes of the URLs is decided by them.
    """
    rooted = rooted_at(tx, f"http://{portion.site}/")
    states = {pid: one.state for pid, one in tx.providers_of({pid for pid, _ in rooted}).items()}
    useful = [one for one in rooted if states.get(one[0]) != State.DISABLED]
    return useful or rooted


def _by_owner(portion: Portion, rooted: Sequence[tuple[int, Root]]) -> defaultdict[int | None, list[HttpUrl]]:
    found: defaultdict[int | None, list[HttpUrl]] = defaultdict(list)
    owners = Owners(rooted)
    for text in json.loads(portion.urls):
        url = HttpUrl.parse(text)
        found[owners.of(url)].append(url)
    return found


def _entries(tx: Tx, pid: int, urls: Sequence[str]) -> dict[str, list[UrlEntry]]:
    """Return what is to arrive, by origin: known documents by their own names, the rest as visits."""
    found: defaultdict[str, list[UrlEntry]] = defaultdict(list)
    lies_at = {furlkey(pid, url): url for url in urls}
    documents = tx.cached_at(lies_at)
    for key, url in lies_at.items():
        for row in documents.get(key, ()):
            pushed = row.origin == Origin.PUSH
            entry = replace(row.as_entry(), declared=Declared())
            found[Origin.PUSH if pushed else Origin.INDEXNOW].append(entry)
        if key not in documents:
            found[Origin.INDEXNOW].append(visit_of(url))
    return found
