"""Verbs about waiting URLs, machines and facts."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select, update

from lcc_scrapy.domain.queue import QueuedUrl
from lcc_scrapy.domain.timeslots import first_slot
from lcc_scrapy.storage import tables as t
from lcc_scrapy.storage.records import SetPart
from lcc_scrapy.storage.sql.rows import OnConnection, RowsOf, chunks

_QUEUED = RowsOf(t.qdb, QueuedUrl)
_PARTS = RowsOf(t.qpsdb, SetPart)


class QueueVerbs(OnConnection):
    """Verbs about waiting URLs, machines and facts."""

    def queued(self, keys: Iterable[bytes]) -> dict[bytes, QueuedUrl]:
        return {row.urlkey: row for row in _QUEUED.by_keys(self._c, keys)}

    def insert_queued(self, rows: Sequence[QueuedUrl]) -> None:
        _QUEUED.insert(self._c, rows)

    def update_queued(self, rows: Sequence[QueuedUrl]) -> None:
        _QUEUED.update(self._c, rows)

    def delete_queued(self, keys: Sequence[bytes]) -> None:
        _QUEUED.delete(self._c, keys)

    def heads(self, pid: int, mask: str, limit: int) -> list[QueuedUrl]:
        q = t.qdb.c
        query = _QUEUED.select().where(q.pid == pid, q.timeofday == mask, q.not_before == 0)
        return _QUEUED.read(self._c, query.order_by(q.psetid, q.position).limit(limit))

    def return_due(self, pid: int, mask: str, now: int) -> int:
        q = t.qdb.c
        due = and_(q.pid == pid, q.timeofday == mask, q.not_before.between(1, now))
        return self._c.execute(update(t.qdb).where(due).values(not_before=0)).rowcount

    def next_due(self, pid: int, mask: str) -> int:
        q = t.qdb.c
        query = select(func.min(q.not_before)).where(q.pid == pid, q.timeofday == mask, q.not_before > 0)
        return int(self._c.execute(query).scalar() or 0)

    def queued_of(self, pid: int, after: bytes, limit: int) -> list[QueuedUrl]:
        q = t.qdb.c
        query = _QUEUED.select().where(q.pid == pid, q.urlkey > after).order_by(q.urlkey).limit(limit)
        return _QUEUED.read(self._c, query)

    def add_to_parts(self, deltas: Mapping[tuple[int, str, int], int], pri: Mapping[int, int]) -> None:
        q = t.qpsdb.c
        for (psetid, mask, pid), delta in deltas.items():
            if not delta:
                continue
            part = and_(q.psetid == psetid, q.timeofday == mask)
            changed = self._c.execute(update(t.qpsdb).where(part).values(nurls=q.nurls + delta)).rowcount
            if not changed:
                _PARTS.insert(self._c, [SetPart(psetid, mask, pid, first_slot(mask), pri.get(pid, 0), delta)])
            elif delta < 0:
                self._c.execute(delete(t.qpsdb).where(part, q.nurls <= 0))

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
        q = t.qpsdb.c
        query = select(q.timeofday).where(q.pid == pid).distinct()
        return sorted(self._c.execute(query).scalars())

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
        self._c.execute(delete(t.lccinfo).where(t.lccinfo.c.name == name))
        if value:
            self._c.execute(insert(t.lccinfo).values(name=name, value=value))

    def queued_total(self) -> int:
        return int(self._c.execute(select(func.coalesce(func.sum(t.qpsdb.c.nurls), 0))).scalar_one())

    def waiting_urls(self, pids: Iterable[int]) -> dict[int, int]:
        query = select(t.pidb.c.pid, t.pidb.c.nurlproc)
        query = query.where(t.pidb.c.pid.in_(bindparam("keys", expanding=True)))
        rows = (row for part in chunks(set(pids)) for row in self._c.execute(query, {"keys": part}))
        return {pid: int(waiting) for pid, waiting in rows}

    def totals(self) -> dict[str, int]:
        pairs = {
            "cached": select(func.count()).select_from(t.lccurl),
            "bytes": select(func.coalesce(func.sum(t.pidb.c.spaceused), 0)),
            "removed": select(func.count()).select_from(t.tombstones),
            "doomed": select(func.count()).select_from(t.fsmdb),
        }
        counts = {name: int(self._c.execute(query).scalar_one()) for name, query in pairs.items()}
        return {"queued": self.queued_total(), **counts}
