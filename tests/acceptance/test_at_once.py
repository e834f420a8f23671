"""Sites that permit several fetches at a time and others, in one crawl; with a kill in between."""

import signal
import time
from collections.abc import Callable

import pytest

from tests.harness import Lcc, wait_for
from tests.slow_sites import SlowSites, serving

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

PERMITTED, PAGES, MANY = 4, 120, 600


def paths(count: int) -> list[str]:
    return [f"/{number:04d}.html" for number in range(count)]


def provide(lcc: Lcc, sites: SlowSites, pid: int, name: str, count: int, *options: str) -> None:
    root = f"http://127.0.0.1:{sites.ports[name]}"
    lcc.add_provider(pid, f"{root}/", *options)
    urls = [{"curl": f"{root}{path}", "mimetype": "text/html"} for path in paths(count)]
    assert lcc.push_urls(pid, urls).returncode == 0


def test_a_site_is_fetched_from_so_often_at_a_time_as_it_permits_and_others_once(
    make_lcc: Callable[..., Lcc],
) -> None:
    with serving("wide", "narrow") as sites:
        lcc = make_lcc()
        lcc.start()
        provide(lcc, sites, 1, "wide", PAGES, "--at-once", str(PERMITTED))
        provide(lcc, sites, 2, "narrow", PAGES)
        lcc.wait_until_fetched()
    assert sites.most == {"wide": PERMITTED, "narrow": 1}
    assert sites.asked == {"wide": paths(PAGES), "narrow": paths(PAGES)}, "begun in their order, each once"


def test_a_site_that_asks_for_time_between_fetches_gets_one_at_a_time(make_lcc: Callable[..., Lcc]) -> None:
    with serving("slow", robots="User-agent: *\nCrawl-delay: 0.2\n") as sites:
        lcc = make_lcc()
        lcc.start()
        provide(lcc, sites, 1, "slow", 15, "--at-once", str(PERMITTED))
        lcc.wait_until_fetched()
    assert sites.most == {"slow": 1}


def test_its_bandwidth_is_that_of_all_fetches_together(make_lcc: Callable[..., Lcc]) -> None:
    """How long it takes at least: a busy machine makes it longer only."""
    with serving("wide", size=40_000) as sites:
        lcc = make_lcc()
        lcc.start()
        begun = time.monotonic()
        provide(lcc, sites, 1, "wide", 50, "--at-once", str(PERMITTED), "--bandwidth", "200k")
        lcc.wait_until_fetched()
        took = time.monotonic() - begun
    assert sites.most["wide"] > 1
    assert took > 0.9 * 50 * 40_000 / 200_000


def test_after_a_kill_all_is_fetched_and_little_twice(make_lcc: Callable[..., Lcc]) -> None:
    with serving("wide") as sites:
        lcc = make_lcc(LCC_COMMIT_PAGES="50")
        lcc.start()
        provide(lcc, sites, 1, "wide", MANY, "--at-once", str(PERMITTED))
        wait_for(lambda: len(sites.asked["wide"]) > MANY // 3, 60, "a third")
        lcc.stop(signal.SIGKILL)
        before = len(sites.asked["wide"])
        lcc.start()
        lcc.wait_until_fetched()
    assert before < MANY
    assert sorted(set(sites.asked["wide"])) == paths(MANY)
    assert len(sites.asked["wide"]) - MANY <= 50 + PERMITTED, "what was not durable, and what was under way"
    assert sites.most["wide"] <= 2 * PERMITTED, (
        "a site may not have noticed yet that the killed ones are over"
    )
    assert lcc.lcc("verify").returncode == 0


@pytest.mark.parametrize("wrong", ["0", "65", "many"])
def test_what_is_no_number_of_fetches_is_refused(make_lcc: Callable[..., Lcc], wrong: str) -> None:
    lcc = make_lcc()
    lcc.add_provider(1, "http://127.0.0.1:9/")
    refused = lcc.lcc("provider", "set", "1", "--at-once", wrong, check=False)
    assert refused.returncode == 2
    assert "--at-once" in refused.stderr
    assert "1 fetch\n" in lcc.lcc("provider", "show", "1").stdout
