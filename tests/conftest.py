"""Fixtures for every test: the stores that one suite runs on, and plain values to put into them."""

import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import sqlalchemy
from hypothesis import HealthCheck, settings

from lcc_scrapy.domain.entries import UrlEntry
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.storage import schema
from lcc_scrapy.storage.memory import MemoryStore
from lcc_scrapy.storage.sql import SqlStore
from lcc_scrapy.storage.sql.store import make_engine
from lcc_scrapy.storage.tables import metadata
from lcc_scrapy.storage.tx import Store

settings.register_profile("lcc", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("lcc"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "lcc")

STORES = ("memory", "sqlite", "mariadb", "postgresql")


@dataclass(frozen=True)
class Server:
    """A database server that the tests use: an environment variable may name another one."""

    variable: str
    default: str
    package: str

    @property
    def url(self) -> sqlalchemy.URL:
        return sqlalchemy.make_url(os.environ.get(self.variable, self.default))


SERVERS = {
    "mariadb": Server("LCC_TEST_MARIADB", "mysql+pymysql://root@127.0.0.1:3306/", "mariadb-server"),
    "postgresql": Server(
        "LCC_TEST_POSTGRESQL", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres", "postgresql"
    ),
}


class Databases:
    """The databases of one test session: made when first asked for, dropped at the end."""

    def __init__(self, folder) -> None:
        self._folder = folder
        self._name = f"lcc_test_{secrets.token_hex(4)}"
        self._urls: dict[str, str] = {}
        self._problems: dict[str, str] = {}
        self._servers: list[str] = []
        self._others: list[tuple[str, str]] = []

    def url(self, kind: str) -> str:
        if kind not in self._urls and kind not in self._problems:
            self._make(kind)
        if kind in self._problems:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(self._problems[kind])
        return self._urls[kind]

    def empty(self, kind: str) -> str:
        """Make one more database, with nothing in it; it is dropped at the end as well."""
        known = sqlalchemy.make_url(self.url(kind))
        name = f"{self._name}_{len(self._others)}"
        self._others.append((kind, name))
        if kind == "sqlite":
            return f"sqlite:///{self._folder / name}.sqlite"
        self._execute(SERVERS[kind], f"CREATE DATABASE {name}")
        return known.set(database=name).render_as_string(hide_password=False)

    def _make(self, kind: str) -> None:
        if kind == "sqlite":
            self._urls[kind] = f"sqlite:///{self._folder / 'lcc.sqlite'}"
        else:
            server = SERVERS[kind]
            try:
                self._execute(server, f"CREATE DATABASE {self._name}")
            except sqlalchemy.exc.OperationalError as error:
                self._problems[kind] = (
                    f"no {kind} at {server.url} ({error.orig}): install and start {server.package},"
                    f" or set {server.variable}"
                )
                return
            self._servers.append(kind)
            self._urls[kind] = server.url.set(database=self._name).render_as_string(hide_password=False)
        schema.upgrade(self._urls[kind])

    def _execute(self, server: Server, statement: str) -> None:
        engine = make_engine(server.url.render_as_string(hide_password=False))
        try:
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql(statement)
        finally:
            engine.dispose()

    def drop(self) -> None:
        for kind in self._servers:
            self._execute(SERVERS[kind], f"DROP DATABASE {self._name}")
        for kind, name in self._others:
            if kind in SERVERS:
                self._execute(SERVERS[kind], f"DROP DATABASE {name}")


@pytest.fixture(scope="session")
def databases(tmp_path_factory) -> Iterator[Databases]:
    made = Databases(tmp_path_factory.mktemp("databases"))
    yield made
    made.drop()


@pytest.fixture(scope="session")
def sql_stores(databases) -> Iterator[Callable[[str], SqlStore]]:
    """One store per database and session; making an engine costs more than most tests."""
    made: dict[str, SqlStore] = {}

    def store_of(kind: str) -> SqlStore:
        if kind not in made:
            made[kind] = SqlStore(databases.url(kind))
        return made[kind]

    yield store_of
    for store in made.values():
        store.close()


def wipe(store: Store) -> None:
    """Empty all tables."""
    if isinstance(store, MemoryStore):
        store.__init__()
        return
    with store.engine.connect() as connection, connection.begin():
        for table in metadata.tables.values():
            connection.execute(table.delete())


@pytest.fixture(params=STORES)
def store(request) -> Iterator[Store]:
    """An empty store; every test that asks for it runs on each of them."""
    if request.param == "memory":
        yield MemoryStore()
        return
    made = request.getfixturevalue("sql_stores")(request.param)
    wipe(made)
    yield made


@pytest.fixture
def empty() -> Callable[[Store], None]:
    """Return what empties a store in the middle of a test."""
    return wipe


@pytest.fixture
def provider() -> Callable[..., Provider]:
    """Return what makes a provider."""
    return lambda pid=7, **values: Provider(pid, "a hash", **values)


@pytest.fixture
def entry() -> Callable[..., UrlEntry]:
    """Return what makes an update of a page, named by its path."""

    def make(name="a", mimetype="text/html", **values) -> UrlEntry:
        url = f"http://www.example.org/{name}"
        return UrlEntry(**{"curl": url, "mimetype": mimetype, "furl": url, "burl": url, **values})

    return make


@pytest.fixture
def policy() -> Callable[..., QueuePolicy]:
    """Return what makes the operator's choices."""
    return QueuePolicy


@pytest.fixture
def registered(store, provider) -> Callable[..., Provider]:
    """Return what puts a provider into the store."""

    def register(pid=7, **values) -> Provider:
        made = provider(pid, **values)
        with store.begin() as tx:
            tx.insert_provider(made, ["http://www.example.org/"])
        return made

    return register
