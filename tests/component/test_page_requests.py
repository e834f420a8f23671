"""What a page asks for while it is rendered: in which order, by which rules, and that it ends with its page."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.settings import Settings

from lcc_scrapy.config.config import load
from lcc_scrapy.domain.cache import LazyBody
from lcc_scrapy.domain.rendering import RequestBudget
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.fetch.download_handler import BODY, IN_MEMORY, OF_A_PAGE, PRIVATE_HOSTS, TURN
from lcc_scrapy.queue.held_turn import TurnPass
from lcc_scrapy.rendering.cache import ScriptCache
from lcc_scrapy.rendering.page_requests import PageRequests

SITE, CDN = "https://www.example.com", "https://cdn.example.net"
NOTHING: dict[str, str] = {}


class Site:
    """Answers requests as an engine would; ``answers`` by URL are (status, headers, body)."""

    def __init__(self, answers=None, *, hangs=False):
        self.answers = answers or {}
        self.hangs = hangs
        self.asked: list[Request] = []
        self.now = self.most = self.cancelled = 0
        self.engine = self

    async def download_async(self, request):
        self.asked.append(request)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(3600 if self.hangs else 0.001)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.now -= 1
        status, headers, body = self.answers.get(request.url, (200, {}, b"body"))
        request.meta[BODY] = LazyBody(body)
        return Response(request.url, status=status, headers=headers, body=body)

    @property
    def urls(self):
        return [one.url for one in self.asked]


def page(site, *, cache=None, exempt=False, **settings):
    rules = load(Settings({"LCC_RENDER_HOSTS": "cdn.example.net", **settings})).render
    meta = {TURN: TurnPass("7", 1, b"k", 7), PRIVATE_HOSTS: (), "dont_obey_robotstxt": exempt}
    cause = Request(f"{SITE}/docs/", meta=meta)
    budget = RequestBudget(rules, [Root.parse(f"{SITE}/docs/")])
    return PageRequests(site, cause, budget, {"User-Agent": "lcc"}, cache or ScriptCache())


def run(work):
    """Run it in a loop of its own: that of the test's thread belongs to the reactor."""
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, asyncio.wait_for(work, 30)).result()


async def ask(requests, *urls, kind="fetch", headers=NOTHING):
    return await asyncio.gather(*(requests.answer("GET", kind, url, headers) for url in urls))


def test_there_is_one_at_a_time_in_the_turn_of_the_page():
    site = Site()

    async def work():
        async with page(site) as requests:
            return await ask(requests, *(f"{SITE}/{number}" for number in range(9)))

    assert [one.body for one in run(work())] == [b"body"] * 9
    assert site.most == 1
    first = site.asked[0]
    assert (first.meta[TURN].pid, first.meta[OF_A_PAGE], first.meta[IN_MEMORY]) == (7, True, 20_000_000)
    assert site.asked[1].meta[IN_MEMORY] == 20_000_000 - 4


def test_headers_of_the_page_are_not_sent_but_three():
    site = Site()

    async def work():
        async with page(site) as requests:
            said = {"accept": "a/b", "origin": SITE, "authorization": "x", "cookie": "y", "referer": "z"}
            await ask(requests, f"{SITE}/a", headers=said)

    run(work())
    assert dict(site.asked[0].headers.to_unicode_dict()) == {
        "User-Agent": "lcc", "Accept": "a/b", "Origin": SITE,
    }  # fmt: skip


def test_a_script_is_asked_for_as_the_browser_wrote_its_url():
    site = Site()
    urls = [f"{SITE}/a|b?c=d|e", f"{SITE}/x[1].js?", f"{SITE}/%7e'b"]

    async def work():
        async with page(site) as requests:
            await ask(requests, *urls)

    run(work())
    assert site.urls == urls


@pytest.mark.parametrize("exempt", [False, True])
def test_an_owner_exempts_only_hosts_of_his_own_from_robots_txt(exempt):
    site = Site()

    async def work():
        async with page(site, exempt=exempt) as requests:
            await ask(requests, f"{SITE}/a", f"{CDN}/a")

    run(work())
    assert [one.meta["dont_obey_robotstxt"] for one in site.asked] == [exempt, False]


def test_a_redirect_is_checked_as_a_request_is():
    evil = "https://evil.example/"
    site = Site({
        f"{SITE}/a": (302, {"Location": "/b"}, b""),
        f"{SITE}/b": (301, {"Location": f"{CDN}/c"}, b""),
        f"{SITE}/d": (302, {"Location": evil}, b""),
        f"{SITE}/e": (302, {"Location": "/e"}, b""),
        f"{SITE}/f": (302, {}, b""),
    })  # fmt: skip

    async def work():
        async with page(site) as requests:
            return await ask(requests, *(f"{SITE}/{name}" for name in "adef"))

    fetched = run(work())
    assert [one and one.body for one in fetched[:2]] == [b"body", None]
    assert fetched[2:] == [None, None]
    assert evil not in site.urls
    assert len(site.urls) < 20


def test_what_is_under_way_ends_with_the_page_and_nothing_begins_after_it():
    site = Site(hangs=True)

    async def work():
        async with page(site) as requests:
            waiting = [
                asyncio.ensure_future(requests.answer("GET", "fetch", f"{SITE}/{n}", {})) for n in "ab"
            ]
            await asyncio.sleep(0.01)
        late = await requests.answer("GET", "fetch", f"{SITE}/late", {})
        return [*await asyncio.gather(*waiting), late]

    assert run(work()) == [None, None, None]
    assert (site.urls, site.cancelled, site.now) == ([f"{SITE}/a"], 1, 0)


def test_no_more_than_its_requests_wait_at_a_time():
    site = Site(hangs=True)

    async def work():
        async with page(site, LCC_RENDER_REQUESTS="5") as requests:
            asked = [asyncio.ensure_future(requests.answer("GET", "fetch", SITE, {})) for _ in range(1000)]
            await asyncio.sleep(0.01)
            return sum(one.done() for one in asked)

    assert run(work()) == 1000 - 6


def test_scripts_are_shared_by_the_pages_of_a_provider_while_they_are_fresh():
    site = Site({
        f"{SITE}/kept.js": (200, {"Cache-Control": "max-age=60"}, b"kept"),
        f"{SITE}/never.js": (200, {"Cache-Control": "no-store"}, b"never"),
        f"{SITE}/gone.js": (404, {}, b""),
        f"{SITE}/varies.js": (200, {"Vary": "*"}, b"varies"),
    })  # fmt: skip
    cache, names = ScriptCache(), ("kept", "never", "gone", "varies")

    async def work(kind):
        async with page(site, cache=cache) as requests:
            await ask(requests, *(f"{SITE}/{name}.js" for name in names), kind=kind)

    for kind in ("script", "script", "fetch"):
        run(work(kind))
    counts = [site.urls.count(f"{SITE}/{name}.js") for name in names]
    assert counts == [2, 3, 3, 3], "what scripts fetch is asked for each time"


def test_the_cache_is_bounded_and_kept_apart_by_provider(monkeypatch):
    from lcc_scrapy.rendering import cache as module
    from lcc_scrapy.rendering.page import Fetched

    clock = SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr(module, "time", clock)
    kept = ScriptCache()
    for name in "abc":
        kept.put(7, name, Fetched(200, {}, b"x" * 40), "max-age=10", 100)
    assert [kept.get(7, name) is not None for name in "abc"] == [False, True, True]
    assert kept.get(8, "b") is None
    kept.put(7, "b", Fetched(200, {}, b"y" * 90), "", 100)
    assert [kept.get(7, name) is not None for name in "abc"] == [False, True, False]
    clock.monotonic = lambda: 301.0
    assert kept.get(7, "b") is None
