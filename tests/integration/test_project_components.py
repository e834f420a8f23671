"""A project with components that many have: its own spiders are as ever, the LCC's take what was let in."""

import dbm
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.forkserver import run
from tests.harness import BIN, Lcc, wait_for
from tests.integration.project import make_project
from tests.integration.site import Site, page

pytestmark = pytest.mark.slow

SETTINGS = """
    BOT_NAME = "shop"
    SPIDER_MODULES = ["shop.spiders"]
    ADDONS = {"lcc_scrapy.addon.LccAddon": 100}
    USER_AGENT = "shopbot"

    DOWNLOADER_MIDDLEWARES = {
        "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
        "scrapy_fake_useragent.middleware.RandomUserAgentMiddleware": 400,
    }
    FAKEUSERAGENT_PROVIDERS = ["scrapy_fake_useragent.providers.FakerProvider"]
    SPIDER_MIDDLEWARES = {"shop.parts.Seen": 100}
    DELTAFETCH_ENABLED = True
    ITEM_PIPELINES = {"shop.parts.Files": 1, "shop.parts.Title": 300}
    FILES_STORE = "files"
    FEEDS = {"items.jsonl": {"format": "jsonlines", "overwrite": True}}
    HTTPCACHE_ENABLED = True
    AUTOTHROTTLE_ENABLED = True
    DOWNLOAD_DELAY = 0.01
"""
PARTS = """
    from pathlib import Path
    from urllib.parse import urlsplit

    from itemadapter import ItemAdapter
    from scrapy.pipelines.files import FilesPipeline
    from scrapy_deltafetch import DeltaFetch


    class Seen(DeltaFetch):
        # Scrapy 2.19 refuses middlewares without it, in any spider
        async def process_spider_output_async(self, response, result, spider):
            async for one in result:
                for kept in self.process_spider_output(response, [one], spider):
                    yield kept


    class Files(FilesPipeline):
        def get_media_requests(self, item, info):
            for request in super().get_media_requests(item, info):
                request.meta["lcc_private_hosts"] = (urlsplit(request.url).netloc,)
                yield request


    class Title:
        def process_item(self, item):
            ItemAdapter(item)["title"] = "a title"
            return item


    class Price:
        def process_item(self, item):
            if Path("broken").exists():
                ItemAdapter(item)["price"].strip()
            return item
"""
OWN_SPIDER = """
    import os

    import scrapy


    class Own(scrapy.Spider):
        name = "own"

        async def start(self):
            yield scrapy.Request(os.environ["SHOP_URL"])

        def parse(self, response):
            yield scrapy.Request(response.urljoin("/page0.html"), callback=self.page)

        def page(self, response):
            yield {"text": response.text, "file_urls": [response.urljoin("/file")]}
"""
PUSH_SPIDER = """
    from lcc_scrapy.items import LccDocument
    from lcc_scrapy.spiders.lcc_push import LccPushSpider


    class ShopPush(LccPushSpider):
        name = "shop_push"
        custom_settings = {
            "LCC_PROJECT_COMPONENTS": [
                "scrapy_fake_useragent.middleware.RandomUserAgentMiddleware",
                "shop.parts.Seen",
                "shop.parts.Files",
                "FEEDS",
            ],
        }

        async def parse_document(self, response):
            yield {"text": response.text, "file_urls": [response.urljoin("/file")]}
"""
FILES = {
    "settings.py": SETTINGS,
    "parts.py": PARTS,
    "spiders/own.py": OWN_SPIDER,
    "spiders/push.py": PUSH_SPIDER,
}
SHARED = """
    import asyncio

    from lcc_scrapy.spiders.lcc_push import LccPushSpider


    class Cancelled:
        # what two pages wait for together, and one of them has given up
        def __init__(self):
            self.failed = set()

        async def wait_for_it(self, url):
            if url not in self.failed:
                self.failed.add(url)
                shared = asyncio.get_running_loop().create_future()
                shared.cancel()
                await shared


    class Middleware(Cancelled):
        async def process_request(self, request):
            if "/page1" in request.url:
                await self.wait_for_it(request.url)


    class Pipeline(Cancelled):
        async def process_item(self, item):
            if "/page2" in item.response.url:
                await self.wait_for_it(item.response.url)
            return item


    class SpiderMiddleware(Cancelled):
        async def process_spider_output(self, response, result):
            if "/page4" in response.url:
                await self.wait_for_it(response.url)
            async for one in result:
                yield one


    class SharedPush(LccPushSpider):
        name = "shared_push"

        async def parse_document(self, response):
            if "/page3" in response.url:
                await Cancelled().wait_for_it(response.url)
            return
            yield
"""
SHARED_SETTINGS = """
    SPIDER_MODULES = ["shop.parts"]
    ADDONS = {"lcc_scrapy.addon.LccAddon": 100}
    DOWNLOADER_MIDDLEWARES = {"shop.parts.Middleware": 400}
    SPIDER_MIDDLEWARES = {"shop.parts.SpiderMiddleware": 100}
    ITEM_PIPELINES = {"shop.parts.Pipeline": 300}
"""
BROKEN = 'ITEM_PIPELINES = {"shop.parts.Price": 300}\nADDONS = {"lcc_scrapy.addon.LccAddon": 100}\n'


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        made.put("/start.html", page("start"))
        made.put("/file", page("a file"))
        yield made


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return make_project(tmp_path / "shop", FILES)


@pytest.fixture
def lcc(make_lcc: Callable[..., Lcc], shop: Path) -> Lcc:
    return make_lcc(project=shop)


def push(lcc: Lcc, site: Site, count: int) -> list[str]:
    """Push that many pages; returns their URLs."""
    host = f"http://127.0.0.1:{site.listen()}"
    lcc.add_provider(7, f"{host}/", "--ignore-robots")
    urls = [f"{host}/page{number}.html" for number in range(count)]
    for number in range(count):
        site.put(f"/page{number}.html", page(f"page {number}"))
    assert lcc.push_urls(7, [{"curl": url, "mimetype": "text/html"} for url in urls]).returncode == 0
    return urls


def stored(lcc: Lcc) -> list[object]:
    return sorted(str(curl) for (curl,) in lcc.sql("select curl from lccurl"))


def agents(site: Site) -> set[str]:
    return {visit.headers["user-agent"] for visit in site.visits}


def seen_by_deltafetch(shop: Path, spider: str) -> int:
    with dbm.open(str(shop / ".scrapy" / "deltafetch" / f"{spider}.db"), "r") as seen:
        return len(seen.keys())


def test_the_lcc_s_spiders_take_no_component_by_default_and_say_so(lcc: Lcc, shop: Path, site: Site) -> None:
    (shop / "items.jsonl").write_text("of another spider")
    lcc.start()
    urls = push(lcc, site, 3)
    lcc.wait_until_fetched()
    assert lcc.stop() == 0
    assert stored(lcc) == urls
    assert agents(site) == {"shopbot"}
    assert (shop / "items.jsonl").read_text() == "of another spider"
    assert not (shop / ".scrapy").exists()
    log = lcc.log_text()
    assert (
        "left out here: ITEM_PIPELINES shop.parts.Files, ITEM_PIPELINES shop.parts.Title,"
        " DOWNLOADER_MIDDLEWARES scrapy_fake_useragent.middleware.RandomUserAgentMiddleware,"
        " SPIDER_MIDDLEWARES shop.parts.Seen, FEEDS; LCC_PROJECT_COMPONENTS takes them in"
    ) in log
    assert log.count("ignored here: AUTOTHROTTLE_ENABLED, DOWNLOAD_DELAY, because each provider") == 1
    assert "HTTPCACHE_ENABLED, because the LCC is the cache" in log
    overridden = log.partition("Overridden settings:")[2].partition("[scrapy.")[0]
    assert "TWISTED" in overridden or "BOT_NAME" in overridden
    assert not any(name in overridden for name in ("AUTOTHROTTLE_ENABLED", "HTTPCACHE_ENABLED", "_DELAY"))


def test_components_that_are_let_in_work(lcc: Lcc, shop: Path, site: Site) -> None:
    lcc.start(spider="shop_push")
    urls = push(lcc, site, 3)
    lcc.wait_until_fetched()
    assert lcc.stop() == 0
    assert stored(lcc) == urls
    assert not agents(site) & {"shopbot"}
    assert all(agent.startswith(("Mozilla/", "Opera/")) for agent in agents(site))
    assert seen_by_deltafetch(shop, "shop_push") == 3
    items = [json.loads(line) for line in (shop / "items.jsonl").read_text().splitlines()]
    assert sorted(item["text"] for item in items) == ["page 0", "page 1", "page 2"]
    for item in items:
        assert (shop / "files" / item["files"][0]["path"]).read_text() == "a file"
    assert "left out here: ITEM_PIPELINES shop.parts.Title; LCC_PROJECT_COMPONENTS" in lcc.log_text()


def test_a_project_s_own_spiders_have_all_their_components(lcc: Lcc, shop: Path, site: Site) -> None:
    url = f"http://127.0.0.1:{site.listen()}/start.html"
    site.put("/page0.html", page("page 0"))
    for _ in range(2):
        done = crawl_own(lcc, url)
        assert done.returncode == 0, done.stderr
    assert all(agent.startswith(("Mozilla/", "Opera/")) for agent in agents(site))
    assert len(site.asked("/page0.html")) == 1  # the second crawl finds it in deltafetch
    assert len(site.asked("/start.html")) == 1  # and this in HTTPCACHE
    assert "deltafetch/skipped" in done.stderr
    assert seen_by_deltafetch(shop, "own") == 1
    assert [path.read_text() for path in (shop / "files" / "full").iterdir()] == ["a file"]


def crawl_own(lcc: Lcc, url: str) -> subprocess.CompletedProcess[str]:
    environment = {**lcc.environment, "SHOP_URL": url}
    return run([str(BIN / "scrapy"), "crawl", "own"], env=environment, cwd=lcc.cwd)


def test_a_component_that_fails_on_every_document_pauses_fetching_and_nothing_is_lost(
    make_lcc: Callable[..., Lcc], tmp_path: Path, site: Site
) -> None:
    """The first 49 lose one try each, so they are given many."""
    shop = make_project(tmp_path / "shop", {"settings.py": BROKEN, "parts.py": PARTS})
    (shop / "broken").touch()
    lcc = make_lcc(
        project=shop,
        LCC_PROJECT_COMPONENTS="shop.parts.Price",
        LCC_COMPONENT_PAUSE="1s",
        LCC_RETRY_DELAYS=",".join(["1s"] * 300),
    )
    lcc.start()
    urls = push(lcc, site, 60)
    line = "fetching pauses: the last 50 documents all failed in shop.parts.Price (KeyError)"
    wait_for(lambda: lcc.log_text().count(line) > 1, 60, "a probe")
    assert lcc.sql("select count(*) from qdb") == [(60,)]
    assert lcc.sql("select count(*) from urlerrors") == [(0,)]
    held = "select qdb.furl from qdb join outcomes using (urlkey) where text like '%; fetching pauses'"
    wait_for(lambda: lcc.sql(held), what="the outcome of the probe")
    explained = lcc.lcc("explain", str(lcc.sql(held)[0][0])).stdout
    assert "shop.parts.Price: KeyError; fetching pauses" in explained
    paused = "hands out no URL: fetching is paused: shop.parts.Price fails on every document (KeyError)"
    wait_for(lambda: paused in lcc.lcc("status").stdout, 60, "the worker to say so")
    (shop / "broken").unlink()
    lcc.wait_until_fetched()
    assert lcc.stop() == 0
    assert stored(lcc) == sorted(urls)
    assert "a document went through all components: fetching goes on" in lcc.log_text()


@pytest.mark.parametrize("besides", ["", ",shop.parts.SpiderMiddleware"], ids=["alone", "spider middleware"])
def test_what_a_component_waits_for_may_be_cancelled_by_another_page(
    besides: str, make_lcc: Callable[..., Lcc], tmp_path: Path, site: Site
) -> None:
    lcc = make_lcc(
        project=make_project(tmp_path / "shop", {"settings.py": SHARED_SETTINGS, "parts.py": SHARED}),
        LCC_PROJECT_COMPONENTS=f"shop.parts.Middleware,shop.parts.Pipeline{besides}",
        LCC_RETRY_DELAYS="1s,1s",
    )
    lcc.start(spider="shared_push")
    urls = push(lcc, site, 5)
    lcc.wait_until_fetched()
    assert lcc.stop() == 0
    assert stored(lcc) == urls
    assert lcc.log_text().count("parse_document failed") == 1
    asked = [len(site.asked(f"/page{number}.html")) for number in range(5)]
    assert asked == [1, 1, 2, 1, 2 if besides else 1]


@pytest.mark.parametrize("command", ["shell", "fetch"])
def test_scrapy_s_commands_for_one_url_say_what_to_use_and_end(command: str, lcc: Lcc, site: Site) -> None:
    url = f"http://127.0.0.1:{site.listen()}/start.html"
    words = [command, "--spider", "lcc_push", url]
    done = run([str(BIN / "scrapy"), *words], env=lcc.environment, cwd=lcc.cwd)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith(
        "scrapy: error: spider lcc_push takes its URLs from the queue only: `lcc fetch URL --provider PID`"
    )
    assert site.visits == []
