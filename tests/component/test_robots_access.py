"""RFC 9309 sections 2.3 and 2.4: how robots.txt is asked for, and what its absence means."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import pytest_twisted
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import DownloadConnectionRefusedError, DownloadTimeoutError
from scrapy.http import Response, TextResponse
from scrapy.settings import Settings
from twisted.internet.defer import Deferred

from lcc_scrapy import middlewares
from lcc_scrapy.app.wiring import Worker
from lcc_scrapy.domain.robots import MAX_BYTES
from lcc_scrapy.fetch import robots
from lcc_scrapy.fetch.download_handler import OF_A_PAGE, TURN
from lcc_scrapy.fetch.robots import RobotsForbidden, RobotsUnavailable
from lcc_scrapy.http.credentials import Credentials
from lcc_scrapy.middlewares import SITEMAPS, LccRobotsMiddleware
from lcc_scrapy.queue.held_turn import TurnPass

RULES = b"User-agent: *\nDisallow: /secret\nCrawl-delay: 7\nSitemap: http://a/s.xml\n"
HOST = "http://www.example.org"


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Any:
    """Run a test in the event loop of the reactor."""

    @pytest_twisted.ensureDeferred
    @wraps(test)
    async def running(*args: object, **named: object) -> None:
        await Deferred.fromFuture(asyncio.ensure_future(test(*args, **named)))

    return running


class Site:
    """Answers requests for robots.txt; ``asked`` are their URLs."""

    def __init__(self, **answers: Response | Exception) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.wait = 0.0

    async def download_async(self, request: Request) -> Response:
        self.asked.append(request.url)
        await asyncio.sleep(self.wait)
        answer = self.answers[request.url.rpartition("/")[2].replace(".", "_")]
        if isinstance(answer, Exception):
            raise answer
        return answer.replace(url=request.url)


@dataclass(eq=False)
class LittleCrawler:
    settings: Settings
    engine: Site
    spider: None = None


def answer(body: bytes = RULES, status: int = 200, location: str = "") -> Response:
    return TextResponse(HOST, status=status, body=body, headers={"Location": location} if location else {})


def asking(site: Site, **settings: object) -> LccRobotsMiddleware:
    parser = "lcc_scrapy.fetch.robots.LccRobotParser"
    named: dict[str, object] = {
        "ROBOTSTXT_OBEY": True,
        "ROBOTSTXT_PARSER": parser,
        "USER_AGENT": "lcc-scrapy/1",
    }
    return LccRobotsMiddleware(cast(Crawler, LittleCrawler(Settings(named | settings), site)))


async def permits(middleware: LccRobotsMiddleware, url: str) -> bool:
    try:
        await middleware.process_request(Request(url))
    except RobotsForbidden:
        return False
    return True


@in_a_loop
async def test_2_3_robots_txt_is_that_of_scheme_host_and_port() -> None:
    site = Site(robots_txt=answer())
    middleware = asking(site)
    for url in (
        f"{HOST}/a",
        f"{HOST}:80/b",
        "https://www.example.org/a",
        f"{HOST}:8080/a",
        "http://example.org/a",
    ):
        assert await permits(middleware, url)
    assert site.asked == [
        f"{HOST}/robots.txt",
        "https://www.example.org/robots.txt",
        f"{HOST}:8080/robots.txt",
        "http://example.org/robots.txt",
    ]


@in_a_loop
async def test_2_3_1_1_rules_that_were_served_are_followed() -> None:
    middleware = asking(Site(robots_txt=answer()))
    assert not await permits(middleware, f"{HOST}/secret/x?y")
    assert await permits(middleware, f"{HOST}/open")


@pytest.mark.parametrize("redirects", [1, 5])
@in_a_loop
async def test_2_3_1_2_five_redirects_are_followed_also_to_other_hosts(redirects: int) -> None:
    hops = {f"r{hop}": answer(b"", 301, f"http://other.example/r{hop + 1}") for hop in range(1, redirects)}
    last = f"r{redirects}"
    site = Site(robots_txt=answer(b"", 302, "http://other.example/r1"), **hops, **{last: answer()})
    middleware = asking(site)
    assert not await permits(middleware, f"{HOST}/secret")
    assert len(site.asked) == redirects + 1


@in_a_loop
async def test_2_3_1_2_endless_redirects_count_as_no_rules() -> None:
    site = Site(robots_txt=answer(b"", 301, "/robots.txt"))
    assert await permits(asking(site), f"{HOST}/secret")
    assert len(site.asked) == 6


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
@in_a_loop
async def test_2_3_1_3_an_answer_4xx_permits_everything(status: int) -> None:
    assert await permits(asking(Site(robots_txt=answer(status=status))), f"{HOST}/secret")


@pytest.mark.parametrize("status", [429, 500, 503, 599])
@in_a_loop
async def test_2_3_1_4_an_answer_5xx_permits_nothing_now(status: int) -> None:
    middleware = asking(Site(robots_txt=answer(status=status)))
    with pytest.raises(RobotsUnavailable):
        await permits(middleware, f"{HOST}/open")


@pytest.mark.parametrize("error", [DownloadTimeoutError("late"), DownloadConnectionRefusedError("no")])
@in_a_loop
async def test_2_3_1_4_an_unreachable_host_permits_nothing_now(error: Exception) -> None:
    middleware = asking(Site(robots_txt=error))
    with pytest.raises(DownloadConnectionRefusedError):
        await permits(middleware, f"{HOST}/open")


@in_a_loop
async def test_2_4_an_answer_is_used_for_24_hours_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(robots, "time", SimpleNamespace(monotonic=lambda: now))
    site = Site(robots_txt=answer())
    middleware = asking(site)
    for later, asked in ((0, 1), (86_399, 1), (86_401, 2)):
        now = 1000.0 + later
        await permits(middleware, f"{HOST}/a")
        assert len(site.asked) == asked


@in_a_loop
async def test_2_5_a_large_answer_is_parsed_up_to_the_limit() -> None:
    filler = b"# more\n" * 70_000
    middleware = asking(
        Site(robots_txt=answer(RULES + filler + b"Disallow: /late\n" + filler + b"Disallow: /never\n"))
    )
    assert len(RULES + filler) < MAX_BYTES
    assert not await permits(middleware, f"{HOST}/late")
    assert await permits(middleware, f"{HOST}/never")


@in_a_loop
async def test_none_of_the_first_requests_that_come_together_is_let_through() -> None:
    site = Site(robots_txt=answer())
    site.wait = 0.05
    middleware = asking(site)
    urls = [f"{HOST}/secret/{number}" for number in range(50)] + [f"{HOST}/open"]
    said = await asyncio.gather(*(permits(middleware, url) for url in urls))
    assert said == [False] * 50 + [True]
    assert len(site.asked) == 1


@in_a_loop
async def test_the_product_token_may_be_set_on_its_own() -> None:
    site = Site(robots_txt=answer(b"User-agent: ours\nDisallow: /\n"))
    assert not await permits(asking(site, ROBOTSTXT_USER_AGENT="Ours/2.0"), f"{HOST}/a")
    assert await permits(asking(site), f"{HOST}/a")


@in_a_loop
async def test_another_parser_may_be_set() -> None:
    middleware = asking(Site(robots_txt=answer()), ROBOTSTXT_PARSER="scrapy.robotstxt.ProtegoRobotParser")
    assert not await permits(middleware, f"{HOST}/secret")
    assert await permits(middleware, f"{HOST}/open")


@pytest.mark.parametrize(("most", "kept"), [(30.0, 7.0), (5.0, 5.0), (0.0, 0.0)])
@in_a_loop
async def test_crawl_delay_goes_to_the_turn_within_its_bound(
    most: float, kept: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[object, float]] = []
    manager = SimpleNamespace(space=lambda turn, seconds: told.append((turn, seconds)))
    parts: Any = SimpleNamespace(manager=manager, config=SimpleNamespace(crawl_delay_max=most))
    worker = SimpleNamespace(space=partial(Worker.space, parts), credentials=Credentials())
    monkeypatch.setattr(middlewares, "worker_of", lambda _: worker)
    request = Request(f"{HOST}/open", meta={TURN: TurnPass("7", 1, b"k", 7)})
    middleware = asking(Site(robots_txt=answer()))
    await middleware.process_request(request)
    assert told == [(TurnPass("7", 1, b"k", 7), kept)]
    request.meta[OF_A_PAGE] = True
    await middleware.process_request(request)
    assert len(told) == 1, "what a page asks for changes nothing"


@in_a_loop
async def test_who_reaches_a_host_in_a_way_of_its_own_asks_for_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a site tells who logs in, and what a proxy says, is not what others are told."""
    file = tmp_path / "credentials.toml"
    file.write_text('[provider.7]\nproxy = "http://p"\n[provider.8."http://www.example.org"]\n')
    worker = SimpleNamespace(space=lambda *_: None, credentials=Credentials(str(file)))
    monkeypatch.setattr(middlewares, "worker_of", lambda _: worker)
    site = Site(robots_txt=answer())
    middleware = asking(site)
    for pid in (7, 9, 7, 8, 0):
        request = Request(f"{HOST}/open", meta={TURN: TurnPass(str(pid), 1, b"k", pid)})
        await middleware.process_request(request)
    assert len(site.asked) == 2  # of provider 7, and of all others: nothing is special about 8


@in_a_loop
async def test_the_sitemaps_of_a_host_come_with_every_request() -> None:
    request = Request(f"{HOST}/open")
    await asking(Site(robots_txt=answer())).process_request(request)
    assert request.meta[SITEMAPS] == ("http://a/s.xml",)
