"""Verbs about waiting URLs, machines and facts."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from sqlalchemy import ColumnElement, and_, case, delete, func, insert, or_, select, update

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import LAST_NUMBER, Head, Oldest, Queue, SetPart
from lcc_scrapy.db.sql import heads, many
from lcc_scrapy.db.sql.rows import WITH_FURLKEY, OnConnection, RowsOf, chunks, put
from lcc_scrapy.domain.arrivals import NEW_COLUMNS, OF_ALL_NEW, NewRow, of_one_set, same_in_all
from lcc_scrapy.domain.entries import Origin
from lcc_scrapy.domain.queue import DUE, FETCH, STATE, QueuedUrl
from lcc_scrapy.domain.timeslots import first_slot

_QUEUED = RowsOf(t.qdb, QueuedUrl, WITH_FURLKEY)
_PARTS = RowsOf(t.qpsdb, SetPart)
_state_of = attrgetter(*STATE)

_Q = t.qdb.c
_FIRST_FETCH = and_(
    _Q.operation == FETCH, ~select(t.lccurl.c.urlkey).where(t.lccurl.c.urlkey == _Q.urlkey).exists()
)
MASKS_ONE_BY_ONE = 16
"""Different masks of a provider up to which each is looked up; with more, all its set parts are read."""

_PLACE = case((t.qdb.c.tries == 0, 0), else_=DUE)
"""Where rows come back to: first tries to their places, others among the retries."""


class QueueVerbs(OnConnection):
    """Verbs about waiting URLs, machines and facts."""

    def queued(self, keys: Iterable[bytes], known: Iterable[QueuedUrl] = ()) -> dict[bytes, QueuedUrl]:
        """Return the waiting rows among ``keys`` and ``known``; the latter are read only if they changed."""
        rows = {row.urlkey: row for row in known}
        found = {key: rows[key] for key, *state in self._states(rows) if (*state,) == _state_of(rows[key])}
        anew = [key for key in {*keys, *rows} if key not in found]
        return found | {row.urlkey: row for row in _QUEUED.by_keys(self._c, anew)}

    def _states(self, keys: Iterable[bytes]) -> Iterator[many.Row]:
        """Yield key and state of waiting rows, which is read in a fourth of the time of whole rows."""
        for part in chunks(keys):
            yield from many.select(self._c, t.qdb.name, ("urlkey", *STATE), "urlkey", part)

    def insert_queued(self, rows: Sequence[QueuedUrl]) -> None:
        """Add rows that are new to the queue."""
        _QUEUED.insert(self._c, rows)

    def append_new(self, sets: Mapping[tuple[int, int], Sequence[NewRow]]) -> None:
        """Add rows of sets (pid, psetid) that are new to the queue; ``domain.arrivals`` has their values."""
        if len(sets) == 1:
            ((pid, psetid),) = sets
            self._append(sets[pid, psetid], (), same_in_all(pid, psetid))
            return
        widths: defaultdict[int, list[NewRow]] = defaultdict(list)
        for (pid, psetid), rows in sets.items():
            own = tuple(of_one_set(pid, psetid).values())
            widths[len(rows[0]) if rows else 0].extend((*row, *own) for row in rows)
        for width in filter(None, widths):
            self._append(widths[width], tuple(of_one_set(0, 0)), OF_ALL_NEW)

    def _append(
        self, rows: Sequence[NewRow], more: Sequence[str], constants: Mapping[str, str | int]
    ) -> None:
        if rows:
            columns = (*NEW_COLUMNS[: len(rows[0]) - len(more)], *more)
            many.insert(self._c, t.qdb.name, columns, rows, constants=constants)

    def known(self, keys: Sequence[bytes]) -> set[bytes]:
        """Return those of the keys that wait or are cached."""
        return many.known(self._c, [t.qdb.name, t.lccurl.name], "urlkey", keys)

    def update_queued(self, rows: Sequence[QueuedUrl]) -> None:
        """Replace rows."""
        _QUEUED.replace(self._c, rows)

    def delete_queued(self, keys: Sequence[bytes]) -> None:
        """Remove rows."""
        _QUEUED.delete(self._c, keys)

    def heads(self, wanted: Sequence[Head], *, retries: bool = False) -> dict[Queue, list[QueuedUrl]]:
        """Return the next rows of different queues, without those set aside; each queue's in its order.

        ``retries``: those that were set aside and brought back, instead of the others.
        """
        condition = heads.RETRIES if retries else heads.ORDERED
        queues = [(one.pid, one.mask, *heads.place(self._c, *one.behind), one.limit) for one in wanted]
        found: defaultdict[Queue, list[QueuedUrl]] = defaultdict(list)
        for row in map(_QUEUED.make, heads.read(self._c, _QUEUED.names, condition, queues)):
            found[row.pid, row.timeofday].append(row)
        return found

    def return_due(self, pid: int, mask: str, now: int) -> int:
        """Bring rows back that were set aside until ``now``; return how many."""
        q = t.qdb.c
        due = and_(q.pid == pid, q.timeofday == mask, q.not_before.between(DUE + 1, now))
        return self._c.execute(update(t.qdb).where(due).values(not_before=_PLACE)).rowcount

    def set_aside(self, keys: Sequence[bytes], until: int) -> None:
        """Set waiting rows aside until then; ``return_due`` brings them back to their places."""
        q = t.qdb.c
        self._change(update(t.qdb).where(q.not_before <= DUE).values(not_before=until), q.urlkey, keys)

    def bring_back(self, pid: int, mask: str, until: int) -> None:
        """Bring back rows that were set aside until just then."""
        q = t.qdb.c
        which = and_(q.pid == pid, q.timeofday == mask, q.not_before == until)
        self._c.execute(update(t.qdb).where(which).values(not_before=_PLACE))

    def next_due(self, queues: Sequence[Queue], after: int = 0) -> dict[Queue, int]:
        """Return when the first rows that were set aside are due, ``DUE`` = they were brought back.

        ``after``: of those behind that moment. Queues without such rows are left out.
        """
        asked = [(*queue, after) for queue in queues]
        rows = heads.read(self._c, ("pid", "timeofday", "not_before"), heads.ASIDE, asked)
        return {(pid, mask): int(due) for pid, mask, due in rows}

    def queued_of(self, pid: int, after: int, limit: int) -> list[QueuedUrl]:
        """Return a provider's waiting rows behind a number (0 = all), as they arrived."""
        query = _QUEUED.select().where(_Q.pid == pid, _Q.id > after).order_by(_Q.id).limit(limit)
        return _QUEUED.read(self._c, query)

    def reach_waiting(self, pid: int, after: int, limit: int) -> int:
        """Return the number up to which ``limit`` rows of a provider follow; ``LAST_NUMBER``: all or fewer.

        Rows are numbered as they arrive, and keep their number as long as they wait.
        """
        last = select(_Q.id).where(_Q.pid == pid, _Q.id > after).order_by(_Q.id)
        return int(self._c.execute(last.offset(limit - 1).limit(1)).scalar() or LAST_NUMBER)

    def unseen_waiting(
        self, pid: int, psetid: int, after: int, upto: int, limit: int
    ) -> list[tuple[int, bytes]]:
        """Return (number, key) of pushed URLs that wait, and that no set from ``psetid`` on named."""
        query = select(_Q.id, _Q.urlkey).where(_pushed(pid, after, upto), _Q.seen < psetid)
        rows = self._c.execute(query.order_by(_Q.id).limit(limit))
        return [(int(number), bytes(key)) for number, key in rows]

    def count_waiting(self, pid: int, after: int, upto: int) -> int:
        """Count a provider's pushed URLs that wait for their first fetch, ``upto`` included."""
        query = select(func.count()).select_from(t.qdb).where(_pushed(pid, after, upto), _FIRST_FETCH)
        return int(self._c.execute(query).scalar_one())

    def mark_unfetched(self, pid: int, psetid: int, after: int, upto: int) -> int:
        """Mark and count those of them that no set from ``psetid`` on named.

        Whoever fetches one meanwhile leaves the mark at the document.
        """
        absent = and_(_pushed(pid, after, upto), _FIRST_FETCH, _Q.seen < psetid)
        return self._c.execute(update(t.qdb).where(absent).values(seen=-psetid)).rowcount

    def add_to_parts(self, deltas: Mapping[tuple[int, str, int], int], pri: Mapping[int, int]) -> None:
        """Add to the counts of set parts, keyed (psetid, mask, pid); parts at 0 go. ``pri``: per pid."""
        rows = [
            _PARTS.in_order(SetPart(psetid, mask, pid, first_slot(mask), pri.get(pid, 0), delta))
            for (psetid, mask, pid), delta in sorted(deltas.items())
            if delta
        ]
        keys, changes = ("psetid", "timeofday"), {"nurls": many.ADD}
        many.insert(self._c, t.qpsdb.name, _PARTS.names, rows, keys=keys, changes=changes)
        less = sorted({psetid for (psetid, _, _), delta in deltas.items() if delta < 0})
        for part in chunks(less):
            many.delete(self._c, t.qpsdb.name, "psetid", part, "nurls <= 0")

    def parts(self, pid: int) -> list[SetPart]:
        """Return a provider's set parts by rising psetid."""
        query = _PARTS.select().where(t.qpsdb.c.pid == pid)
        return _PARTS.read(self._c, query.order_by(t.qpsdb.c.psetid, t.qpsdb.c.timeofday))

    def oldest_waiting(self, pid: int | None = None) -> Oldest | None:
        """Return the URL that has waited longest, of one provider or of all, by the order of sets."""
        parts, q = t.qpsdb.c, t.qdb.c
        query = select(parts.pid, parts.timeofday, parts.psetid).where(parts.nurls > 0)
        if pid is not None:
            query = query.where(parts.pid == pid)
        first = self._c.execute(query.order_by(parts.psetid, parts.timeofday).limit(1)).first()
        if first is None:
            return None
        its = and_(q.pid == first.pid, q.timeofday == first.timeofday, q.psetid == first.psetid)
        for due in (q.not_before == 0, q.not_before > 0):  # each is one range of ``qdb_order``
            rows = _QUEUED.read(self._c, _QUEUED.select().where(its, due).order_by(q.position).limit(1))
            if rows:
                since = select(t.psets.c.started).where(t.psets.c.psetid == first.psetid)
                return Oldest(rows[0], self._c.execute(since).scalar() or 0)
        return None

    def waiting(self, pid: int) -> dict[tuple[int, str], int]:
        """Count a provider's waiting rows by (psetid, mask): what its set parts should say."""
        q = t.qdb.c
        query = select(q.psetid, q.timeofday, func.count()).where(q.pid == pid)
        rows = self._c.execute(query.group_by(q.psetid, q.timeofday))
        return {(psetid, mask): count for psetid, mask, count in rows}

    def count_before(self, row: QueuedUrl) -> int:
        """Count the rows of the same provider that come before one, without those set aside."""
        masks = self.masks([row.pid])[row.pid]
        if len(masks) >= MASKS_ONE_BY_ONE:
            return self._count_ready(row.pid, or_(*_earlier(row)))
        return sum(
            self._count_ready(row.pid, _Q.timeofday == mask, which)
            for mask in masks
            for which in _earlier(row)
        )

    def _count_ready(self, pid: int, *which: ColumnElement[bool]) -> int:
        query = select(func.count()).select_from(t.qdb).where(_Q.pid == pid, _Q.not_before == 0, *which)
        return int(self._c.execute(query).scalar_one())

    def masks(self, pids: Iterable[int]) -> dict[int, list[str]]:
        """Return the different masks that each provider's waiting URLs have, sorted."""
        found: dict[int, list[str]] = {pid: [] for pid in pids}
        asked: list[Queue] = [(pid, "") for pid in found]
        for condition in (heads.FIRST_MASKS, *[heads.MASKS] * (MASKS_ONE_BY_ONE - 1)):
            # one step in the index for each mask, however many URLs and sets wait
            asked = [(pid, mask) for pid, mask in heads.read(self._c, ("pid", "timeofday"), condition, asked)]
            for pid, mask in asked:
                found[pid].append(mask)
        return found | {pid: self._masks_of_parts(pid) for pid, _ in asked}

    def _masks_of_parts(self, pid: int) -> list[str]:
        q = t.qpsdb.c
        query = select(q.timeofday).where(q.pid == pid).distinct()
        return sorted(self._c.execute(query).scalars())

    def machine(self, identity: str) -> int | None:
        """Return the number of a machine."""
        query = select(t.machines.c.machineid).where(t.machines.c.identity == identity)
        return self._c.execute(query).scalar()

    def machine_numbers(self) -> list[int]:
        """Return the numbers of all machines, rising."""
        c = t.machines.c.machineid
        return list(self._c.execute(select(c).order_by(c)).scalars())

    def insert_machine(self, identity: str, note: str, now: int) -> int:
        """Register a machine and return its number."""
        self._c.execute(insert(t.machines).values(identity=identity, note=note, created=now, address=""))
        number = self.machine(identity)
        assert number is not None
        return number

    def machine_addresses(self) -> dict[int, str]:
        """Return where machines say that their files are to be had, by their numbers."""
        c = t.machines.c
        rows = self._c.execute(select(c.machineid, c.address).where(c.address != ""))
        return {int(number): str(address) for number, address in rows}

    def set_machine_address(self, machine: int, address: str) -> None:
        """Note where the files of a machine are to be had; empty = nowhere."""
        self._c.execute(update(t.machines).where(t.machines.c.machineid == machine).values(address=address))

    def info(self, name: str) -> str | None:
        """Return a fact about this LCC."""
        return self._c.execute(select(t.lccinfo.c.value).where(t.lccinfo.c.name == name)).scalar()

    def infos(self, names: Sequence[str]) -> dict[str, str]:
        """Return the facts among these names that are known."""
        c = t.lccinfo.c
        return dict(self._rows(select(c.name, c.value), c.name, names))

    def set_info(self, name: str, value: str) -> None:
        """Set a fact about this LCC; an empty value takes the fact away."""
        if value:
            put(self._c, t.lccinfo, {"name": name, "value": value})
        else:
            self._c.execute(delete(t.lccinfo).where(t.lccinfo.c.name == name))

    def queued_total(self) -> int:
        """Count all waiting URLs."""
        return int(self._c.execute(select(func.coalesce(func.sum(t.turns.c.waiting), 0))).scalar_one())

    def waiting_urls(self, pids: Iterable[int]) -> dict[int, int]:
        """Return how many URLs of each of these providers wait (``pidb.nurlproc``)."""
        names = ("pid", "nurlproc")
        parts = (many.select(self._c, t.pidb.name, names, "pid", part) for part in chunks(set(pids)))
        return {pid: int(waiting) for part in parts for pid, waiting in part}

    def cached_total(self) -> int:
        """Count all documents, by the books of the providers."""
        return int(self._c.execute(select(func.coalesce(func.sum(t.pidb.c.fileused), 0))).scalar_one())

    def totals(self) -> dict[str, int]:
        """Return counts for ``lcc status``: versions, doomed; by the books: queued, cached, bytes."""
        pairs = {
            "versions": select(func.count()).select_from(t.versions),
            "bytes": select(func.coalesce(func.sum(t.pidb.c.spaceused), 0)),
            "doomed": select(func.count()).select_from(t.fsmdb),
        }
        counts = {name: int(self._c.execute(query).scalar_one()) for name, query in pairs.items()}
        return {"queued": self.queued_total(), "cached": self.cached_total(), **counts}


def _pushed(pid: int, after: int, upto: int) -> ColumnElement[bool]:
    return and_(_Q.pid == pid, _Q.id > after, _Q.id <= upto, _Q.origin == Origin.PUSH.value)


def _earlier(row: QueuedUrl) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Return what selects earlier sets, and earlier rows of the same set: two ranges of ``qdb_order``."""
    return _Q.psetid < row.psetid, and_(_Q.psetid == row.psetid, _Q.position < row.position)
