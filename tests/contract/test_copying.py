"""Whole databases are copied: every table, every column, every number, from any kind to any other."""

from contextlib import closing

import pytest
import sqlalchemy
from alembic import command
from any_rows import ROWS, TABLES, all_rows, execute, next_number, put_rows

from lcc_scrapy.db import schema, tables
from lcc_scrapy.db.closed import CLOSED, Closed, refuse_closed
from lcc_scrapy.db.sql import snapshot
from lcc_scrapy.db.sql import store as sql_store
from lcc_scrapy.db.sql.store import SqlStore, make_engine
from lcc_scrapy.db.tables import (
    audit,
    lccinfo,
    linkwords,
    machines,
    proots,
    qdb,
    qpsdb,
    recipients,
    urd,
    urlerrors,
)
from lcc_scrapy.domain.errors import ConfigurationError, LccError
from lcc_scrapy.feed.store_feed import LCC_ID
from lcc_scrapy.ops import copying
from lcc_scrapy.runtime.apps import ours
from tests.made_databases import upgrade

PAIRS = [
    ("sqlite", "sqlite"),
    ("sqlite", "mariadb"),
    ("mariadb", "sqlite"),
    ("sqlite", "postgresql"),
    ("postgresql", "sqlite"),
    ("mariadb", "postgresql"),
]
NUMBERED = [table for table in TABLES if table.autoincrement_column is not None]
FOR_GOOD = [audit, linkwords, machines, recipients, urd, urlerrors]
"""Tables whose numbers are not given again when their rows are gone, on every kind of database."""


OF_APPS = {table for table in NUMBERED if table.metadata is not tables.metadata}


class Interrupted(Exception):
    """The process is killed here."""


class Copying:
    """A source with rows in every table, and an empty target."""

    def __init__(self, source, target):
        upgrade(source)
        self.source, self.target = source, target
        put_rows(source)
        self.before = all_rows(source)

    def move(self, progress=lambda _done, _total: None):
        with closing(SqlStore(self.source)) as source, closing(SqlStore(self.target)) as target:
            return copying.move(source, target, ours(), progress)

    def interrupted_after(self, rows):
        def progress(done, _total):
            if done >= rows:
                raise Interrupted

        with pytest.raises(Interrupted):
            self.move(progress)

    def why_closed(self, url):
        with closing(SqlStore(url)) as store, store.read() as tx:
            return tx.info(CLOSED)

    def is_done(self):
        """Tell whether the target is open and whole, and the source as it was, but left."""
        expected = {**self.before, "lccinfo": [*self.before["lccinfo"], (CLOSED, Closed.MOVED)]}
        return all_rows(self.target) == self.before and {
            name: sorted(rows) for name, rows in all_rows(self.source).items()
        } == {name: sorted(rows) for name, rows in expected.items()}


@pytest.fixture
def little_pages(monkeypatch):
    monkeypatch.setattr(snapshot, "PAGE", 3)


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request, databases, little_pages):
    return Copying(*map(databases.empty, request.param))


@pytest.fixture(params=["sqlite", "mariadb", "postgresql"])
def into(request, databases, little_pages):
    """A source on SQLite, for what depends on the kind of the target only."""
    return Copying(databases.empty("sqlite"), databases.empty(request.param))


@pytest.fixture
def small(databases, little_pages):
    """A pair where nothing depends on the kind of database."""
    return Copying(databases.empty("sqlite"), databases.empty("sqlite"))


def test_every_row_of_every_table_arrives_as_it_was(pair):
    told = []
    assert pair.move(lambda *numbers: told.append(numbers)) == ROWS * len(TABLES)
    assert all(len(rows) == ROWS for rows in pair.before.values())
    assert pair.is_done()
    assert schema.pending(pair.target) == []
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (ROWS * len(TABLES), ROWS * len(TABLES))


def test_a_copy_goes_on_with_the_numbers_of_its_source(pair):
    gone = {table.name: next_number(pair.source, table) for table in FOR_GOOD}
    for table in FOR_GOOD:
        execute(pair.source, table.delete().where(table.autoincrement_column == gone[table.name]))
    pair.move()
    assert all_rows(pair.target)["machines"] == pair.before["machines"]
    for table in FOR_GOOD:
        assert next_number(pair.target, table) == gone[table.name] + 1
    assert min(next_number(pair.target, table) for table in (proots, qdb)) > ROWS


def test_the_tables_that_number_their_rows_are_those_that_are_tested():
    assert set(NUMBERED) == {*FOR_GOOD, *OF_APPS, proots, qdb}


@pytest.mark.parametrize("kind", ["mariadb", "postgresql"])
def test_a_copy_shows_one_moment(databases, kind):
    lcc = Copying(databases.empty(kind), databases.empty("sqlite"))
    later = sqlalchemy.update(urlerrors).values(text="changed meanwhile")

    def meanwhile(done, _total):
        if done == ROWS:
            execute(lcc.source, later, sqlalchemy.delete(machines))

    lcc.move(meanwhile)
    assert all_rows(lcc.target) == lcc.before
    assert all_rows(lcc.source)["machines"] == []


@pytest.mark.parametrize("kind", ["mariadb", "postgresql"])
def test_a_database_that_somebody_works_with_is_not_left(databases, kind):
    lcc = Copying(databases.empty(kind), databases.empty("sqlite"))

    def work(done, _total):
        if done == ROWS:
            with closing(SqlStore(lcc.source)) as store, store.begin() as tx:
                tx.take("feed", 1)

    with pytest.raises(LccError, match="written to while it was copied"):
        lcc.move(work)
    assert lcc.why_closed(lcc.source) is None
    assert lcc.why_closed(lcc.target) == Closed.COPYING


# --- interruptions -------------------------------------------------------------------------------


@pytest.mark.soak_of("postgresql")
@pytest.mark.parametrize("rows", [1, ROWS * len(TABLES) // 2, ROWS * len(TABLES)])
def test_an_interrupted_copy_is_closed_and_can_be_made_again(into, rows):
    into.interrupted_after(rows)
    with (
        closing(SqlStore(into.target)) as store,
        store.read() as tx,
        pytest.raises(ConfigurationError) as told,
    ):
        refuse_closed(tx)
    assert "run `lcc db copy` again" in str(told.value)
    assert into.why_closed(into.source) is None
    into.move()
    assert into.is_done()


@pytest.mark.soak_of("postgresql")
@pytest.mark.parametrize("step", ["make_anew", "_leave", "reopen"])
def test_a_kill_between_two_steps_leaves_nothing_that_looks_whole(into, step, monkeypatch):
    def killed(*_args):
        raise Interrupted

    with monkeypatch.context() as patched:
        patched.setattr(copying, step, killed)
        with pytest.raises(Interrupted):
            into.move()
    usable = [url for url in (into.source, into.target) if _is_usable(url)]
    assert usable == ([] if step == "reopen" else [into.source])
    into.move()
    assert into.is_done()


def _is_usable(url):
    if schema.is_missing_file(url) or schema.pending(url):
        return False
    with closing(SqlStore(url)) as store, store.read() as tx:
        return tx.info(CLOSED) is None


def test_a_schema_that_was_half_made_is_made_anew(into):
    engine = make_engine(into.target)
    with engine.begin() as connection:
        qpsdb.create(connection)
        lccinfo.create(connection)
    engine.dispose()
    into.move()
    assert into.is_done()


@pytest.mark.soak_of("postgresql")
@pytest.mark.parametrize("table", [qpsdb, lccinfo], ids=str)
def test_a_kill_while_half_a_copy_is_thrown_away_changes_nothing(into, table):
    def killed(*_args, **_more):
        raise Interrupted

    into.interrupted_after(ROWS * len(TABLES))
    sqlalchemy.event.listen(table, "after_drop", killed)
    try:
        with pytest.raises(Interrupted):
            into.move()
    finally:
        sqlalchemy.event.remove(table, "after_drop", killed)
    into.move()
    assert into.is_done()


# --- refusals ------------------------------------------------------------------------------------


def refused(lcc, text):
    before = all_rows(lcc.source)
    with pytest.raises(LccError, match=text) as told:
        lcc.move()
    assert "\n" not in str(told.value)
    assert all_rows(lcc.source) == before


def test_a_target_with_rows_is_refused(small):
    schema.upgrade(small.target)
    put_rows(small.target)
    before = all_rows(small.target)
    refused(small, "is not empty")
    assert all_rows(small.target) == before


def test_a_target_with_tables_of_something_else_is_refused(small):
    execute(small.target, "create table orders (number integer)")
    refused(small, "is not empty")
    assert sqlalchemy.inspect(make_engine(small.target)).get_table_names() == ["orders"]


def test_a_database_is_not_copied_onto_itself(small):
    small.target = small.source
    refused(small, "is not empty")


def test_a_database_that_was_left_is_not_copied_again(small, databases):
    small.move()
    small.target = databases.empty("sqlite")
    refused(small, "set LCC_DATABASE_URL")


def test_what_the_target_cannot_hold_is_named(databases):
    lcc = Copying(databases.empty("sqlite"), databases.empty("mariadb"))
    execute(lcc.source, sqlalchemy.update(urlerrors).where(urlerrors.c.errorid == 2).values(text="x" * 256))
    refused(lcc, r"table urlerrors\): .*too long for column 'text'")
    assert lcc.why_closed(lcc.target) == Closed.COPYING


def test_a_disk_that_is_full_is_named(small, databases, monkeypatch):
    prepare = sql_store._prepare_sqlite
    empty = databases.empty("sqlite")
    schema.upgrade(empty)
    with closing(SqlStore(empty)) as store, store.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()

    def on_a_small_disk(connection, record):
        prepare(connection, record)
        connection.execute(f"PRAGMA max_page_count={pages + 5}")

    monkeypatch.setattr(sql_store, "_prepare_sqlite", on_a_small_disk)
    refused(small, r"^the copy cannot be written \(table \w+\): database or disk is full")


def test_a_copy_begins_anew_where_a_kill_left_half_an_upgrade(into):
    engine = make_engine(into.target)
    with engine.begin() as connection:
        config = schema._config(schema.CORE)
        config.attributes["connection"] = connection
        command.upgrade(config, "0024")  # since then lccmeta is a view
    engine.dispose()
    into.move()
    assert into.is_done()


def test_half_a_copy_of_another_lcc_is_refused(small, databases):
    small.interrupted_after(ROWS * len(TABLES))
    execute(small.target, lccinfo.insert().values(name=LCC_ID, value="another"))
    refused(small, "is not empty")


def test_a_row_that_got_lost_on_the_way_is_noticed(small, monkeypatch):
    def forgetful(self, table):
        pages = list(whole(self, table))
        return iter(pages[:-1] if table is machines else pages)

    whole = snapshot.Snapshot.pages
    monkeypatch.setattr(snapshot.Snapshot, "pages", forgetful)
    refused(small, "table machines has 7 rows, its copy 6")


def test_a_reason_of_a_newer_version_closes_too(small):
    with closing(SqlStore(small.source)) as store:
        with store.begin() as tx:
            tx.set_info(CLOSED, "painting")
        with store.read() as tx, pytest.raises(ConfigurationError, match=r"closed \(painting\)"):
            refuse_closed(tx)
