"""Migrations: numbered, repeatable, and equal to the tables the code works with."""

import logging

import pytest
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from any_rows import row

from lcc_scrapy.domain.errors import ConfigurationError, StoreUnavailable
from lcc_scrapy.storage import schema
from lcc_scrapy.storage.sql.store import make_engine
from lcc_scrapy.storage.tables import metadata

KINDS = ("sqlite", "mariadb", "postgresql")


@pytest.fixture
def fresh(tmp_path):
    """The address of an SQLite database that does not exist."""
    return f"sqlite:///{tmp_path / '100%' / 'lcc.sqlite'}"


@pytest.mark.parametrize("kind", KINDS)
def test_the_migrations_make_exactly_the_tables_of_the_code(databases, kind):
    engine = make_engine(databases.url(kind))
    options = {"version_table": schema.VERSION_TABLE, "compare_type": True, "target_metadata": metadata}
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
    engine.dispose()


@pytest.mark.parametrize("kind", KINDS)
def test_an_upgraded_database_is_current_and_upgrading_again_does_nothing(databases, kind):
    address = databases.url(kind)
    assert schema.pending(address) == []
    assert (schema.pending(address), schema.upgrade(address), schema.upgrade_sql(address)) == ([], [], "")


def test_looking_at_a_database_that_does_not_exist_creates_nothing(fresh, tmp_path):
    assert schema.pending(fresh) == ["0001", "0002"]
    assert schema.pending(fresh)
    assert "CREATE TABLE lccurl" in schema.upgrade_sql(fresh)
    assert list(tmp_path.iterdir()) == []


def test_an_upgrade_names_the_revisions_that_it_applied(fresh, tmp_path):
    (tmp_path / "100%").mkdir()
    assert schema.upgrade(fresh) == ["0001", "0002"]
    assert schema.pending(fresh) == []


def test_an_upgrade_that_fails_leaves_nothing_behind(fresh, tmp_path):
    (tmp_path / "100%").mkdir()
    engine = make_engine(fresh)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE machines (x INTEGER)")
    with pytest.raises(StoreUnavailable, match="machines"):
        schema.upgrade(fresh)
    assert sqlalchemy.inspect(engine).get_table_names() == ["machines"]
    engine.dispose()


def test_a_database_of_a_newer_version_is_refused(fresh, tmp_path):
    (tmp_path / "100%").mkdir()
    schema.upgrade(fresh)
    engine = make_engine(fresh)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'")
    engine.dispose()
    for verb in (schema.pending, schema.upgrade, schema.upgrade_sql):
        with pytest.raises(ConfigurationError, match="9999"):
            verb(fresh)


@pytest.mark.parametrize("address", ["mysql://root@127.0.0.1/x", "postgresql://postgres@127.0.0.1/x"])
def test_the_sql_can_be_had_for_every_dialect(address, monkeypatch):
    monkeypatch.setattr(schema, "pending", lambda _: ["0001", "0002"])
    text = schema.upgrade_sql(address)
    assert text.count("CREATE TABLE") == len(metadata.tables) + 1
    assert ("utf8mb4_bin" in text) == address.startswith("mysql")


def test_upgrading_leaves_logging_as_it_is(fresh, tmp_path):
    (tmp_path / "100%").mkdir()
    mine = logging.getLogger("somebody.else")
    before = (logging.root.level, logging.root.handlers[:], mine.disabled)
    schema.upgrade(fresh)
    assert (logging.root.level, logging.root.handlers[:], mine.disabled) == before


@pytest.mark.parametrize("kind", KINDS)
def test_documents_of_the_first_schema_outlive_the_upgrade(databases, kind):
    from alembic import command

    address = databases.empty(kind)
    engine = make_engine(address)
    table = metadata.tables["lccurl"]
    values = row(table, 1)
    del values["subtype_seq"]
    with engine.begin() as connection:
        config = schema._config()
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.execute(table.insert(), values)
    assert schema.upgrade(address) == ["0002"]
    with engine.connect() as connection:
        assert connection.execute(table.select()).one()._asdict() == {**values, "subtype_seq": 0}
    engine.dispose()


def test_an_upgrade_can_be_taken_back(fresh, tmp_path):
    from alembic import command

    (tmp_path / "100%").mkdir()
    schema.upgrade(fresh)
    engine = make_engine(fresh)
    with engine.begin() as connection:
        config = schema._config()
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    assert sqlalchemy.inspect(engine).get_table_names() == [schema.VERSION_TABLE]
    engine.dispose()
