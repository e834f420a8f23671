"""``kill -9`` at random moments of any process: nothing accepted is lost, nothing doubled, nothing overtaken.

``LCC_KILLS`` says how often in all (``make soak`` takes 200), shared between two databases and two
arrangements of the LCC's processes. Without it, each database sees one arrangement and a few kills.
"""

import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable

import pytest

from lcc_scrapy.db.records import FileBlock
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.providers import Provider
from tests.acceptance.mortals import Alone, Crew, House, Publisher
from tests.harness import Lcc
from tests.integration.site import Site, overlaps

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("LCC_KILLS", "0"))
HOUSES: dict[str, tuple[type[House], ...]] = (
    {"sqlite": (Alone, Crew), "mariadb": (Alone, Crew)} if KILLS else {"sqlite": (Crew,), "mariadb": (Alone,)}
)
PAUSE = float(os.environ.get("LCC_KILL_PAUSE", "0.6"))
"""Longest time between two kills, beside what the restart takes."""
PROVIDERS = 3
CACHE = {"LCC_CONTENT_COMPRESSION": "zstd", "LCC_KEEP_VERSIONS": "2"}
"""What one of the two databases keeps beside the rest; in the end ``lcc verify`` reads all of it."""


def victims(house: type[House], kills: int, chance: random.Random) -> list[str]:
    """Return whom to kill: every kind equally often and at least once, in random order."""
    found = [house.kinds[number % len(house.kinds)] for number in range(max(kills, len(house.kinds)))]
    chance.shuffle(found)
    return found


def stored(lcc: Lcc) -> dict[str, int]:
    """Return the version of every document in the cache, by its URL; raises when a file is not whole."""
    found = {}
    rows = lcc.sql("select furl, fetched_machineid, fetched_fileid, file_encoding from lccurl")
    for furl, machineid, fileid, coding in rows:
        lines = lcc.content(machineid, fileid, coding).decode().splitlines()
        assert len(lines) == 200
        assert len(set(lines)) == 1
        version, _, path = lines[0].partition(" of ")
        assert str(furl).endswith(path)
        found[str(furl)] = int(version)
    return found


def lost(publishers: list[Publisher], documents: dict[str, int]) -> list[str]:
    """Return the accepted updates that the cache does not hold, or holds in an older version."""
    return [
        f"{one.prefix}{name} version {version}: {documents.get(one.prefix + name)}"
        for one in publishers
        for name, version in one.accepted.items()
        if name in one.versions and documents.get(one.prefix + name, 0) < version
    ]


def overtaken(site: Site, publisher: Publisher) -> int:
    """Count documents that were first asked for after one that was submitted later."""
    paths = dict.fromkeys(visit.path for visit in list(site.visits) if visit.area == f"p{publisher.pid}")
    numbers = [int(re.search(r"(\d+)\.html$", path)[1]) for path in paths]
    return sum(later < max(numbers[:at]) for at, later in enumerate(numbers) if at)


@pytest.mark.soak_of("sqlite")
@pytest.mark.parametrize("database", ["sqlite", "mariadb"])
def test_kills_of_any_process_lose_nothing_double_nothing_and_keep_the_order(
    database: str, make_lcc: Callable[..., Lcc], request: pytest.FixtureRequest
) -> None:
    seed = random.randrange(1 << 32)
    print("\nseed", seed)
    chance = random.Random(seed)
    killed, busy, begun = Counter[str](), 0, time.monotonic()
    with Site() as site:
        host = f"http://127.0.0.1:{site.listen()}"
        patience = {"LCC_LEASE": "20s", "LCC_STOP_TIMEOUT": "5s", "LCC_MAX_REMOVAL": "100%"}
        lcc = make_lcc(database, **patience, **(CACHE if database == "mariadb" else {}))
        publishers = [
            Publisher(pid, lcc, site, host, random.Random(chance.random())) for pid in range(1, PROVIDERS + 1)
        ]
        lcc.register(
            *(Provider(one.pid, "", allowprivate=True, ignorerobots=True) for one in publishers),
            roots=[[one.prefix] for one in publishers],
        )
        for one in publishers:
            one.start()
        request.addfinalizer(lambda: [one.end() for one in publishers])
        for arrangement in HOUSES[database]:
            house = arrangement(lcc, publishers, chance)
            house.start()
            for victim in victims(arrangement, KILLS // 4, chance):
                time.sleep(chance.uniform(0, PAUSE))
                busy += bool(lcc.is_spooled() or lcc.sql("select count(*) from qdb")[0][0])
                house.kill(victim)
                killed[victim] += 1
            if arrangement is not HOUSES[database][-1]:
                house.stop()
        for one in publishers:
            one.end()
        lcc.wait_until_fetched(240)
        missed = lost(publishers, stored(lcc))
        for one in publishers:
            assert one.push(), one.strange
        lcc.wait_until_fetched(240)
        house.stop()
        documents = stored(lcc)
        wanted = {one.prefix + name: version for one in publishers for name, version in one.versions.items()}
        visits = list(site.visits)
    rows, keys = lcc.sql("select count(*), count(distinct curl) from lccurl")[0]
    lcc.start_once_more()
    verified = json.loads(lcc.lcc("verify", "--json", check=False).stdout)
    statuses = sum((one.ends for one in publishers), Counter[int]())
    orders = sum(overtaken(site, one) for one in publishers)
    doubles = [one.pid for one in publishers if overlaps([v for v in visits if v.area == f"p{one.pid}"])]
    print(
        f"{database}: {killed.total()} kills in {time.monotonic() - begun:.0f} s {dict(killed)}, {busy} of them with work waiting;\n"
        f"  pipelines ended {dict(statuses)}; {len(visits)} requests, {sum(one._written for one in publishers)} documents"
        f" published, {rows} in the cache\n"
        f"  accepted and lost {len(missed)}, rows twice {rows - keys}, out of order {orders},"
        f" providers with two fetches at a time {len(doubles)}\n"
        f"  lcc verify: {verified['documents']} documents, {verified['files']} files, found {verified['found']}"
    )
    assert busy or KILLS < 40, "no kill hit the work: the test shows nothing"
    assert not [strange for one in publishers for strange in one.strange]
    assert not missed
    assert documents == wanted
    assert rows == keys
    assert not orders
    assert not doubles
    assert not verified["found"], verified["findings"]


def test_a_crawl_that_starts_removes_the_files_of_a_dead_one(make_lcc: Callable[..., Lcc]) -> None:
    lcc = make_lcc("sqlite")
    machine = int(str(lcc.sql("select machineid from machines")[0][0]))
    store = SqlStore(lcc.shared_url)
    with store.begin() as tx:
        tx.put_block(FileBlock(machine, 0, tx.take("fileid", 2), f"{machine}/0", 7))
    store.close()
    left = [lcc.path_of(machine, fileid) for fileid in (1, 2)]
    left[0].parent.mkdir(parents=True)
    for path in left:
        path.write_bytes(b"half a page")
    lcc.start_once_more()
    assert not any(path.exists() for path in left)
    assert lcc.sql("select count(*) from fileblocks") == [(0,)]
