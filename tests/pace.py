"""How fast this machine computes now, for bounds on CPU time: one that shares its processors is half as fast."""

import sqlite3
import time
from contextlib import closing

PACE = 0.025
"""CPU seconds of the work below where the bounds were chosen."""


def slowness() -> float:
    """Return how many times longer work takes here and now than it did there, 1 = as long or less."""
    return max(1.0, *(_work() / PACE for _ in range(5)))


def _work() -> float:
    """Return the CPU seconds of rows into SQLite and out again, as objects."""
    with closing(sqlite3.connect(":memory:")) as connection:
        began = time.thread_time()
        connection.execute("create table t (id integer primary key, name text, number integer)")
        connection.executemany("insert into t values (?, ?, ?)", ((n, f"name {n}", n) for n in range(10_000)))
        rows = [{"id": row[0], "name": row[1]} for row in connection.execute("select * from t order by name")]
        assert len(rows) == 10_000
        return time.thread_time() - began
