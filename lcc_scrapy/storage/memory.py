"""The store in memory: the plainest thing that keeps the same promises, for tests and for reading.

A transaction works on copies of all tables, which replace the tables when it ends well.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import takewhile
from typing import Any

from lcc_scrapy.domain.cache import OUTSIDE_ROOTS, CachedUrl, Tombstone, UrlMeta
from lcc_scrapy.domain.entries import Origin
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.queue import FETCH, QueuedUrl
from lcc_scrapy.domain.timeslots import first_slot
from lcc_scrapy.storage.records import (
    ABSORBED,
    DoomedFile,
    LastOutcome,
    OpenLogin,
    ProviderSet,
    SetPart,
    StoredTurn,
    TurnDelta,
    Uns,
    UrlErrorRecord,
    WorkerRow,
)
from lcc_scrapy.storage.tx import Tx


@dataclass(slots=True)
class _Tables:
    pidb: dict[int, Provider] = field(default_factory=dict)
    proots: dict[int, tuple[str, ...]] = field(default_factory=dict)
    qdb: dict[bytes, QueuedUrl] = field(default_factory=dict)
    qpsdb: dict[tuple[int, str], SetPart] = field(default_factory=dict)
    lccurl: dict[bytes, CachedUrl] = field(default_factory=dict)
    lccmeta: dict[bytes, UrlMeta] = field(default_factory=dict)
    tombstones: dict[bytes, Tombstone] = field(default_factory=dict)
    fsmdb: dict[tuple[int, int], DoomedFile] = field(default_factory=dict)
    urlerrors: dict[int, UrlErrorRecord] = field(default_factory=dict)
    outcomes: dict[bytes, LastOutcome] = field(default_factory=dict)
    psets: dict[int, ProviderSet] = field(default_factory=dict)
    logins: dict[tuple[int, int], OpenLogin] = field(default_factory=dict)
    unses: dict[str, Uns] = field(default_factory=dict)
    turns: dict[str, StoredTurn] = field(default_factory=dict)
    workers: dict[str, WorkerRow] = field(default_factory=dict)
    machines: dict[str, tuple[int, str]] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    lccinfo: dict[str, str] = field(default_factory=dict)

    def copy(self) -> "_Tables":
        return _Tables(**{table.name: dict(getattr(self, table.name)) for table in fields(self)})


class MemoryStore:
    """A ``Store`` whose rows live as long as the object."""

    def __init__(self) -> None:
        self._tables = _Tables()

    @contextmanager
    def begin(self) -> Iterator[Tx]:
        """Open a writing transaction."""
        copies = self._tables.copy()
        yield MemoryTx(copies)
        self._tables = copies

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """Open a reading transaction."""
        yield MemoryTx(self._tables.copy())

    def close(self) -> None:
        """Nothing to give back."""


class MemoryTx:
    """See ``storage.tx.Tx`` for what each verb promises."""

    def __init__(self, tables: _Tables) -> None:
        self._t = tables

    # --- providers -------------------------------------------------------------------------------

    def provider(self, pid: int) -> Provider | None:
        return self._t.pidb.get(pid)

    def lock_providers(self, pids: Iterable[int]) -> dict[int, Provider]:
        return {pid: self._t.pidb[pid] for pid in sorted(set(pids)) if pid in self._t.pidb}

    def providers(self, after: int = -1, limit: int = 1000) -> list[Provider]:
        return [self._t.pidb[pid] for pid in sorted(self._t.pidb) if pid > after][:limit]

    def insert_provider(self, provider: Provider, roots: Sequence[str]) -> None:
        _insert(self._t.pidb, provider.pid, provider)
        self._t.proots[provider.pid] = tuple(roots)

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

    def delete_provider(self, pid: int) -> None:
        self._t.pidb.pop(pid, None)
        self._t.proots.pop(pid, None)
        for table in (self._t.urlerrors, self._t.outcomes, self._t.psets, self._t.logins):
            _drop_where(table, lambda row: row.pid == pid)

    def members(self, turnkeys: Iterable[str]) -> list[Provider]:
        wanted = set(turnkeys)
        return [row for _, row in sorted(self._t.pidb.items()) if row.turnkey in wanted]

    def changed_providers(self, revision: int) -> list[Provider]:
        return [row for _, row in sorted(self._t.pidb.items()) if row.revision > revision]

    def roots_of(self, pids: Iterable[int]) -> dict[int, list[str]]:
        return {pid: list(self._t.proots[pid]) for pid in pids if self._t.proots.get(pid)}

    def roots(self, pid: int) -> list[str]:
        return list(self._t.proots.get(pid, ()))

    def replace_roots(self, pid: int, roots: Sequence[str]) -> None:
        self._t.proots[pid] = tuple(roots)

    # --- queue -----------------------------------------------------------------------------------

    def queued(self, keys: Iterable[bytes]) -> dict[bytes, QueuedUrl]:
        return {key: self._t.qdb[key] for key in keys if key in self._t.qdb}

    def insert_queued(self, rows: Sequence[QueuedUrl]) -> None:
        for row in rows:
            _insert(self._t.qdb, row.urlkey, row)

    def update_queued(self, rows: Sequence[QueuedUrl]) -> None:
        self._t.qdb.update({row.urlkey: row for row in rows})

    def delete_queued(self, keys: Sequence[bytes]) -> None:
        _drop(self._t.qdb, keys)

    def heads(self, pid: int, mask: str, limit: int) -> list[QueuedUrl]:
        rows = [row for row in self._waiting(pid, mask) if not row.not_before]
        return sorted(rows, key=lambda row: (row.psetid, row.position))[:limit]

    def return_due(self, pid: int, mask: str, now: int) -> int:
        due = [row for row in self._waiting(pid, mask) if 1 <= row.not_before <= now]
        self.update_queued([replace(row, not_before=0) for row in due])
        return len(due)

    def next_due(self, pid: int, mask: str) -> int:
        return min((row.not_before for row in self._waiting(pid, mask) if row.not_before), default=0)

    def _waiting(self, pid: int, mask: str) -> list[QueuedUrl]:
        return [row for row in self._t.qdb.values() if row.pid == pid and row.timeofday == mask]

    def queued_of(self, pid: int, after: bytes, limit: int) -> list[QueuedUrl]:
        return [
            self._t.qdb[key] for key in sorted(self._t.qdb) if key > after and self._t.qdb[key].pid == pid
        ][:limit]

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

    def masks(self, pid: int) -> list[str]:
        return sorted({part.timeofday for part in self._t.qpsdb.values() if part.pid == pid})

    def arrivals(self, turnkeys: Iterable[str]) -> dict[str, int]:
        return {key: turn.arrivals for key, turn in self.lock_turns(turnkeys).items()}

    # --- cache -----------------------------------------------------------------------------------

    def cached(self, keys: Iterable[bytes]) -> dict[bytes, CachedUrl]:
        return {key: self._t.lccurl[key] for key in keys if key in self._t.lccurl}

    def insert_cached(self, rows: Sequence[CachedUrl]) -> None:
        for row in rows:
            _insert(self._t.lccurl, row.urlkey, row)

    def update_cached(self, rows: Sequence[CachedUrl]) -> None:
        self._t.lccurl.update({row.urlkey: row for row in rows})

    def delete_cached(self, keys: Sequence[bytes]) -> None:
        _drop(self._t.lccurl, keys)
        _drop(self._t.lccmeta, keys)

    def cached_of(self, pid: int, after: bytes, limit: int) -> list[CachedUrl]:
        rows = (self._t.lccurl[key] for key in sorted(self._t.lccurl) if key > after)
        return [row for row in rows if row.pid == pid][:limit]

    def usage(self, pid: int) -> tuple[int, int]:
        sizes = [row.fetched_len for row in self._t.lccurl.values() if row.pid == pid]
        return len(sizes), sum(sizes)

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
        return [(row.urlkey, row.confirmed_time) for row in self.cached_of(pid, after, limit)]

    def unseen(self, pid: int, psetid: int, after: bytes, limit: int) -> list[bytes]:
        tables: tuple[Mapping[bytes, CachedUrl | QueuedUrl], ...] = (self._t.lccurl, self._t.qdb)
        found = {key for table in tables for key, row in table.items() if _absent(row, pid, psetid)}
        return sorted(key for key in found if key > after)[:limit]

    def count_unseen(self, pid: int, psetid: int) -> int:
        return sum(_absent(row, pid, psetid) for row in self._t.lccurl.values())

    def count_unseen_new(self, pid: int, psetid: int) -> int:
        fetches = (row for row in self._t.qdb.values() if row.operation == FETCH)
        return sum(_absent(row, pid, psetid) for row in fetches if row.urlkey not in self._t.lccurl)

    def held(self, pid: int, limit: int, after: bytes = b"") -> list[bytes]:
        return [key for key in sorted(self._t.lccurl) if key > after and self._is_held(key, pid)][:limit]

    def count_held(self, pid: int) -> int:
        return sum(self._is_held(key, pid) for key in self._t.lccurl)

    def _is_held(self, key: bytes, pid: int) -> bool:
        row = self._t.lccurl[key]
        return row.pid == pid and row.held > 0

    def put_meta(self, rows: Sequence[UrlMeta]) -> None:
        self._t.lccmeta.update({row.urlkey: row for row in rows})

    def meta(self, key: bytes) -> UrlMeta | None:
        return self._t.lccmeta.get(key)

    def metas(self, keys: Iterable[bytes]) -> dict[bytes, UrlMeta]:
        return {key: self._t.lccmeta[key] for key in keys if key in self._t.lccmeta}

    def put_tombstones(self, rows: Sequence[Tombstone]) -> None:
        self._t.tombstones.update({row.urlkey: row for row in rows})

    def delete_tombstones(self, keys: Sequence[bytes]) -> set[bytes]:
        found = self._t.tombstones.keys() & set(keys)
        _drop(self._t.tombstones, found)
        return found

    def old_tombstones(self, before: int, limit: int) -> list[int]:
        rising = sorted(self._t.tombstones.values(), key=lambda row: row.seq)[:limit]
        return [row.seq for row in takewhile(lambda row: row.removed_time < before, rising)]

    def drop_tombstones(self, upto: int) -> None:
        _drop_where(self._t.tombstones, lambda row: row.seq <= upto)

    def changes(self, after: int, limit: int, pid: int | None = None) -> list[CachedUrl | Tombstone]:
        rows: list[CachedUrl | Tombstone] = [*self._t.lccurl.values(), *self._t.tombstones.values()]
        new = [row for row in rows if row.seq > after and pid in {None, row.pid}]
        return sorted(new, key=lambda row: row.seq)[:limit]

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

    # --- counters and files ----------------------------------------------------------------------

    def take(self, counter: str, count: int) -> int:
        self._t.counters[counter] = self.peek(counter) + count
        return self._t.counters[counter] - count + 1

    def peek(self, counter: str) -> int:
        return self._t.counters.get(counter, 0)

    def doom(self, files: Sequence[DoomedFile]) -> None:
        for file in files:
            _insert(self._t.fsmdb, (file.machineid, file.fileid), file)

    def doomed(self, machineid: int, now: int, limit: int) -> list[DoomedFile]:
        due = [f for f in self._t.fsmdb.values() if f.machineid == machineid and f.not_before <= now]
        return sorted(due, key=lambda file: file.not_before)[:limit]

    def all_doomed(self, machineid: int, fileids: Sequence[int]) -> set[int]:
        return {fileid for fileid in fileids if (machineid, fileid) in self._t.fsmdb}

    def undoom(self, machineid: int, fileids: Sequence[int]) -> None:
        _drop(self._t.fsmdb, [(machineid, fileid) for fileid in fileids])

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

    def forget_outcomes(self, before: int) -> None:
        _drop_where(self._t.outcomes, lambda row: row.at < before)

    # --- sets ------------------------------------------------------------------------------------

    def pset_of(self, pid: int, connseq: int) -> ProviderSet | None:
        return next((p for p in self._t.psets.values() if (p.pid, p.connseq) == (pid, connseq)), None)

    def pset_named(self, pid: int, setid: str, digest: str, since: int) -> ProviderSet | None:
        same = (pid, setid, digest)
        sets = self._t.psets.values()
        return next((p for p in sets if (p.pid, p.setid, p.digest) == same and p.started >= since), None)

    def set_ids(self, pid: int, since: int) -> list[str]:
        sets = (p for _, p in sorted(self._t.psets.items(), reverse=True) if p.pid == pid and p.full)
        return [p.setid for p in sets if p.started >= since and p.setid][:1000]

    def insert_pset(self, pset: ProviderSet) -> None:
        _insert(self._t.psets, pset.psetid, pset)

    def update_pset(self, pset: ProviderSet) -> None:
        self._t.psets[pset.psetid] = pset

    def held_psets(self, pid: int) -> list[ProviderSet]:
        return [p for _, p in sorted(self._t.psets.items()) if p.pid == pid and p.held > 0]

    def forget_psets(self, before: int) -> None:
        _drop_where(self._t.psets, lambda p: p.started < before and p.phase == ABSORBED and not p.held)

    # --- logins and UNSes ------------------------------------------------------------------------

    def insert_login(self, login: OpenLogin) -> None:
        _insert(self._t.logins, (login.pid, login.connseq), login)

    def login(self, pid: int, connseq: int) -> OpenLogin | None:
        return self._t.logins.get((pid, connseq))

    def earlier_logins(self, logins: Mapping[int, int]) -> dict[int, OpenLogin]:
        falling = (login for _, login in sorted(self._t.logins.items(), reverse=True) if not login.passed)
        return {login.pid: login for login in falling if login.connseq < logins.get(login.pid, 0)}

    def logins_of(self, uns: str, after: tuple[int, int], limit: int) -> list[OpenLogin]:
        rising = (login for key, login in sorted(self._t.logins.items()) if key > after)
        return [login for login in rising if login.uns == uns][:limit]

    def pass_over(self, pid: int, before: int, uns: str) -> int:
        open_logins = (login for login in self._t.logins.values() if login.pid == pid and not login.passed)
        passed = [login for login in open_logins if login.connseq < before and login.uns == uns]
        self._t.logins.update({(pid, login.connseq): replace(login, passed=True) for login in passed})
        return len(passed)

    def drop_login(self, pid: int, connseq: int) -> None:
        self._t.logins.pop((pid, connseq), None)

    def put_uns(self, uns: Uns) -> None:
        self._t.unses[uns.uns] = uns

    def unses(self) -> list[Uns]:
        return [uns for _, uns in sorted(self._t.unses.items())]

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

    def lease_turns(self, turnkeys: Sequence[str], owner: str, token: int) -> None:
        for turnkey in turnkeys:
            self.change_turn(turnkey, {"owner": owner, "token": token})

    def change_turn(self, turnkey: str, values: Mapping[str, object]) -> None:
        if turnkey in self._t.turns:
            changes: dict[str, Any] = dict(values)
            self._t.turns[turnkey] = replace(self._t.turns[turnkey], **changes)

    def rest_turn(self, lease: StoredTurn) -> None:
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

    def drop_worker(self, owner: str) -> None:
        self._t.workers.pop(owner, None)

    def machine(self, identity: str) -> int | None:
        known = self._t.machines.get(identity)
        return known[0] if known else None

    def insert_machine(self, identity: str, note: str, now: int) -> int:
        del now
        number = len(self._t.machines) + 1
        _insert(self._t.machines, identity, (number, note))
        return number

    def info(self, name: str) -> str | None:
        return self._t.lccinfo.get(name)

    def set_info(self, name: str, value: str) -> None:
        self._t.lccinfo.pop(name, None)
        if value:
            self._t.lccinfo[name] = value

    def queued_total(self) -> int:
        return sum(part.nurls for part in self._t.qpsdb.values())

    def waiting_urls(self, pids: Iterable[int]) -> dict[int, int]:
        return {pid: self._t.pidb[pid].nurlproc for pid in set(pids) if pid in self._t.pidb}

    def totals(self) -> dict[str, int]:
        return {
            "queued": self.queued_total(),
            "cached": len(self._t.lccurl),
            "bytes": sum(provider.spaceused for provider in self._t.pidb.values()),
            "removed": len(self._t.tombstones),
            "doomed": len(self._t.fsmdb),
        }


def _absent(row: CachedUrl | QueuedUrl, pid: int, psetid: int) -> bool:
    return row.pid == pid and row.seen < psetid and row.origin == Origin.PUSH


def _insert(table: dict[Any, Any], key: Any, row: Any) -> None:
    if key in table:
        raise ValueError(f"{key!r} is there already")
    table[key] = row


def _drop(table: dict[Any, Any], keys: Iterable[Any]) -> None:
    for key in keys:
        table.pop(key, None)


def _drop_where(table: dict[Any, Any], condition: Any) -> None:
    _drop(table, [key for key, row in table.items() if condition(row)])
