"""Puts a backup back. What happened since it was made is lost, and the LCC must not live it twice.

So it begins a new life: cursors of the old one are told to start over, every provider is asked for a full
set, and all numbers go on above the highest one that was ever given out (decision 24).
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from sqlalchemy import Table

from lcc_scrapy.cache.file_ids import FILEID
from lcc_scrapy.db import schema
from lcc_scrapy.db.closed import Closed, refuse_closed, reopen
from lcc_scrapy.db.columns import OF_A_PROCESS
from lcc_scrapy.db.sql.sequences import raise_last_number
from lcc_scrapy.db.sql.snapshot import snapshot
from lcc_scrapy.db.sql.store import SqlStore, plain_errors
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.errors import ConfigurationError, LccError
from lcc_scrapy.domain.providers import Provider, Wanted
from lcc_scrapy.feed.store_feed import GENERATION
from lcc_scrapy.machine.data_directory import write_durably
from lcc_scrapy.ops.copying import HighWater, Progress, contents, fill, make_anew
from lcc_scrapy.runtime.apps import Apps

LEAP = 1_000_000_000
"""By how much counters leap when nothing tells how far they were: more than they count in years."""

_KEPT = "restore.json"


def holds_rows(target: SqlStore, lcc_id: str, apps: Apps) -> bool:
    """Tell whether a database has anything that a restore would replace.

    Raises ``LccError`` when it may not be replaced: it is not that of the LCC ``lcc_id``, or closed for good.
    """
    with _or_move_away():
        found = contents(target, apps)
        waiting = schema.pending(target.url, apps=apps) if found.rows else []
    of_nobody = not found.lcc_id and (not found.foreign or bool(found.closed))
    if found.lcc_id != lcc_id and not of_nobody:
        raise ConfigurationError("LCC_DATABASE_URL names a database of something else: correct it")
    if found.closed:
        with target.read() as tx:
            refuse_closed(tx, {Closed.COPYING, Closed.RESTORING})
    if waiting:
        raise ConfigurationError("the database needs `lcc db upgrade` before it can be replaced")
    return found.rows


def restore(
    target: SqlStore,
    backup: SqlStore,
    folder: Path,
    apps: Apps,
    *,
    fileid: int,
    logins: dict[int, int],
    now: int,
    progress: Progress,
) -> int:
    """Replace what is in ``target`` by a backup; returns the number of rows.

    ``fileid`` is the highest file id on disk, ``logins`` (pid: number) are those of sets that wait in the
    spool. In ``folder`` it is noted how far the replaced database had counted, so that an interrupted
    ``restore`` can be called again. ``now`` in epoch seconds.
    """
    outside = HighWater(counters={FILEID: fileid}, logins={str(pid): seq for pid, seq in logins.items()})
    with snapshot(backup, schema.tables_of(apps)) as seen:
        with _or_move_away():
            high = _highest(target, outside | HighWater.of(seen), folder / _KEPT, apps)
            write_durably(folder / _KEPT, asdict(high))
            make_anew(target, Closed.RESTORING, apps)
        rows = fill(target, seen, progress)
    _begin_new_life(target, high, now, seen.tables)
    (folder / _KEPT).unlink()
    return rows


@contextmanager
def _or_move_away() -> Iterator[None]:
    try:
        yield
    except LccError as error:
        raise LccError(
            f"{error}; if the database is damaged, move it away or drop it, and restore into a new one"
        ) from error


def _highest(target: SqlStore, known: HighWater, kept: Path, apps: Apps) -> HighWater:
    """Add what the database that is replaced tells, or what an interrupted call had noted; or leap."""
    found = contents(target, apps)
    interrupted = found.closed == Closed.RESTORING and kept.exists()
    if kept.exists():
        known |= HighWater(**json.loads(kept.read_text(encoding="utf-8")))
    if found.rows and not found.closed:
        with snapshot(target, schema.tables_of(apps)) as seen:
            return known | HighWater.of(seen)
    if interrupted:
        return known
    return replace(known, counters={name: number + LEAP for name, number in known.counters.items()})


def _begin_new_life(target: SqlStore, high: HighWater, now: int, tables: Sequence[Table]) -> None:
    with plain_errors("the restored database cannot be written"), target.engine.begin() as connection:
        for table in tables:
            raise_last_number(connection, table, high.rows.get(table.name, 0))
            gone = {column.name: "" for column in table.columns if column.info == OF_A_PROCESS}
            if gone:
                connection.execute(table.update().values(gone))
    with target.begin() as tx:
        for name, number in high.counters.items():
            tx.take(name, max(0, number - tx.peek(name)))
        for provider in _providers(tx):
            seq = high.logins.get(str(provider.pid), 0)
            values = {
                "lastconnseq": max(seq, provider.lastconnseq),
                "fullsetwanted": Wanted.CACHE_CRASH.value,
            }
            tx.update_provider(provider.pid, values)
        tx.set_info(GENERATION, str(max(high.generation + 1, now)))
        reopen(tx)


def _providers(tx: Tx) -> list[Provider]:
    found: list[Provider] = []
    while page := tx.providers(found[-1].pid if found else -1):
        found.extend(page)
    return found
