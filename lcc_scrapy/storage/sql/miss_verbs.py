"""Verbs about changes that were pushed, and those that were not."""

from collections.abc import Mapping, Sequence

from sqlalchemy import and_, delete, func, insert, select, update

from lcc_scrapy.storage import tables as t
from lcc_scrapy.storage.records import Missed, Suspect
from lcc_scrapy.storage.sql.rows import OnConnection, RowsOf, chunks

_SUSPECTS = RowsOf(t.suspects, Suspect)
_COUNTED = ("pushed", "sampled", "missed", "watched")


class MissVerbs(OnConnection):
    """Verbs about changes that were pushed, and those that were not."""

    def add_missed(self, pid: int, day: int, deltas: Mapping[str, int]) -> None:
        c = t.misses.c
        added = {name: c[name] + delta for name, delta in deltas.items()}
        known = update(t.misses).where(c.pid == pid, c.day == day).values(added)
        if not self._c.execute(known).rowcount:
            row = {"pid": pid, "day": day, **dict.fromkeys(_COUNTED, 0), **deltas}
            self._c.execute(insert(t.misses), [row])

    def missed(self, pid: int, since: int) -> Missed:
        c = t.misses.c
        query = select(*(func.sum(c[name]) for name in _COUNTED)).where(c.pid == pid, c.day >= since)
        return Missed(*(int(value or 0) for value in self._c.execute(query).one()))

    def sampled_providers(self, since: int) -> list[int]:
        c = t.misses.c
        query = select(c.pid).where(c.day >= since, c.sampled > 0).distinct().order_by(c.pid)
        return list(self._c.execute(query).scalars())

    def forget_missed(self, before: int) -> None:
        self._c.execute(delete(t.misses).where(t.misses.c.day < before))

    def put_suspects(self, rows: Sequence[Suspect]) -> None:
        _SUSPECTS.replace(self._c, rows)

    def count_suspects(self, pid: int, upto: int) -> int:
        c = t.suspects.c
        query = select(func.count()).select_from(t.suspects).where(c.pid == pid, c.found <= upto)
        return int(self._c.execute(query).scalar_one())

    def drop_suspects(self, pid: int, after: int, upto: int, keys: Sequence[bytes] | None = None) -> int:
        c = t.suspects.c
        which = delete(t.suspects).where(and_(c.pid == pid, c.found > after, c.found <= upto))
        if keys is None:
            return int(self._c.execute(which).rowcount)
        return sum(self._c.execute(which.where(c.urlkey.in_(part))).rowcount for part in chunks(keys))
