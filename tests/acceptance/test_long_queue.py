"""A long queue is opened again after ``kill -9`` in bounded memory, and nothing of it is lost, doubled or overtaken.

``LCC_LONG_QUEUE`` says how many URLs wait (default 100,000; ``make soak`` takes a million).
"""

import os
import signal
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest

from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.providers import Provider
from tests.harness import Lcc, memory, wait_for
from tests.integration.site import Site, page
from tests.long_queue import lengthen

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(900)]

URLS = int(os.environ.get("LCC_LONG_QUEUE", "100000"))
SHORT = 1_000
FETCHES = 150
"""Fetches that are seen before the crawl is killed."""

UNDER_WAY = 40
"""Fetches whose outcome may not have been stored when the crawl was killed."""

MB = 1_000_000
ROOM = 60 * MB
"""What another start may take more; 100,000 URLs in memory take three times as much."""


def peak_of_a_crawl(lcc: Lcc, site: Site) -> int:
    """Let a crawl fetch for a while, kill it, and return the most memory that it had."""
    before = len(site.visits)
    lcc.start()
    wait_for(lambda: len(site.visits) >= before + FETCHES, 120, "fetches")
    most = memory(lcc, "VmHWM")
    lcc.stop(signal.SIGKILL)
    return most


def test_a_long_queue_is_opened_again_in_bounded_memory(make_lcc: Callable[..., Lcc]) -> None:
    lcc = make_lcc(LCC_COMMIT_PAGES="32")
    with Site() as site:
        host = f"http://127.0.0.1:{site.listen()}"
        paths = [f"/p1/{number:08d}.html" for number in range(URLS)]
        for path in paths[: 10 * SHORT]:
            site.put(path, page("hello"))
        lcc.register(Provider(1, "", allowprivate=True, ignorerobots=True), roots=[[f"{host}/p1/"]])
        store = SqlStore(lcc.shared_url)
        lengthen(store, 1, (host + path for path in paths[:SHORT]), 100)
        short = peak_of_a_crawl(lcc, site)
        lengthen(store, 1, (host + path for path in paths[SHORT:]), 10_000)
        store.close()
        peak_of_a_crawl(lcc, site)
        long = peak_of_a_crawl(lcc, site)
        visits = [visit.path for visit in list(site.visits)]
    asked = Counter(visits)
    waiting, different = lcc.sql("select count(*), count(distinct curl) from qdb")[0]
    stored = lcc.sql("select count(*) from lccurl")[0][0]
    print(f"{short / MB:.0f} MB with {SHORT} URLs, {long / MB:.0f} MB with {URLS}; {len(visits)} requests")
    assert (waiting, waiting + stored) == (different, URLS)
    assert all(earlier < later for earlier, later in pairwise(asked)), "something was overtaken"
    assert max(asked.values()) <= 3
    assert sum(count - 1 for count in asked.values()) <= 2 * UNDER_WAY, (
        "more than what was under way came twice"
    )
    assert long - short < ROOM, "a queue in memory takes more than this"
