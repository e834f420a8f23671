"""Verbs about changes that were pushed, and those that were not."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import ColumnElement, and_, delete, func, insert, or_, select, update

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import Missed, Suspect
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf

_SUSPECTS = RowsOf(t.suspects, Suspect)
_COUNTED = ("pushed", "sampled", "missed", "watched")


class MissVerbs(OnConnection):
    """Verbs about changes that were pushed, and those that were not."""

    def add_missed(self, pid: int, day: int, deltas: Mapping[str, int]) -> None:
        """Add to what is counted of a provider's changes on a day (since the epoch); it has to be locked."""
        c = t.misses.c
        added = {name: c[name] + delta for name, delta in deltas.items()}
        known = update(t.misses).where(c.pid == pid, c.day == day).values(added)
        if not self._c.execute(known).rowcount:
            row = {"pid": pid, "day": day, **dict.fromkeys(_COUNTED, 0), **deltas}
            self._c.execute(insert(t.misses), [row])

    def missed(self, pid: int, since: int) -> Missed:
        """Return what was counted from a day on."""
        c = t.misses.c
        query = select(*(func.sum(c[name]) for name in _COUNTED)).where(c.pid == pid, c.day >= since)
        return Missed(*(int(value or 0) for value in self._c.execute(query).one()))

    def all_missed(self, since: int) -> dict[int, Missed]:
        """Return the sums since a day of every provider that was sampled since, by pid."""
        c = t.misses.c
        sums = [func.sum(c[name]) for name in _COUNTED]
        query = select(c.pid, *sums).where(c.day >= since).group_by(c.pid).having(func.sum(c.sampled) > 0)
        return {int(pid): Missed(*map(int, numbers)) for pid, *numbers in self._c.execute(query)}

    def all_suspects(self, upto: int) -> dict[int, int]:
        """Return how many suspects found until then each provider has that has any."""
        c = t.suspects.c
        query = select(c.pid, func.count()).where(c.found <= upto).group_by(c.pid)
        return {int(pid): int(count) for pid, count in self._c.execute(query)}

    def sampled_providers(self, since: int) -> list[int]:
        """Return the pids, rising, of whom documents were sampled from a day on."""
        c = t.misses.c
        query = select(c.pid).where(c.day >= since, c.sampled > 0).distinct().order_by(c.pid)
        return list(self._c.execute(query).scalars())

    def falling_pids(self, after: int, limit: int) -> list[int]:
        """Return the providers (rising) whose samples may let all their documents be visited, or none."""
        p, m = t.pidb.c, t.misses.c
        sampled = select(m.pid).where(m.pid == p.pid, m.sampled > 0).exists()
        may_fall = or_(p.fallback > 0, p.fallingback.is_(True))
        query = select(p.pid).where(p.pid > after, may_fall, sampled).order_by(p.pid).limit(limit)
        return list(self._c.execute(query).scalars())

    def suspected_pids(self, upto: int, after: int, limit: int) -> list[int]:
        """Return the providers (rising) with suspects found up to then."""
        c = t.suspects.c
        query = select(c.pid).where(c.pid > after, c.found <= upto).distinct().order_by(c.pid).limit(limit)
        return list(self._c.execute(query).scalars())

    def forget_missed(self, before: int, limit: int = 1000) -> int:
        """Remove some of what was counted before a day; return how many rows."""
        c = t.misses.c
        day = self._c.execute(select(func.min(c.day)).where(c.day < before)).scalar()
        if day is None:
            return 0
        pids = list(self._c.execute(select(c.pid).where(c.day == day).limit(limit)).scalars())
        self._c.execute(delete(t.misses).where(c.day == day, c.pid.in_(pids)))
        return len(pids)

    def put_suspects(self, rows: Sequence[Suspect]) -> None:
        """Add or replace documents that had changed though nobody said so."""
        _SUSPECTS.replace(self._c, rows)

    def count_suspects(self, pid: int, upto: int) -> int:
        """Count those of a provider that were found up to a moment."""
        c = t.suspects.c
        query = select(func.count()).select_from(t.suspects).where(c.pid == pid, c.found <= upto)
        return int(self._c.execute(query).scalar_one())

    def suspected(self, pids: Collection[int]) -> set[int]:
        """Return those of the providers of whom there are any."""
        c = t.suspects.c
        return {pid for (pid,) in self._rows(select(c.pid).distinct(), c.pid, pids)}

    def suspects(self, pid: int, after: int, upto: int, limit: int) -> list[bytes]:
        """Return keys of a provider's that were found later than ``after`` and up to ``upto``."""
        query = select(t.suspects.c.urlkey).where(_found(pid, after, upto))
        return [bytes(key) for key in self._c.execute(query.limit(limit)).scalars()]

    def drop_suspects(self, pid: int, after: int, upto: int, keys: Sequence[bytes]) -> int:
        """Forget those of the keys that ``suspects`` could return; return how many."""
        return self._change(delete(t.suspects).where(_found(pid, after, upto)), t.suspects.c.urlkey, keys)


def _found(pid: int, after: int, upto: int) -> ColumnElement[bool]:
    c = t.suspects.c
    return and_(c.pid == pid, c.found > after, c.found <= upto)
