"""Fixtures for every test: the stores that one suite runs on, and plain values to put into them."""

import gc
import os
import re
import secrets
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy
from hypothesis import HealthCheck, settings
from redis import Redis

from lcc_scrapy.db import schema
from lcc_scrapy.db.sql.store import SqlStore, make_engine
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.entries import UrlEntry
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from tests.database_servers import SERVERS, Server
from tests.made_databases import upgrade
from tests.memory_store import MemoryStore
from tests.redis_server import redis_of_a_test

settings.register_profile("lcc", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("lcc"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "lcc")

LONG_FIRST = ("acceptance", "faults", "integration", "contract", "component", "unit")
SLOW_STORES = frozenset({"mariadb", "postgresql"})
"""What is asked of every store is asked of these two in ``make test-slow``: each costs as much as all others."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what runs on a slow store, or is left to ``make soak``, by the names of a test's parameters."""
    parameters = re.search(r"\[(.*)\]", item.name)
    named = set(parameters[1].split("-")) if parameters else set()
    if any(named & set(mark.args) for mark in item.iter_markers("soak_of")):
        item.add_marker(pytest.mark.soak)
    if SLOW_STORES & named or item.get_closest_marker("soak"):
        item.add_marker(pytest.mark.slow)
    if item.path.is_relative_to(UNIT) and item.get_closest_marker("slow"):
        raise pytest.UsageError(f"{item.nodeid}: make test-slow does not look into tests/unit")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for garbage when all tests are there: among them there is none, and looking is a quarter of collecting."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class _Turns:
    """Leaves to ``make soak`` what CI does on the other database server: contracts, and tests ``by_turns``."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        there = {item.nodeid for item in items}
        for item in items:
            takes_turns = item.get_closest_marker("by_turns") or item.path.is_relative_to(CONTRACT)
            if takes_turns and left_to(item.nodeid) in there:
                item.add_marker(pytest.mark.soak)


def left_to(nodeid: str) -> str:
    """Return the same test on the other server if it is that one's turn, as all else of its name says; else ""."""
    found = set(re.findall("|".join(sorted(SLOW_STORES)), nodeid.partition("[")[2]))
    if len(found) != 1:
        return ""
    (mine,), (other,) = found, SLOW_STORES - found
    of_both = nodeid.replace(mine, "")
    chosen = sorted(SLOW_STORES)[zlib.crc32(of_both.encode()) % len(SLOW_STORES)]
    return nodeid.replace(mine, other) if chosen == other else ""


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Turns())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what waits long before what is short, so that all workers end together; else the order is as it was."""
    items.sort(key=lambda item: LONG_FIRST.index(item.path.relative_to(HERE).parts[0]))


HERE = Path(__file__).parent
UNIT = HERE / "unit"
CONTRACT = HERE / "contract"
STORES = ("memory", "sqlite", "mariadb", "postgresql")


class Databases:
    """The databases of one test session: made when first asked for, dropped at the end."""

    def __init__(self, folder) -> None:
        self._folder = folder
        self._name = f"lcc_test_{secrets.token_hex(4)}"
        self._urls: dict[str, str] = {}
        self._problems: dict[str, str] = {}
        self._made: list[tuple[str, str]] = []

    def url(self, kind: str) -> str:
        if kind not in self._urls and kind not in self._problems:
            self._make(kind)
        if kind in self._problems:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(self._problems[kind])
        return self._urls[kind]

    def empty(self, kind: str) -> str:
        """Make one more database, with nothing in it; it is dropped at the end as well."""
        known = sqlalchemy.make_url(self.url(kind))
        name = f"{self._name}_{len(self._made)}"
        self._made.append((kind, name))
        if kind == "sqlite":
            return f"sqlite:///{self._folder / name}.sqlite"
        self._execute(SERVERS[kind], f"CREATE DATABASE {name}")
        return known.set(database=name).render_as_string(hide_password=False)

    def _make(self, kind: str) -> None:
        """Make a database with all its tables; whatever interrupts that, the next test begins anew."""
        name = f"{self._name}_{len(self._made)}"
        if kind == "sqlite":
            url = f"sqlite:///{self._folder / name}.sqlite"
        else:
            server = SERVERS[kind]
            try:
                self._execute(server, f"CREATE DATABASE {name}")
            except sqlalchemy.exc.OperationalError as error:
                self._problems[kind] = (
                    f"no {kind} at {server.url} ({error.orig}): install and start {server.package},"
                    f" or set {server.variable}"
                )
                return
            url = server.url.set(database=name).render_as_string(hide_password=False)
        self._made.append((kind, name))
        upgrade(url)
        self._urls[kind] = url

    def _execute(self, server: Server, statement: str) -> None:
        engine = make_engine(server.url.render_as_string(hide_password=False))
        try:
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql(statement)
        finally:
            engine.dispose()

    def drop(self) -> None:
        for kind, name in self._made:
            if kind in SERVERS:
                by_force = " WITH (FORCE)" if kind == "postgresql" else ""  # MariaDB asks nobody
                self._execute(SERVERS[kind], f"DROP DATABASE {name}{by_force}")


def _memory_or_disk() -> str | None:
    """Return a folder in memory, where syncing costs nothing, or None: the usual one for temporary files."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    with tempfile.TemporaryDirectory(prefix="lcc-databases-", dir=_memory_or_disk()) as folder:
        made = Databases(Path(folder))
        yield made
        made.drop()


class SqliteStores:
    """A store on SQLite that has a new database in every test, so that none meets what another left behind.

    The engine stays: most of what a new one would cost is compiling the statements again. A thread or a
    transaction that a failed test left alive keeps the file of that test.
    """

    def __init__(self, empty: Path) -> None:
        self._empty = empty
        self._made = 0
        self._file = empty
        self._store: SqlStore | None = None

    def fresh(self) -> SqlStore:
        if self._store is None:
            self._store = SqlStore(f"sqlite:///{self._empty}")
            sqlalchemy.event.listen(self._store.engine, "do_connect", self._connect)
        self._remove()
        self._made += 1
        self._file = self._empty.with_name(f"{self._empty.stem}-{self._made}.sqlite")
        shutil.copyfile(self._empty, self._file)
        self._store.url = sqlalchemy.make_url(f"sqlite:///{self._file}")
        return self._store

    def close(self) -> None:
        self._remove()

    def _connect(self, _dialect, _record, arguments, _named) -> None:
        arguments[0] = str(self._file)

    def _remove(self) -> None:
        if self._store is not None:
            self._store.close()
        if self._file != self._empty:
            for file in self._file.parent.glob(f"{self._file.name}*"):
                file.unlink()


@pytest.fixture(scope="session")
def sqlite_stores(databases) -> Iterator[SqliteStores]:
    # a database of its own: tests that give its URL to other processes fill the common one
    empty = databases.empty("sqlite")
    schema.upgrade(empty)
    made = SqliteStores(Path(sqlalchemy.make_url(empty).database))
    yield made
    made.close()


@pytest.fixture(scope="session")
def sql_stores(databases) -> Iterator[Callable[[str], SqlStore]]:
    """One store per server and session; making an engine costs more than most tests."""
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
    tables = [table.name for table in schema.tables_of()]
    filled = ", ".join(f"EXISTS (SELECT 1 FROM {name})" for name in tables)
    with store.engine.connect() as connection, connection.begin():
        for name, is_filled in zip(tables, connection.exec_driver_sql(f"SELECT {filled}").one(), strict=True):
            if is_filled:
                connection.exec_driver_sql(f"DELETE FROM {name}")


@pytest.fixture(params=STORES)
def store(request) -> Iterator[Store]:
    """An empty store; every test that asks for it runs on each of them."""
    if request.param == "memory":
        yield MemoryStore()
        return
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_stores").fresh()
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


@pytest.fixture
def redis_server() -> Iterator[tuple[Redis, str]]:
    """Give a client of a real Redis, and a prefix that no other test has."""
    with redis_of_a_test() as made:
        yield made
