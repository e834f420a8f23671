"""Processes of this version go on while, and after, a later one upgraded the database beneath them."""

import pytest
from little_lcc import LittleLcc, assert_books_balance, removal, update

from lcc_scrapy.db import schema
from lcc_scrapy.db.sql.store import SqlStore, make_engine
from lcc_scrapy.db.tables import metadata
from lcc_scrapy.domain.errors import ConfigurationError
from tests.made_databases import upgrade

KINDS = ("sqlite", "mariadb", "postgresql")
LATER = "9999"
"""The revision of a version that is still to come."""


def upgraded_by_a_later_version(url):
    """Give each table a column with a default, in its middle where the database can, and a later revision."""
    engine = make_engine(url)
    first = " FIRST" if engine.dialect.name == "mysql" else ""
    with engine.begin() as connection:
        for table in metadata.tables:
            connection.exec_driver_sql(
                f"ALTER TABLE {table} ADD COLUMN later INTEGER NOT NULL DEFAULT 7{first}"
            )
        connection.exec_driver_sql(f"UPDATE {schema.VERSION_TABLE} SET version_num = '{LATER}'")
    engine.dispose()


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_was_connected_before_goes_on_through_all_its_work(databases, kind):
    upgrade(url := databases.empty(kind))
    store = SqlStore(url)
    lcc = LittleLcc(store)
    lcc.add()
    lcc.store_pages("a", "b", "c")
    lcc.push(update("d"), update("e"))
    upgraded_by_a_later_version(url)
    lcc.fetch_all()
    lcc.push(update("a", b"another body"), update("f"), removal("b"))
    lcc.fetch("a", b"another body")
    lcc.fetch_all()
    assert sorted(lcc.documents()) == ["a", "c", "d", "e", "f"]
    assert_books_balance(store, lcc.files)
    with store.engine.connect() as connection:
        assert set(connection.exec_driver_sql("SELECT later FROM lccurl").scalars()) == {7}
    store.close()


def test_one_that_starts_after_it_says_that_it_is_too_old(databases):
    upgrade(url := databases.empty("sqlite"))
    upgraded_by_a_later_version(url)
    with pytest.raises(
        ConfigurationError, match=f"schema {LATER}, which this version does not know: install"
    ):
        schema.pending(url)
