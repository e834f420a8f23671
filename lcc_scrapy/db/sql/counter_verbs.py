"""Verbs about counters, whose numbers are given once each, in the order of commits."""

from sqlalchemy import bindparam, select, update

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.rows import OnConnection

_NAMED = t.counters.c.name == bindparam("counter")
_RAISE = update(t.counters).where(_NAMED).values(value=t.counters.c.value + bindparam("by"))
_RAISE_IN_MARIADB = "UPDATE counters SET value = LAST_INSERT_ID(value + %s) WHERE name = %s"
_PEEK = select(t.counters.c.value).where(_NAMED)


class CounterVerbs(OnConnection):
    """Verbs about counters: whoever takes a number locks its counter until the transaction ends."""

    def take(self, counter: str, count: int) -> int:
        """Raise a counter by ``count`` and return the first of the numbers taken (from 1)."""
        last = self._raise(counter, count)
        if last is None:
            self._add_counter(counter)
            last = self._raise(counter, count)
        assert last is not None
        return last - count + 1

    def _raise(self, counter: str, count: int) -> int | None:
        """Raise a counter and return where it stands then; None = nobody has added it yet."""
        if self._c.dialect.name in many.MYSQL:  # at once: others wait while it is locked
            raised = self._c.exec_driver_sql(_RAISE_IN_MARIADB, (count, counter))
            return int(raised.lastrowid) if raised.rowcount else None
        raised = self._c.execute(_RAISE, {"counter": counter, "by": count})
        return self.peek(counter) if raised.rowcount else None

    def _add_counter(self, counter: str) -> None:
        """Add a counter at 0, or lock the one that another writer adds at this moment.

        A plain insert that fails would leave MariaDB with a lock that others may have, too, and then none of
        them could raise the counter.
        """
        names, changes = ("name", "value"), {"value": "OLD"}
        many.insert(self._c, t.counters.name, names, [(counter, 0)], keys=names[:1], changes=changes)

    def peek(self, counter: str) -> int:
        """Return the last number taken from a counter, 0 = none."""
        return int(self._c.execute(_PEEK, {"counter": counter}).scalar() or 0)
