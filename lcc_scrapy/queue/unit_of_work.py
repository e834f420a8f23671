"""A unit of work: changes to queue and cache: rows in, rules applied to them in memory, differences out.

Whatever the rules do, this is the one place that keeps the books: quota and queue counters, set parts,
the feed's seq in commit order, tombstones, and files handed to the delete manager.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lcc_scrapy.cache.last_outcomes import ended_tries
from lcc_scrapy.cache.misses import settle_late, suspect
from lcc_scrapy.cache.versions import drop, put_aside, to_delete
from lcc_scrapy.db.records import CONFIRMED, FEED, OUTCOME_STORED, Irrelevant, LastOutcome, TurnDelta
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain import convergence, queue, removal_guard
from lcc_scrapy.domain.arrivals import MASK, NewRow
from lcc_scrapy.domain.cache import IRRELEVANT, OUTSIDE_ROOTS, CachedUrl, Tombstone, UrlMeta, renamed_to
from lcc_scrapy.domain.entries import ANY_TYPE, Operation, Origin, UrlEntry, urlkey
from lcc_scrapy.domain.misses import DAY
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.queue import Place, QueuedUrl
from lcc_scrapy.domain.rendering import is_rendered, rendition_key

if TYPE_CHECKING:
    from lcc_scrapy.domain.providers import Provider


def keys_of(pid: int, entries: Iterable[UrlEntry]) -> list[bytes]:
    """Return the keys that the arrival of entries is about: their own, and those of spiders' visits."""
    entries = list(entries)
    own = [urlkey(pid, entry.curl, entry.mimetype) for entry in entries]
    updates = (entry for entry in entries if entry.operation is Operation.UPDATE)
    return own + [urlkey(pid, entry.furl, ANY_TYPE) for entry in updates]


class UnitOfWork:
    """Queue and cache rows of a bounded number of keys, changed together. ``now`` in epoch seconds.

    ``known`` are waiting rows as they were read before; those that are unchanged are not read again.
    """

    def __init__(
        self,
        tx: Tx,
        pids: Iterable[int],
        keys: Iterable[bytes],
        now: int,
        policy: QueuePolicy,
        *,
        known: Sequence[QueuedUrl] = (),
    ) -> None:
        self.tx = tx
        self.now = now
        self.policy = policy
        self.providers: dict[int, Provider] = tx.lock_providers(pids)
        self.queued: dict[bytes, QueuedUrl] = {}
        self.cached: dict[bytes, CachedUrl] = {}
        self._asked: set[bytes] = set()
        self._outcomes: dict[bytes, LastOutcome] | None = None
        self._queued_before: dict[bytes, QueuedUrl] = {}
        self._cached_before: dict[bytes, CachedUrl] = {}
        self.add(keys, known)
        self._new: dict[tuple[int, int], Sequence[NewRow]] = {}
        self._told: dict[bytes, None] = {}
        self._confirmed: dict[bytes, None] = {}
        self._reasons: dict[bytes, str] = {}
        self._withdrawn: list[bytes] = []
        self._left: dict[bytes, Irrelevant] = {}
        self._answers: dict[bytes, UrlMeta] = {}
        self._removed: Counter[int] = Counter()
        self.newly_held: Counter[int] = Counter()
        self.counters: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self.missed: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self.suspects: defaultdict[int, list[bytes]] = defaultdict(list)
        self._arrived: defaultdict[int, list[bytes]] = defaultdict(list)
        self._parts: Counter[tuple[int, str, int]] = Counter()
        self._turns: defaultdict[str, TurnDelta] = defaultdict(TurnDelta)
        self._inserted: list[bytes] = []
        self._updated: list[bytes] = []
        self._back: set[bytes] = set()
        self._renamed: dict[bytes, bytes] = {}

    def add(self, keys: Iterable[bytes], known: Sequence[QueuedUrl] = ()) -> None:
        """Take further keys in, before anything about them has changed."""
        wanted = list(dict.fromkeys(keys))
        self._asked.update(wanted)
        self._outcomes = None
        queued, cached = self.tx.queued(wanted, known), self.tx.cached(wanted)
        cached |= self._renditions(cached.values())
        self.queued |= queued
        self._queued_before |= queued
        self.cached |= cached
        self._cached_before |= cached

    def _renditions(self, pages: Iterable[CachedUrl]) -> dict[bytes, CachedUrl]:
        """Return the renditions of pages: they go with them."""
        rendering = {pid for pid, one in self.providers.items() if one.render}
        keys = [
            rendition_key(page.pid, page.curl)
            for page in pages
            if page.pid in rendering and is_rendered(page.mimetype)
        ]
        return self.tx.cached(keys) if keys else {}

    def has_rendition(self, page: CachedUrl) -> bool:
        """Tell whether a browser made something of a page."""
        return is_rendered(page.mimetype) and rendition_key(page.pid, page.curl) in self.cached

    # --- what the rules may do -------------------------------------------------------------------

    def put_queued(self, row: QueuedUrl) -> None:
        """Add or replace a waiting row."""
        self.queued[row.urlkey] = row

    def drop_queued(self, key: bytes) -> None:
        """Take a row out of the queue."""
        self.queued.pop(key, None)

    def put_cached(self, row: CachedUrl, *, tell: bool) -> None:
        """Add or replace a cached row; ``tell`` gives it a new place in the feed."""
        self.cached[row.urlkey] = row
        if tell:
            self._tell(row.urlkey)

    def confirm(self, key: bytes) -> None:
        """Give a document, found unchanged at its site, a new place among the confirmations."""
        self._confirmed[key] = None

    def put_meta(self, meta: UrlMeta) -> None:
        """Keep the answer that a stored body came with."""
        self._answers[meta.urlkey] = meta

    def drop_cached(self, key: bytes, reason: str, *, guarded: bool = True) -> None:
        """Take a row out of the cache, leaving a tombstone if content users ever knew it.

        ``guarded`` counts it among the removals of the day.
        """
        row = self.cached.pop(key, None)
        if row is not None:
            self._removed[row.pid] += guarded
            self._reasons[key] = reason
            self._tell(key)
            if is_rendered(row.mimetype):
                self.drop_cached(rendition_key(row.pid, row.curl), reason, guarded=False)

    def rename(self, rows: Mapping[bytes, CachedUrl]) -> None:
        """Give documents other names: their rows, by former keys. Contents and versions stay as they are.

        Content users hear that the former name is gone, and right behind that the new one. Nothing is removed
        by that, so the guard does not count it.
        """
        answers = self.tx.metas(rows)
        for key, row in rows.items():
            if row.urlkey != key:
                del self.cached[key]
                self._renamed[key] = row.urlkey
                self._reasons[key] = renamed_to(row.docid)
                self._tell(key)
                row = replace(row, owners_seq=0)  # noqa: PLW2901 - of another document
                self.put_meta(replace(answers[key], urlkey=row.urlkey))
            self.put_cached(row, tell=True)

    def drop_irrelevant(self, key: bytes, terms: str) -> None:
        """Take the content of a found document out of the cache, and keep what its next visit needs.

        The guard does not count it: a page that concerns nobody is not one that its site has lost.
        """
        row = self.cached[key]
        moved = row.final_url not in {"", row.furl}
        etag, last_modified = ("", "") if moved else (row.etag, row.last_modified)  # of another URL
        self._left[key] = Irrelevant(key, row.pid, row.furl, etag, last_modified, row.sha256, terms, self.now)
        self.drop_cached(key, IRRELEVANT, guarded=False)

    def hold(self, key: bytes, held: int) -> None:
        """Keep a cached row, and the fetch that would renew it, until its removal is confirmed."""
        row = self.cached[key]
        self.newly_held[row.pid] += not row.held
        self.put_cached(replace(row, held=held), tell=False)

    def release(self, key: bytes) -> None:
        """End the hold on a cached row."""
        self.put_cached(replace(self.cached[key], held=0), tell=False)

    def _tell(self, key: bytes) -> None:
        self._told.pop(key, None)
        self._told[key] = None

    def held_by_guard(self, pid: int, removing: int, waiting: int = 0) -> bool:
        """Tell whether the removal guard holds ``removing`` more removals of a provider.

        ``waiting`` counts URLs that are known, though not cached yet.
        """
        return removing > self.room(pid, waiting)

    def room(self, pid: int, waiting: int = 0) -> int:
        """Return how many documents of a provider the guard still lets go today; see ``held_by_guard``."""
        provider = self.providers[pid]
        removed = removal_guard.removed_within_day(provider.removed, provider.removedsince, self.now)
        known = provider.fileused + waiting - self._removed[pid]
        return removal_guard.room(removed + self._removed[pid], known, self.policy.max_removal)

    def change_in_use(self, pid: int) -> tuple[int, int]:
        """Return by how many files and bytes this unit of work has changed what a provider uses."""
        files = space = 0
        for rows, step in ((self._cached_before, -1), (self.cached, 1)):
            for row in rows.values():
                if row.pid == pid:
                    files, space = files + step * row.files, space + step * row.space
        return files, space

    def removals(self) -> tuple[tuple[bytes, str], ...]:
        """Return (key, reason) of the documents this unit of work has removed."""
        return tuple((key, reason) for key, reason in self._reasons.items() if key not in self.cached)

    def removals_by_pid(self) -> dict[int, tuple[tuple[bytes, str], ...]]:
        """Return the same for each provider that lost any."""
        found: dict[int, tuple[tuple[bytes, str], ...]] = {}
        for key, reason in self.removals():
            pid = self._cached_before[key].pid
            found[pid] = (*found.get(pid, ()), (key, reason))
        return found

    # --- arrival ---------------------------------------------------------------------------------

    def append(self, pid: int, psetid: int, rows: Sequence[NewRow]) -> None:
        """Queue updates of a provider's set that are new, as ``arrive`` would do with each."""
        if rows:
            self._new[pid, psetid] = rows
            self._arrived[pid].extend(row[0] for row in rows)
            for mask, count in Counter(row[MASK] for row in rows).items():
                self._count_waiting((psetid, mask, pid), count)
            self._turns[self.providers[pid].turnkey].arrived = True

    def arrive(
        self, pid: int, entry: UrlEntry, place: Place, *, ifabsent: bool = False, hold: bool = False
    ) -> None:
        """Apply one entry of a set, in the order of the set; the unit of work has to have its ``keys_of``."""
        key = urlkey(pid, entry.curl, entry.mimetype)
        if place.origin == Origin.PUSH and entry.operation is not Operation.PRESENT:
            self._arrived[pid].append(key)
        if entry.operation is Operation.UPDATE:
            self._update(pid, key, entry, place, ifabsent=ifabsent)
        elif entry.operation is Operation.REMOVE:
            hold = hold or (key in self.cached and self.held_by_guard(pid, 1))
            self.remove_pushed(key, place.psetid, "removed by its provider", hold=hold)

    def _update(self, pid: int, key: bytes, entry: UrlEntry, place: Place, *, ifabsent: bool) -> None:
        row, cached = self.queued.get(key), self.cached.get(key)
        if cached is not None and cached.held not in {0, OUTSIDE_ROOTS} and place.origin == Origin.PUSH:
            self.release(key)
        if ifabsent and (cached or (row and row.operation == queue.FETCH)):
            return
        if row is not None:
            self.put_queued(queue.arrive_again(row, entry, place))
        elif cached and queue.is_unchanged(entry, cached, strict_mtime=self.providers[pid].strictmtime):
            confirmed = queue.confirmed_by(entry, cached, place.psetid, self.now)
            self.put_cached(confirmed, tell=queue.users_notice(cached, confirmed))
        else:
            self._append(pid, key, entry, place)

    def ask_again(self, pid: int, entry: UrlEntry, place: Place) -> None:
        """Queue a URL on an operator's word, or let it be fetched at once where it waits to try again."""
        key = urlkey(pid, entry.curl, entry.mimetype)
        row = self.queued.get(key)
        if row is None:
            self._append(pid, key, entry, place, at_once=True)
        elif row.operation == queue.FETCH and row.not_before:
            self.put_queued(queue.at_once(row))

    def _append(self, pid: int, key: bytes, entry: UrlEntry, place: Place, *, at_once: bool = False) -> None:
        """Queue a URL that does not wait; where a spider's visit of it does, it takes over its place."""
        found = self.queued.get(urlkey(pid, entry.furl, ANY_TYPE))
        if place.origin == Origin.PUSH and found is not None and queue.is_found(found):
            self.drop_queued(found.urlkey)
            row = queue.take_over(found, entry, key, place)
        else:
            row = queue.update_row(entry, key, pid, place)
        self.put_queued(self._with_tries_left(row, at_once=at_once))

    def _with_tries_left(self, row: QueuedUrl, *, at_once: bool) -> QueuedUrl:
        """Return a row that may be asked for only once if the tries of its declaration ended without success.

        That is when the last delay has passed since, or ``at_once``.
        """
        ended = self._outcome(row.urlkey) if row.origin == Origin.PUSH else None
        cached = self.cached.get(row.urlkey)
        if ended is None or not ended_tries(ended, row):
            return row
        if cached is not None and cached.confirmed_time > ended.at:
            return row  # something else was stored since
        delays = self.policy.retry_delays
        due = 0 if at_once else convergence.one_more(ended.at, self.now, delays) or queue.DUE
        etag = convergence.strong(cached.etag) if cached and ended.state == OUTCOME_STORED else ""
        return queue.once(row, delays, due, etag if cached and cached.final_url == row.furl else "")

    def _outcome(self, key: bytes) -> LastOutcome | None:
        """Return the last failure of a URL; those of all are read when the first is asked for."""
        if self._outcomes is None:
            self._outcomes = self.tx.outcomes_of({*self._asked, key})
        return self._outcomes.get(key)

    def remove_pushed(self, key: bytes, psetid: int, reason: str, *, hold: bool = False) -> None:
        """Remove a document of which its provider said that it is gone."""
        row = self.cached.get(key)
        if row is not None and not row.held:
            self.missed[row.pid]["pushed"] += 1
        self._withdrawn.append(key)
        self.remove(key, psetid, reason, hold=hold)

    def remove(self, key: bytes, psetid: int, reason: str, *, hold: bool = False) -> None:
        """Remove a document, or hold it: a waiting fetch becomes "nothing", the cached row goes."""
        if hold and key in self.cached:
            self.hold(key, psetid)
            return
        self.cancel(key, psetid)
        self.drop_cached(key, reason)

    def cancel(self, key: bytes, psetid: int) -> None:
        """Turn a waiting fetch into "nothing"."""
        if key in self.queued:
            self.put_queued(queue.cancel(self.queued[key], psetid))

    @property
    def tells(self) -> bool:
        """Whether content users hear of it, so that ``FEED`` is locked when it is written."""
        return bool(self._told)

    # --- writing ---------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what changed and keep the books."""
        self.write_own()
        self.write_last()

    def write_own(self) -> None:
        """Write everything but documents, tombstones and the feed: rows of the providers that are locked."""
        self.tx.append_new(self._new)
        self._flush_queue()
        self._flush_cache()
        self.tx.withdraw_outcomes(self._withdrawn)
        self.tx.add_to_providers(self.counters)
        self._count_removals()
        self._count_missed()
        inserted, updated = ([self.cached[key] for key in keys] for keys in (self._inserted, self._updated))
        self._documents = self.tx.prepare_cached(inserted, updated, self._answers)

    def write_last(self) -> None:
        """Write documents with their places in the feed, of which nobody else can have any until the commit.

        ``FEED`` is the last of the rows that many wait for: behind it comes the commit, as soon as possible.
        """
        self._number_confirmations()
        self._number()
        self._documents.write(self.cached)

    def _count_missed(self) -> None:
        for pid, deltas in self.missed.items():
            self.tx.add_missed(pid, self.now // DAY, deltas)
        for pid, keys in self.suspects.items():
            suspect(self.tx, keys, pid, self.now)
        suspected = self.tx.suspected(self._arrived) if self._arrived else ()
        for pid in suspected:
            keys = self._arrived[pid]
            settle_late(self.tx, pid, self.now, self.policy.push_grace, keys)

    def _count_waiting(self, part: tuple[int, str, int], step: int) -> None:
        """Count rows that come to a set part, or go."""
        pid = part[2]
        self._parts[part] += step
        self.counters[pid]["nurlproc"] += step
        self._turns[self.providers[pid].turnkey].waiting += step

    def _flush_queue(self) -> None:
        turns = self._turns
        inserted: list[QueuedUrl] = []
        updated: list[QueuedUrl] = []
        deleted: list[bytes] = []
        for key in self.queued.keys() | self._queued_before.keys():
            before, after = self._queued_before.get(key), self.queued.get(key)
            if before is after:
                continue
            for row, step in ((before, -1), (after, 1)):
                if row is not None:
                    self._count_waiting((row.psetid, row.timeofday, row.pid), step)
            if after is None:
                deleted.append(key)
                continue
            if before is None or before.version != after.version:
                turns[self.providers[after.pid].turnkey].arrived = True
            (inserted if before is None else updated).append(after)
        for provider in self.providers.values():
            if provider.turnkey in turns:
                turns[provider.turnkey].priority = max(turns[provider.turnkey].priority, provider.priority)
        self.tx.delete_queued(deleted)
        self.tx.insert_queued(sorted(inserted, key=lambda row: (row.psetid, row.position)))
        self.tx.update_queued(updated)
        self.tx.add_to_parts(
            self._parts, {pid: provider.priority for pid, provider in self.providers.items()}
        )
        self.tx.add_to_turns(turns)

    def _flush_cache(self) -> None:
        replaced: list[CachedUrl] = []
        gone: list[CachedUrl] = []
        for key in self.cached.keys() | self._cached_before.keys():
            before, after = self._cached_before.get(key), self.cached.get(key)
            if before is after:
                continue
            if before is not None and after is None:
                if key not in self._renamed:
                    gone.append(before)
            elif before is not None and after is not None and after.fetched_fileid != before.fetched_fileid:
                replaced.append(before)
            self._count(before, -1)
            self._count(after, 1)
            if after is not None:
                (self._inserted if before is None else self._updated).append(key)
        links = {key: self.tx.links_of(key) for key in self._left}
        self.tx.rekey_documents(self._renamed)
        self.tx.delete_cached([*(row.urlkey for row in gone), *self._renamed])
        for key, row in self._left.items():
            self.tx.put_links({key: links[key]}, row.pid)
        self.tx.put_irrelevant(list(self._left.values()))
        self._let_go(gone, replaced)
        fresh = [key for key in self._told if key in self.cached and key not in self._cached_before]
        self._back = self.tx.delete_tombstones(fresh)
        if self.policy.drop_irrelevant and fresh:
            self.tx.delete_irrelevant(fresh)

    def _let_go(self, gone: list[CachedUrl], replaced: list[CachedUrl]) -> None:
        """Hand the files of what is not there any more, nor kept as a version, to the delete manager."""
        surplus = put_aside(self.tx, replaced, self.policy, self.now)
        surplus += drop(self.tx, gone, self.policy, self.now)
        self.tx.delete_later([to_delete(one, self.now, self.policy) for one in surplus])

    def _number_confirmations(self) -> None:
        """Give what was confirmed, and is still there, its place."""
        confirmed = [key for key in self._confirmed if key in self.cached]
        if confirmed:
            for number, key in enumerate(confirmed, self.tx.take(CONFIRMED, len(confirmed))):
                self.cached[key] = self.cached[key].confirmed_at(number)

    def _number(self) -> None:
        """Give everything content users must hear of its seq, and write tombstones."""
        told = [key for key in self._told if key in self.cached or key in self._cached_before]
        if not told:
            return
        tombstones = []
        for seq, key in enumerate(told, self.tx.take(FEED, len(told))):
            row = self.cached.get(key)
            if row is not None:
                turned = key in self._back or self._has_turned(row)
                self.cached[key] = row.told(seq, seq if turned else self._turned(key))
            else:
                tombstones.append(self._tombstone(self._cached_before[key], seq))
        self.tx.put_tombstones(tombstones)

    def _has_turned(self, row: CachedUrl) -> bool:
        """Tell whether its subtype is another one than before: it may leave what somebody selects."""
        before = self._cached_before.get(row.urlkey)
        return before is not None and before.subtype != row.subtype

    def _turned(self, key: bytes) -> int:
        before = self._cached_before.get(key)
        return before.subtype_seq if before else 0

    def _tombstone(self, row: CachedUrl, seq: int) -> Tombstone:
        reason = self._reasons.get(row.urlkey, "")
        return Tombstone(row.urlkey, row.pid, row.curl, row.mimetype, row.furl, reason, self.now, seq)

    def _count(self, row: CachedUrl | None, step: int) -> None:
        if row is not None:
            self.counters[row.pid]["fileused"] += step * row.files
            self.counters[row.pid]["spaceused"] += step * row.space
            self.counters[row.pid]["heldremovals"] += step * (row.held > 0)

    def _count_removals(self) -> None:
        for pid, count in self._removed.items():
            provider = self.providers[pid]
            before = removal_guard.removed_within_day(provider.removed, provider.removedsince, self.now)
            since = provider.removedsince if before else self.now
            self.tx.update_provider(pid, {"removed": before + count, "removedsince": since})
