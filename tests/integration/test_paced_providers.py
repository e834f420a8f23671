"""Providers that wait for their own bandwidth hold up nobody: a real crawl, whether its log tells of every page or not.

More providers with a small limit than there are places have a body each that cannot end during the test. What
is stored meanwhile, and what was asked for, tells who got a place.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lcc_scrapy.domain.providers import Provider
from tests.acceptance.pushers import Conversation
from tests.harness import Lcc, wait_for
from tests.integration.site import Site, page

pytestmark = [pytest.mark.slow]

PLACES = 2
PACED = 30
SLOW = 300
LARGE = 2_000_000
"""Bytes of a paced body: it takes hours, and no buffer holds all of it."""

URGENT = PACED + 1
PAGES = 10
LEVELS = ("INFO", "DEBUG")


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


class Crowd:
    """Paced providers 1 to ``PACED``, and one without a limit whose priority is the highest."""

    def __init__(self, lcc: Lcc, site: Site) -> None:
        self.lcc, self.site, self._port = lcc, site, site.listen()
        providers = [Provider(pid, "", bandwidth=SLOW, allowprivate=True) for pid in range(1, URGENT)]
        providers.append(Provider(URGENT, "", priority=2, allowprivate=True))
        lcc.register(*providers, roots=[[self.root(provider.pid)] for provider in providers])
        for pid in range(1, URGENT):
            site.put(f"/{pid}/large", page(b"x" * LARGE))
        for number in range(PAGES):
            site.put(f"/{URGENT}/{number}", page("urgent"))

    def root(self, pid: int) -> str:
        return f"http://127.0.0.1:{self._port}/{pid}/"

    def push(self, pid: int, *names: str) -> None:
        conversation = Conversation(self.lcc.port, pid)
        assert "init_accepted" in conversation.login_answer()
        entries: list[dict[str, object]] = [
            {"curl": self.root(pid) + name, "mimetype": "text/html"} for name in names
        ]
        assert f'received="{len(names)}"' in conversation.push("partial", entries)
        conversation.close()

    def begun(self) -> int:
        return sum(bool(self.site.asked(f"/{pid}/large")) for pid in range(1, URGENT))

    def stored(self) -> dict[int, int]:
        return {
            int(str(pid)): int(str(n))
            for pid, n in self.lcc.sql("select pid, count(*) from lccurl group by pid")
        }

    def why(self, pid: int) -> str:
        told = json.loads(self.lcc.lcc("explain", f"{self.root(pid)}large", "--json").stdout)
        return str(told[0]["queued"]["why"])


def counts(lcc: Lcc) -> dict[str, object]:
    """What the worker told last: of every place at one moment."""
    told = lcc.status()
    return {name: told[name] for name in ("paced", "in_use")}


@pytest.mark.parametrize("level", LEVELS)
def test_paced_providers_hold_up_nobody_are_told_of_and_are_cut_off_when_the_process_stops(
    make_lcc: Callable[..., Lcc], site: Site, level: str
) -> None:
    lcc = make_lcc(LCC_FETCHES=str(PLACES), LCC_STOP_TIMEOUT="1s")
    crowd = Crowd(lcc, site)
    lcc.start("-s", f"LOG_LEVEL={level}")
    for pid in range(1, URGENT):
        crowd.push(pid, "large")
    wait_for(lambda: crowd.begun() == PACED, 60, "every paced provider to begin")
    crowd.push(URGENT, *map(str, range(PAGES)))
    wait_for(lambda: crowd.stored().get(URGENT) == PAGES, 60, "the urgent provider")
    assert crowd.stored() == {URGENT: PAGES}, "no paced body ended before"
    wait_for(lambda: counts(lcc) == {"paced": PACED, "in_use": 0}, 30, "the worker to tell")
    reason = f"of {LARGE} bytes have arrived, at the pace of bandwidth limits since"
    wait_for(lambda: reason in crowd.why(1), 30, "the reason")
    assert lcc.stop() == 0
    assert lcc.sql("select count(*) from qdb")[0][0] == PACED, "each is in its place"
    assert all(len(site.asked(f"/{pid}/large")) == 1 for pid in range(1, URGENT))
    assert not [*Path(lcc.folder).glob("lcc-data/content/**/body-*")]


def test_at_the_bound_of_paced_bodies_providers_with_a_limit_wait_and_say_so(
    make_lcc: Callable[..., Lcc], site: Site
) -> None:
    lcc = make_lcc(LCC_FETCHES=str(PLACES), LCC_FETCHES_PACED="3", LCC_STOP_TIMEOUT="1s")
    crowd = Crowd(lcc, site)
    lcc.start()
    for pid in range(1, 9):
        crowd.push(pid, "large")
    wait_for(lambda: lcc.status()["paced"] >= 3, 60, "the bound")
    crowd.push(URGENT, "0")
    wait_for(lambda: crowd.stored() == {URGENT: 1}, 60, "the urgent provider")
    assert 3 <= crowd.begun() <= 3 + PLACES
    waiting = next(pid for pid in range(1, 9) if not site.asked(f"/{pid}/large"))
    wait_for(lambda: "as many as may" in crowd.why(waiting), what="the reason")


def test_a_body_that_cannot_make_it_in_time_is_told_to_its_provider_and_not_fetched(
    make_lcc: Callable[..., Lcc], site: Site
) -> None:
    lcc = make_lcc(LCC_PACE_DEADLINE="1h")
    crowd = Crowd(lcc, site)
    lcc.start()
    crowd.push(1, "large")
    wait_for(lambda: lcc.sql("select code from urlerrors") == [(604,)], 60, "the error")
    assert len(site.asked("/1/large")) <= 2  # twice where it answered so soon that this was doubted
    assert lcc.sql("select count(*) from qdb")[0][0] == 0
