"""Databases with all tables, made without running every migration again: that takes some seconds each."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

import sqlalchemy
from sqlalchemy import Connection

from lcc_scrapy.db import schema
from lcc_scrapy.db.sql.store import make_engine

Statement = tuple[str, tuple[Any, ...]]


def upgrade(url: str) -> None:
    """Bring a new, empty database up to date, as ``schema.upgrade`` does."""
    if sqlalchemy.make_url(url).get_backend_name() != "mysql":
        schema.upgrade(url)
        return
    with _connected(sqlalchemy.make_url(url)) as connection:
        for statement, values in _statements(sqlalchemy.make_url(url).set(database="")):
            connection.exec_driver_sql(statement, values)


def make_sqlite(file: Path) -> None:
    """Make an SQLite database with all tables, as ``lcc init`` does in a new data directory."""
    file.parent.mkdir(mode=0o750, parents=True)
    file.touch(0o640)
    file.write_bytes(_sqlite())


@cache
def _sqlite() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder, "lcc.sqlite")
        schema.upgrade(f"sqlite:///{file}")
        return file.read_bytes()


@cache
def _statements(server: sqlalchemy.URL) -> list[Statement]:
    """Run the migrations, once in a process, and read what they made."""
    name = f"lcc_test_{token_hex(6)}"
    with _connected(server) as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
        try:
            schema.upgrade(server.set(database=name))
            return statements_of(server.set(database=name))
        finally:
            connection.exec_driver_sql(f"DROP DATABASE {name}")


def statements_of(url: sqlalchemy.URL) -> list[Statement]:
    """Return what makes the tables of a MariaDB database with their rows, and then its views."""
    with _connected(url) as connection:
        found = connection.exec_driver_sql("SHOW FULL TABLES").all()
        made = [_made(connection, name) for name, kind in found if kind == "BASE TABLE"]
        rows = [row for name, kind in found if kind == "BASE TABLE" for row in _rows(connection, name)]
        return made + rows + [_made(connection, name) for name, kind in found if kind == "VIEW"]


def _made(connection: Connection, table: str) -> Statement:
    text = connection.exec_driver_sql(f"SHOW CREATE TABLE {table}").one()[1]
    return text.replace(f"`{connection.engine.url.database}`.", "").replace("%", "%%"), ()


def _rows(connection: Connection, table: str) -> Iterator[Statement]:
    for row in connection.exec_driver_sql(f"SELECT * FROM {table}"):
        yield f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", tuple(row)


@contextmanager
def _connected(url: sqlalchemy.URL) -> Iterator[Connection]:
    engine = make_engine(url.render_as_string(hide_password=False))
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            yield connection
    finally:
        engine.dispose()
