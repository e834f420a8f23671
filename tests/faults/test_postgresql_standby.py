"""A PostgreSQL primary and its standby: the one is killed and the other promoted, and content users read of both."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_database_away import SETTINGS, Scene, everybody_at_work
from tests.followed import following
from tests.harness import Lcc, wait_for
from tests.postgresql_servers import PostgreSqlServer, primary_and_standby, url_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

BACK = 60.0
"""Seconds after a promotion within which providers are let in again and fetching goes on."""

Servers = tuple[PostgreSqlServer, PostgreSqlServer]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    with primary_and_standby(tmp_path / "servers") as made:
        made[0].execute("create database lcc")
        yield made


def all_goes_on(scene: Scene) -> None:
    since = time.monotonic()
    wait_for(lambda: scene.told(0, since=since), BACK, "providers to be let in again")
    wait_for(lambda: any(visit.start > since for visit in scene.site.visits), BACK, "fetching to go on")
    print(f"all goes on after {time.monotonic() - since:.1f} s")


def see_that_a_cursor_comes_back(lcc: Lcc, standby: str) -> None:
    """Read at the primary, and then at a standby that lacks what was told: it gives the same cursor."""
    cursor = lcc.lcc("select", "--format", "jsonl").stderr.split()[-1]
    done = lcc.lcc("-s", f"LCC_READ_DATABASE_URL={standby}", "select", "--since", cursor)
    assert done.stderr.split()[-1] == cursor
    assert len(done.stdout.splitlines()) <= 1  # the line of names


def test_a_standby_that_is_promoted_lacks_nothing_and_tells_nothing_twice(
    servers: Servers, make_lcc: Callable[..., Lcc]
) -> None:
    primary, standby = servers
    lcc = make_lcc(url_of("lcc", primary, standby, target_session_attrs="read-write"), **SETTINGS)
    with following(lcc) as followed:
        with everybody_at_work(lcc) as scene:
            wait_for(scene.is_busy, 60, "work")
            wait_for(followed.rows, 60, "changes to be told")
            primary.kill()
            before = len(followed.rows())
            standby.execute("select pg_promote()")
            all_goes_on(scene)
        wait_for(lambda: len(followed.rows()) > before, 60, "changes to be told by the new primary")
        followed.see_that_nothing_was_missed_or_told_twice()
        print(f"{len(followed.rows())} changes told, {before} of them before the primary was killed")


def test_a_follower_of_a_primary_and_a_standby_that_stands_still_misses_nothing(
    servers: Servers, make_lcc: Callable[..., Lcc]
) -> None:
    primary, standby = servers
    lcc = make_lcc(url_of("lcc", primary), **SETTINGS)
    wait_for(lambda: standby.execute("select 1 from pg_database where datname = 'lcc'"), 60, "the standby")
    both = url_of("lcc", primary, standby, load_balance_hosts="random", application_name="both")
    alone = url_of("lcc", standby)
    with (
        following(lcc, "both", LCC_READ_DATABASE_URL=both) as of_both,
        following(lcc, "alone", LCC_READ_DATABASE_URL=alone) as of_standby,
    ):
        with everybody_at_work(lcc) as scene:
            wait_for(scene.is_busy, 60, "work")
            wait_for(of_standby.rows, 60, "changes to be told by the standby")
            for _ in range(3):
                standby.execute("select pg_wal_replay_pause()")
                told, stored = len(of_standby.rows()), len(scene.cached())
                wait_for(lambda: len(scene.cached()) > stored + 5, 60, "changes that the standby lacks")
                see_that_a_cursor_comes_back(lcc, alone)
                for server in servers:  # it comes back to one of them
                    server.execute(
                        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'both'"
                    )
                standby.execute("select pg_wal_replay_resume()")
                wait_for(lambda: len(of_standby.rows()) > told, 60, "the standby to tell them")
        of_both.see_that_nothing_was_missed_or_told_twice()
        of_standby.see_that_nothing_was_missed_or_told_twice()
