"""Three crawl processes and a UNS of its own on one MariaDB, with kills: order, one at a time, nothing lost.

``LCC_KILLS`` says how often a random process is killed (default 3; ``make soak`` takes 10),
``LCC_WORKER_URLS`` how many URLs each provider has (default 30, of 24 providers; the soak takes 200 of 60).
"""

import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lcc_scrapy.domain.providers import Provider
from tests.forkserver import popen
from tests.harness import BIN, Lcc, wait_for
from tests.integration.site import Answer, Site, overlaps, page

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(1200)]

WORKERS = 3
URLS = int(os.environ.get("LCC_WORKER_URLS", "30"))
PROVIDERS = 60 if URLS > 60 else 24
KILLS = int(os.environ.get("LCC_KILLS", "3"))
SETS = 4 if URLS > 60 else 2
SLOW = 0.3
"""Seconds that some pages take: long enough for a second fetch of the same provider to be seen beside it."""


class Crew:
    """Crawl processes and a UNS, each of which may be killed and comes back."""

    def __init__(self, lcc: Lcc) -> None:
        self.lcc = lcc
        self.crawls: dict[int, Any] = {}
        self.said: dict[int, int] = {}
        """Bytes that stood in the log of each crawl when it was started last."""

    def log(self, number: int) -> Path:
        return self.lcc.folder / f"crawl{number}.log"

    def is_open(self, number: int) -> bool:
        return b"Spider opened" in self.log(number).read_bytes()[self.said[number] :]

    def start(self, number: int) -> None:
        with self.log(number).open("ab") as log:
            self.said[number] = log.tell()
            self.crawls[number] = popen(
                [
                    *(str(BIN / "scrapy"), "crawl", "lcc_push"),
                    *("-s", "LCC_UNS_ENDPOINTS=", "-s", f"USER_AGENT=worker-{number}"),
                ],
                env=self.lcc.environment,
                cwd=self.lcc.folder,
                log=log,
            )

    def kill(self, number: int) -> None:
        """Kill a crawl, or the UNS, and start it again."""
        if number == WORKERS:
            self.lcc.stop_uns(signal.SIGKILL)
            self.lcc.start_uns()
            return
        self.crawls[number].kill()
        self.crawls[number].wait(300)
        self.start(number)

    def stop(self) -> list[int]:
        """End all crawls in order; one that only begins knows no signals yet."""
        wait_for(lambda: all(map(self.is_open, self.crawls)), 60, "the crawls")
        for crawl in self.crawls.values():
            crawl.terminate()
        return [crawl.wait(300) for crawl in self.crawls.values()]


def name_of(number: int) -> str:
    return f"{number:04d}.html"


def push_until_accepted(lcc: Lcc, pid: int, urls: list[dict[str, object]], sets: str) -> None:
    for _ in range(50):
        done = lcc.push_urls(pid, urls, f"--set-id={sets}")
        if done.returncode == 0:
            return
        assert done.returncode in {69, 75}, done.stderr
        time.sleep(0.3)
    pytest.fail("no push was accepted")


def test_kills_of_any_process_keep_the_order_and_one_fetch_per_provider(
    make_lcc: Callable[..., Lcc],
) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    with Site() as site:
        port = site.listen()
        for pid in range(1, PROVIDERS + 1):
            for number in range(URLS):
                (whole,) = page(f"{pid} {number} " * 50, etag="").pieces
                wait = 0.0 if number % 10 else SLOW
                site.put(f"/p{pid}/{name_of(number)}", Answer((whole,), last=False, wait=wait))
        prefixes = {pid: f"http://127.0.0.1:{port}/p{pid}/" for pid in range(1, PROVIDERS + 1)}
        lcc = make_lcc("mariadb", LCC_LEASE="150s", LCC_FETCHES="16")
        lcc.register(
            *(Provider(pid, "", allowprivate=True, ignorerobots=True) for pid in prefixes),
            roots=[[prefix] for prefix in prefixes.values()],
        )
        lcc.start_uns()
        crew = Crew(lcc)
        for number in range(WORKERS):
            crew.start(number)
        pushes = [(part, pid) for part in range(SETS) for pid in prefixes]
        kill_before = sorted(chance.sample(range(len(pushes)), KILLS))
        begun, killed = time.monotonic(), Counter[int]()
        for turn, (part, pid) in enumerate(pushes):
            while kill_before and kill_before[0] == turn:
                kill_before.pop(0)
                victim = chance.randrange(WORKERS + 1)
                killed[victim] += 1
                crew.kill(victim)
            size = URLS // SETS
            urls = [
                {"curl": prefixes[pid] + name_of(number), "mimetype": "text/html"}
                for number in range(part * size, (part + 1) * size)
            ]
            push_until_accepted(lcc, pid, urls, f"set-{part}")
        wait_for(
            lambda: not lcc.is_spooled() and not lcc.sql("select count(*) from qdb")[0][0], 300, "the end"
        )
        took = time.monotonic() - begun
        places = [16] * WORKERS
        wait_for(  # one may have been killed last of all
            lambda: [one["places"] for one in lcc.status()["workers"]] == places, 60, "the workers"
        )
        assert crew.stop() == [0] * WORKERS
        assert lcc.stop_uns() == 0

        visits = list(site.visits)
    shared = Counter(visit.headers["user-agent"] for visit in visits)
    print(
        f"{len(visits)} requests for {PROVIDERS * URLS} URLs in {took:.0f} s, kills {dict(killed)} ({WORKERS} is the UNS);"
        f" by {dict(shared)}"
    )
    assert sorted(shared) == [f"worker-{number}" for number in range(WORKERS)]
    assert len(visits) <= PROVIDERS * URLS + (KILLS + 1) * 200
    by_provider = defaultdict(list)
    for visit in visits:
        by_provider[visit.area].append(visit)
    for pid in prefixes:
        mine = by_provider[f"p{pid}"]
        assert not overlaps(mine), f"two requests of provider {pid} at a time"
        first_visits = list(dict.fromkeys(visit.path.rpartition("/")[2] for visit in mine))
        assert first_visits == [name_of(number) for number in range(URLS)], f"order of provider {pid}"
    assert lcc.sql("select count(*), count(distinct curl) from lccurl") == [(PROVIDERS * URLS,) * 2]
    assert lcc.sql("select count(*), sum(fileused), sum(nurlproc) from pidb")[0] == (
        PROVIDERS,
        PROVIDERS * URLS,
        0,
    )
    lcc.start_once_more()
    assert lcc.lcc("verify").returncode == 0
