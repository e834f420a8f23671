"""Pages that concern nobody lose their content (seed 002 section 6; decision 149).

The engine notes what had no finding. A page is dropped later, when spiders have read its links and new URDs
have been compared with it too. When a URD is added or changed, dropped pages in its scope are fetched afresh.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence

from lcc_scrapy.annotation.jobs import docbase_of
from lcc_scrapy.cache.irrelevant import terms_of
from lcc_scrapy.db.records import Irrelevant, Unwanted
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.entries import Origin, furlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.urds import EVERYTHING, Urd
from lcc_scrapy.queue.unit_of_work import UnitOfWork
from lcc_scrapy.spidering.submitting import Spidering, Terms

CHUNK = 100
"""Documents in one transaction."""

URDS = 1000
"""New URDs that are compared with dropped pages together."""

STEPS = 20
"""Transactions of one round."""

_PROGRESS = "irrelevant"
_FOUND = frozenset({Origin.SPIDER, Origin.DIRECTIVE})


def note_unwanted_by(policy: QueuePolicy) -> Callable[[Tx, Sequence[CachedUrl], int], None]:
    """Return what notes documents without a finding for anybody, in the transaction of the engine."""

    def note(tx: Tx, rows: Sequence[CachedUrl], _now: int) -> None:
        if policy.drop_irrelevant:
            tx.put_unwanted([Unwanted(row.urlkey, row.seq) for row in rows if _may_go(row)])

    return note


def _may_go(row: CachedUrl) -> bool:
    return row.origin in _FOUND and not row.held


class Irrelevance:
    """Drops what concerns nobody, and fetches what concerns somebody again; ``now`` gives epoch seconds."""

    def __init__(self, store: Store, policy: QueuePolicy, now: Callable[[], float]) -> None:
        self._store = store
        self._policy = policy
        self._now = now
        self._after = b""
        self.dropped = 0

    def round(self) -> int:
        """Do a bounded part of what there is to do; returns how many pages were dropped."""
        for _ in range(STEPS):
            if not self._look_for_wanted():
                break
        before = self.dropped
        for _ in range(STEPS if self._policy.drop_irrelevant else 0):
            if not self._drop_some():
                break
        return self.dropped - before

    # --- dropping ----------------------------------------------------------------------------------

    def _drop_some(self) -> bool:
        """Look at some noted documents; False = it came to the last one, and begins anew the next time."""
        with self._store.read() as tx:
            noted = tx.unwanted(self._after, CHUNK)
            keys = [row.urlkey for row in noted]
            pids = {row.pid for row in tx.cached(keys).values()}
        self._after = keys[-1] if len(keys) == CHUNK else b""
        if not noted:
            return False
        with self._store.begin() as tx:
            batch = UnitOfWork(tx, pids, keys, int(self._now()), self._policy)
            tx.lock_urds()  # until now, each new one was compared with all that is cached: see below
            if tx.urds_to_run(1) or not tx.count_urds():
                return False
            gone = self._judge(tx, batch, noted)
            batch.flush()
            tx.delete_unwanted(gone)
        self.dropped += len(batch.removals())
        return bool(self._after)

    def _judge(self, tx: Tx, batch: UnitOfWork, noted: Sequence[Unwanted]) -> list[bytes]:
        """Drop what still concerns nobody; returns what is to be looked at no more."""
        rows = {one.urlkey: batch.cached.get(one.urlkey) for one in noted}
        same = {
            one.urlkey: row
            for one in noted
            if (row := rows[one.urlkey])
            and row.seq == one.seq
            and row.pid in batch.providers
            and _may_go(row)
            and not batch.has_rendition(row)  # that may concern somebody, and would go with it
        }
        told = {
            key for key, _, _ in tx.told_contents(same.keys(), {docbase_of(row) for row in same.values()})
        }
        waiting = tx.waiting_rows(same)
        done = [one.urlkey for one in noted if one.urlkey not in same]
        for key, row in same.items():
            if key in waiting or not self._is_read(tx, row):
                continue  # later
            done.append(key)
            if key not in told and not _is_compared(tx, row):
                batch.drop_irrelevant(key, terms_of(tx, row.pid))
        return done

    @staticmethod
    def _is_read(tx: Tx, row: CachedUrl) -> bool:
        """Tell whether spiders have read its links, if there are spiders of its provider."""
        scan = tx.scan(row.pid)
        return scan is None or not scan.terms or row.seq <= scan.seq

    # --- what is wanted again ----------------------------------------------------------------------

    def _look_for_wanted(self) -> bool:
        """Compare dropped pages with URDs that are new or changed; tells whether there is more to do."""
        with self._store.begin() as tx:
            done, target, after = _progress(tx)
            if done >= tx.urd_revision():
                return False
            news = [one for one in tx.urds_changed(done, URDS) if not target or one.revision <= target]
            target = target or (news[-1].revision if news else tx.urd_revision())
            rows = tx.irrelevant_behind(after, CHUNK) if news else []
            self._fetch_afresh(tx, _wanted(tx, rows, news))
            more = len(rows) == CHUNK
            said = f"{done} {target} {rows[-1].urlkey.hex()}" if more else f"{target} 0 "
            tx.set_info(_PROGRESS, said)
            return True

    def _fetch_afresh(self, tx: Tx, rows: Sequence[Irrelevant]) -> None:
        places: defaultdict[int, list[bytes]] = defaultdict(list)
        for row in rows:
            places[row.pid].append(furlkey(row.pid, row.furl))
        tx.lock_providers(sorted(places))
        for pid, those in sorted(places.items()):
            spidering = Spidering(self._store, pid, Terms(), self._policy)
            spidering.fetch_afresh(tx, those, int(self._now()))


def _progress(tx: Tx) -> tuple[int, int, bytes]:
    """Return up to which revision URDs were compared, up to which they are, and up to which page."""
    done, target, after = (tx.info(_PROGRESS) or "0 0 ").split(" ")
    return int(done), int(target), bytes.fromhex(after)


def _wanted(tx: Tx, rows: Sequence[Irrelevant], urds: Sequence[Urd]) -> list[Irrelevant]:
    """Return the pages that are in the scope of one of these URDs."""
    uris, owners = {one.uri for one in urds}, {one.owner for one in urds}
    lies_at = {row.urlkey: furlkey(row.pid, row.furl) for row in rows}
    owned = tx.owners_of(lies_at.values()) if rows else {}
    return [
        row
        for row in rows
        if not uris.isdisjoint(_names_of(row.furl))
        or any(one.owner in owners for one in owned.get(lies_at[row.urlkey], ()))
    ]


def _names_of(url: str) -> Iterator[str]:
    """Yield what a URD may call a page: itself, each folder that it is in, and everything."""
    yield EVERYTHING
    yield url
    at = url.find("/", url.find("//") + 2)
    while at >= 0:
        yield url[: at + 1]
        at = url.find("/", at + 1)


def _is_compared(tx: Tx, row: CachedUrl) -> bool:
    """Tell whether somebody wants to know what changes in a page: then its content is needed."""
    if not tx.has_urds_of_changes():
        return False
    at = furlkey(row.pid, row.furl)
    owners: Collection[str] = [one.owner for one in tx.owners_of([at]).get(at, ())]
    return tx.are_compared(list(_names_of(row.furl)), owners)
