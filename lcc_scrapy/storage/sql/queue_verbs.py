"""Verbs about waiting URLs, machines and facts."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Integer, and_, bindparam, delete, func, insert, or_, select, update

from lcc_scrapy.domain.arrivals import NEW_COLUMNS, NewRow, same_in_all
from lcc_scrapy.domain.queue import QueuedUrl
from lcc_scrapy.domain.timeslots import first_slot
from lcc_scrapy.storage import tables as t
from lcc_scrapy.storage.records import SetPart
from lcc_scrapy.storage.sql import many
from lcc_scrapy.storage.sql.appending import among, append
from lcc_scrapy.storage.sql.rows import FURLKEY, OnConnection, RowsOf, chunks, put

_QUEUED = RowsOf(t.qdb, QueuedUrl, FURLKEY)
_PARTS = RowsOf(t.qpsdb, SetPart)

_Q = t.qdb.c
_HERE = and_(_Q.pid == bindparam("of"), _Q.timeofday == bindparam("mask"))
_HEADS = (
    _QUEUED.select()
    .where(_HERE, _Q.not_before == 0)
    .order_by(_Q.psetid, _Q.position)
    .limit(bindparam("most", type_=Integer))
)
_NEXT_DUE = select(func.min(_Q.not_before)).where(_HERE, _Q.not_before > 0)
_FIRST_MASK = select(func.min(_Q.timeofday)).where(_Q.pid == bindparam("of"))
_NEXT_MASK = _FIRST_MASK.where(_Q.timeofday > bindparam("mask"))
"""What every look at a provider's queue asks, made once: to make them costs more than to ask."""

MASKS_ONE_BY_ONE = 16
"""Different masks of a provider up to which each is looked up; with more, all its set parts are read."""


class QueueVerbs(OnConnection):
    """Verbs about waiting URLs, machines and facts."""

    def queued(self, keys: Iterable[bytes]) -> dict[bytes, QueuedUrl]:
        return {row.urlkey: row for row in _QUEUED.by_keys(self._c, keys)}

    def insert_queued(self, rows: Sequence[QueuedUrl]) -> None:
        _QUEUED.insert(self._c, rows)

    def append_new(self, pid: int, psetid: int, rows: Sequence[NewRow]) -> None:
        if rows:
            append(self._c, t.qdb, NEW_COLUMNS[: len(rows[0])], rows, same_in_all(pid, psetid))

    def known(self, keys: Sequence[bytes]) -> set[bytes]:
        return among(self._c, [t.qdb, t.lccurl], "urlkey", keys)

    def update_queued(self, rows: Sequence[QueuedUrl]) -> None:
        _QUEUED.replace(self._c, rows)

    def delete_queued(self, keys: Sequence[bytes]) -> None:
        _QUEUED.delete(self._c, keys)

    def heads(self, pid: int, mask: str, limit: int) -> list[QueuedUrl]:
        return _QUEUED.read(self._c, _HEADS, of=pid, mask=mask, most=limit)

    def return_due(self, pid: int, mask: str, now: int) -> int:
        q = t.qdb.c
        due = and_(q.pid == pid, q.timeofday == mask, q.not_before.between(1, now))
        return self._c.execute(update(t.qdb).where(due).values(not_before=0)).rowcount

    def next_due(self, pid: int, mask: str) -> int:
        return int(self._c.execute(_NEXT_DUE, {"of": pid, "mask": mask}).scalar() or 0)

    def queued_of(self, pid: int, after: bytes, limit: int) -> list[QueuedUrl]:
        q = t.qdb.c
        query = _QUEUED.select().where(q.pid == pid, q.urlkey > after).order_by(q.urlkey).limit(limit)
        return _QUEUED.read(self._c, query)

    def add_to_parts(self, deltas: Mapping[tuple[int, str, int], int], pri: Mapping[int, int]) -> None:
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
        query = _PARTS.select().where(t.qpsdb.c.pid == pid)
        return _PARTS.read(self._c, query.order_by(t.qpsdb.c.psetid, t.qpsdb.c.timeofday))

    def waiting(self, pid: int) -> dict[tuple[int, str], int]:
        q = t.qdb.c
        query = select(q.psetid, q.timeofday, func.count()).where(q.pid == pid)
        rows = self._c.execute(query.group_by(q.psetid, q.timeofday))
        return {(psetid, mask): count for psetid, mask, count in rows}

    def count_before(self, row: QueuedUrl) -> int:
        q = t.qdb.c
        earlier = or_(q.psetid < row.psetid, and_(q.psetid == row.psetid, q.position < row.position))
        query = select(func.count()).select_from(t.qdb).where(q.pid == row.pid, q.not_before == 0, earlier)
        return int(self._c.execute(query).scalar_one())

    def masks(self, pid: int) -> list[str]:
        found: list[str] = []
        while len(found) < MASKS_ONE_BY_ONE:
            mask = self._next_mask(pid, found)
            if mask is None:
                return found
            found.append(mask)
        q = t.qpsdb.c
        query = select(q.timeofday).where(q.pid == pid).distinct()
        return sorted(self._c.execute(query).scalars())

    def _next_mask(self, pid: int, found: Sequence[str]) -> str | None:
        """Return the mask behind those found, by one step in the index however many URLs and sets wait."""
        if not found:
            return self._c.execute(_FIRST_MASK, {"of": pid}).scalar()
        return self._c.execute(_NEXT_MASK, {"of": pid, "mask": found[-1]}).scalar()

    def machine(self, identity: str) -> int | None:
        query = select(t.machines.c.machineid).where(t.machines.c.identity == identity)
        return self._c.execute(query).scalar()

    def insert_machine(self, identity: str, note: str, now: int) -> int:
        self._c.execute(insert(t.machines).values(identity=identity, note=note, created=now))
        number = self.machine(identity)
        assert number is not None
        return number

    def info(self, name: str) -> str | None:
        return self._c.execute(select(t.lccinfo.c.value).where(t.lccinfo.c.name == name)).scalar()

    def set_info(self, name: str, value: str) -> None:
        if value:
            put(self._c, t.lccinfo, {"name": name, "value": value})
        else:
            self._c.execute(delete(t.lccinfo).where(t.lccinfo.c.name == name))

    def queued_total(self) -> int:
        return int(self._c.execute(select(func.coalesce(func.sum(t.turns.c.waiting), 0))).scalar_one())

    def waiting_urls(self, pids: Iterable[int]) -> dict[int, int]:
        query = select(t.pidb.c.pid, t.pidb.c.nurlproc)
        query = query.where(t.pidb.c.pid.in_(bindparam("keys", expanding=True)))
        rows = (row for part in chunks(set(pids)) for row in self._c.execute(query, {"keys": part}))
        return {pid: int(waiting) for pid, waiting in rows}

    def totals(self) -> dict[str, int]:
        pairs = {
            "cached": select(func.count()).select_from(t.lccurl),
            "versions": select(func.count()).select_from(t.versions),
            "bytes": select(func.coalesce(func.sum(t.pidb.c.spaceused), 0)),
            "removed": select(func.count()).select_from(t.tombstones),
            "doomed": select(func.count()).select_from(t.fsmdb),
        }
        counts = {name: int(self._c.execute(query).scalar_one()) for name, query in pairs.items()}
        return {"queued": self.queued_total(), **counts}
