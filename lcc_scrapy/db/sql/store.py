"""Connections and transactions: what each database needs to keep the LCC's promises.

SQLite: ``synchronous=FULL``, rollback journal unless the linked library has the WAL-reset fix
(3.51.3), ``BEGIN IMMEDIATE`` for everything that writes. MariaDB/MySQL: every commit on disk.

No connection is waited for without end: a host that is gone is noticed by TCP within a minute, a MariaDB
or MySQL that lives and says nothing after ``SILENCE``. What the URL says about such options wins. Servers do
not wait for ever for a machine that is gone either (``sessions``).
"""

import logging
import socket
import sqlite3
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, InterfaceError, InternalError, OperationalError

from lcc_scrapy.db.sql import failover
from lcc_scrapy.db.sql.durability import check_durability, doubts, flushes
from lcc_scrapy.db.sql.sessions import LONGEST_SILENCE, bound_silence, unbounded
from lcc_scrapy.db.sql.urls import read_url
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.errors import ConfigurationError, DiskFailed, LccError, StoreFull, StoreUnavailable

BUSY_TIMEOUT = 30
LOOK_AGAIN = 0.001
"""Seconds after which a writer of SQLite looks again whether another one is done."""

CONNECT_TIMEOUT = 10
SILENCE = 600
"""Seconds; the longest statements, which count or hold the millions of rows of a provider, take minutes."""

WAL_FIXED_IN = (3, 51, 3)

_PRIMARY = 0xFF
_BROKEN = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT}
_NOT_THE_DISK = {
    sqlite3.SQLITE_IOERR_NOMEM,
    sqlite3.SQLITE_IOERR_BLOCKED,
    sqlite3.SQLITE_IOERR_LOCK,
    sqlite3.SQLITE_IOERR_RDLOCK,
    sqlite3.SQLITE_IOERR_UNLOCK,
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
    sqlite3.SQLITE_IOERR_ACCESS,
    sqlite3.SQLITE_IOERR_GETTEMPPATH,
}
"""Want of memory, locks, permissions: these may be tried again."""
READING = "lcc_reading"
"""The execution option of a connection that only reads: SQLite then takes no writer's lock."""


@dataclass(frozen=True, slots=True)
class Described:
    """A database in words; its time in epoch seconds, None = this machine's; and what may cost something."""

    what: str
    time: float | None = None
    doubts: tuple[str, ...] = ()


class SqlStore:
    """A ``Store`` on an SQL database given as an SQLAlchemy URL.

    ``silence`` is how many seconds a statement may take on MariaDB or MySQL, None = for ever; ``pause`` how
    many may pass between two statements of a transaction before a server ends it, 0 = any.
    """

    def __init__(
        self, url: str | URL, *, silence: int | None = SILENCE, pause: float = LONGEST_SILENCE
    ) -> None:
        self.url = read_url(url)
        self.engine = make_engine(self.url, silence=silence, pause=pause)
        self._pause = pause
        self._is_sqlite = self.engine.dialect.name == "sqlite"

    def begin(self) -> Any:
        """Open a writing transaction."""
        return self._transaction(reading=False)

    def read(self) -> Any:
        """Open a reading transaction."""
        return self._transaction(reading=True)

    def snapshot(self) -> Any:
        """Open a reading transaction that sees one moment."""
        still = {} if self._is_sqlite else {"isolation_level": "REPEATABLE READ"}
        return self._transaction(reading=True, **still)

    @contextmanager
    def _transaction(self, *, reading: bool, **options: str) -> Iterator[Tx]:
        with named_errors(), self.engine.connect() as connection:
            connection.execution_options(**{READING: reading, **options})
            with connection.begin():
                yield Tx(connection)
                if self._is_sqlite and not reading:
                    _commit_sqlite(connection)

    def check(self) -> None:
        """Refuse a database that would not keep what it commits; raises as ``begin`` does."""
        with named_errors(), self.engine.connect() as connection:
            check_durability(connection)

    def describe(self) -> Described:
        """Return what the database is, how it flushes, its time, and what may be wrong with that."""
        with named_errors(), self.engine.connect() as connection:
            dialect = connection.dialect
            version = ".".join(map(str, (dialect.server_version_info or ())[:3]))
            if self._is_sqlite:
                return Described(f"SQLite {version}, synchronous=FULL")
            time_ = float(connection.execute(text(_TIME[dialect.name])).scalar_one())
            what = f"{dialect.name} {version}, {flushes(connection)}"
            return Described(what, time_, (*doubts(connection), *unbounded(connection, self._pause)))

    def close(self) -> None:
        """Give connections back."""
        self.engine.dispose()


@contextmanager
def named_errors() -> Iterator[None]:
    """Turn a driver's error about the connection, or of SQLite about its disk, into one of ours."""
    try:
        yield
    except DBAPIError as error:
        kind = _kind_of(error)
        if kind is None:
            raise
        raise kind(_first_line(error)) from error


def _kind_of(error: DBAPIError) -> type[LccError] | None:
    code = getattr(error.orig, "sqlite_errorcode", 0)
    if code & _PRIMARY in _BROKEN and code not in _NOT_THE_DISK:
        return DiskFailed
    if code & _PRIMARY == sqlite3.SQLITE_FULL:
        return StoreFull
    if isinstance(error, OperationalError | InterfaceError | InternalError) or error.connection_invalidated:
        return StoreUnavailable
    return None


@contextmanager
def plain_errors(what: str) -> Iterator[None]:
    """Turn every error of the database into an ``LccError`` of one line that begins with ``what``."""
    try:
        yield
    except DBAPIError as error:
        raise LccError(f"{what}: {_first_line(error)}") from error


def _first_line(error: DBAPIError) -> str:
    arguments: tuple[Any, ...] = getattr(error.orig, "args", ())
    text = str(arguments[1] if len(arguments) == 2 else error.orig)  # noqa: PLR2004 - (number, text)
    return text.splitlines()[0] if text else type(error.orig).__name__


_DRIVERS = {"mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql", "postgresql": "postgresql+psycopg"}
_STRICT = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"


_KEEPALIVE = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""As libpq names them: seconds, seconds, probes, milliseconds."""


def make_engine(
    text_of_url: str | URL, *, silence: int | None = SILENCE, pause: float = LONGEST_SILENCE
) -> Engine:
    """Make an engine for an SQLAlchemy URL; one without a driver gets the one that is installed with us."""
    url = read_url(text_of_url)
    url = url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))
    backend = url.get_backend_name()
    # Of a connection lost after its commit the pool logs a traceback; whoever asks next says it in one line.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
    if backend == "sqlite":
        engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT, "check_same_thread": False})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    if backend in {"mysql", "mariadb"}:
        waits = {"read_timeout": silence, "write_timeout": silence} if silence else {}
        url, hosts = _hosts_of(_with_defaults(url, {"connect_timeout": CONNECT_TIMEOUT, **waits}))
        engine = create_engine(
            url,
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,
            connect_args={"init_command": _STRICT},
        )
        event.listen(engine, "connect", _keep_alive)
        event.listen(engine, "connect", failover.catch_up_first)
        _bound_silence(engine, pause)
        event.listen(engine, "handle_error", failover.leave_who_refuses)
        if hosts:
            failover.connect_in_order(engine, hosts)
        return engine
    if backend == "postgresql":
        url = _with_defaults(url, {"connect_timeout": CONNECT_TIMEOUT, **_KEEPALIVE})
        engine = create_engine(url, isolation_level="READ COMMITTED", pool_pre_ping=True)
        _bound_silence(engine, pause)
        event.listen(engine, "handle_error", failover.leave_who_refuses)
        return engine
    raise ConfigurationError(f"{backend} is not supported; use sqlite, mysql+pymysql or postgresql")


def _bound_silence(engine: Engine, seconds: float) -> None:
    if seconds:
        event.listen(engine, "connect", lambda connection, _record: bound_silence(connection, seconds))


def _hosts_of(url: URL) -> tuple[URL, list[failover.Host]]:
    try:
        return failover.hosts_of(url)
    except ValueError as error:
        raise ConfigurationError(f"the port of a host is no number: {error}") from None


def _with_defaults(url: URL, options: Mapping[str, int]) -> URL:
    missing = {name: str(value) for name, value in options.items() if name not in url.query}
    return url.update_query_dict(missing)


def _keep_alive(connection: Any, _record: object) -> None:
    """Do for PyMySQL what libpq does by itself."""
    link = getattr(connection, "_sock", None)  # shown nowhere else; other drivers have none
    if link is not None and link.family in {socket.AF_INET, socket.AF_INET6}:
        names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        for name, value in zip(names, _KEEPALIVE.values(), strict=True):
            link.setsockopt(socket.IPPROTO_TCP, name, value)


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None
    journal = "WAL" if sqlite3.sqlite_version_info >= WAL_FIXED_IN else "TRUNCATE"
    for pragma in (f"journal_mode={journal}", "synchronous=FULL", "cache_size=-32768", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: Connection) -> None:
    if connection.get_execution_options().get(READING):
        connection.exec_driver_sql("BEGIN")
    else:
        _wait_for_sqlite(connection, "BEGIN IMMEDIATE")


def _commit_sqlite(connection: Connection) -> None:
    """Commit; SQLAlchemy then has nothing left to do."""
    _wait_for_sqlite(connection, "COMMIT")


def _wait_for_sqlite(connection: Connection, statement: str) -> None:
    """Execute what may have to wait for other processes. Left to itself, SQLite would sleep for up to a tenth
    of a second between two tries, and one process that writes without a pause would keep all others out.
    """
    connection.exec_driver_sql("PRAGMA busy_timeout=0")
    deadline = time.monotonic() + BUSY_TIMEOUT
    try:
        while not _executed(connection, statement, last=time.monotonic() > deadline):
            time.sleep(LOOK_AGAIN)
    finally:  # the connection goes on, and its readers are to wait
        connection.exec_driver_sql(f"PRAGMA busy_timeout={round(1000 * BUSY_TIMEOUT)}")


def _executed(connection: Connection, statement: str, *, last: bool) -> bool:
    try:
        connection.exec_driver_sql(statement)
    except OperationalError as error:
        if last or getattr(error.orig, "sqlite_errorcode", 0) & _PRIMARY != sqlite3.SQLITE_BUSY:
            raise
        traceback.clear_frames(error.__traceback__)  # they refer to the error, and it to them
        return False
    return True


_TIME = {
    "mysql": "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1e6",
    "postgresql": "SELECT EXTRACT(EPOCH FROM clock_timestamp())",
}
_TIME["mariadb"] = _TIME["mysql"]
