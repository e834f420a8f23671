"""A PostgreSQL primary and its standby: the one is killed and the other promoted, and content users read of both."""

from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.test_database_away import SETTINGS, everybody_at_work
from tests.followed import Followed, following
from tests.harness import Lcc, wait_for
from tests.postgresql_servers import PostgreSqlServer, primary_and_standby, url_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

BACK = 60.0
"""Seconds after a promotion within which providers are let in again and fetching goes on."""

Servers = tuple[PostgreSqlServer, PostgreSqlServer]


@pytest.fixture
def servers() -> Iterator[Servers]:
    with primary_and_standby() as made:
        made[0].execute("create database lcc")
        yield made


def see_that_a_cursor_comes_back(lcc: Lcc, standby: str) -> None:
    """Read at the primary, and then at a standby that lacks what was told: it gives the same cursor."""
    cursor = lcc.lcc("select", "--format", "jsonl").stderr.split()[-1]
    done = lcc.lcc("-s", f"LCC_READ_DATABASE_URL={standby}", "select", "--since", cursor)
    assert done.stderr.split()[-1] == cursor
    assert len(done.stdout.splitlines()) <= 1  # the line of names


def stand_still_for_a_while(lcc: Lcc, servers: Servers, follower: Followed) -> None:
    """Let the standby replay nothing while changes are written, and see what its content users are told."""
    standby = servers[1]
    standby.execute("select pg_wal_replay_pause()")
    told, stored = len(follower.rows()), documents(lcc)
    wait_for(lambda: documents(lcc) > stored + 5, 60, "changes that the standby lacks")
    see_that_a_cursor_comes_back(lcc, url_of("lcc", standby))
    for server in servers:  # the follower of both comes back to one of them
        server.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'both'"
        )
    standby.execute("select pg_wal_replay_resume()")
    wait_for(lambda: len(follower.rows()) > told, 60, "the standby to tell them")


def documents(lcc: Lcc) -> int:
    return int(str(lcc.sql("select count(*) from lccurl")[0][0]))


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
            scene.goes_on(BACK)
        wait_for(lambda: len(followed.rows()) > before, 60, "changes to be told by the new primary")
        followed.see_that_nothing_was_missed_or_told_twice()
        print(f"{len(followed.rows())} changes told, {before} of them before the primary was killed")


@pytest.mark.soak
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
                stand_still_for_a_while(lcc, servers, of_standby)
        of_both.see_that_nothing_was_missed_or_told_twice()
        of_standby.see_that_nothing_was_missed_or_told_twice()
