"""A store in memory: the plainest thing that does what ``SqlStore`` does, to compare with and to be quick.

A transaction works on copies of all tables, which replace the tables when it ends well.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import islice, takewhile
from threading import RLock
from typing import Any

from lcc_scrapy.db.records import (
    ABSORBED,
    ACI_NUMBER,
    FEED,
    LAST_KEY,
    LAST_NUMBER,
    OUTCOME_FAILED,
    OUTCOME_RETRYING,
    OUTCOME_WITHDRAWN,
    DocumentLink,
    FailingHost,
    Fetched,
    FileBlock,
    FileToDelete,
    Head,
    Irrelevant,
    LastOutcome,
    Ledger,
    Login,
    LongFetch,
    Missed,
    Oldest,
    OpenLogin,
    Overtaking,
    Ownership,
    ProviderSet,
    Queue,
    Scan,
    SetName,
    SetPart,
    Spidered,
    StoredTurn,
    Suspect,
    TurnDelta,
    Uns,
    Unwanted,
    UrlErrorRecord,
    Withdrawal,
    WorkerRow,
)
from lcc_scrapy.db.sql.irrelevant_verbs import NO_TERMS
from lcc_scrapy.db.sql.urd_verbs import NOT_BEGUN, REMOVALS_KEPT, URD_REVISION, URDID
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.acis import Aci, Alert, AlertState, Channel, Recipient, Waiting
from lcc_scrapy.domain.alerts import NEVER, Standing
from lcc_scrapy.domain.arrivals import STORED_COLUMNS, NewRow, same_in_all
from lcc_scrapy.domain.audit import AuditEntry
from lcc_scrapy.domain.cache import NO_ANSWERS, OUTSIDE_ROOTS, Answers, CachedUrl, Tombstone, UrlMeta
from lcc_scrapy.domain.entries import Origin, furlkey
from lcc_scrapy.domain.front_moves import Came
from lcc_scrapy.domain.named_cursors import NamedCursor
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.queue import DUE, FETCH, QueuedUrl
from lcc_scrapy.domain.timeslots import first_slot
from lcc_scrapy.domain.tokens import Token
from lcc_scrapy.domain.urd_rules import due_at
from lcc_scrapy.domain.urds import Process, Urd
from lcc_scrapy.domain.users import Session, User
from lcc_scrapy.domain.versions import Version


@dataclass(slots=True)
class _Tables:
    pidb: dict[int, Provider] = field(default_factory=dict)
    proots: dict[int, tuple[str, ...]] = field(default_factory=dict)
    qdb: dict[bytes, QueuedUrl] = field(default_factory=dict)
    arrivals: dict[bytes, int] = field(default_factory=dict)
    qpsdb: dict[tuple[int, str], SetPart] = field(default_factory=dict)
    lccurl: dict[bytes, CachedUrl] = field(default_factory=dict)
    lccmeta: dict[bytes, UrlMeta] = field(default_factory=dict)
    versions: dict[int, Version] = field(default_factory=dict)
    links: dict[bytes, tuple[DocumentLink, ...]] = field(default_factory=dict)
    spidered: dict[bytes, Spidered] = field(default_factory=dict)
    owners: dict[tuple[bytes, str], Ownership] = field(default_factory=dict)
    scans: dict[int, Scan] = field(default_factory=dict)
    misses: dict[tuple[int, int], Missed] = field(default_factory=dict)
    suspects: dict[bytes, Suspect] = field(default_factory=dict)
    tombstones: dict[bytes, Tombstone] = field(default_factory=dict)
    moved: dict[int, Came] = field(default_factory=dict)
    fsmdb: dict[tuple[int, int], FileToDelete] = field(default_factory=dict)
    fileblocks: dict[tuple[int, int], FileBlock] = field(default_factory=dict)
    urlerrors: dict[int, UrlErrorRecord] = field(default_factory=dict)
    outcomes: dict[bytes, LastOutcome] = field(default_factory=dict)
    psets: dict[int, ProviderSet] = field(default_factory=dict)
    logins: dict[tuple[int, int], OpenLogin] = field(default_factory=dict)
    overtaking: dict[bytes, Overtaking] = field(default_factory=dict)
    unses: dict[str, Uns] = field(default_factory=dict)
    turns: dict[str, StoredTurn] = field(default_factory=dict)
    workers: dict[str, WorkerRow] = field(default_factory=dict)
    fetches: dict[str, LongFetch] = field(default_factory=dict)
    hosts: dict[tuple[str, str], FailingHost] = field(default_factory=dict)
    machines: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    users: dict[str, User] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    audit: dict[int, AuditEntry] = field(default_factory=dict)
    cursors: dict[tuple[str, str], NamedCursor] = field(default_factory=dict)
    fetchcounts: dict[tuple[int, str, int, int], int] = field(default_factory=dict)
    tallies: dict[str, int] = field(default_factory=dict)
    recipients: dict[int, Recipient] = field(default_factory=dict)
    standings: dict[int, Standing] = field(default_factory=dict)
    alerts: dict[tuple[int, int], Alert] = field(default_factory=dict)
    urd: dict[int, Urd] = field(default_factory=dict)
    urd_runs: dict[int, bytes | None] = field(default_factory=dict)
    urd_deferred: dict[int, tuple[int, str]] = field(default_factory=dict)
    irrelevant: dict[bytes, Irrelevant] = field(default_factory=dict)
    unwanted: dict[bytes, Unwanted] = field(default_factory=dict)
    withdrawals: dict[str, Withdrawal] = field(default_factory=dict)
    removed_urds: dict[int, int] = field(default_factory=dict)
    aequeue: dict[bytes, Waiting] = field(default_factory=dict)
    aci: dict[tuple[bytes, int, str], Aci] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    lccinfo: dict[str, str] = field(default_factory=dict)

    def copy(self) -> "_Tables":
        return _Tables(**{table.name: dict(getattr(self, table.name)) for table in fields(self)})


class MemoryStore:
    """A ``Store`` whose rows live as long as the object; one thread writes at a time, as on SQLite."""

    def __init__(self) -> None:
        self._tables = _Tables()
        self._writer = RLock()

    @contextmanager
    def begin(self) -> Iterator[Tx]:
        """Open a writing transaction."""
        with self._writer:
            copies = self._tables.copy()
            yield MemoryTx(copies)
            self._tables = copies

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """Open a reading transaction."""
        yield MemoryTx(self._tables.copy())

    snapshot = read

    def close(self) -> None:
        """Nothing to give back."""


class MemoryTx:
    """See ``db.tx.Tx`` for what each verb promises."""

    def __init__(self, tables: _Tables) -> None:
        self._t = tables

    # --- providers -------------------------------------------------------------------------------

    def provider(self, pid: int) -> Provider | None:
        return self._t.pidb.get(pid)

    def providers_of(self, pids: Iterable[int]) -> dict[int, Provider]:
        return self.lock_providers(pids)

    def note_logins(self, rows: Sequence[Mapping[str, object]]) -> None:
        for row in rows:
            pid, *values = row.items()
            self.update_provider(int(str(pid[1])), dict(values))

    def lock_providers(self, pids: Iterable[int], *, free: bool = False) -> dict[int, Provider]:
        del free  # there is one transaction at a time
        known = (self._t.pidb[pid] for pid in sorted(set(pids)) if pid in self._t.pidb)
        return {row.pid: row for row in known if row.state != State.IN_TRANSIT}

    def lock_moving(self, pid: int) -> Provider | None:
        return self._t.pidb.get(pid)

    def providers(self, after: int = -1, limit: int = 1000) -> list[Provider]:
        return [self._t.pidb[pid] for pid in sorted(self._t.pidb) if pid > after][:limit]

    def narrowing_pids(self, after: int, limit: int) -> list[int]:
        return [pid for pid, row in sorted(self._t.pidb.items()) if pid > after and row.narrowing][:limit]

    def unconfirmed(self, before: int, after: int, limit: int) -> list[Provider]:
        rows = (row for pid, row in sorted(self._t.pidb.items()) if pid > after)
        return [row for row in rows if row.confirmed <= before and row.fileused > 0][:limit]

    def insert_provider(self, provider: Provider, roots: Sequence[str]) -> None:
        _insert(self._t.pidb, provider.pid, provider)
        self._t.proots[provider.pid] = tuple(roots)

    def insert_providers(self, rows: Sequence[tuple[Provider, Sequence[str]]]) -> None:
        for provider, roots in rows:
            self.insert_provider(provider, roots)

    def known_pids(self, pids: Sequence[int]) -> set[int]:
        return self._t.pidb.keys() & set(pids)

    def update_provider(self, pid: int, values: Mapping[str, object]) -> None:
        if pid in self._t.pidb:
            changes: dict[str, Any] = dict(values)
            self._t.pidb[pid] = replace(self._t.pidb[pid], **changes)

    def add_to_provider(self, pid: int, deltas: Mapping[str, int]) -> None:
        if pid in self._t.pidb:
            provider = self._t.pidb[pid]
            self.update_provider(
                pid, {name: getattr(provider, name) + delta for name, delta in deltas.items()}
            )

    def add_to_providers(self, deltas: Mapping[int, Mapping[str, int]]) -> None:
        for pid, counts in deltas.items():
            self.add_to_provider(pid, counts)

    def delete_provider(self, pid: int) -> None:
        self._t.pidb.pop(pid, None)
        self._t.proots.pop(pid, None)
        t = self._t
        its_own = (t.urlerrors, t.outcomes, t.psets, t.logins, t.spidered, t.owners, t.scans, t.suspects)
        for table in (*its_own, t.overtaking, t.irrelevant):
            _drop_where(table, lambda row: row.pid == pid)
        _drop(t.misses, [key for key in t.misses if key[0] == pid])
        _drop(t.fetchcounts, [key for key in t.fetchcounts if key[0] == pid])

    def members(self, turnkeys: Iterable[str]) -> list[Provider]:
        wanted = set(turnkeys)
        return [row for _, row in sorted(self._t.pidb.items()) if row.turnkey in wanted]

    def changed_providers(self, revision: int, limit: int = 1000) -> list[Provider]:
        changed = (row for row in self._t.pidb.values() if row.revision > revision)
        return sorted(changed, key=lambda row: row.revision)[:limit]

    def member_pids(self, turnkeys: Iterable[str]) -> set[int]:
        return {provider.pid for provider in self.members(turnkeys)}

    def roots_of(self, pids: Iterable[int]) -> dict[int, list[str]]:
        return {pid: list(self._t.proots[pid]) for pid in pids if self._t.proots.get(pid)}

    def rooted_at(self, host: str) -> list[tuple[int, str]]:
        return [(pid, root) for pid, its in sorted(self._t.proots.items()) for root in its if host in root]

    def roots(self, pid: int) -> list[str]:
        return list(self._t.proots.get(pid, ()))

    def replace_roots(self, pid: int, roots: Sequence[str]) -> None:
        self._t.proots[pid] = tuple(roots)

    # --- queue -----------------------------------------------------------------------------------

    def queued(self, keys: Iterable[bytes], known: Iterable[QueuedUrl] = ()) -> dict[bytes, QueuedUrl]:
        wanted = (*keys, *(row.urlkey for row in known))
        return {key: self._t.qdb[key] for key in wanted if key in self._t.qdb}

    def insert_queued(self, rows: Sequence[QueuedUrl]) -> None:
        for number, row in enumerate(rows, next(reversed(self._t.arrivals.values()), 0) + 1):
            _insert(self._t.qdb, row.urlkey, row)
            self._t.arrivals[row.urlkey] = number

    def append_new(self, sets: Mapping[tuple[int, int], Sequence[NewRow]]) -> None:
        for (pid, psetid), rows in sets.items():
            same: dict[str, Any] = same_in_all(pid, psetid)
            fields: list[dict[str, Any]] = [dict(zip(STORED_COLUMNS, row, strict=False)) for row in rows]
            self.insert_queued([QueuedUrl(**one, **same) for one in fields])

    def known(self, keys: Sequence[bytes]) -> set[bytes]:
        return {key for key in keys if key in self._t.qdb or key in self._t.lccurl}

    def update_queued(self, rows: Sequence[QueuedUrl]) -> None:
        self.insert_queued([row for row in rows if row.urlkey not in self._t.qdb])
        self._t.qdb.update({row.urlkey: row for row in rows})

    def delete_queued(self, keys: Sequence[bytes]) -> None:
        keys = list(keys)
        _drop(self._t.qdb, keys)
        _drop(self._t.arrivals, keys)

    def heads(self, wanted: Sequence[Head], *, retries: bool = False) -> dict[Queue, list[QueuedUrl]]:
        return {(one.pid, one.mask): self._head(one, DUE if retries else 0) for one in wanted}

    def _head(self, wanted: Head, not_before: int) -> list[QueuedUrl]:
        rows = [row for row in self._waiting(wanted.pid, wanted.mask) if row.not_before == not_before]
        behind = [row for row in rows if (row.psetid, row.position) > wanted.behind]
        return sorted(behind, key=lambda row: (row.psetid, row.position))[: wanted.limit]

    def return_due(self, pid: int, mask: str, now: int) -> int:
        due = [row for row in self._waiting(pid, mask) if DUE < row.not_before <= now]
        self.update_queued([replace(row, not_before=DUE if row.tries else 0) for row in due])
        return len(due)

    def set_aside(self, keys: Sequence[bytes], until: int) -> None:
        rows = [row for row in self.queued(keys).values() if row.not_before <= DUE]
        self.update_queued([replace(row, not_before=until) for row in rows])

    def bring_back(self, pid: int, mask: str, until: int) -> None:
        rows = [row for row in self._waiting(pid, mask) if row.not_before == until]
        self.update_queued([replace(row, not_before=DUE if row.tries else 0) for row in rows])

    def next_due(self, queues: Sequence[Queue], after: int = 0) -> dict[Queue, int]:
        aside = {
            queue: [row.not_before for row in self._waiting(*queue) if row.not_before > after]
            for queue in queues
        }
        return {queue: min(due) for queue, due in aside.items() if due}

    def _waiting(self, pid: int, mask: str) -> list[QueuedUrl]:
        return [row for row in self._t.qdb.values() if row.pid == pid and row.timeofday == mask]

    def queued_of(self, pid: int, after: int, limit: int) -> list[QueuedUrl]:
        return [row for _, row in self._arrived(pid, after)][:limit]

    def _arrived(self, pid: int, after: int, upto: int = LAST_NUMBER) -> list[tuple[int, QueuedUrl]]:
        """Return (number, row) of what waits of a provider, as it arrived."""
        rows = ((number, self._t.qdb[key]) for key, number in self._t.arrivals.items())
        return [(number, row) for number, row in rows if after < number <= upto and row.pid == pid]

    def reach_waiting(self, pid: int, after: int, limit: int) -> int:
        numbers = [number for number, _ in self._arrived(pid, after)]
        return numbers[limit - 1] if len(numbers) >= limit else LAST_NUMBER

    def unseen_waiting(
        self, pid: int, psetid: int, after: int, upto: int, limit: int
    ) -> list[tuple[int, bytes]]:
        rows = self._arrived(pid, after, upto)
        return [(number, row.urlkey) for number, row in rows if _absent(row, pid, psetid)][:limit]

    def count_waiting(self, pid: int, after: int, upto: int) -> int:
        return len(self._unfetched(pid, after, upto))

    def mark_unfetched(self, pid: int, psetid: int, after: int, upto: int) -> int:
        absent = [row for row in self._unfetched(pid, after, upto) if row.seen < psetid]
        self.update_queued([replace(row, seen=-psetid) for row in absent])
        return len(absent)

    def _unfetched(self, pid: int, after: int, upto: int) -> list[QueuedUrl]:
        rows = [row for _, row in self._arrived(pid, after, upto) if row.origin == Origin.PUSH]
        return [row for row in rows if row.operation == FETCH and row.urlkey not in self._t.lccurl]

    def add_to_parts(self, deltas: Mapping[tuple[int, str, int], int], pri: Mapping[int, int]) -> None:
        for (psetid, mask, pid), delta in deltas.items():
            part = self._t.qpsdb.get((psetid, mask)) or SetPart(
                psetid, mask, pid, first_slot(mask), pri.get(pid, 0), 0
            )
            part = replace(part, nurls=part.nurls + delta)
            if part.nurls > 0:
                self._t.qpsdb[psetid, mask] = part
            else:
                self._t.qpsdb.pop((psetid, mask), None)

    def parts(self, pid: int) -> list[SetPart]:
        return [part for _, part in sorted(self._t.qpsdb.items()) if part.pid == pid]

    def waiting(self, pid: int) -> dict[tuple[int, str], int]:
        return dict(Counter((row.psetid, row.timeofday) for row in self._t.qdb.values() if row.pid == pid))

    def count_before(self, row: QueuedUrl) -> int:
        ready = (other for other in self._t.qdb.values() if other.pid == row.pid and not other.not_before)
        return sum((other.psetid, other.position) < (row.psetid, row.position) for other in ready)

    def masks(self, pids: Iterable[int]) -> dict[int, list[str]]:
        parts = self._t.qpsdb.values()
        return {pid: sorted({part.timeofday for part in parts if part.pid == pid}) for pid in pids}

    def arrivals(self, turnkeys: Iterable[str]) -> dict[str, int]:
        return {key: turn.arrivals for key, turn in self.lock_turns(turnkeys).items()}

    # --- cache -----------------------------------------------------------------------------------

    def cached(self, keys: Iterable[bytes]) -> dict[bytes, CachedUrl]:
        return {key: self._t.lccurl[key] for key in keys if key in self._t.lccurl}

    def insert_cached(self, rows: Sequence[CachedUrl], answers: Answers = NO_ANSWERS) -> None:
        for row in rows:
            _insert(self._t.lccurl, row.urlkey, row)
        self._t.lccmeta.update({row.urlkey: answers[row.urlkey] for row in rows if row.urlkey in answers})

    def update_cached(self, rows: Sequence[CachedUrl], answers: Answers = NO_ANSWERS) -> None:
        self._t.lccurl.update({row.urlkey: row for row in rows})
        self._t.lccmeta.update({row.urlkey: answers[row.urlkey] for row in rows if row.urlkey in answers})

    def prepare_cached(
        self, inserted: Sequence[CachedUrl], updated: Sequence[CachedUrl], answers: Answers = NO_ANSWERS
    ) -> "PreparedDocuments":
        return PreparedDocuments(self, inserted, updated, answers)

    def delete_cached(self, keys: Sequence[bytes]) -> None:
        for table in (self._t.lccurl, self._t.lccmeta, self._t.links):
            _drop(table, keys)

    def cached_of(self, pid: int, after: bytes, limit: int) -> list[CachedUrl]:
        rows = (self._t.lccurl[key] for key in sorted(self._t.lccurl) if key > after)
        return [row for row in rows if row.pid == pid][:limit]

    def usage(self, pid: int) -> tuple[int, int]:
        mine = [row for row in self._t.lccurl.values() if row.pid == pid]
        return sum(row.files for row in mine), sum(row.space for row in mine)

    def mark_seen(self, keys: Sequence[bytes], psetid: int, now: int) -> None:
        for key in keys:
            if key in self._t.lccurl:
                row = self._t.lccurl[key]
                self._t.lccurl[key] = replace(row, seen=psetid, confirmed_time=now)
            if key in self._t.qdb:
                self._t.qdb[key] = replace(self._t.qdb[key], seen=psetid)

    def release(self, keys: Sequence[bytes]) -> int:
        rows = (self._t.lccurl[key] for key in set(keys) & self._t.lccurl.keys())
        held = [row for row in rows if 0 < row.held < OUTSIDE_ROOTS]
        self.update_cached([replace(row, held=0) for row in held])
        return len(held)

    def name_cached(self, keys: Sequence[bytes], psetid: int) -> int:
        rows = (self._t.lccurl[key] for key in set(keys) & self._t.lccurl.keys())
        new = [row for row in rows if row.seen < psetid]
        self.update_cached([replace(row, seen=psetid) for row in new])
        return len(new)

    def confirmations(self, pid: int, after: bytes, limit: int) -> list[tuple[bytes, int]]:
        pages = (row for row in self.cached_of(pid, after, len(self._t.lccurl)) if row.files)
        return [(row.urlkey, row.confirmed_time) for row in islice(pages, limit)]

    def reach(self, pid: int, after: bytes, limit: int) -> bytes:
        keys = sorted(key for key, row in self._t.lccurl.items() if row.pid == pid and key > after)
        return keys[limit - 1] if len(keys) >= limit else LAST_KEY

    def unseen(self, pid: int, psetid: int, after: bytes, upto: bytes, limit: int) -> list[bytes]:
        found = (key for key, row in self._t.lccurl.items() if _absent(row, pid, psetid))
        return sorted(key for key in found if after < key <= upto)[:limit]

    def count_absent(self, pid: int, psetid: int, after: bytes, upto: bytes) -> int:
        keys = self.unseen(pid, psetid, after, upto, len(self._t.lccurl))
        return sum(self._t.lccurl[key].seen != -psetid for key in keys)

    def held(self, pid: int, limit: int, after: bytes = b"") -> list[bytes]:
        return [key for key in sorted(self._t.lccurl) if key > after and self._is_held(key, pid)][:limit]

    def count_held(self, pid: int) -> int:
        return sum(self._is_held(key, pid) for key in self._t.lccurl)

    def _is_held(self, key: bytes, pid: int) -> bool:
        row = self._t.lccurl[key]
        return row.pid == pid and row.held > 0

    def meta(self, key: bytes) -> UrlMeta | None:
        return self._t.lccmeta.get(key)

    def metas(self, keys: Iterable[bytes]) -> dict[bytes, UrlMeta]:
        return {key: self._t.lccmeta[key] for key in keys if key in self._t.lccmeta}

    def put_links(self, links: Mapping[bytes, Sequence[DocumentLink]], pid: int = 0) -> None:
        assert pid >= 0
        self._t.links.update({key: tuple(row) for key, row in links.items()})

    def links_of(self, key: bytes) -> list[DocumentLink]:
        return list(self._t.links.get(key, ()))

    def delete_links(self, keys: Iterable[bytes]) -> None:
        _drop(self._t.links, list(keys))

    def put_tombstones(self, rows: Sequence[Tombstone]) -> None:
        self._t.tombstones.update({row.urlkey: row for row in rows})

    def delete_tombstones(self, keys: Sequence[bytes]) -> set[bytes]:
        found = self._t.tombstones.keys() & set(keys)
        _drop(self._t.tombstones, found)
        return found

    def tombstones(self, keys: Iterable[bytes]) -> dict[bytes, Tombstone]:
        return {key: self._t.tombstones[key] for key in keys if key in self._t.tombstones}

    def old_tombstones(self, before: int, limit: int) -> list[int]:
        rising = sorted(self._t.tombstones.values(), key=lambda row: row.seq)[:limit]
        return [row.seq for row in takewhile(lambda row: row.removed_time < before, rising)]

    def drop_tombstones(self, upto: int) -> None:
        _drop_where(self._t.tombstones, lambda row: row.seq <= upto)

    def changes(
        self, after: int, limit: int, pid: int | None = None, upto: int | None = None
    ) -> list[CachedUrl | Tombstone]:
        rows: list[CachedUrl | Tombstone] = [*self._t.lccurl.values(), *self._t.tombstones.values()]
        last = self.peek(FEED) if upto is None else upto
        new = [row for row in rows if after < row.seq <= last and pid in {None, row.pid}]
        return sorted(new, key=lambda row: row.seq)[:limit]

    def moved(self, seqs: Sequence[int]) -> dict[int, Came]:
        return {seq: self._t.moved[seq] for seq in seqs if seq in self._t.moved}

    def put_moved(self, came: Mapping[int, Came]) -> None:
        for seq, one in came.items():
            _insert(self._t.moved, seq, tuple(sorted(one)))

    def confirmed(self, after: int, limit: int, upto: int) -> list[CachedUrl]:
        rows = [row for row in self._t.lccurl.values() if after < row.confirmed_seq <= upto]
        return sorted(rows, key=lambda row: row.confirmed_seq)[:limit]

    def find_url(self, url: str) -> tuple[list[CachedUrl], list[QueuedUrl], list[Tombstone]]:
        def named(row: Any) -> bool:
            return url in {row.curl, row.furl, row.urlkey.hex()}

        t = self._t
        cached, queued, gone = t.lccurl.values(), t.qdb.values(), t.tombstones.values()
        return list(filter(named, cached)), list(filter(named, queued)), list(filter(named, gone))

    def documents(self, after: bytes, limit: int) -> list[CachedUrl]:
        return [row for key, row in sorted(self._t.lccurl.items()) if key > after][:limit]

    def files_of(self, machineid: int, fileids: Sequence[int]) -> dict[int, CachedUrl]:
        wanted = set(fileids)
        rows = (row for row in self._t.lccurl.values() if row.fetched_machineid == machineid)
        return {row.fetched_fileid: row for row in rows if row.fetched_fileid in wanted}

    # --- versions --------------------------------------------------------------------------------

    def versions(self, keys: Iterable[bytes]) -> dict[bytes, list[Version]]:
        wanted = set(keys)
        found: dict[bytes, list[Version]] = {}
        for _, row in sorted(self._t.versions.items(), reverse=True):
            if row.urlkey in wanted:
                found.setdefault(row.urlkey, []).append(row)
        return found

    def insert_versions(self, rows: Sequence[Version]) -> None:
        for row in rows:
            _insert(self._t.versions, row.seq, row)

    def delete_versions(self, seqs: Sequence[int]) -> None:
        _drop(self._t.versions, seqs)

    def next_versioned(self, after: int) -> int | None:
        return min((row.pid for row in self._t.versions.values() if row.pid > after), default=None)

    def version_times(self, pid: int, after: bytes, limit: int) -> list[tuple[bytes, int]]:
        rows = (row for row in self._t.versions.values() if row.pid == pid and row.urlkey > after)
        return sorted((row.urlkey, row.replaced_time) for row in rows)[:limit]

    def present(self, keys: Sequence[bytes]) -> set[bytes]:
        return set(keys) & self._t.lccurl.keys()

    def version_files(self, machineid: int, fileids: Sequence[int]) -> set[int]:
        rows = (row for row in self._t.versions.values() if row.fetched_machineid == machineid)
        return {row.fetched_fileid for row in rows} & set(fileids)

    # --- spidering -------------------------------------------------------------------------------

    def cached_at(
        self, furlkeys: Iterable[bytes], *, renditions: bool = False
    ) -> dict[bytes, list[CachedUrl]]:
        wanted = set(furlkeys)
        found: dict[bytes, list[CachedUrl]] = {}
        for _, row in sorted(self._t.lccurl.items()):
            if (lies_at := furlkey(row.pid, row.furl)) in wanted and (renditions or row.files):
                found.setdefault(lies_at, []).append(row)
        return found

    def present_at(self, furlkeys: Iterable[bytes]) -> set[bytes]:
        wanted = set(furlkeys)
        return self.cached_at(wanted).keys() | self.waiting_at(wanted).keys()

    def locate(self, pid: int, after: int, upto: int) -> None:
        """Every row is found by what it is."""

    def waiting_at(self, furlkeys: Iterable[bytes]) -> dict[bytes, bytes]:
        wanted = set(furlkeys)
        rows = ((furlkey(row.pid, row.furl), row) for row in self._t.qdb.values())
        return {key: row.urlkey for key, row in rows if key in wanted and row.operation == FETCH}

    def spidered(self, furlkeys: Iterable[bytes]) -> dict[bytes, Spidered]:
        return {key: self._t.spidered[key] for key in furlkeys if key in self._t.spidered}

    def insert_spidered(self, rows: Sequence[Spidered]) -> None:
        for row in rows:
            _insert(self._t.spidered, row.furlkey, row)

    def spidered_of(self, pid: int, after: bytes, limit: int) -> list[Spidered]:
        rows = (row for key, row in sorted(self._t.spidered.items()) if row.pid == pid and key > after)
        return list(islice(rows, limit))

    def delete_spidered(self, furlkeys: Sequence[bytes]) -> None:
        for key in furlkeys:
            self._t.spidered.pop(key, None)

    def visit_again(self, furlkeys: Sequence[bytes]) -> None:
        known = self.spidered(furlkeys)
        self._t.spidered.update({key: replace(row, visited=0, due=0) for key, row in known.items()})

    def visited(self, rows: Sequence[Spidered]) -> None:
        self._t.spidered.update({row.furlkey: row for row in rows if row.furlkey in self._t.spidered})

    def due(self, pid: int, upto: int, limit: int) -> list[Spidered]:
        rows = (row for row in self._t.spidered.values() if row.pid == pid and 0 < row.due <= upto)
        return sorted(rows, key=lambda row: (row.due, row.furlkey))[:limit]

    def overdue(self, pid: int, before: int, limit: int) -> list[Spidered]:
        rows = (row for row in self._t.spidered.values() if row.pid == pid and 0 < row.visited < before)
        return sorted(rows, key=lambda row: (row.visited, row.furlkey))[:limit]

    def count_spidered(self, pid: int) -> int:
        return sum(row.pid == pid for row in self._t.spidered.values())

    def has_owners(self) -> bool:
        return bool(self._t.owners)

    def owners_of(self, furlkeys: Iterable[bytes]) -> dict[bytes, list[Ownership]]:
        wanted = set(furlkeys)
        found: dict[bytes, list[Ownership]] = {}
        for (key, _), row in sorted(self._t.owners.items()):
            if key in wanted:
                found.setdefault(key, []).append(row)
        return found

    def first_owners(self, furlkeys: Iterable[bytes], limit: int) -> dict[bytes, list[str]]:
        names = {key: self.owners_behind(key, "", limit) for key in furlkeys}
        return {key: owners for key, owners in names.items() if owners}

    def owners_behind(self, key: bytes, after: str, limit: int) -> list[str]:
        return sorted(owner for at, owner in self._t.owners if at == key and owner > after)[:limit]

    def ownerships(self, pairs: Iterable[tuple[bytes, str]]) -> dict[tuple[bytes, str], Ownership]:
        return {pair: self._t.owners[pair] for pair in pairs if pair in self._t.owners}

    def put_owners(self, rows: Sequence[Ownership]) -> None:
        self._t.owners.update({(row.furlkey, row.owner): row for row in rows})

    def let_dig(self, furlkeys: Iterable[bytes]) -> None:
        known = self.owners_of(furlkeys).values()
        self.put_owners([replace(row, due=True) for rows in known for row in rows if row.reach])

    def to_dig(self, pid: int, limit: int) -> list[Ownership]:
        rows = (row for _, row in sorted(self._t.owners.items()) if row.pid == pid and row.due)
        return list(islice(rows, limit))

    def put_unwanted(self, rows: Sequence[Unwanted]) -> None:
        self._t.unwanted |= {row.urlkey: row for row in rows}

    def unwanted(self, after: bytes, limit: int) -> list[Unwanted]:
        return [row for key, row in sorted(self._t.unwanted.items()) if key > after][:limit]

    def delete_unwanted(self, keys: Sequence[bytes]) -> None:
        _drop(self._t.unwanted, keys)

    def put_irrelevant(self, rows: Sequence[Irrelevant]) -> None:
        self._t.irrelevant |= {row.urlkey: row for row in rows}

    def has_irrelevant(self) -> bool:
        return bool(self._t.irrelevant)

    def irrelevant_at(self, furlkeys: Iterable[bytes]) -> dict[bytes, list[Irrelevant]]:
        found: dict[bytes, list[Irrelevant]] = {}
        for row in self._t.irrelevant.values():
            found.setdefault(furlkey(row.pid, row.furl), []).append(row)
        return {key: found[key] for key in furlkeys if key in found}

    def irrelevant_behind(self, after: bytes, limit: int) -> list[Irrelevant]:
        return [row for key, row in sorted(self._t.irrelevant.items()) if key > after][:limit]

    def irrelevant_of(self, pid: int, limit: int) -> list[bytes]:
        return [key for key, row in sorted(self._t.irrelevant.items()) if row.pid == pid][:limit]

    def wanted_again(self, keys: Sequence[bytes]) -> None:
        for key in self._t.irrelevant.keys() & set(keys):
            row = replace(self._t.irrelevant[key], etag="", last_modified="", sha256="", terms=NO_TERMS)
            self._t.irrelevant[key] = row

    def delete_irrelevant(self, keys: Sequence[bytes]) -> None:
        _drop(self._t.irrelevant, keys)

    def linking_at(self, furlkeys: Iterable[bytes]) -> dict[bytes, list[bytes]]:
        keys = list(furlkeys)
        both = (self.cached_at(keys), self.irrelevant_at(keys))
        found = {at: {one.urlkey for some in both for one in some.get(at, ())} for at in keys}
        return {at: sorted(those) for at, those in found.items() if those}

    def next_owned(self, owner: str, after: int) -> int | None:
        pids = (row.pid for row in self._t.owners.values() if row.owner == owner)
        return min((pid for pid in pids if pid > after), default=None)

    def owned_by(self, owner: str, pid: int, after: bytes, limit: int) -> list[Ownership]:
        rows = (row for _, row in sorted(self._t.owners.items()) if (row.owner, row.pid) == (owner, pid))
        return [row for row in rows if row.furlkey > after][:limit]

    def delete_owners(self, pairs: Iterable[tuple[bytes, str]]) -> None:
        _drop(self._t.owners, list(pairs))

    def put_withdrawals(self, owners: Iterable[str]) -> None:
        for owner in set(owners):
            known = self._t.withdrawals.get(owner, Withdrawal(owner, -1))
            self._t.withdrawals[owner] = replace(known, changes=known.changes + 1)

    def note_risen(self, owners: Collection[str]) -> None:
        self.put_withdrawals(self._t.withdrawals.keys() & set(owners))

    def withdrawal(self, owner: str, *, lock: bool = False) -> Withdrawal | None:
        assert lock in {True, False}
        return self._t.withdrawals.get(owner)

    def withdrawals(self, limit: int) -> list[Withdrawal]:
        return [row for _, row in sorted(self._t.withdrawals.items())][:limit]

    def end_withdrawal(self, owner: str) -> None:
        self._t.withdrawals.pop(owner, None)

    def scan(self, pid: int) -> Scan | None:
        return self._t.scans.get(pid)

    def scanned(self, pids: Collection[int]) -> set[int]:
        return self._t.scans.keys() & set(pids)

    def put_scan(self, scan: Scan) -> None:
        self._t.scans[scan.pid] = scan

    # --- changes that were not pushed ------------------------------------------------------------

    def add_missed(self, pid: int, day: int, deltas: Mapping[str, int]) -> None:
        row = self._t.misses.get((pid, day)) or Missed()
        added = {name: getattr(row, name) + delta for name, delta in deltas.items()}
        self._t.misses[pid, day] = replace(row, **added)

    def missed(self, pid: int, since: int) -> Missed:
        rows = [row for (whose, day), row in self._t.misses.items() if whose == pid and day >= since]
        names = [one.name for one in fields(Missed)]
        return Missed(**{name: sum(getattr(row, name) for row in rows) for name in names})

    def all_missed(self, since: int) -> dict[int, Missed]:
        return {pid: self.missed(pid, since) for pid in self.sampled_providers(since)}

    def all_suspects(self, upto: int) -> dict[int, int]:
        return dict(Counter(row.pid for row in self._t.suspects.values() if row.found <= upto))

    def sampled_providers(self, since: int) -> list[int]:
        rows = self._t.misses.items()
        return sorted({pid for (pid, day), row in rows if day >= since and row.sampled})

    def falling_pids(self, after: int, limit: int) -> list[int]:
        sampled = self.sampled_providers(0)
        rows = (row for pid, row in sorted(self._t.pidb.items()) if pid > after and pid in sampled)
        return [row.pid for row in rows if row.fallback > 0 or row.fallingback][:limit]

    def suspected_pids(self, upto: int, after: int, limit: int) -> list[int]:
        rows = self._t.suspects.values()
        return sorted({row.pid for row in rows if row.pid > after and row.found <= upto})[:limit]

    def forget_missed(self, before: int, limit: int = 1000) -> int:
        old = sorted(key for key in self._t.misses if key[1] < before)[:limit]
        _drop(self._t.misses, old)
        return len(old)

    def put_suspects(self, rows: Sequence[Suspect]) -> None:
        self._t.suspects.update({row.urlkey: row for row in rows})

    def count_suspects(self, pid: int, upto: int) -> int:
        return sum(row.pid == pid and row.found <= upto for row in self._t.suspects.values())

    def suspected(self, pids: Collection[int]) -> set[int]:
        return {row.pid for row in self._t.suspects.values()} & set(pids)

    def suspects(self, pid: int, after: int, upto: int, limit: int) -> list[bytes]:
        rows = (row for row in self._t.suspects.values() if row.pid == pid and after < row.found <= upto)
        return [row.urlkey for row in islice(rows, limit)]

    def drop_suspects(self, pid: int, after: int, upto: int, keys: Sequence[bytes]) -> int:
        dropped = {*keys} & {*self.suspects(pid, after, upto, len(self._t.suspects))}
        _drop(self._t.suspects, dropped)
        return len(dropped)

    # --- counters and files ----------------------------------------------------------------------

    def take(self, counter: str, count: int) -> int:
        self._t.counters[counter] = self.peek(counter) + count
        return self._t.counters[counter] - count + 1

    def peek(self, counter: str) -> int:
        return self._t.counters.get(counter, 0)

    def delete_later(self, files: Sequence[FileToDelete]) -> None:
        for file in files:
            _insert(self._t.fsmdb, (file.machineid, file.fileid), file)

    def files_to_delete(self, machineid: int, now: int, limit: int) -> list[FileToDelete]:
        due = [f for f in self._t.fsmdb.values() if f.machineid == machineid and f.not_before <= now]
        return sorted(due, key=lambda file: file.not_before)[:limit]

    def known_to_delete(self, machineid: int, fileids: Sequence[int]) -> set[int]:
        return {fileid for fileid in fileids if (machineid, fileid) in self._t.fsmdb}

    def forget_deleted(self, machineid: int, fileids: Sequence[int]) -> None:
        _drop(self._t.fsmdb, [(machineid, fileid) for fileid in fileids])

    def put_block(self, block: FileBlock) -> None:
        self._t.fileblocks[block.machineid, block.block] = block

    def blocks_of(self, machineid: int) -> list[FileBlock]:
        return [block for key, block in sorted(self._t.fileblocks.items()) if key[0] == machineid]

    def lock_blocks(self, machineid: int, numbers: Iterable[int]) -> dict[int, FileBlock]:
        wanted = set(numbers)
        return {block.block: block for block in self.blocks_of(machineid) if block.block in wanted}

    def drop_blocks(self, machineid: int, numbers: Iterable[int]) -> None:
        _drop(self._t.fileblocks, [(machineid, number) for number in numbers])

    # --- errors and outcomes ---------------------------------------------------------------------

    def add_errors(self, rows: Sequence[UrlErrorRecord], keep: int) -> None:
        for row in rows:
            number = self.take("errorid", 1)
            self._t.urlerrors[number] = replace(row, errorid=number)
        for pid in {row.pid for row in rows}:
            kept = sorted(number for number, row in self._t.urlerrors.items() if row.pid == pid)
            _drop(self._t.urlerrors, kept[:-keep])

    def errors(self, pid: int, limit: int) -> list[UrlErrorRecord]:
        return [row for _, row in sorted(self._t.urlerrors.items()) if row.pid == pid][-limit:]

    def forget_errors(self, pid: int, upto: int) -> None:
        _drop_where(self._t.urlerrors, lambda row: row.pid == pid and row.errorid <= upto)

    def put_outcomes(self, rows: Sequence[LastOutcome]) -> None:
        self._t.outcomes.update({row.urlkey: row for row in rows})

    def outcome(self, key: bytes) -> LastOutcome | None:
        return self._t.outcomes.get(key)

    def outcomes_of(self, keys: Iterable[bytes]) -> dict[bytes, LastOutcome]:
        return {key: self._t.outcomes[key] for key in keys if key in self._t.outcomes}

    def with_outcomes(self, pids: Iterable[int]) -> set[int]:
        return {row.pid for row in self._t.outcomes.values()} & set(pids)

    def tried(self, keys: Sequence[bytes]) -> set[bytes]:
        return self._t.outcomes.keys() & set(keys)

    def outcomes_named(self, url: str) -> list[LastOutcome]:
        return [row for row in self._t.outcomes.values() if url in {row.curl, row.furl, row.urlkey.hex()}]

    def outcomes_in(
        self, pid: int, state: str, after: tuple[int, bytes], upto: int, limit: int
    ) -> list[LastOutcome]:
        rows = (row for row in self._t.outcomes.values() if (row.pid, row.state) == (pid, state))
        behind = (row for row in rows if after < (row.at, row.urlkey) and row.at <= upto)
        return sorted(behind, key=lambda row: (row.at, row.urlkey))[:limit]

    def withdraw_outcomes(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            row = self._t.outcomes.get(key)
            if row is not None and row.state in {OUTCOME_FAILED, OUTCOME_RETRYING}:
                self._t.outcomes[key] = replace(row, state=OUTCOME_WITHDRAWN)

    def trim_outcomes(self, pid: int, state: str, keep: int, limit: int = 1000) -> None:
        rows = [row for row in self._t.outcomes.values() if (row.pid, row.state) == (pid, state)]
        rows.sort(key=lambda row: (row.at, row.urlkey), reverse=True)
        _drop(self._t.outcomes, [row.urlkey for row in rows[keep : keep + limit]])

    def forget_outcomes(self, before: int, limit: int = 1000) -> int:
        old = [key for key, row in self._t.outcomes.items() if row.at < before][:limit]
        _drop(self._t.outcomes, old)
        return len(old)

    # --- a root that moves -----------------------------------------------------------------------

    def rekey_documents(self, keys: Mapping[bytes, bytes]) -> None:
        _drop(self._t.unwanted, keys)
        for table in (self._t.versions, self._t.suspects, self._t.aci):
            rows: dict[Any, Any] = table
            for place, row in list(rows.items()):
                if row.urlkey in keys:
                    del rows[place]
                    named = replace(row, urlkey=keys[row.urlkey])
                    rows[_renamed_place(place, row.urlkey, named.urlkey)] = named

    # --- alerts ----------------------------------------------------------------------------------

    def insert_recipient(self, recipient: Recipient) -> Recipient:
        number = self.take("recipientid", 1)
        self._t.recipients[number] = replace(recipient, recipientid=number)
        self._t.standings[number] = Standing(number)
        return self._t.recipients[number]

    def update_recipient(self, recipient: Recipient) -> None:
        if recipient.recipientid in self._t.recipients:
            self._t.recipients[recipient.recipientid] = recipient

    def delete_recipient(self, recipientid: int) -> None:
        _drop(self._t.alerts, [key for key in self._t.alerts if key[1] == recipientid])
        self._t.recipients.pop(recipientid, None)
        self._t.standings.pop(recipientid, None)

    def recipient(self, recipientid: int) -> Recipient | None:
        return self._t.recipients.get(recipientid)

    def lock_recipient(self, recipientid: int) -> Standing | None:
        return self._t.standings.get(recipientid)

    def recipients(self, owner: str | None, after: int, limit: int) -> list[Recipient]:
        found = (row for number, row in sorted(self._t.recipients.items()) if number > after)
        return [row for row in found if owner in {None, row.owner}][:limit]

    def recipients_of(self, owners: Collection[str]) -> list[Recipient]:
        return [row for _, row in sorted(self._t.recipients.items()) if row.owner in owners]

    def put_alerts(self, alerts: Sequence[Alert]) -> None:
        for one in alerts:
            self._t.alerts[one.number, one.recipientid] = one
            at = self._t.standings.get(one.recipientid)
            if at is not None and one.state == AlertState.WAITING:
                due, deadline = min(at.due, one.not_before), min(at.deadline, one.deadline)
                self._t.standings[one.recipientid] = replace(at, due=due, deadline=deadline)

    def put_standing(self, standing: Standing) -> None:
        waiting = self._waiting_for(standing.recipientid)
        due = min((one.not_before for one in waiting), default=NEVER)
        deadline = min((one.deadline for one in waiting), default=NEVER)
        if standing.recipientid in self._t.standings:
            self._t.standings[standing.recipientid] = replace(standing, due=due, deadline=deadline)

    def _waiting_for(self, recipientid: int) -> list[Alert]:
        its = (one for key, one in sorted(self._t.alerts.items()) if key[1] == recipientid)
        return [one for one in its if one.state == AlertState.WAITING]

    def due_recipients(self, channel: Channel, now: int, limit: int) -> list[int]:
        due = (at for at in self._t.standings.values() if max(at.due, at.not_before) <= now)
        ordered = sorted(due, key=lambda at: (at.deadline, at.recipientid))
        its = (at.recipientid for at in ordered if self._t.recipients[at.recipientid].channel == channel)
        return list(islice(its, limit))

    def due_alerts(self, recipientid: int, now: int, limit: int) -> list[Alert]:
        due = [one for one in self._waiting_for(recipientid) if one.not_before <= now]
        return sorted(due, key=lambda one: (one.deadline, one.number))[:limit]

    def acis_before(self, number: int, owner: str | None, limit: int) -> list[Aci]:
        rows = sorted(self._t.aci.values(), key=lambda row: -row.number)
        return [row for row in rows if row.number < number and owner in {None, row.owner}][:limit]

    def alerts_told(
        self, owner: str | None, state: AlertState | None, before: int, limit: int
    ) -> list[tuple[Alert, Recipient]]:
        ordered = sorted(self._t.alerts.values(), key=lambda one: (-one.number, one.recipientid))
        pairs = ((one, self._t.recipients[one.recipientid]) for one in ordered if one.number < before)
        found = ((one, whose) for one, whose in pairs if owner in {None, whose.owner})
        return [pair for pair in found if state in {None, pair[0].state}][:limit]

    def give_up_alerts(self, recipientid: int, before: int, limit: int) -> int:
        late = [one for one in self._waiting_for(recipientid) if one.deadline <= before]
        for one in sorted(late, key=lambda one: one.deadline)[:limit]:
            self._t.alerts[one.number, recipientid] = replace(one, state=AlertState.GIVEN_UP)
        return len(late[:limit])

    def open_alerts(self, urlkeys: Collection[bytes]) -> set[tuple[bytes, int]]:
        waiting = {one.number for one in self._t.alerts.values() if one.state == AlertState.WAITING}
        rows = (row for row in self._t.aci.values() if row.urlkey in urlkeys)
        return {(row.urlkey, row.seq) for row in rows if row.number in waiting}

    def count_waiting_alerts(self, now: int) -> tuple[int, int]:
        waiting = [one for one in self._t.alerts.values() if one.state == AlertState.WAITING]
        return len(waiting), sum(one.deadline < now for one in waiting)

    def forget_alerts(self, before: int, limit: int) -> int:
        old = [
            key
            for key, one in sorted(self._t.alerts.items())
            if one.state != AlertState.WAITING and one.deadline < before
        ][:limit]
        _drop(self._t.alerts, old)
        return len(old)

    def forget_acis(self, before: int, limit: int) -> int:
        waits = {one.number for one in self._t.alerts.values() if one.state == AlertState.WAITING}
        old = [
            (one.made, key)
            for key, one in self._t.aci.items()
            if one.expired and one.made < before and one.number not in waits
        ]
        gone = [key for _, key in sorted(old)[:limit]]
        _drop(self._t.aci, gone)
        return len(gone)

    # --- sets ------------------------------------------------------------------------------------

    def pset_of(self, pid: int, connseq: int) -> ProviderSet | None:
        return next((p for p in self._t.psets.values() if (p.pid, p.connseq) == (pid, connseq)), None)

    def sent_before(self, names: Collection[SetName], since: int) -> set[SetName]:
        late = (p for p in self._t.psets.values() if p.started >= since)
        return {SetName(p.pid, p.setid, p.digest) for p in late} & set(names)

    def set_ids(self, pid: int, since: int) -> list[str]:
        sets = (p for _, p in sorted(self._t.psets.items(), reverse=True) if p.pid == pid and p.full)
        return [p.setid for p in sets if p.started >= since and p.setid][:1000]

    def insert_psets(self, psets: Sequence[ProviderSet]) -> None:
        for pset in psets:
            _insert(self._t.psets, pset.psetid, pset)

    def psets_of(self, logins: Collection[Login]) -> dict[Login, ProviderSet]:
        found = ((login, self.pset_of(*login)) for login in logins)
        return {login: pset for login, pset in found if pset is not None}

    def full_set_after(self, pid: int, connseq: int) -> bool:
        sets = (p for p in self._t.psets.values() if p.pid == pid and p.full)
        return any(p.connseq > connseq for p in sets)

    def update_pset(self, pset: ProviderSet) -> None:
        self._t.psets[pset.psetid] = pset

    def held_psets(self, pid: int) -> list[ProviderSet]:
        return [p for _, p in sorted(self._t.psets.items()) if p.pid == pid and p.held > 0]

    def forget_psets(self, before: int, named_before: int, after: int = 0, limit: int = 1000) -> int:
        sets = (p for psetid, p in sorted(self._t.psets.items()) if psetid > after and p.started < before)
        rows = list(islice(sets, limit))
        over = (p for p in rows if p.phase == ABSORBED and not p.held)
        _drop(self._t.psets, [p.psetid for p in over if not p.setid or p.started < named_before])
        return rows[-1].psetid if len(rows) == limit else 0

    # --- logins and UNSes ------------------------------------------------------------------------

    def insert_logins(self, logins: Sequence[OpenLogin]) -> None:
        for login in logins:
            _insert(self._t.logins, (login.pid, login.connseq), login)

    def logins(self, logins: Collection[Login]) -> dict[Login, OpenLogin]:
        return {login: self._t.logins[login] for login in logins if login in self._t.logins}

    def earlier_logins(self, logins: Mapping[int, int]) -> list[OpenLogin]:
        rising = (login for _, login in sorted(self._t.logins.items()) if not login.passed)
        found: dict[tuple[object, ...], OpenLogin] = {}
        for login in rising:
            if login.connseq < logins.get(login.pid, 0):
                found.setdefault((login.pid, login.uns, login.stage, login.overtaken), login)
        return list(found.values())

    def mark_logins(self, stages: Mapping[Login, str]) -> None:
        known = self.logins(stages)
        self._t.logins.update({key: replace(login, stage=stages[key]) for key, login in known.items()})

    def overtake(self, pid: int, connseq: int) -> None:
        earlier = [key for key in self._t.logins if key[0] == pid and key[1] < connseq]
        self._t.logins.update({key: replace(self._t.logins[key], overtaken=True) for key in earlier})

    def put_overtaking(self, rows: Sequence[Overtaking]) -> None:
        self._t.overtaking.update({row.urlkey: row for row in rows})

    def named_later(self, keys: Sequence[bytes], connseq: int) -> set[bytes]:
        rows = (self._t.overtaking[key] for key in keys if key in self._t.overtaking)
        return {row.urlkey for row in rows if row.connseq > connseq}

    def overtaking(self, pid: int, connseq: int, after: bytes, limit: int) -> list[bytes]:
        rows = (row for key, row in sorted(self._t.overtaking.items()) if key > after and row.pid == pid)
        return [row.urlkey for row in rows if row.connseq > connseq][:limit]

    def forget_overtaking(self, limit: int) -> int:
        overtaken = {login.pid for login in self._t.logins.values() if login.overtaken}
        over = [key for key, row in self._t.overtaking.items() if row.pid not in overtaken][:limit]
        _drop(self._t.overtaking, over)
        return len(over)

    def logins_of(self, uns: str, after: tuple[int, int], limit: int) -> list[OpenLogin]:
        rising = (login for key, login in sorted(self._t.logins.items()) if key > after)
        return [login for login in rising if login.uns == uns][:limit]

    def pass_over(self, pid: int, before: int, uns: str) -> int:
        open_logins = (login for login in self._t.logins.values() if login.pid == pid and not login.passed)
        passed = [login for login in open_logins if login.connseq < before and login.uns == uns]
        self._t.logins.update({(pid, login.connseq): replace(login, passed=True) for login in passed})
        return len(passed)

    def drop_logins(self, logins: Collection[Login]) -> None:
        _drop(self._t.logins, logins)

    def put_uns(self, uns: Uns) -> None:
        self._t.unses[uns.uns] = uns

    def unses(self) -> list[Uns]:
        return [uns for _, uns in sorted(self._t.unses.items())]

    # --- what happened ---------------------------------------------------------------------------

    def tally(self, counts: Mapping[str, int]) -> None:
        for name, count in counts.items():
            self._t.tallies[name] = self._t.tallies.get(name, 0) + count

    def tallies(self) -> dict[str, int]:
        return dict(self._t.tallies)

    def count_fetches(self, counts: Mapping[Fetched, int], begun: int) -> None:
        for one, count in counts.items():
            key = (*one, begun)
            self._t.fetchcounts[key] = self._t.fetchcounts.get(key, 0) + count

    def fetch_counts(self, since: int, pid: int) -> dict[tuple[str, int], int]:
        found: Counter[tuple[str, int]] = Counter()
        for (whose, result, code, begun), count in self._t.fetchcounts.items():
            if begun >= since and whose == pid:
                found[result, code] += count
        return dict(found)

    def fetch_spans(self, since: int, pid: int) -> dict[tuple[int, str], int]:
        found: Counter[tuple[int, str]] = Counter()
        for (whose, result, _code, begun), count in self._t.fetchcounts.items():
            if begun >= since and whose == pid:
                found[begun, result] += count
        return dict(found)

    def forget_fetch_counts(self, before: int, limit: int = 1000) -> int:
        old = [key for key in self._t.fetchcounts if key[-1] < before][:limit]
        _drop(self._t.fetchcounts, old)
        return len(old)

    def oldest_waiting(self, pid: int | None = None) -> Oldest | None:
        rows = [row for row in self._t.qdb.values() if pid in {None, row.pid}]
        if not rows:
            return None
        oldest = min(rows, key=lambda row: (row.psetid, row.timeofday, row.not_before > 0, row.position))
        its_set = self._t.psets.get(oldest.psetid)
        return Oldest(oldest, its_set.started if its_set else 0)

    def ledger(self) -> dict[str, Ledger]:
        of: dict[str, list[Provider]] = {}
        for one in self._t.pidb.values():
            of.setdefault(one.state, []).append(one)
        return {
            state: Ledger(
                len(some),
                sum(one.fileused for one in some),
                sum(one.spaceused for one in some),
                sum(one.heldremovals for one in some),
            )
            for state, some in of.items()
        }

    # --- content users ---------------------------------------------------------------------------

    def insert_token(self, token: Token) -> None:
        _insert(self._t.tokens, token.digest, token)

    def token(self, digest: str) -> Token | None:
        return self._t.tokens.get(digest)

    def tokens(self) -> list[Token]:
        return sorted(self._t.tokens.values(), key=lambda token: (token.created, token.digest))

    def note_token_use(self, digest: str, now: int) -> None:
        token = self._t.tokens.get(digest)
        if token is not None and token.used < now:
            self._t.tokens[digest] = replace(token, used=now)

    def delete_token(self, digest: str) -> None:
        self._t.tokens.pop(digest, None)

    # --- people, sessions, the audit log ---------------------------------------------------------

    def user(self, name: str) -> User | None:
        return self._t.users.get(name)

    def users(self) -> list[User]:
        return [self._t.users[name] for name in sorted(self._t.users)]

    def put_user(self, user: User) -> None:
        self._t.users[user.name] = user

    def delete_user(self, name: str) -> None:
        self.end_sessions(name)
        self._t.users.pop(name, None)

    def insert_session(self, session: Session) -> None:
        _insert(self._t.sessions, session.digest, session)

    def session(self, digest: str) -> Session | None:
        return self._t.sessions.get(digest)

    def sessions(self, digests: Iterable[str]) -> dict[str, Session]:
        return {digest: one for digest in digests if (one := self.session(digest))}

    def sessions_of(self, name: str) -> list[Session]:
        found = [one for one in self._t.sessions.values() if one.name == name]
        return sorted(found, key=lambda one: (-one.created, one.digest))

    def end_session(self, digest: str) -> None:
        self._t.sessions.pop(digest, None)

    def end_sessions(self, name: str) -> None:
        _drop(self._t.sessions, [one.digest for one in self._t.sessions.values() if one.name == name])

    def forget_sessions(self, before: int) -> None:
        _drop(self._t.sessions, [one.digest for one in self._t.sessions.values() if one.expires < before])

    def add_audit(self, entry: AuditEntry) -> None:
        number = max(self._t.audit, default=0) + 1
        self._t.audit[number] = replace(entry, entryid=number)

    def audits(
        self, before: int, limit: int, pids: Collection[int] | None = None, who: str = ""
    ) -> list[AuditEntry]:
        rows = [one for number, one in sorted(self._t.audit.items(), reverse=True) if number < before]
        mine = [one for one in rows if (pids is None or one.pid in pids) and who in {"", one.who}]
        return mine[:limit]

    def forget_audits(self, before: int, limit: int = 1000) -> int:
        old = [number for number, one in self._t.audit.items() if one.at < before][:limit]
        _drop(self._t.audit, old)
        return len(old)

    def named_cursors(self, owner: str | None = None, limit: int = 1000) -> list[NamedCursor]:
        rows = (cursor for _, cursor in sorted(self._t.cursors.items()))
        return [cursor for cursor in rows if owner in {None, cursor.owner}][:limit]

    def put_named_cursor(self, cursor: NamedCursor) -> None:
        self._t.cursors[cursor.owner, cursor.name] = cursor

    def delete_named_cursor(self, owner: str, name: str) -> bool:
        return self._t.cursors.pop((owner, name), None) is not None

    # --- turns, workers, machines, identity ------------------------------------------------------

    def add_to_turns(self, deltas: Mapping[str, TurnDelta]) -> None:
        for turnkey, delta in deltas.items():
            row = self._t.turns.get(turnkey) or StoredTurn(turnkey, priority=delta.priority)
            row = replace(row, waiting=row.waiting + delta.waiting)
            self._t.turns[turnkey] = (
                replace(row, arrivals=row.arrivals + 1, look_at=0.0) if delta.arrived else row
            )
            if delta.waiting < 0:
                self._drop_empty(turnkey)

    def _drop_empty(self, turnkey: str) -> None:
        row = self._t.turns.get(turnkey)
        if row is not None and not row.owner and row.waiting <= 0 and not row.not_before:
            del self._t.turns[turnkey]

    def forget_turns(self, now: float) -> None:
        _drop_where(self._t.turns, lambda row: not row.owner and row.waiting <= 0 and row.not_before <= now)

    def lock_turns(self, turnkeys: Iterable[str]) -> dict[str, StoredTurn]:
        return {key: self._t.turns[key] for key in sorted(set(turnkeys)) if key in self._t.turns}

    def turnkeys(self, after: str, limit: int) -> list[str]:
        return [key for key in sorted(self._t.turns) if key > after][:limit]

    def turn(self, turnkey: str) -> StoredTurn | None:
        return self._t.turns.get(turnkey)

    def free_turns(self, now: float, limit: int, only: str | None = None) -> list[StoredTurn]:
        free = [
            row
            for row in self._t.turns.values()
            if not row.owner and row.look_at <= now and row.not_before <= now and row.waiting > 0
        ]
        asked = [row for row in free if only in {None, row.turnkey}]
        return sorted(asked, key=lambda row: (-row.priority, row.look_at))[:limit]

    def has_due_turns(self, now: float) -> bool:
        return any(
            turn.waiting > 0 and (turn.owner or (turn.look_at <= now and turn.not_before <= now))
            for turn in self._t.turns.values()
        )

    def lease_turns(self, turnkeys: Sequence[str], owner: str, token: int) -> None:
        for turnkey in turnkeys:
            self.change_turn(turnkey, {"owner": owner, "token": token})

    def change_turn(self, turnkey: str, values: Mapping[str, object]) -> None:
        if turnkey in self._t.turns:
            changes: dict[str, Any] = dict(values)
            self._t.turns[turnkey] = replace(self._t.turns[turnkey], **changes)

    def rest_turns(self, leases: Sequence[StoredTurn]) -> None:
        for lease in leases:
            self._rest_turn(lease)

    def _rest_turn(self, lease: StoredTurn) -> None:
        row = self._t.turns.get(lease.turnkey)
        if row is None or (row.owner, row.token) != (lease.owner, lease.token):
            return
        look_at = lease.look_at if row.arrivals == lease.arrivals else 0.0
        self._t.turns[lease.turnkey] = replace(
            lease,
            owner="",
            look_at=look_at,
            waiting=row.waiting,
            priority=row.priority,
            arrivals=row.arrivals,
        )
        self._drop_empty(lease.turnkey)

    def wake_turns(self) -> None:
        for turnkey in list(self._t.turns):
            self.change_turn(turnkey, {"look_at": 0.0})

    def free_turns_of(self, owner: str) -> int:
        _drop_where(self._t.fetches, lambda row: row.owner == owner)
        mine = self.leased_turns(owner)
        for turnkey in mine:
            self.change_turn(turnkey, {"owner": ""})
            self._drop_empty(turnkey)
        return len(mine)

    def leased_turns(self, owner: str) -> dict[str, int]:
        return {row.turnkey: row.token for row in self._t.turns.values() if row.owner == owner}

    def count_turns(self, now: float) -> int:
        rows = self._t.turns.values()
        return sum(bool(row.owner) or max(row.look_at, row.not_before) <= now for row in rows)

    def workers(self) -> list[WorkerRow]:
        return [row for _, row in sorted(self._t.workers.items())]

    def put_worker(self, worker: WorkerRow) -> None:
        self._t.workers[worker.owner] = worker

    def beat(self, worker: WorkerRow) -> bool:
        known = self._t.workers.get(worker.owner)
        if known is None or known.token != worker.token:
            return False
        self._t.workers[worker.owner] = worker
        return True

    def renew_lease(self, owner: str, token: int, expires: int) -> bool:
        known = self._t.workers.get(owner)
        if known is None or known.token != token:
            return False
        self._t.workers[owner] = replace(known, expires=expires)
        return True

    def drop_worker(self, owner: str) -> None:
        self._t.workers.pop(owner, None)

    def put_failing_host(self, row: FailingHost) -> None:
        self._t.hosts[row.turnkey, row.host] = row

    def hosts_of(self, turnkeys: Iterable[str]) -> dict[str, dict[str, FailingHost]]:
        found = {key: self._hosts_of(key) for key in turnkeys}
        return {key: hosts for key, hosts in found.items() if hosts}

    def _hosts_of(self, turnkey: str) -> dict[str, FailingHost]:
        return {host: row for (key, host), row in self._t.hosts.items() if key == turnkey}

    def failing_hosts(self, limit: int) -> list[FailingHost]:
        rows = [row for row in self._t.hosts.values() if row.failures]
        return sorted(rows, key=lambda row: (row.since, row.turnkey, row.host))[:limit]

    def forget_hosts(self, before: float) -> None:
        waiting = {key for key, turn in self._t.turns.items() if turn.waiting > 0}
        over = [
            key
            for key, row in self._t.hosts.items()
            if row.not_before < before
            and row.since < before
            and (not row.failures or row.turnkey not in waiting)
        ]
        for key in over:
            del self._t.hosts[key]

    def put_fetches(self, fetches: Sequence[LongFetch]) -> None:
        self._t.fetches.update({fetch.turnkey: fetch for fetch in fetches})

    def drop_fetches(self, owner: str, turnkeys: Collection[str]) -> None:
        _drop_where(self._t.fetches, lambda row: row.owner == owner and row.turnkey in turnkeys)

    def long_fetch(self, turnkey: str) -> LongFetch | None:
        return self._t.fetches.get(turnkey)

    def count_above(self, owner: str, priority: int) -> int:
        rows = self._t.turns.values()
        return sum(row.owner == owner and row.priority > priority and row.waiting > 0 for row in rows)

    def machine(self, identity: str) -> int | None:
        known = self._t.machines.get(identity)
        return known[0] if known else None

    def machine_numbers(self) -> list[int]:
        return sorted(number for number, _, _ in self._t.machines.values())

    def insert_machine(self, identity: str, note: str, now: int) -> int:
        del now
        number = len(self._t.machines) + 1
        _insert(self._t.machines, identity, (number, note, ""))
        return number

    def machine_addresses(self) -> dict[int, str]:
        return {number: address for number, _, address in self._t.machines.values() if address}

    def set_machine_address(self, machine: int, address: str) -> None:
        for identity, (number, note, _) in self._t.machines.items():
            if number == machine:
                self._t.machines[identity] = (number, note, address)

    def info(self, name: str) -> str | None:
        return self._t.lccinfo.get(name)

    def infos(self, names: Sequence[str]) -> dict[str, str]:
        return {name: self._t.lccinfo[name] for name in names if name in self._t.lccinfo}

    def set_info(self, name: str, value: str) -> None:
        self._t.lccinfo.pop(name, None)
        if value:
            self._t.lccinfo[name] = value

    def queued_total(self) -> int:
        return sum(turn.waiting for turn in self._t.turns.values())

    def waiting_urls(self, pids: Iterable[int]) -> dict[int, int]:
        return {pid: self._t.pidb[pid].nurlproc for pid in set(pids) if pid in self._t.pidb}

    def cached_total(self) -> int:
        return sum(provider.fileused for provider in self._t.pidb.values())

    def totals(self) -> dict[str, int]:
        return {
            "queued": self.queued_total(),
            "cached": self.cached_total(),
            "versions": len(self._t.versions),
            "bytes": sum(provider.spaceused for provider in self._t.pidb.values()),
            "doomed": len(self._t.fsmdb),
        }

    # --- interests -------------------------------------------------------------------------------

    def add_urds(self, urds: Sequence[Urd]) -> list[Urd]:
        first = self.take(URDID, len(urds))
        return self.put_urds([replace(one, urdid=first + at) for at, one in enumerate(urds)])

    def put_urds(self, urds: Sequence[Urd]) -> list[Urd]:
        put = [replace(one, revision=self.take(URD_REVISION, 1)) for one in urds]
        self.take(URDID, max(0, *(one.urdid - self.peek(URDID) for one in put), 0))
        self._t.urd |= {one.urdid: one for one in put}
        _drop(self._t.urd_deferred, [one.urdid for one in put])
        self._t.urd_runs |= {one.urdid: NOT_BEGUN for one in put}
        return put

    def remove_urds(self, urdids: Iterable[int]) -> list[Urd]:
        gone = [self._t.urd[urdid] for urdid in sorted(set(urdids)) if urdid in self._t.urd]
        for one in gone:
            self._t.removed_urds[self.take(URD_REVISION, 1)] = one.urdid
        _drop(self._t.urd, [one.urdid for one in gone])
        _drop(self._t.urd_runs, [one.urdid for one in gone])
        if gone:
            known_from = self.peek(URD_REVISION) + 1 - REMOVALS_KEPT
            _drop(self._t.removed_urds, [one for one in self._t.removed_urds if one < known_from])
        return gone

    def urds(self, urdids: Iterable[int]) -> dict[int, Urd]:
        return {urdid: self._t.urd[urdid] for urdid in urdids if urdid in self._t.urd}

    def urds_of(self, owner: str, after: int, limit: int) -> list[Urd]:
        return [one for one in self.all_urds(after, len(self._t.urd)) if one.owner == owner][:limit]

    def all_urds(self, after: int, limit: int) -> list[Urd]:
        found = (one for one in self._t.urd.values() if one.urdid > after)
        return sorted(found, key=lambda one: one.urdid)[:limit]

    def count_urds(self, owner: str | None = None) -> int:
        return sum(owner in {None, one.owner} for one in self._t.urd.values())

    def lock_urds(self) -> None:
        pass

    def urd_revision(self) -> int:
        return self.peek(URD_REVISION)

    def urds_changed(self, after: int, limit: int) -> list[Urd]:
        found = (one for one in self._t.urd.values() if one.revision > after)
        return sorted(found, key=lambda one: one.revision)[:limit]

    def urds_removed(self, after: int, limit: int) -> list[tuple[int, int]]:
        return sorted(one for one in self._t.removed_urds.items() if one[0] > after)[:limit]

    def due_urds(self, now: int, limit: int, urgency: int | None = None) -> list[Urd]:
        found = (one for one in self._t.urd.values() if self._due(one) <= now)
        found = (one for one in found if urgency in {None, one.urgency})
        return sorted(found, key=lambda one: (self._due(one), one.urdid))[:limit]

    def _due(self, one: Urd) -> int:
        return self._t.urd_deferred.get(one.urdid, (due_at(one), ""))[0]

    def next_due_urd(self) -> int | None:
        return min(map(self._due, self._t.urd.values()), default=None)

    def urds_at(self, uri: str, limit: int) -> list[Urd]:
        found = (replace(one, keywords=()) for one in self._t.urd.values() if one.uri == uri)
        return sorted(found, key=lambda one: one.urdid)[:limit]

    def are_compared(self, uris: Iterable[str], owners: Iterable[str]) -> bool:
        uris, owners = set(uris), set(owners)
        of_changes = (one for one in self._t.urd.values() if one.processtype is Process.CHANGE)
        return any(one.uri in uris or one.owner in owners for one in of_changes)

    def defer_urds(self, urdids: Collection[int], due: int, reason: str) -> None:
        self._t.urd_deferred |= dict.fromkeys(self._t.urd.keys() & set(urdids), (due, reason[:255]))

    def refusals(self, urdids: Iterable[int]) -> dict[int, str]:
        known = self._t.urd_deferred
        return {urdid: known[urdid][1] for urdid in urdids if urdid in known and known[urdid][1]}

    def note_checks(self, urdids: Collection[int], at: int) -> None:
        for one in self.urds(urdids).values():
            self._t.urd[one.urdid] = replace(one, lastcheck=at)
        _drop(self._t.urd_deferred, urdids)

    def urds_to_run(self, limit: int) -> list[tuple[Urd, bytes]]:
        waiting = ((upto, urdid) for urdid, upto in self._t.urd_runs.items() if upto is not None)
        return [(self._t.urd[urdid], upto) for upto, urdid in sorted(waiting)[:limit]]

    def note_run(self, revisions: Collection[int], upto: bytes | None) -> None:
        its = (one.urdid for one in self._t.urd.values() if one.revision in revisions)
        self._t.urd_runs |= dict.fromkeys(its, upto)

    # --- the annotation engine: its queue, and what it found --------------------------------------

    def waiting_count(self) -> int:
        return len(self._t.aequeue)

    def waiting_documents(self, limit: int) -> list[Waiting]:
        return sorted(self._t.aequeue.values(), key=lambda row: row.position)[:limit]

    def waiting_rows(self, urlkeys: Iterable[bytes]) -> dict[bytes, Waiting]:
        return {key: self._t.aequeue[key] for key in urlkeys if key in self._t.aequeue}

    def enqueue(self, rows: Sequence[Waiting]) -> None:
        self._t.aequeue.update({row.urlkey: row for row in rows})

    def dequeue(self, urlkeys: Sequence[bytes]) -> None:
        _drop(self._t.aequeue, urlkeys)

    def put_acis(self, rows: Sequence[Aci]) -> None:
        for row in rows:
            _insert(self._t.aci, (row.urlkey, row.seq, row.owner), row)

    def told_contents(
        self, urlkeys: Iterable[bytes], docbases: Collection[str]
    ) -> set[tuple[bytes, str, str]]:
        rows = (row for key in set(urlkeys) for row in self._acis_of(key))
        return {(row.urlkey, row.owner, row.docbase) for row in rows if row.docbase in docbases}

    def unexpired(self, urlkeys: Iterable[bytes]) -> list[tuple[tuple[bytes, int, str], str]]:
        rows = (row for key in set(urlkeys) for row in self._acis_of(key) if not row.expired)
        return [((row.urlkey, row.seq, row.owner), row.docbase) for row in rows]

    def expire_acis(self, keys: Sequence[tuple[bytes, int, str]]) -> None:
        for key in keys:
            self._t.aci[key] = replace(self._t.aci[key], expired=True)

    def acis_after(self, number: int, owner: str | None, limit: int) -> list[Aci]:
        rows = (row for row in self._t.aci.values() if row.number > number and owner in {None, row.owner})
        return sorted(rows, key=lambda row: row.number)[:limit]

    def aci(self, number: int) -> Aci | None:
        return self.acis_of_number([number]).get(number)

    def acis_of_number(self, numbers: Iterable[int]) -> dict[int, Aci]:
        wanted = set(numbers)
        return {row.number: row for row in self._t.aci.values() if row.number in wanted}

    def has_urds_of_changes(self) -> bool:
        return any(one.processtype == Process.CHANGE for one in self._t.urd.values())

    def last_aci_number(self) -> int:
        return self.peek(ACI_NUMBER)

    def _acis_of(self, urlkey: bytes) -> list[Aci]:
        return [row for key, row in self._t.aci.items() if key[0] == urlkey]


def _absent(row: CachedUrl | QueuedUrl, pid: int, psetid: int) -> bool:
    return row.pid == pid and row.seen < psetid and row.origin == Origin.PUSH


def _insert(table: dict[Any, Any], key: Any, row: Any) -> None:
    if key in table:
        raise ValueError(f"{key!r} is there already")
    table[key] = row


def _renamed_place(place: Any, key: bytes, named: bytes) -> Any:
    if isinstance(place, tuple):
        return (named, *place[1:])
    return named if place == key else place


def _drop(table: dict[Any, Any], keys: Iterable[Any]) -> None:
    for key in keys:
        table.pop(key, None)


def _drop_where(table: dict[Any, Any], condition: Any) -> None:
    _drop(table, [key for key, row in table.items() if condition(row)])


@dataclass(frozen=True)
class PreparedDocuments:
    tx: MemoryTx
    inserted: Sequence[CachedUrl]
    updated: Sequence[CachedUrl]
    answers: Answers

    def write(self, rows: Mapping[bytes, CachedUrl]) -> None:
        self.tx.insert_cached([rows[row.urlkey] for row in self.inserted], self.answers)
        self.tx.update_cached([rows[row.urlkey] for row in self.updated], self.answers)
