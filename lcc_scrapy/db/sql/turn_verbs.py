"""Verbs about turns and the workers that lease them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter

from sqlalchemy import and_, bindparam, case, delete, func, or_, select, text, update

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import FailingHost, LongFetch, StoredTurn, TurnDelta, WorkerRow
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf, chunks

_TURNS = RowsOf(t.turns, StoredTurn)
_HOSTS = RowsOf(t.failinghosts, FailingHost)
_WORKERS = RowsOf(t.workers, WorkerRow)
_FETCHES = RowsOf(t.fetches, LongFetch)

_ADDED = {
    "waiting": many.ADD,
    "arrivals": many.ADD,
    "look_at": "CASE WHEN NEW.arrivals > 0 THEN 0 ELSE OLD END",
}
_GIVEN = ("turnkey", "owner", "token", "arrivals", "look_at", "not_before")
_C = t.turns.c
_REST = (
    update(t.turns)
    .where(*(_C[name] == bindparam(f"the_{name}") for name in ("turnkey", "owner", "token")))
    .values(
        owner="",
        look_at=case((_C.arrivals == bindparam("the_arrivals"), bindparam("the_look_at")), else_=0.0),
        not_before=bindparam("the_not_before"),
    )
)
_KEYS = (t.turns.name, ("turnkey",), "turnkey")
_OVER = "owner = '' AND waiting <= 0 AND not_before = 0"
"""Turns that nobody holds, that have no URLs, and nothing to remember."""


class TurnVerbs(OnConnection):
    """Verbs about turns and the workers that lease them."""

    def add_to_turns(self, deltas: Mapping[str, TurnDelta]) -> None:
        """Add to the counts of turns; new ones begin free, those that end at 0 and are free go."""
        turns = [
            StoredTurn(key, priority=delta.priority, waiting=delta.waiting, arrivals=int(delta.arrived))
            for key, delta in sorted(deltas.items())
        ]
        many.insert(
            self._c,
            t.turns.name,
            _TURNS.names,
            list(map(_TURNS.in_order, turns)),
            keys=("turnkey",),
            changes=_ADDED,
        )
        self._drop_empty([turn.turnkey for turn in turns if turn.waiting < 0])

    def _drop_empty(self, turnkeys: Iterable[str]) -> None:
        """Remove those of some turns, which are locked already, that are over: mostly none.

        A ``DELETE`` on these conditions would wait for turns of others which it finds in an index.
        """
        rows = (row for part in chunks(turnkeys) for row in many.select(self._c, *_KEYS, part, also=_OVER))
        for part in chunks(row[0] for row in rows):
            many.delete(self._c, t.turns.name, "turnkey", part)

    def lock_turns(self, turnkeys: Iterable[str]) -> dict[str, StoredTurn]:
        """Return turns, kept from changing until the end of the transaction."""
        return {row.turnkey: row for row in _TURNS.by_keys(self._c, set(turnkeys), lock=True)}

    def turnkeys(self, after: str, limit: int) -> list[str]:
        """Return the keys of turns, rising."""
        key = t.turns.c.turnkey
        return list(self._c.execute(select(key).where(key > after).order_by(key).limit(limit)).scalars())

    def turn(self, turnkey: str) -> StoredTurn | None:
        """Return a turn without locking it."""
        return next(iter(_TURNS.by_keys(self._c, [turnkey])), None)

    def arrivals(self, turnkeys: Iterable[str]) -> dict[str, int]:
        """Return what had arrived in turns."""
        c = t.turns.c
        return dict(self._rows(select(c.turnkey, c.arrivals), c.turnkey, turnkeys))

    def free_turns(self, now: float, limit: int, only: str | None = None) -> list[StoredTurn]:
        """Return turns that nobody holds and that may go on now, by falling priority."""
        c = t.turns.c
        query = _TURNS.select().where(c.owner == "", c.look_at <= now, c.not_before <= now, c.waiting > 0)
        if only is not None:
            query = query.where(c.turnkey == only)
        return _TURNS.read(self._c, query.order_by(c.priority.desc(), c.look_at).limit(limit))

    def has_due_turns(self, now: float) -> bool:
        """Tell whether URLs wait in a turn that somebody holds, or that may go on now."""
        c = t.turns.c
        due = or_(c.owner != "", and_(c.look_at <= now, c.not_before <= now))
        return self._c.execute(select(c.turnkey).where(c.waiting > 0, due).limit(1)).first() is not None

    def lease_turns(self, turnkeys: Sequence[str], owner: str, token: int) -> None:
        """Give turns to a worker."""
        self._change(update(t.turns).values(owner=owner, token=token), t.turns.c.turnkey, turnkeys)

    def change_turn(self, turnkey: str, values: Mapping[str, object]) -> None:
        """Set columns of a turn."""
        self._c.execute(update(t.turns).where(t.turns.c.turnkey == turnkey).values(**values))

    def rest_turns(self, leases: Sequence[StoredTurn]) -> None:
        """Give turns back as they are here, each if it is still leased under its owner and token.

        Where URLs arrived meanwhile its ``look_at`` becomes 0; a turn without any goes, unless it has to
        remember its ``not_before``.
        """
        if leases:
            in_order = sorted(leases, key=attrgetter("turnkey"))  # as everybody locks them
            given = [{f"the_{name}": getattr(one, name) for name in _GIVEN} for one in in_order]
            self._c.execute(_REST, given)
            self._drop_empty([one.turnkey for one in in_order])

    def wake_turns(self) -> None:
        """Let all turns be looked at again, whatever hours they wait for."""
        self._c.execute(update(t.turns).where(t.turns.c.look_at > 0).values(look_at=0.0))

    def free_turns_of(self, owner: str) -> int:
        """Take all turns from a worker, and what it told of its fetches; return how many turns."""
        self._c.execute(delete(t.fetches).where(t.fetches.c.owner == owner))
        freed = self._c.execute(update(t.turns).where(t.turns.c.owner == owner).values(owner="")).rowcount
        if freed:
            self._c.execute(delete(t.turns).where(text(_OVER)))
        return freed

    def forget_turns(self, now: float) -> None:
        """Remove turns without URLs that have nothing to remember any more."""
        over = f"owner = '' AND waiting <= 0 AND not_before <= {now!r}"
        c = t.turns.c
        for part in chunks(self._c.execute(select(c.turnkey).where(text(over))).scalars()):
            many.delete(self._c, t.turns.name, "turnkey", part, over)  # not what others changed since then

    def put_failing_host(self, row: FailingHost) -> None:
        """Note how a turn waits for one of its hosts."""
        names = _HOSTS.names
        changes = dict.fromkeys(names[2:], many.REPLACE)
        many.insert(self._c, "failinghosts", names, [_HOSTS.in_order(row)], keys=names[:2], changes=changes)

    def hosts_of(self, turnkeys: Iterable[str]) -> dict[str, dict[str, FailingHost]]:
        """Return what turns have to remember of their hosts."""
        found: dict[str, dict[str, FailingHost]] = {}
        for row in _HOSTS.by_keys(self._c, turnkeys):
            found.setdefault(row.turnkey, {})[row.host] = row
        return found

    def failing_hosts(self, limit: int) -> list[FailingHost]:
        """Return hosts that fail, those first that have for longest."""
        c = t.failinghosts.c
        query = _HOSTS.select().where(c.failures > 0).order_by(c.since, c.turnkey, c.host)
        return _HOSTS.read(self._c, query.limit(limit))

    def forget_hosts(self, before: float) -> None:
        """Forget hosts whose waits were over by then, if they answered or no URLs wait in their turns."""
        c = t.failinghosts.c
        waiting = select(t.turns.c.turnkey).where(t.turns.c.turnkey == c.turnkey, t.turns.c.waiting > 0)
        over = and_(c.not_before < before, c.since < before)
        self._c.execute(delete(t.failinghosts).where(over, or_(c.failures == 0, ~waiting.exists())))

    def leased_turns(self, owner: str) -> dict[str, int]:
        """Return the turns of a worker with their tokens."""
        query = select(t.turns.c.turnkey, t.turns.c.token).where(t.turns.c.owner == owner)
        return {row.turnkey: row.token for row in self._c.execute(query)}

    def count_turns(self, now: float) -> int:
        """Count the turns that somebody works on, or could now."""
        c = t.turns.c
        ready = and_(c.look_at <= now, c.not_before <= now)
        query = select(func.count()).select_from(t.turns).where(or_(c.owner != "", ready))
        return int(self._c.execute(query).scalar_one())

    def workers(self) -> list[WorkerRow]:
        """Return the workers that registered, by rising owner."""
        return _WORKERS.read(self._c, _WORKERS.select().order_by(t.workers.c.owner))

    def put_worker(self, worker: WorkerRow) -> None:
        """Add or replace a worker."""
        _WORKERS.replace(self._c, [worker])

    def beat(self, worker: WorkerRow) -> bool:
        """Replace a worker that is still registered under the same token; tell whether it is."""
        c = t.workers.c
        registered = and_(c.owner == worker.owner, c.token == worker.token)
        return bool(self._c.execute(update(t.workers).where(registered), _WORKERS.as_dict(worker)).rowcount)

    def renew_lease(self, owner: str, token: int, expires: int) -> bool:
        """Let the leases of a worker hold until then, if it is still registered under this token; tell so."""
        c = t.workers.c
        renewed = update(t.workers).where(c.owner == owner, c.token == token).values(expires=expires)
        return bool(self._c.execute(renewed).rowcount)

    def drop_worker(self, owner: str) -> None:
        """Forget a worker."""
        self._c.execute(delete(t.workers).where(t.workers.c.owner == owner))

    def put_fetches(self, fetches: Sequence[LongFetch]) -> None:
        """Add or replace fetches that take long, one for each turn."""
        _FETCHES.replace(self._c, fetches)

    def drop_fetches(self, owner: str, turnkeys: Collection[str]) -> None:
        """Remove those of some turns, as far as they are a worker's."""
        c = t.fetches.c
        self._change(delete(t.fetches).where(c.owner == owner), c.turnkey, sorted(turnkeys))

    def long_fetch(self, turnkey: str) -> LongFetch | None:
        """Return what was told last of a fetch in a turn."""
        return next(iter(_FETCHES.by_keys(self._c, [turnkey])), None)

    def count_above(self, owner: str, priority: int) -> int:
        """Count the turns of a worker that have URLs waiting and a higher priority."""
        c = t.turns.c
        above = select(func.count()).select_from(t.turns)
        above = above.where(c.owner == owner, c.priority > priority, c.waiting > 0)
        return int(self._c.execute(above).scalar_one())
