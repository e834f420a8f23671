"""Copies whole databases, whatever kind they are: every table, every row, every number.

A copy is closed (``db.closed``) until the last row is in it, so that nobody works with half of one;
an interrupted copy begins anew. Pages of rows are committed one by one, so memory is bounded.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Table, inspect, text

from lcc_scrapy.db import schema
from lcc_scrapy.db.closed import CLOSED, Closed, close, refuse_closed, reopen
from lcc_scrapy.db.sql.sequences import raise_last_number
from lcc_scrapy.db.sql.snapshot import Snapshot, snapshot
from lcc_scrapy.db.sql.store import READING, SqlStore, plain_errors
from lcc_scrapy.db.tables import counters, lccinfo, pidb
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.errors import ConfigurationError, LccError
from lcc_scrapy.feed.store_feed import GENERATION, LCC_ID
from lcc_scrapy.runtime.apps import Apps

Numbers = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class HighWater:
    """High-water marks: numbers that were given out once and must never be given out again.

    These are the last ones: of every counter, of every provider's logins (pid: number), and of the rows of
    the tables that the database numbers itself (table: number).
    """

    generation: int = 0
    counters: Numbers = field(default_factory=dict)
    logins: Numbers = field(default_factory=dict)
    rows: Numbers = field(default_factory=dict)

    @classmethod
    def of(cls, seen: Snapshot) -> "HighWater":
        """Read them from a database."""
        facts = {row["name"]: row["value"] for page in seen.pages(lccinfo) for row in page}
        return cls(
            int(facts.get(GENERATION, 0)),
            {row["name"]: row["value"] for page in seen.pages(counters) for row in page},
            {str(row["pid"]): row["lastconnseq"] for page in seen.pages(pidb) for row in page},
            {table.name: seen.last_number(table) for table in seen.tables},
        )

    def __or__(self, other: "HighWater") -> "HighWater":
        """Return the higher number of each."""
        return HighWater(
            max(self.generation, other.generation),
            _higher(self.counters, other.counters),
            _higher(self.logins, other.logins),
            _higher(self.rows, other.rows),
        )


def _higher(mine: Numbers, theirs: Numbers) -> Numbers:
    return {name: max(mine.get(name, 0), theirs.get(name, 0)) for name in mine.keys() | theirs.keys()}


Progress = Callable[[int, int], object]
"""Is told how many rows (or pages) are done, and how many there are in all."""

_WRITING = "the copy cannot be written"

_FORMER = ("lccmeta", "links_rebuilt", "qdb_rebuilt")
"""Tables of earlier schemas, which half an upgrade leaves where each of its statements is committed."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a database: rows of an LCC's tables, whose, why it is closed, or tables of others."""

    rows: bool = False
    lcc_id: str = ""
    closed: str = ""
    foreign: bool = False


def contents(store: SqlStore, apps: Apps) -> Contents:
    """Look into a database of which nothing is known.

    Raises ``ConfigurationError`` where it has tables of an app that is not installed.
    """
    with plain_errors(f"{store.url.render_as_string()} cannot be read"), store.engine.connect() as connection:
        connection.execution_options(**{READING: True})
        names = set(inspect(connection).get_table_names())
        _refuse_absent_apps(names, apps)
        seen, facts = Snapshot(connection, schema.tables_of(apps)), Tx(connection)
        rows = any(seen.count(table) for table in seen.tables if table.name in names)
        ours = {table.name for table in seen.tables} | {line.table for line in schema.lines_of(apps)}
        foreign = bool(names - ours - {*_FORMER})
        if lccinfo.name not in names:
            return Contents(rows, foreign=foreign)
        return Contents(rows, facts.info(LCC_ID) or "", facts.info(CLOSED) or "", foreign)


def refuse_absent_apps(store: SqlStore, apps: Apps) -> None:
    """Raise ``ConfigurationError`` where a database has tables of an app that is not installed."""
    with plain_errors("the database cannot be read"), store.engine.connect() as connection:
        connection.execution_options(**{READING: True})
        _refuse_absent_apps(inspect(connection).get_table_names(), apps)


def _refuse_absent_apps(names: Iterable[str], apps: Apps) -> None:
    absent = schema.absent_apps(names, apps)
    if absent:
        raise ConfigurationError(
            f"the database has tables of {', '.join(absent)}, which is not installed here, and their rows"
            " would be lost: install it (LCC_APPS)"
        )


def move(source: SqlStore, target: SqlStore, apps: Apps, progress: Progress) -> int:
    """Copy a database into an empty one, and close the one that was copied; returns the number of rows.

    What an interrupted ``move`` left in ``target`` is thrown away first. Raises ``LccError`` when the target
    holds anything else, or when the source was written to meanwhile; the source then stays as it is.
    """
    _check(source, target, apps)
    make_anew(target, Closed.COPYING, apps)
    with snapshot(source, schema.tables_of(apps)) as seen:
        total = fill(target, seen, progress)
        counted = HighWater.of(seen)
    _leave(source, counted, seen.tables)
    with target.begin() as tx:
        reopen(tx)
    return total


def make_anew(target: SqlStore, why_closed: Closed, apps: Apps) -> None:
    """Throw away what is in a database, make all tables, and close it.

    The fact that it is closed goes last, so that no moment shows rows of half a copy as a whole one.
    """
    with plain_errors(_WRITING), target.engine.begin() as connection:
        for view in schema.views_of(apps) & set(inspect(connection).get_view_names()):
            connection.execute(text(f"DROP VIEW {view}"))
        for table in sorted(schema.tables_of(apps), key=lambda table: table is lccinfo):
            table.drop(connection, checkfirst=True)
        for name in (*_FORMER, *(line.table for line in schema.lines_of(apps))):
            connection.execute(text(f"DROP TABLE IF EXISTS {name}"))
    schema.upgrade(target.url, apps=apps)
    target.check()
    with target.begin() as tx:
        close(tx, why_closed)


def fill(target: SqlStore, seen: Snapshot, progress: Progress) -> int:
    """Copy all tables into the empty ones of ``target``; returns the number of rows, as counted there."""
    done, total = 0, seen.total()
    for table in seen.tables:
        for page in seen.pages(table):
            with plain_errors(f"{_WRITING} (table {table.name})"), target.engine.begin() as connection:
                connection.execute(table.insert(), page)
            done += len(page)
            progress(done, total)
        _end_table(target, seen, table)
    return done


def _end_table(target: SqlStore, seen: Snapshot, table: Table) -> None:
    with plain_errors(f"{_WRITING} (table {table.name})"), target.engine.begin() as connection:
        raise_last_number(connection, table, seen.last_number(table))
        there, here = seen.count(table), Snapshot(connection, (table,)).count(table)
    if there != here:
        raise LccError(f"table {table.name} has {there} rows, its copy {here}: begin again")


def _check(source: SqlStore, target: SqlStore, apps: Apps) -> None:
    """Refuse a target in use, and a source that was left, unless just that was interrupted."""
    refuse_absent_apps(source, apps)
    found = contents(target, apps)
    with source.read() as tx:
        half = found.closed == Closed.COPYING and found.lcc_id in {"", tx.info(LCC_ID)}
        refuse_closed(tx, {Closed.MOVED} if half else ())
    if found.foreign or (found.rows and not half):
        raise ConfigurationError(
            f"{target.url.render_as_string()} is not empty: a copy needs a database of its own"
        )


def _leave(source: SqlStore, counted: HighWater, tables: Sequence[Table]) -> None:
    """Close the database that was copied, unless it has counted on since."""
    with plain_errors("the old database cannot be closed"), source.engine.begin() as connection:
        if HighWater.of(Snapshot(connection, tables)) != counted:
            raise LccError(
                "the database was written to while it was copied: stop all crawls, then copy again"
            )
        close(Tx(connection), Closed.MOVED)
