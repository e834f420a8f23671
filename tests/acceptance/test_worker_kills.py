"""``lcc crawl --workers 4`` whose processes are killed again and again: no client is refused, nobody waits long.

``LCC_WORKER_KILLS`` says how often (default 2, ``make soak`` takes 20), over three seconds each.
"""

import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest

from lcc_scrapy.domain.providers import Provider
from tests.acceptance.mortals import children, is_gone, runs
from tests.harness import BIN, Lcc, wait_for
from tests.integration.site import Answer, Site, Visit, overlaps, page

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(900)]

KILLS = int(os.environ.get("LCC_WORKER_KILLS", "2"))
WORKERS, PROVIDERS = 4, 12
BETWEEN_KILLS = 3.0
PAGE_SECONDS = 0.25
"""What each page takes: longer than a look of a worker, so that a second fetch beside it is seen."""

URLS = int(KILLS * BETWEEN_KILLS / PAGE_SECONDS) + 20
LEASE, LONGEST_GAP = 3600.0, 600.0
"""Seconds: a provider that waits for a dead worker's lease to end waits longer than anything else here."""


class Prober(threading.Thread):
    """Connects to the UNS all the time and counts how often it is refused."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self.ended = threading.Event()
        self.tried = 0
        self.refused = 0

    def run(self) -> None:
        while not self.ended.wait(0.02):
            self.tried += 1
            with socket.socket() as probe:
                probe.settimeout(300)
                self.refused += probe.connect_ex(("127.0.0.1", self._port)) != 0

    def stop(self) -> None:
        self.ended.set()
        self.join(300)


def processes(supervisor: int, program: str) -> list[int]:
    return [child for child in children(supervisor) if runs(child, program) and not is_gone(child)]


def longest_gap(visits: Iterable[Visit], until: float) -> float:
    """Return the longest time between two requests for a provider that had pages waiting until then."""
    times = sorted([*(visit.start for visit in visits), until])
    return max((later - earlier for earlier, later in pairwise(times)), default=0.0)


def name_of(number: int) -> str:
    return f"{number:04d}.html"


@pytest.mark.soak_of("sqlite")
@pytest.mark.parametrize("database", ["sqlite", "mariadb"])
def test_a_killed_worker_costs_no_refused_connection_no_long_gap_and_no_second_fetch(
    make_lcc: Callable[..., Lcc], database: str
) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    with Site() as site:
        port = site.listen()
        prefixes = {pid: f"http://127.0.0.1:{port}/p{pid}/" for pid in range(1, PROVIDERS + 1)}
        for pid in prefixes:
            for number in range(URLS):
                (whole,) = page(f"{pid} {number}", etag="").pieces
                site.put(f"/p{pid}/{name_of(number)}", Answer((whole,), last=False, wait=PAGE_SECONDS))
        lcc = make_lcc(database, LCC_LEASE=f"{LEASE:.0f}s")
        lcc.register(
            *(Provider(pid, "", allowprivate=True, ignorerobots=True) for pid in prefixes),
            roots=[[prefix] for prefix in prefixes.values()],
        )
        with (lcc.folder / "crawl.log").open("ab") as log:
            supervisor = subprocess.Popen(
                [str(BIN / "lcc"), "crawl", "--workers", str(WORKERS)],
                env=lcc.environment, cwd=lcc.folder, stdout=log, stderr=log,
            )  # fmt: skip
        lcc.crawl = supervisor
        wait_for(lambda: lcc.lcccp(1, "--check").returncode == 0, 60, "the UNS")
        prober = Prober(lcc.port)
        prober.start()
        for pid, prefix in prefixes.items():
            urls = [{"curl": prefix + name_of(number), "mimetype": "text/html"} for number in range(URLS)]
            assert lcc.push_urls(pid, urls).returncode == 0
        wait_for(lambda: len(site.visits) >= PROVIDERS, 60, "the first pages")
        killed = Counter[str]()
        for number in range(KILLS):
            kind = "uns" if number % 5 == 1 else "scrapy"
            wait_for(lambda kind=kind: processes(supervisor.pid, kind), 30, f"a process of {kind}")
            os.kill(chance.choice(processes(supervisor.pid, kind)), signal.SIGKILL)
            killed[kind] += 1
            time.sleep(BETWEEN_KILLS)
        lcc.wait_until_fetched(300)
        prober.stop()
        supervisor.terminate()
        assert supervisor.wait(300) == 0
        visits = list(site.visits)
    by_provider = defaultdict(list)
    for visit in visits:
        by_provider[visit.area].append(visit)
    gaps = {area: longest_gap(mine, mine[-1].start) for area, mine in by_provider.items()}
    print(
        f"seed {seed}, {database}: kills {dict(killed)}, connections {prober.tried}, refused {prober.refused};"
        f" longest gap {max(gaps.values()):.1f} s; {len(visits)} requests for {PROVIDERS * URLS} URLs"
    )
    assert prober.refused == 0
    assert prober.tried > KILLS
    assert max(gaps.values()) < LONGEST_GAP
    for area, mine in by_provider.items():
        assert not overlaps(mine), f"two requests of {area} at a time"
        first_visits = list(dict.fromkeys(visit.path.rpartition("/")[2] for visit in mine))
        assert first_visits == [name_of(number) for number in range(URLS)], f"order of {area}"
    assert lcc.sql("select count(*), count(distinct curl) from lccurl") == [(PROVIDERS * URLS,) * 2]
