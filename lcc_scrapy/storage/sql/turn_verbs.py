"""Verbs about turns and the workers that lease them."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import and_, bindparam, case, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from lcc_scrapy.storage import tables as t
from lcc_scrapy.storage.records import StoredTurn, TurnDelta, WorkerRow
from lcc_scrapy.storage.sql.rows import OnConnection, RowsOf, chunks

_TURNS = RowsOf(t.turns, StoredTurn)
_WORKERS = RowsOf(t.workers, WorkerRow)


class TurnVerbs(OnConnection):
    """Verbs about turns and the workers that lease them."""

    def add_to_turns(self, deltas: Mapping[str, TurnDelta]) -> None:
        for turnkey, delta in sorted(deltas.items()):
            if not self._add_to_turn(turnkey, delta):
                self._add_turn(turnkey, delta.priority)
                self._add_to_turn(turnkey, delta)
            if delta.waiting < 0:
                self._drop_empty(turnkey)

    def _add_to_turn(self, turnkey: str, delta: TurnDelta) -> int:
        c = t.turns.c
        values: dict[str, object] = {"waiting": c.waiting + delta.waiting}
        if delta.arrived:
            values |= {"arrivals": c.arrivals + 1, "look_at": 0.0}
        return self._c.execute(update(t.turns).where(c.turnkey == turnkey).values(**values)).rowcount

    def _add_turn(self, turnkey: str, priority: int) -> None:
        """Add a turn, unless another writer does so at this moment: a group has many providers."""
        with suppress(IntegrityError), self._c.begin_nested():
            self._c.execute(insert(t.turns), [_TURNS.as_dict(StoredTurn(turnkey, priority=priority))])

    def _drop_empty(self, turnkey: str) -> None:
        c = t.turns.c
        self._c.execute(delete(t.turns).where(c.turnkey == turnkey, _is_over()))

    def lock_turns(self, turnkeys: Iterable[str]) -> dict[str, StoredTurn]:
        query = _TURNS.select().where(t.turns.c.turnkey.in_(bindparam("keys", expanding=True)))
        query = query.order_by(t.turns.c.turnkey).with_for_update()
        parts = chunks(sorted(set(turnkeys)))
        return {row.turnkey: row for part in parts for row in _TURNS.read(self._c, query, keys=part)}

    def turnkeys(self, after: str, limit: int) -> list[str]:
        key = t.turns.c.turnkey
        return list(self._c.execute(select(key).where(key > after).order_by(key).limit(limit)).scalars())

    def turn(self, turnkey: str) -> StoredTurn | None:
        return next(iter(_TURNS.by_keys(self._c, [turnkey])), None)

    def arrivals(self, turnkeys: Iterable[str]) -> dict[str, int]:
        c = t.turns.c
        found: dict[str, int] = {}
        for part in chunks(turnkeys):
            rows = self._c.execute(select(c.turnkey, c.arrivals).where(c.turnkey.in_(part)))
            found.update({row.turnkey: row.arrivals for row in rows})
        return found

    def free_turns(self, now: float, limit: int, only: str | None = None) -> list[StoredTurn]:
        c = t.turns.c
        query = _TURNS.select().where(c.owner == "", c.look_at <= now, c.not_before <= now, c.waiting > 0)
        if only is not None:
            query = query.where(c.turnkey == only)
        return _TURNS.read(self._c, query.order_by(c.priority.desc(), c.look_at).limit(limit))

    def lease_turns(self, turnkeys: Sequence[str], owner: str, token: int) -> None:
        for part in chunks(turnkeys):
            leased = update(t.turns).where(t.turns.c.turnkey.in_(part))
            self._c.execute(leased.values(owner=owner, token=token))

    def change_turn(self, turnkey: str, values: Mapping[str, object]) -> None:
        self._c.execute(update(t.turns).where(t.turns.c.turnkey == turnkey).values(**values))

    def rest_turn(self, lease: StoredTurn) -> None:
        c = t.turns.c
        ours = and_(c.turnkey == lease.turnkey, c.owner == lease.owner, c.token == lease.token)
        values = {
            "owner": "",
            "look_at": case((c.arrivals == lease.arrivals, lease.look_at), else_=0.0),
            "not_before": lease.not_before,
            "failures": lease.failures,
            "failing_since": lease.failing_since,
        }
        self._c.execute(update(t.turns).where(ours).values(**values))
        self._drop_empty(lease.turnkey)

    def wake_turns(self) -> None:
        self._c.execute(update(t.turns).where(t.turns.c.look_at > 0).values(look_at=0.0))

    def free_turns_of(self, owner: str) -> int:
        freed = self._c.execute(update(t.turns).where(t.turns.c.owner == owner).values(owner="")).rowcount
        if freed:
            self._c.execute(delete(t.turns).where(_is_over()))
        return freed

    def forget_turns(self, now: float) -> None:
        c = t.turns.c
        self._c.execute(delete(t.turns).where(c.owner == "", c.waiting <= 0, c.not_before <= now))

    def leased_turns(self, owner: str) -> dict[str, int]:
        query = select(t.turns.c.turnkey, t.turns.c.token).where(t.turns.c.owner == owner)
        return {row.turnkey: row.token for row in self._c.execute(query)}

    def count_turns(self, now: float) -> int:
        c = t.turns.c
        ready = and_(c.look_at <= now, c.not_before <= now)
        query = select(func.count()).select_from(t.turns).where(or_(c.owner != "", ready))
        return int(self._c.execute(query).scalar_one())

    def workers(self) -> list[WorkerRow]:
        return _WORKERS.read(self._c, _WORKERS.select().order_by(t.workers.c.owner))

    def put_worker(self, worker: WorkerRow) -> None:
        _WORKERS.replace(self._c, [worker])

    def beat(self, worker: WorkerRow) -> bool:
        c = t.workers.c
        registered = and_(c.owner == worker.owner, c.token == worker.token)
        return bool(self._c.execute(update(t.workers).where(registered), _WORKERS.as_dict(worker)).rowcount)

    def drop_worker(self, owner: str) -> None:
        self._c.execute(delete(t.workers).where(t.workers.c.owner == owner))


def _is_over() -> Any:
    """Match turns that nobody holds, that have no URLs, and nothing to remember."""
    c = t.turns.c
    return and_(c.owner == "", c.waiting <= 0, c.not_before == 0)
