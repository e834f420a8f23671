"""An LCC of its own in a folder, filled as providers fill it."""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import pymysql
from sqlalchemy import Engine, make_url
from sqlalchemy.exc import OperationalError

from crawling.running import Failed
from crawling.site import Page, free_port
from lcc_scrapy.db.sql.store import READING, SqlStore, make_engine
from lcc_scrapy.domain.entries import Declared, UrlEntry
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.intake.absorbing import Intake
from lcc_scrapy.intake.spooled import SpooledFile
from lcc_scrapy.providers.registration import add as add_provider
from lcc_scrapy.uns.spool import SpoolFolder
from lcc_scrapy.uns.spool_file import SpoolHeader

LCC = (sys.executable, "-m", "lcc_scrapy.cli.main")
MARIADB = os.environ.get("LCC_BENCH_MARIADB", "mysql+pymysql://root@127.0.0.1:3306")
"""A server on which nothing else goes on while something is measured."""
POSTGRESQL = os.environ.get("LCC_BENCH_POSTGRESQL", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres")
MIMETYPE = "text/html"


@dataclass(frozen=True)
class Lcc:
    """An LCC in its default configuration, but for addresses."""

    folder: Path
    database_url: str
    settings: Mapping[str, str] = field(default_factory=dict)
    """Beside those."""

    @cached_property
    def port(self) -> int:
        """Return where its UNS listens."""
        return free_port()

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of its commands and crawls."""
        return clean_environment() | {
            "SCRAPY_SETTINGS_MODULE": "lcc_scrapy.settings",
            "LCC_DATA_DIR": str(self.folder / "lcc-data"),
            "LCC_DATABASE_URL": self.database_url,
            "LCC_UNS_ENDPOINTS": f"tcp:{self.port}:interface=127.0.0.1",
            **self.settings,
        }

    def command(self, *words: str) -> str:
        """Run a command of ``lcc``; return what it printed."""
        done = subprocess.run(
            [*LCC, *words], env=self.environment, cwd=self.folder, check=False, capture_output=True, text=True
        )
        if done.returncode:
            raise Failed(f"lcc {' '.join(words)}: {done.stderr}")
        return done.stdout

    def register(self, roots: dict[int, str], password: str = "") -> None:
        """Add providers (pid: root), all with one password, hashed."""
        store = SqlStore(self.database_url)
        for pid, root in roots.items():
            add_provider(store, Provider(pid, password, allowprivate=True), [root])
        store.close()

    def push(self, urls: dict[int, list[str]], page: Page | None, login: int = 1) -> None:
        """Let intake absorb a set of each provider (pid: its URLs).

        They are declared to be ``page``, as ``file2url`` does it; without one nothing is said of them.
        """
        declared = Declared(page.mtime, page.size, page.md5) if page else Declared()
        store, spool = SqlStore(self.database_url), SpoolFolder(self.folder / "lcc-data/spool")
        for pid, mine in urls.items():
            writer = spool.begin(SpoolHeader(pid, login, 0), time.time())
            for url in mine:
                writer.add(UrlEntry(url, MIMETYPE, furl=url, burl=url, declared=declared))
            absorb(store, writer.commit())
        store.close()

    def cached(self) -> int:
        """Count the documents."""
        return self._ask("select count(*) from lccurl")

    def waiting(self) -> int:
        """Count the URLs that wait, by the providers' books, which settling keeps in its transactions."""
        return self._ask("select sum(nurlproc) from pidb")

    def workers(self) -> int:
        """Count the workers that are at work, or were when they were lost."""
        return self._ask("select count(*) from workers")

    def _ask(self, query: str) -> int:
        with self._engine.connect() as connection:
            connection.execution_options(**{READING: True})
            return int(connection.exec_driver_sql(query).scalar_one())

    @cached_property
    def _engine(self) -> Engine:
        return make_engine(self.database_url)


def absorb(store: SqlStore, path: Path) -> None:
    """Let intake absorb a spooled set."""
    intake = Intake(store, SpooledFile(path), QueuePolicy())
    while not intake.step(int(time.time())).finished:
        pass
    intake.close()
    path.unlink()


OURS = ("LCC_", "SCRAPY_", "PYTHONDONTWRITEBYTECODE")
"""How variables begin that would make a crawl another one than users have."""


def clean_environment() -> dict[str, str]:
    """Return this environment without settings of the LCC and of Scrapy; compiled modules are kept."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OURS)}


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """Give the address of a new database of a kind (``sqlite``, ``mariadb``, ``postgresql``)."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/lcc-data/lcc.sqlite"
        return
    name = f"lcc_bench_{secrets.token_hex(4)}"
    if kind == "postgresql":
        in_postgresql(f"create database {name}")
        try:
            yield make_url(POSTGRESQL).set(database=name).render_as_string(hide_password=False)
        finally:
            in_postgresql(f"drop database {name} with (force)")
        return
    in_mariadb(f"create database {name}")
    try:
        yield f"{MARIADB}/{name}"
    finally:
        in_mariadb(f"drop database {name}")


def in_mariadb(statement: str) -> Sequence[tuple[object, ...]]:
    """Execute a statement; return its rows."""
    where = urlsplit(MARIADB)
    server = pymysql.connect(host=str(where.hostname), user=str(where.username), port=where.port or 3306)
    with server, server.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def in_postgresql(statement: str) -> None:
    """Execute a statement outside of a transaction."""
    engine = make_engine(POSTGRESQL)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


def no_mariadb() -> str:
    """Tell why MariaDB cannot be used, or return nothing."""
    try:
        in_mariadb("select 1")
    except pymysql.err.OperationalError:
        return f"no MariaDB at {MARIADB}"
    return ""


def no_postgresql() -> str:
    """Tell why PostgreSQL cannot be used, or return nothing."""
    try:
        in_postgresql("select 1")
    except OperationalError:
        return f"no PostgreSQL at {POSTGRESQL}"
    return ""
