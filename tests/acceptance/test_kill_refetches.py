"""What ``kill -9`` lets be fetched again: no more than one commit's worth, besides the fetches in flight."""

import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from lcc_scrapy.domain.providers import Provider
from tests.harness import Lcc, wait_for
from tests.integration.site import Answer, Site, page

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

PAGES = 400
"""Of all providers."""

COMMIT = 20
"""Pages of a commit here: few, so that a bound that does not hold is seen soon."""

KILLS = 3


@contextmanager
def nothing_is_durable(lcc: Lcc) -> Iterator[None]:
    """Keep all others from writing to the database, as a disk that is slow to sync would."""
    database = sqlite3.connect(lcc.folder / "lcc-data" / "lcc.sqlite", isolation_level=None, timeout=300)
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        database.execute("ROLLBACK")
        database.close()


@pytest.mark.parametrize("providers", [1, 4])
def test_a_kill_lets_one_commit_s_worth_be_fetched_again(
    make_lcc: Callable[..., Lcc], providers: int
) -> None:
    """The site holds the pages back of which a kill is to find some unfetched, until nothing is durable any more."""
    each = PAGES // providers
    doors = [threading.Event() for _ in range(KILLS)]
    with Site() as site:
        host = f"http://127.0.0.1:{site.listen()}"
        paths = {pid: [f"/p{pid}/{n:04d}.html" for n in range(each)] for pid in range(1, providers + 1)}
        for pid, mine in paths.items():
            for number, path in enumerate(mine):
                door = number * (KILLS + 1) // each
                held = doors[door - 1] if door else None
                site.put(path, Answer(page(f"{pid} {number}\n" * 100).pieces, last=False, held=held))
        lcc = make_lcc(LCC_FETCHES=str(providers), LCC_COMMIT_PAGES=str(COMMIT))
        lcc.register(
            *(Provider(pid, "", allowprivate=True, ignorerobots=True) for pid in paths),
            roots=[[f"{host}/p{pid}/"] for pid in paths],
        )
        lcc.start()
        for pid, mine in paths.items():
            pushed = lcc.push_urls(pid, [{"curl": host + path, "mimetype": "text/html"} for path in mine])
            assert pushed.returncode == 0, pushed.stderr

        def documents() -> int:
            return int(str(lcc.sql("select count(*) from lccurl")[0][0]))

        def served() -> int:
            return len({one.path for one in site.visits if one.end and not one.cut})

        for number, door in enumerate(doors, 1):
            behind = providers * -(-each * number // (KILLS + 1))
            wait_for(lambda behind=behind: documents() == behind, 60, "all that is not held back")
            with nothing_is_durable(lcc):
                door.set()
                wait_for(lambda behind=behind: served() >= behind + COMMIT, 60, "a full backlog")
                time.sleep(0.5)  # more would come within milliseconds
                lcc.stop(signal.SIGKILL)
            lcc.start()
        lcc.wait_until_fetched(120)
        assert lcc.stop() == 0
        found = Counter(one.path for one in site.visits)
    again = found.total() - len(found)
    print(f"\n{KILLS} kills, {again} of {len(found)} pages fetched again")
    assert len(found) == PAGES
    assert KILLS <= again <= KILLS * (COMMIT + providers)
    assert lcc.sql("select count(*) from lccurl") == [(PAGES,)]
