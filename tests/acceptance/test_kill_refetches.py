"""What ``kill -9`` lets be fetched again: no more than one commit's worth, besides the fetches in flight."""

import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness import Lcc, Nginx, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(300)]

PAGES = 6000
"""Of all providers: enough for some to be left at the last kill."""

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
    make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path, providers: int
) -> None:
    site, each = tmp_path / "site", PAGES // providers
    for pid in range(1, providers + 1):
        (site / f"p{pid}").mkdir(parents=True)
        for number in range(each):
            (site / f"p{pid}" / f"{number:04d}.html").write_text(f"{pid} {number}\n" * 100)
    nginx.start({"site": site})
    host = f"http://127.0.0.1:{nginx.ports['site']}"
    lcc = make_lcc(LCC_FETCHES=str(providers), LCC_COMMIT_PAGES=str(COMMIT))
    lcc.start()
    for pid in range(1, providers + 1):
        lcc.add_provider(pid, f"{host}/p{pid}/")
        pushed = lcc.push(site / f"p{pid}", pid, f"{host}/p{pid}/", state=f"state{pid}.txt")
        assert pushed.returncode == 0, pushed.stderr

    def requests() -> Counter[str]:
        return Counter(one.uri for one in nginx.log("site") if one.uri.endswith(".html"))

    for _ in range(KILLS):
        before = len(requests())
        wait_for(lambda before=before: len(requests()) > before, 60, "fetches")
        with nothing_is_durable(lcc):
            durable = int(str(lcc.sql("select count(*) from lccurl")[0][0]))
            wait_for(lambda durable=durable: len(requests()) >= durable + COMMIT, 60, "a full backlog")
            time.sleep(0.5)  # more would come within milliseconds
            lcc.stop(signal.SIGKILL)
        lcc.start()
    lcc.wait_until_fetched(120)
    assert lcc.stop() == 0
    found = requests()
    again = found.total() - len(found)
    print(f"\n{KILLS} kills, {again} of {len(found)} pages fetched again")
    assert len(found) == PAGES
    assert KILLS <= again <= KILLS * (COMMIT + providers)
    assert lcc.sql("select count(*) from lccurl") == [(PAGES,)]
