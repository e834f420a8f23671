"""Pids that registration at a front gave out, in the front's database.

A counter gives out each pid once, over all fronts that share the database. PMDB has the pid from then on. A
row in ``given`` says that it may come to nothing, and when to look what became of it. Each method is one
transaction; all block.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine, delete, func, select
from sqlalchemy.exc import IntegrityError

from lcc_scrapy.db.sql.store import named_errors
from lcc_scrapy.domain.front import FrontError
from lcc_scrapy.domain.providers import FRONT_FIRST_PID
from lcc_scrapy.front import tables as t

COUNTER = "registered"
"""The fact of the front that says which pid was given out last."""

NONE_YET = str(FRONT_FIRST_PID - 1)
_MANY = 500
"""Pids that one statement asks for."""


@dataclass(frozen=True, slots=True)
class Found:
    """What became of pids that were given out.

    ``settled`` are providers, ``waiting`` those to look at again, and when; ``nothing`` came of others, which
    PMDB has in the sub-LCC that is named.
    """

    settled: Collection[int] = ()
    waiting: Mapping[int, int] = field(default_factory=dict)
    nothing: Mapping[int, str] = field(default_factory=dict)


class GivenPids:
    """The pids that were given out. Raises ``StoreUnavailable`` when the database does not answer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def last(self) -> int:
        """Return the pid that was given out last."""
        with named_errors(), self._engine.connect() as connection:
            return _last(connection)

    def give_out(self, pid: int, name: str, *, after: int, look_at: int) -> bool:
        """Give a pid to a sub-LCC, and remember to look at it; False: another front was faster.

        ``after`` is what was given out last when the pid was chosen. Raises ``FrontError`` for a sub-LCC that
        was removed meanwhile.
        """
        its_name = select(t.fedb.c.name).where(t.fedb.c.name == name).with_for_update()
        counter = (t.info.c.name == COUNTER) & (t.info.c.value == str(after))
        try:
            with named_errors(), self._engine.begin() as connection:
                if connection.scalar(its_name) is None:
                    raise FrontError(f"there is no sub-LCC {name} any more")
                if not connection.execute(t.info.update().where(counter).values(value=str(pid))).rowcount:
                    return False
                connection.execute(t.pmdb.insert().values(pid=pid, sub=name))
                connection.execute(t.given.insert().values(pid=pid, look_at=look_at))
        except IntegrityError:
            return False
        return True

    def unused(self, pids: Sequence[int]) -> set[int]:
        """Return those of the pids that were given out and are no providers, or not yet."""
        found: set[int] = set()
        with named_errors(), self._engine.connect() as connection:
            last = _last(connection)
            for some in portions(pids):
                known = set(connection.scalars(select(t.pmdb.c.pid).where(t.pmdb.c.pid.in_(some))))
                found |= {pid for pid in some if FRONT_FIRST_PID <= pid <= last and pid not in known}
                found |= set(connection.scalars(select(t.given.c.pid).where(t.given.c.pid.in_(some))))
        return found

    def counts(self) -> dict[str, int]:
        """Return how many pids each sub-LCC was given of late, by its name."""
        query = select(t.pmdb.c.sub, func.count()).join(t.given, t.given.c.pid == t.pmdb.c.pid)
        with named_errors(), self._engine.connect() as connection:
            rows = connection.execute(query.group_by(t.pmdb.c.sub))
            return {str(name): int(count) for name, count in rows}

    def due(self, now: int, limit: int) -> dict[int, str]:
        """Return some pids to be looked at, with the sub-LCC of each; empty = PMDB does not have it."""
        query = select(t.given.c.pid, t.pmdb.c.sub).outerjoin(t.pmdb, t.given.c.pid == t.pmdb.c.pid)
        query = query.where(t.given.c.look_at <= now).order_by(t.given.c.look_at, t.given.c.pid)
        with named_errors(), self._engine.connect() as connection:
            return {int(pid): str(name or "") for pid, name in connection.execute(query.limit(limit))}

    def note(self, found: Found) -> None:
        """Keep what became of pids: PMDB forgets those that came to nothing."""
        with named_errors(), self._engine.begin() as connection:
            for pid, look_at in found.waiting.items():
                connection.execute(t.given.update().where(t.given.c.pid == pid).values(look_at=look_at))
            for pid, name in found.nothing.items():
                of_it = (t.pmdb.c.pid == pid) & (t.pmdb.c.sub == name)
                connection.execute(delete(t.pmdb).where(of_it))
            over = [*found.settled, *found.nothing]
            connection.execute(delete(t.given).where(t.given.c.pid.in_(over)))


def portions(pids: Sequence[int]) -> Iterator[list[int]]:
    """Yield pids in portions for one statement each."""
    for start in range(0, len(pids), _MANY):
        yield list(pids[start : start + _MANY])


def _last(connection: Connection) -> int:
    query = select(t.info.c.value).where(t.info.c.name == COUNTER)
    return int(connection.scalar(query) or NONE_YET)
