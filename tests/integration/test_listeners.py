"""Whoever listens, whenever he connected, hears of every page; also of a Scrapy that lacks what is replaced."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lcc_scrapy.engine.scrapy_internals import CANCELLED_WAITS, NAMES
from tests.harness import Lcc, wait_for
from tests.integration.project import make_project
from tests.integration.site import Site, page

pytestmark = pytest.mark.slow

PARTS = """
    from scrapy import signals

    from lcc_scrapy import signals as lcc_signals

    EVENTS = (
        "request_reached_downloader", "request_left_downloader", "response_downloaded", "response_received",
        "item_scraped", "item_dropped", "lcc_document_stored",
    )


    class Late:
        # connects to the events of pages when the first document has been stored, by a name in its URL
        def __init__(self, crawler):
            self.crawler = crawler
            crawler.signals.connect(self.begin, lcc_signals.lcc_document_stored)

        @classmethod
        def from_crawler(cls, crawler):
            return cls(crawler)

        def begin(self, row):
            self.crawler.signals.disconnect(self.begin, lcc_signals.lcc_document_stored)
            self.hearers = [self.hearer(name) for name in EVENTS]
            open("begun", "w").close()

        def hearer(self, name):
            def hear():
                with open("heard", "a") as heard:
                    heard.write(name + "\\n")

            self.crawler.signals.connect(hear, getattr(signals, name, None) or getattr(lcc_signals, name))
            return hear


    class Later:
        async def process_item(self, item):
            with open("items", "a") as items:
                items.write(type(item).__name__ + "\\n")
            return item
"""
SPIDER = """
    from lcc_scrapy.spiders.lcc_push import LccPushSpider


    class Plain(LccPushSpider):
        name = "plain"
        custom_settings = {"LCC_PROJECT_COMPONENTS": ["shop.parts.Late"]}


    class Own(LccPushSpider):
        name = "own"
        custom_settings = {"ITEM_PIPELINES": {"shop.parts.Later": 300}}

        def parse_document(self, response):
            yield {"title": response.css("title::text").get()}
"""
SETTINGS = """
    SPIDER_MODULES = ["shop.spiders"]
    ADDONS = {"lcc_scrapy.addon.LccAddon": 100}
    EXTENSIONS = {"shop.parts.Late": 500}
"""
MISSING = """
    from lcc_scrapy.engine import scrapy_internals

    scrapy_internals.NAMES["PART"] = ("renamed",)
"""
WITHOUT_SPIDER_MIDDLEWARES = [part for part in NAMES if part != CANCELLED_WAITS]
"""The parts that are in use, and so looked for, where a project has no spider middleware."""

CASES = [
    pytest.param(way, spider, marks=[pytest.mark.soak] if spider == "own" and way in NAMES else [])
    for way in ("INFO", "DEBUG", *WITHOUT_SPIDER_MIDDLEWARES)
    for spider in ("plain", "own")
]

PAGES = 5
EVERY = ("request_reached_downloader", "request_left_downloader", "response_downloaded", "response_received")
HEARD = dict.fromkeys(EVERY, PAGES + 1) | {"item_scraped": PAGES + 1, "lcc_document_stored": PAGES}
"""The first document is scraped when it has been stored: that is heard, too."""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.mark.parametrize(("way", "spider"), CASES)
def test_a_listener_that_connects_late_hears_of_every_page(
    make_lcc: Callable[..., Lcc], tmp_path: Path, site: Site, way: str, spider: str
) -> None:
    missing = MISSING.replace("PART", way) if way in NAMES else ""
    level = way if way == "DEBUG" else "INFO"
    files = {"settings.py": SETTINGS + missing, "parts.py": PARTS, "spiders/push.py": SPIDER}
    lcc = make_lcc(project=make_project(tmp_path / "shop", files))
    host = f"http://127.0.0.1:{site.listen()}"
    lcc.add_provider(7, f"{host}/")
    names = ["first", *(f"page{number}" for number in range(PAGES))]
    for name in names:
        site.put(f"/{name}", page(f"<title>{name}</title>"))
    lcc.start("-s", f"LOG_LEVEL={level}", spider=spider)
    push(lcc, f"{host}/first")
    wait_for(lambda: any(lcc.folder.rglob("begun")) or any(tmp_path.rglob("begun")), 60, "the listener")
    push(lcc, *(f"{host}/{name}" for name in [*names[1:], "gone"]))
    lcc.wait_until_fetched()
    assert lcc.stop() == 0
    assert {str(curl) for (curl,) in lcc.sql("select curl from lccurl")} == {
        f"{host}/{name}" for name in names
    }
    assert Counter(lines(tmp_path, "heard")) == HEARD | (
        {"item_scraped": 2 * PAGES + 1} if spider == "own" else {}
    )
    log = lcc.log_text()
    assert f"'item_scraped_count': {(PAGES + 1) * (2 if spider == 'own' else 1)}" in log
    assert f"'response_received_count': {PAGES + 3}" in log, "with robots.txt"
    assert ("this Scrapy has no renamed" in log) == (way in NAMES)
    assert "DeprecationWarning" not in log
    if spider == "own":
        assert Counter(lines(tmp_path, "items")) == {"LccDocument": PAGES + 1, "dict": PAGES + 1}


def push(lcc: Lcc, *urls: str) -> None:
    assert lcc.push_urls(7, [{"curl": url, "mimetype": "text/html"} for url in urls]).returncode == 0


def lines(folder: Path, name: str) -> list[str]:
    return [line for path in folder.rglob(name) for line in path.read_text().splitlines()]
