"""robots.txt: asked once per host by whoever comes first, waited for by everybody, paid for, and obeyed."""

from collections.abc import Callable, Iterator
from threading import Event

import pytest

from lcc_scrapy.domain.providers import Provider
from tests.harness import Lcc, wait_for
from tests.integration.site import Answer, Site, overlaps, page

RULES = "User-agent: *\nDisallow: /p1/secret/\n"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


class Scene:
    """One host with robots.txt, and providers ``p1``, ``p2``, … that push below folders of their names."""

    def __init__(self, make_lcc: Callable[..., Lcc], site: Site, **settings: str) -> None:
        self.site = site
        short = {"LCC_HOST_BACKOFF": "1s", "LCC_RETRY_DELAYS": "1s"}
        self.lcc = make_lcc(**short | settings)
        self.host = f"http://127.0.0.1:{site.listen()}"

    def providers(self, count: int, **columns: object) -> None:
        numbers = range(1, count + 1)
        made = [Provider(pid, "", allowprivate=True, **columns) for pid in numbers]
        self.lcc.register(*made, roots=[[f"{self.host}/p{pid}/"] for pid in numbers])
        self.lcc.start()

    def push(self, pid: int, *paths: str) -> None:
        for path in paths:
            if f"/p{pid}/{path}" not in self.site.pages:
                self.site.put(f"/p{pid}/{path}", page("hello"))
        urls = [{"curl": f"{self.host}/p{pid}/{path}", "mimetype": "text/html"} for path in paths]
        assert self.lcc.push_urls(pid, urls).returncode == 0

    def cached(self) -> set[str]:
        return {str(url).removeprefix(self.host) for (url,) in self.lcc.sql("select furl from lccurl")}

    def codes(self, pid: int) -> list[int]:
        return [error["code"] for error in self.lcc.check(pid)["errors"]]


def test_everybody_waits_for_the_one_look_up_of_a_host(make_lcc: Callable[..., Lcc], site: Site) -> None:
    scene = Scene(make_lcc, site, LCC_FETCH_TIMEOUT="1h")
    answered = Event()
    rules = "User-agent: *\nDisallow: /*/secret\n"
    site.put("/robots.txt", Answer(page(rules).pieces, last=False, held=answered))
    scene.providers(8)
    for pid in range(1, 9):
        scene.push(pid, "secret", "open")
    wait_for(lambda: site.asked("/robots.txt"), 10, "the look-up")
    wait_for(lambda: not scene.lcc.is_spooled(), 10, "the sets to be absorbed")
    assert len(site.visits) == 1
    answered.set()
    scene.lcc.wait_until_fetched(30)
    assert len(site.asked("/robots.txt")) == 1
    assert {visit.path for visit in site.visits} == {"/robots.txt", *(f"/p{pid}/open" for pid in range(1, 9))}
    assert scene.codes(1) == [611]
    assert scene.lcc.stop() == 0


def test_a_host_without_robots_txt_permits_everything(make_lcc: Callable[..., Lcc], site: Site) -> None:
    scene = Scene(make_lcc, site)
    scene.providers(1)
    scene.push(1, "a", "b")
    scene.lcc.wait_until_fetched(30)
    assert [visit.path for visit in site.visits] == ["/robots.txt", "/p1/a", "/p1/b"]
    assert scene.cached() == {"/p1/a", "/p1/b"}


@pytest.mark.parametrize("failure", ["server error", "silence", "cut"])
def test_a_host_that_cannot_say_what_is_permitted_delays_the_turn(
    failure: str, make_lcc: Callable[..., Lcc], site: Site
) -> None:
    answers = {
        "server error": page("", "500 Oh"),
        "silence": Answer((b"late",), wait=3600),
        "cut": Answer((b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nUser-agent: *\n",)),
    }
    scene = Scene(make_lcc, site, LCC_FETCH_TIMEOUT="10s" if failure == "silence" else "1h")
    site.put("/robots.txt", answers[failure], page(RULES))
    scene.providers(1)
    scene.push(1, "secret/a", "b")
    scene.lcc.wait_until_fetched(30)
    assert [visit.path for visit in site.visits] == ["/robots.txt", "/robots.txt", "/p1/b"]
    first, second = site.asked("/robots.txt")
    assert second.start - first.start > 0.9
    assert not overlaps(site.visits)
    assert scene.codes(1) == [611]


def test_a_redirected_robots_txt_is_followed(make_lcc: Callable[..., Lcc], site: Site) -> None:
    scene = Scene(make_lcc, site)
    site.put("/robots.txt", page("", "301 Moved", location="/elsewhere/rules.txt"))
    site.put("/elsewhere/rules.txt", page(RULES))
    scene.providers(1)
    scene.push(1, "secret/a", "b")
    scene.lcc.wait_until_fetched(30)
    assert [visit.path for visit in site.visits] == ["/robots.txt", "/elsewhere/rules.txt", "/p1/b"]


def test_the_target_of_a_redirect_is_asked_for_too(make_lcc: Callable[..., Lcc], site: Site) -> None:
    scene = Scene(make_lcc, site)
    site.put("/robots.txt", page(RULES))
    site.put("/p1/a", page("", "302 Found", location="/p1/secret/a"))
    scene.providers(1)
    scene.push(1, "a", "b")
    scene.lcc.wait_until_fetched(30)
    assert [visit.path for visit in site.visits] == ["/robots.txt", "/p1/a", "/p1/b"]
    assert scene.codes(1) == [611]


def test_a_robots_txt_larger_than_memory_bodies_is_obeyed(make_lcc: Callable[..., Lcc], site: Site) -> None:
    scene = Scene(make_lcc, site, LCC_MEMORY_BODY="1k")
    site.put("/robots.txt", page(RULES + "# and so on\n" * 1000))
    scene.providers(1)
    scene.push(1, "secret/a", "b")
    scene.lcc.wait_until_fetched(30)
    assert scene.cached() == {"/p1/b"}


def test_a_crawl_delay_is_kept_between_fetches_and_not_by_the_exempted(
    make_lcc: Callable[..., Lcc], site: Site
) -> None:
    """For those it would be an hour each."""
    scene = Scene(make_lcc, site, LCC_CRAWL_DELAY_MAX="1h")
    exempting = site.listen()
    site.put("/robots.txt", page("User-agent: lcc-scrapy\nCrawl-delay: 1.5\n"))
    site.put(f"{exempting}/robots.txt", page("User-agent: lcc-scrapy\nCrawl-delay: 3600\n"))
    roots = [[f"{scene.host}/p1/"], [f"http://127.0.0.1:{exempting}/p2/"]]
    both = [Provider(pid, "", allowprivate=True, ignorerobots=pid == 2) for pid in (1, 2)]
    scene.lcc.register(*both, roots=roots)
    scene.lcc.start()
    scene.push(1, "a", "b", "c")
    scene.host = f"http://127.0.0.1:{exempting}"
    scene.push(2, "a", "b", "c")
    scene.lcc.wait_until_fetched(30)
    first, second, third = site.asked("/p1/")
    assert second.start - first.end > 1.4
    assert third.start - second.end > 1.4
    assert [visit.path for visit in site.asked("/p2/")] == ["/p2/a", "/p2/b", "/p2/c"]


def test_the_largest_crawl_delay_that_is_kept_is_a_setting(make_lcc: Callable[..., Lcc], site: Site) -> None:
    scene = Scene(make_lcc, site, LCC_CRAWL_DELAY_MAX="0")
    site.put("/robots.txt", page("User-agent: *\nCrawl-delay: 3600\n"))
    scene.providers(1)
    scene.push(1, "a", "b", "c")
    scene.lcc.wait_until_fetched(30)
    assert scene.cached() == {"/p1/a", "/p1/b", "/p1/c"}


def test_an_exempted_provider_is_not_asked_about(make_lcc: Callable[..., Lcc], site: Site) -> None:
    scene = Scene(make_lcc, site)
    site.put("/robots.txt", page(RULES))
    scene.providers(1, ignorerobots=True)
    scene.push(1, "secret/a")
    scene.lcc.wait_until_fetched(30)
    assert [visit.path for visit in site.visits] == ["/p1/secret/a"]


def test_the_bytes_of_robots_txt_are_paid_for(make_lcc: Callable[..., Lcc], site: Site) -> None:
    scene = Scene(make_lcc, site)
    site.put("/robots.txt", page(RULES + "#" * 40_000))
    scene.providers(1, bandwidth=20_000)
    scene.push(1, "a", "b")
    scene.lcc.wait_until_fetched(30)
    robots, first, second = site.visits
    assert first.path == "/p1/a"
    assert second.start - robots.start > 1.5


def test_who_may_not_ask_a_private_host_does_not_spoil_it_for_who_may(
    make_lcc: Callable[..., Lcc], site: Site
) -> None:
    scene = Scene(make_lcc, site)
    site.put("/robots.txt", page(RULES))
    roots = [[f"{scene.host}/p1/"], [f"{scene.host}/p2/"]]
    scene.lcc.register(Provider(1, ""), Provider(2, "", allowprivate=True), roots=roots)
    for pid in (1, 2):
        site.put(f"/p{pid}/a", page("hello"))
    scene.lcc.start()
    for pid in (1, 2):
        scene.push(pid, "a")
    scene.lcc.wait_until_fetched(30)
    assert scene.cached() == {"/p2/a"}
    assert scene.codes(1) == [615]


def test_no_more_fetches_run_at_a_time_than_the_setting_says(
    make_lcc: Callable[..., Lcc], site: Site
) -> None:
    """Every provider has a host of its own, so that no limit per host helps."""
    lcc = make_lcc(LCC_FETCHES="2", LCC_STOP_TIMEOUT="0.1s")
    numbers = range(1, 7)
    hosts = [f"http://127.0.0.{pid}:{site.listen(address=f'127.0.0.{pid}')}/" for pid in numbers]
    released = Event()
    lcc.register(
        *[Provider(pid, "", allowprivate=True, ignorerobots=True) for pid in numbers],
        roots=[[host] for host in hosts],
    )
    for pid in numbers:
        site.put(f"/p{pid}", Answer(page("hello").pieces, last=False, held=released))
    lcc.start()
    for pid, host in zip(numbers, hosts, strict=True):
        assert lcc.push_urls(pid, [{"curl": f"{host}p{pid}", "mimetype": "text/html"}]).returncode == 0
    wait_for(lambda: len(site.visits) == 2 and not lcc.is_spooled(), 10, "two fetches")
    assert lcc.stop() == 0
    site.visits.clear()
    lcc.start()  # now all of them may begin at the same moment
    wait_for(lambda: lcc.sql("select count(*) from turns where owner <> ''") == [(6,)], 10, "all turns")
    wait_for(lambda: len(site.visits) == 2, 10, "two fetches")
    assert lcc.sql("select count(*) from qdb") == [(6,)]
    released.set()
    lcc.wait_until_fetched(30)
    assert max(visit.together for visit in site.visits) == 2
    assert lcc.sql("select count(*) from lccurl") == [(6,)]
