"""Machines that are lost in the middle of a commit, and settling processes that stand still, hold up nobody for long.

``LCC_FREEZES`` says how often a settling process is stopped (2; ``make soak`` takes 50).
"""

import os
import random
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import URL, make_url

from lcc_scrapy.domain.providers import Provider
from tests.acceptance.mortals import is_gone, settling_of
from tests.conftest import Databases
from tests.galera_cluster import galera_cluster, url_of
from tests.harness import BIN, Lcc, wait_for
from tests.integration.site import Answer, Site, page
from tests.relay import Relay, relay

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(900)]

FREEZES = int(os.environ.get("LCC_FREEZES", "2"))
LEASE = 12.0
PORTS = {"mysql": 3306, "postgresql": 5432}
PROVIDERS, URLS = 8, 80
"""So much that it is not over before the other crawl has its share."""
PAGE_SECONDS = 0.1


@contextmanager
def filled_site(urls: int) -> Iterator[tuple[Site, dict[int, str]]]:
    """Serve some pages of some providers; yields the site and the root of each provider."""
    with Site() as site:
        port = site.listen()
        roots = {pid: f"http://127.0.0.1:{port}/p{pid}/" for pid in range(1, PROVIDERS + 1)}
        for pid in roots:
            for number in range(urls):
                (whole,) = page(f"{pid} {number}", etag="").pieces
                site.put(f"/p{pid}/{number}.html", Answer((whole,), last=False, wait=PAGE_SECONDS))
        yield site, roots


def register(lcc: Lcc, roots: dict[int, str]) -> None:
    providers = [Provider(pid, "", allowprivate=True, ignorerobots=True) for pid in roots]
    lcc.register(*providers, roots=[[root] for root in roots.values()])


def push(lcc: Lcc, roots: dict[int, str], urls: int) -> None:
    def one(pid: int) -> int:
        named = [{"curl": f"{roots[pid]}{number}.html", "mimetype": "text/html"} for number in range(urls)]
        return lcc.push_urls(pid, named).returncode

    with ThreadPoolExecutor(PROVIDERS) as pool:
        assert set(pool.map(one, roots)) == {0}


def settled(lcc: Lcc) -> int:
    return int(str(lcc.sql("select count(*) from lccurl")[0][0]))


def assert_all_is_there_once(lcc: Lcc, urls: int) -> None:
    lcc.wait_until_fetched(240 + urls * PAGE_SECONDS)
    whole = PROVIDERS * urls
    counts = lcc.sql("select count(*), count(distinct curl), count(distinct seq), max(seq) from lccurl")
    assert counts == [(whole,) * 4]  # what is settled twice has a higher seq
    lcc.lcc("verify", "--repair", check=False)  # a commit that was cut off has left files without rows
    assert lcc.lcc("verify").returncode == 0


@pytest.fixture
def lcc_on(make_lcc: Callable[..., Lcc], databases: Databases) -> Callable[..., Lcc]:
    """Return what makes an LCC on a database of its own of a kind."""

    def make(kind: str, lease: float) -> Lcc:
        return make_lcc(databases.empty(kind) if kind == "postgresql" else kind, LCC_LEASE=f"{lease:g}s")

    return make


@contextmanager
def lcc_and_server(kind: str, make: Callable[..., Lcc], lease: float) -> Iterator[tuple[Lcc, URL]]:
    """Give an LCC, and the URL of one server of its database."""
    if kind != "galera":
        lcc = make(kind, lease)
        yield lcc, make_url(lcc.database_url)
        return
    with galera_cluster() as nodes:
        server = make_url(nodes[0].url("lcc"))  # which also makes the database
        yield make(url_of("lcc", *nodes), lease), server


@contextmanager
def machine_behind(lcc: Lcc, server: URL, way: Relay) -> Iterator[None]:
    """Run a crawl that reaches the database by a way of its own."""
    url = server.set(host="127.0.0.1", port=way.port)
    environment = {
        **lcc.environment,
        "LCC_DATABASE_URL": url.render_as_string(hide_password=False),
        "LCC_UNS_ENDPOINTS": "",
    }
    with (lcc.folder / "second.log").open("ab") as log:
        process = subprocess.Popen(
            [BIN / "scrapy", "crawl", "lcc_push"], env=environment, cwd=lcc.cwd, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        process.kill()
        process.wait(60)


@pytest.mark.by_turns
@pytest.mark.parametrize(
    "database", ["mariadb", "postgresql", pytest.param("galera", marks=pytest.mark.soak)]
)
def test_the_others_go_on_when_a_machine_is_lost_in_the_middle_of_a_commit(
    lcc_on: Callable[..., Lcc], database: str
) -> None:
    with filled_site(URLS) as (_, roots), lcc_and_server(database, lcc_on, LEASE) as (lcc, server):
        register(lcc, roots)
        lcc.start()
        with relay(server.port or PORTS[server.get_backend_name()]) as way, machine_behind(lcc, server, way):
            wait_for(
                lambda: "Spider opened" in (lcc.folder / "second.log").read_text(), 60, "the other crawl"
            )
            way.lose_at(b"INTO lccurl")  # the first: PostgreSQL's driver names what it has said often
            push(lcc, roots, URLS)
            wait_for(way.lost.is_set, 60, "a commit")
            lost, before = way.lost_at, settled(lcc)
            for pid in roots:
                wait_for(lambda pid=pid: lcc.lcccp(pid, "--check").returncode == 0, LEASE + 5, "a login")
            logins = time.monotonic() - lost
            wait_for(lambda: settled(lcc) > before, LEASE + 5, "something to be settled")
            took = time.monotonic() - lost
            print(f"{database}: all logged in after {logins:.1f} s, settled after {took:.1f} s")
            assert_all_is_there_once(lcc, URLS)


@pytest.mark.soak
@pytest.mark.parametrize("database", ["mariadb", "postgresql"])
def test_a_backup_that_takes_longer_than_servers_wait_is_whole(
    lcc_on: Callable[..., Lcc], database: str, tmp_path: Path
) -> None:
    """It stands still for three times as long, with its snapshot open."""
    with filled_site(URLS) as (_, roots):
        lcc = lcc_on(database, 4)
        register(lcc, roots)
        lcc.start()
        push(lcc, roots, URLS)
        lcc.wait_until_fetched(240)
        file = tmp_path / "backup.sqlite"
        backup = subprocess.Popen(
            [BIN / "lcc", "db", "backup", str(file)], env=lcc.environment, cwd=lcc.cwd, stderr=subprocess.PIPE
        )
        wait_for(lambda: [*tmp_path.glob("backup.sqlite.*.part-journal")], 60, "the backup to be written")
        os.kill(backup.pid, signal.SIGSTOP)
        time.sleep(3 * 4 / 2)
        os.kill(backup.pid, signal.SIGCONT)
        _, said = backup.communicate(timeout=120)
        assert backup.returncode == 0, said
        with closing(sqlite3.connect(file)) as copy:
            assert copy.execute("select count(*) from lccurl").fetchone() == (PROVIDERS * URLS,)


def until(done: Callable[[], object], since: float, what: str) -> float:
    """Wait for something; returns the seconds since a moment."""
    wait_for(done, 60, what)
    return time.monotonic() - since


@pytest.mark.soak
@pytest.mark.timeout(900 + 30 * FREEZES)
@pytest.mark.parametrize("database", ["sqlite", "mariadb", "postgresql", "galera"])
def test_a_settling_process_that_stands_still_is_replaced_and_nothing_is_lost(
    lcc_on: Callable[..., Lcc], database: str
) -> None:
    """Every other one is stopped soon after its predecessor was killed, also at its start."""
    urls = 100 * FREEZES
    chance = random.Random(seed := random.randrange(1 << 32))
    with filled_site(urls) as (_, roots), lcc_and_server(database, lcc_on, 4) as (lcc, _):
        register(lcc, roots)
        lcc.start()
        assert lcc.crawl is not None
        push(lcc, roots, urls)
        wait_for(lambda: settled(lcc), 60, "the first commit")
        stood, logins, settles = [], [], []
        for number in range(FREEZES):
            assert lcc.sql("select count(*) from qdb")[0][0], "the work is over too soon"
            wait_for(lambda: settling_of([lcc.crawl.pid]), 60, "a settling process")  # type: ignore[union-attr]
            (child,) = settling_of([lcc.crawl.pid])
            time.sleep(chance.random())
            frozen = time.monotonic()
            os.kill(child, signal.SIGSTOP)
            if number % 2:
                stood.append(until(lambda child=child: is_gone(child), frozen, "it to be killed"))
                continue
            pid = chance.choice(list(roots))
            logins.append(until(lambda pid=pid: lcc.lcccp(pid, "--check").returncode == 0, frozen, "a login"))
            stood.append(until(lambda child=child: is_gone(child), frozen, "it to be killed"))
            before = settled(lcc)
            settles.append(
                until(lambda before=before: settled(lcc) > before, frozen, "something to be settled")
            )
        print(
            f"seed {seed}, {database}: {FREEZES} stopped; at most {max(stood):.1f} s until it was killed,"
            f" {max(logins):.1f} s until a login, {max(settles):.1f} s until something was settled"
        )
        assert_all_is_there_once(lcc, urls)
