"""What the rules of alarms look at, read from the database and the disks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lcc_scrapy.apps.alarms.rules import Facts, Fetching
from lcc_scrapy.apps.alarms.settings import AlarmRules
from lcc_scrapy.apps.alarms.store import rows_in
from lcc_scrapy.db.records import EVERYBODY, PAUSED
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.fetch_counts import HOUR, since
from lcc_scrapy.queue.fetch_counts import FAILING

NAMED = 10
"""Silent providers that are named."""

_ENDED = "alarm fetches"

Rooms = Callable[[], tuple[Mapping[str, int], str]]
"""Returns the free bytes by folder, and why intake has stopped."""


@dataclass(frozen=True, slots=True)
class FactsReader:
    """Reads facts; ``rooms`` looks at the disks of this machine."""

    store: Store
    rooms: Rooms

    def read(self, rules: AlarmRules, now: int) -> Facts:
        """Return what there is at ``now`` (epoch seconds); it is noted since when no fetch has ended."""
        with self.store.read() as tx:
            counts = tx.fetch_counts(since(now, HOUR), EVERYBODY)
            held = sum(one.held for one in tx.ledger().values())
            silent = rows_in(tx).silent_providers(now, rules.silent) if rules.silent else []
            workers = sum(one.expires > now for one in tx.workers())
        free, short = self.rooms()
        return Facts(
            idle=self._idle(now),
            tried=sum(counts.values()),
            failed=sum(count for (result, _), count in counts.items() if result in FAILING),
            free=free,
            short=short,
            held=held,
            silent=tuple(silent[:NAMED]),
            silent_count=len(silent),
            workers=workers,
        )

    def _idle(self, now: int) -> float:
        """Return for how long no fetch has ended; nothing is written while nothing has changed."""
        with self.store.read() as tx:
            before = Fetching(*map(int, (tx.info(_ENDED) or "0 0").split()))
            after = before.seen(_ended(tx), now, due=not tx.info(PAUSED) and tx.has_due_turns(now))
        if after != before:
            with self.store.begin() as tx:
                tx.set_info(_ENDED, f"{after.ended} {after.since}")
        return after.idle(now)


def _ended(tx: Tx) -> int:
    """Return how many fetches have ended, ever: names of other tallies have no blank."""
    return sum(count for name, count in tx.tallies().items() if " " in name)
