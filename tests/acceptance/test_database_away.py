"""The database goes away in the middle of everything and comes back: nobody ends, nothing is lost.

``LCC_AWAY`` says for how many seconds each time (default 6, longer than a lease; ``make soak`` takes 30).
"""

import os
import re
import secrets
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from lcc_scrapy.db.sql.store import make_engine
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.login.login_service import PATIENCE
from tests.acceptance.pushers import Conversation, Pusher
from tests.database_servers import SERVERS
from tests.harness import Lcc, missing, wait_for
from tests.integration.site import Site, overlaps, page
from tests.mariadb_server import MariaDbServer, mariadb_server

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(900)]

AWAY = float(os.environ.get("LCC_AWAY", "6"))
LONG = max(AWAY, PATIENCE + 3)
"""Seconds for databases that do not refuse but hang: longer than logins wait."""

LEASE = 5
SETTINGS = {"LCC_LEASE": f"{LEASE}s", "LCC_IDLE_SECONDS": "200s", "LCC_FETCH_TIMEOUT": "200s"}
"""Short leases, and patience with a test that stands still."""

SOON = 10.0
"""Seconds after its return within which providers are let in again and fetching goes on."""

TROUBLE = ("cannot look into the queue now, trying again: ", "cannot store results now, trying again: ")
"""What the log says of a database that refuses."""

STAYS = 7
"""The provider that logs in before, and sends its set while the database is away."""

Trouble = Callable[[], AbstractContextManager[None]]


@dataclass
class Scene:
    """A crawl, and providers that keep it busy."""

    lcc: Lcc
    site: Site
    root: str
    pushers: list[Pusher]

    def __post_init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        """What was pushed while the database was away, by path."""

    def told(self, code: int, since: float = 0.0) -> list[str]:
        every = (one for pusher in self.pushers for one in list(pusher.told))
        return [one.text for one in every if one.code == code and one.asked > since]

    def cached(self) -> dict[str, bytes]:
        rows = self.lcc.sql("select furl, fetched_machineid, fetched_fileid from lccurl")
        found = {
            str(furl).removeprefix(self.root): self.lcc.path_of(*where).read_bytes() for furl, *where in rows
        }
        assert len(found) == len(rows), "a URL is there twice"
        return found

    def is_busy(self) -> bool:
        return (
            len(self.told(0)) > 10
            and len(self.cached()) > 5
            and self.lcc.sql("select count(*) from qdb")[0][0] > 3
        )

    def go_through(
        self, trouble: Trouble, seconds: float, refusals: int = 1, log: Sequence[str] = ()
    ) -> None:
        """Let the database go away once and come back, and see that all goes on by itself.

        It is away for so many seconds at least, and until the trouble was told to so many providers and in the log.
        """
        wait_for(self.is_busy, 60, "work")
        release = self._begin_a_fetch()
        visitor = Conversation(self.lcc.port, STAYS)
        assert "init_accepted" in visitor.login_answer()
        refused, said = len(self.told(103)), len(self.lcc.log_text())

        def is_told() -> bool:
            new = self.lcc.log_text()[said:]
            return len(self.told(103)) >= refused + refusals and all(line in new for line in log)

        with trouble():
            release.set()  # so that there is a result to store, however fast all others were
            time.sleep(seconds / 2)
            self._push_meanwhile(visitor)
            time.sleep(seconds / 2)
            wait_for(is_told, what="the trouble to be told")
        back = time.monotonic()
        wait_for(lambda: self.told(0, since=back), SOON, "providers to be let in again")
        wait_for(lambda: any(visit.start > back for visit in self.site.visits), SOON, "fetching to go on")
        print(f"all goes on {time.monotonic() - back:.1f} s after {seconds:g} s without a database")

    def goes_on(self, seconds: float) -> None:
        """Wait until providers are let in again and fetching goes on, as they must after so long."""
        since = time.monotonic()
        wait_for(lambda: self.told(0, since=since), seconds, "providers to be let in again")
        wait_for(lambda: any(visit.start > since for visit in self.site.visits), seconds, "fetching to go on")
        print(f"all goes on after {time.monotonic() - since:.1f} s")

    def _begin_a_fetch(self) -> threading.Event:
        """Let a page be under way until the event is set."""
        path, release = f"/p{STAYS}/under-way-{len(self.kept)}.html", threading.Event()
        self.kept[path] = path.encode()
        self.site.put(path, replace(page(path), held=release))
        visitor = Conversation(self.lcc.port, STAYS)
        assert "init_accepted" in visitor.login_answer()
        answer = visitor.push("partial", [{"c": self.root + path, "mimetype": "text/html"}])
        assert '<set_accepted received="1"/>' in answer
        visitor.close()
        wait_for(lambda: self.site.asked(path), 20, "the fetch")
        return release

    def _push_meanwhile(self, visitor: Conversation) -> None:
        path = f"/p{STAYS}/{len(self.kept)}.html"
        self.kept[path] = path.encode()
        self.site.put(path, page(path))
        answer = visitor.push("partial", [{"c": self.root + path, "mimetype": "text/html"}])
        assert '<set_accepted received="1"/>' in answer
        visitor.close()

    def see_that_the_trouble_was_told_in_words(self) -> None:
        refused = self.told(103)
        assert refused
        assert all("Temporarily off-line, try again later</reason>" in answer for answer in refused)

    def see_that_all_is_there(self) -> None:
        for pusher in self.pushers:
            pusher.end()
        assert {one.code for pusher in self.pushers for one in pusher.told} <= {0, 103}
        self.lcc.wait_until_fetched(120)
        absorbed = set(self.lcc.sql("select pid, connseq from psets where phase = 'absorbed'"))
        assert {(one.pid, seq) for one in self.pushers for seq in one.accepted} <= absorbed
        pushed = {path: body for one in self.pushers for path, body in one.bodies.items()} | self.kept
        assert self.cached() == pushed
        assert self.lcc.sql("select sum(nurlerrs), sum(nurlproc), sum(fileused) from pidb") == [
            (0, 0, len(pushed))
        ]
        assert self.lcc.sql("select count(*) from tombstones") == [(0,)]
        verified = self.lcc.lcc("verify", check=False)
        assert verified.returncode == 0, verified.stdout

    def see_that_the_site_was_treated_well(self) -> None:
        pids = [STAYS, *(pusher.pid for pusher in self.pushers)]
        assert not [pid for pid in pids if overlaps(self.site.asked(f"/p{pid}/"))]
        assert any(visit.together > 1 for visit in self.site.visits), "different providers do overlap"

    def see_that_the_log_is_readable(self) -> None:
        lines = self.lcc.log_text().splitlines()
        assert not [line for line in lines if line.startswith(("Traceback", "Unhandled"))]
        for line, following in pairwise(lines):
            if re.match(r"\S+ \S+ \[.*?\] (WARNING|ERROR|CRITICAL): ", line):
                assert re.match(r"\d{4}-\d\d-\d\d ", following), f"{line}\n{following}"


@contextmanager
def everybody_at_work(lcc: Lcc) -> Iterator[Scene]:
    """Give a scene; whatever is not right at its end fails the test."""
    with Site() as site:
        root = f"http://127.0.0.1:{site.listen()}"
        pushers = [
            *(Pusher(pid, lcc.port, site, root) for pid in (1, 2, 3)),
            *(Pusher(pid, lcc.port, site, root, full=True) for pid in (4, 5)),
            Pusher(6, lcc.port, site, root, seconds=LEASE * 1.2),
        ]
        pids = [STAYS, *(pusher.pid for pusher in pushers)]
        lcc.register(
            *[Provider(pid, "", allowprivate=True) for pid in pids],
            roots=[[f"{root}/p{pid}/"] for pid in pids],
        )
        lcc.start()
        for pusher in pushers:
            pusher.start()
        scene = Scene(lcc, site, root, pushers)
        try:
            yield scene
            scene.see_that_all_is_there()
            scene.see_that_the_site_was_treated_well()
            assert lcc.crawl.poll() is None, "the crawl ended"
            assert lcc.stop() == 0
            scene.see_that_the_log_is_readable()
        finally:
            for pusher in pushers:
                pusher.give_up()


# --- the ways in which a database can be away ----------------------------------------------------


@contextmanager
def stopped(server: MariaDbServer, how: int) -> Iterator[None]:
    server.stop(how)
    yield
    server.start()


@contextmanager
def frozen(server: MariaDbServer) -> Iterator[None]:
    server.freeze()
    yield
    server.thaw()


@contextmanager
def locked(file: Path) -> Iterator[None]:
    with closing(sqlite3.connect(file, timeout=300, isolation_level=None)) as connection:
        connection.execute("begin exclusive")
        yield
        connection.execute("rollback")


@dataclass
class PostgresDatabase:
    """A database of its own on the tests' server, which can be closed to everybody."""

    name: str

    @property
    def url(self) -> str:
        return SERVERS["postgresql"].url.set(database=self.name).render_as_string(hide_password=False)

    def administer(self, *statements: str) -> None:
        engine = make_engine(SERVERS["postgresql"].url.render_as_string(hide_password=False))
        try:
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                for statement in statements:
                    connection.exec_driver_sql(statement)
        finally:
            engine.dispose()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Be away as a server is that restarts: it ends every connection, and takes none."""
        self.administer(
            f"alter database {self.name} allow_connections false",
            f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{self.name}'",
        )
        yield
        self.administer(f"alter database {self.name} allow_connections true")


@pytest.fixture
def postgres() -> Iterator[PostgresDatabase]:
    database = PostgresDatabase(f"lcc_test_{secrets.token_hex(6)}")
    try:
        database.administer(f"create database {database.name}")
    except OperationalError:
        missing("PostgreSQL", f"install and start postgresql, or set {SERVERS['postgresql'].variable}")
    yield database
    database.administer(f"drop database {database.name} with (force)")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MariaDbServer]:
    with mariadb_server(tmp_path / "mariadb") as made:
        yield made


def test_mariadb_may_be_stopped_killed_and_frozen(
    server: MariaDbServer, make_lcc: Callable[..., Lcc]
) -> None:
    with everybody_at_work(make_lcc(server.url("lcc"), **SETTINGS)) as scene:
        scene.go_through(partial(stopped, server, signal.SIGTERM), AWAY, 4, TROUBLE)
        scene.go_through(partial(stopped, server, signal.SIGKILL), AWAY)
        scene.go_through(partial(frozen, server), LONG)
        scene.see_that_the_trouble_was_told_in_words()


def test_a_frozen_database_does_not_keep_a_process_from_stopping(
    server: MariaDbServer, make_lcc: Callable[..., Lcc]
) -> None:
    lcc = make_lcc(server.url("lcc"), LCC_STOP_TIMEOUT="1s")
    lcc.start()
    with frozen(server):
        time.sleep(1)  # some look into the queue hangs by now
        begun = time.monotonic()
        assert lcc.crawl.poll() is None
        assert lcc.stop() == 0
        print(f"stopped in {time.monotonic() - begun:.1f} s")
        assert time.monotonic() - begun < 200, "usually a statement is waited for 600 s"
    assert "Traceback" not in lcc.log_text()


def test_postgresql_may_end_every_connection(
    postgres: PostgresDatabase, make_lcc: Callable[..., Lcc]
) -> None:
    with everybody_at_work(make_lcc(postgres.url, **SETTINGS)) as scene:
        scene.go_through(postgres.closed, AWAY, 4, TROUBLE)
        scene.see_that_the_trouble_was_told_in_words()


def test_another_process_may_lock_the_sqlite_file(make_lcc: Callable[..., Lcc]) -> None:
    lcc = make_lcc(**SETTINGS)
    with everybody_at_work(lcc) as scene:
        scene.go_through(partial(locked, lcc.folder / "lcc-data" / "lcc.sqlite"), LONG)
        scene.see_that_the_trouble_was_told_in_words()
