"""The LCC inside somebody else's Scrapy project: it adds its spiders and touches nothing else."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest

from tests.forkserver import run
from tests.harness import BIN, Lcc, wait_for
from tests.integration.project import make_project
from tests.integration.site import Site, page

pytestmark = pytest.mark.slow

ADDED = 'ADDONS = {"lcc_scrapy.addon.LccAddon": 100}\n'
OWN = """\
BOT_NAME = "shop"
SPIDER_MODULES = ["shop.spiders"]
SCHEDULER_PRIORITY_QUEUE = "scrapy.pqueues.ScrapyPriorityQueue"
SCHEDULER_MEMORY_QUEUE = "scrapy.squeues.FifoMemoryQueue"
DEPTH_PRIORITY = 1
CONCURRENT_ITEMS = 7
CONCURRENT_REQUESTS = 3
COOKIES_ENABLED = True
ROBOTSTXT_OBEY = False
RETRY_TIMES = 5
USER_AGENT = "shopbot"
DOWNLOADER_MIDDLEWARES = {"shop.parts.Marks": 10, "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None}
SPIDER_MIDDLEWARES = {"shop.parts.Watches": 11}
ITEM_PIPELINES = {"shop.parts.Writes": 300}
EXTENSIONS = {"shop.parts.Listens": 50}
"""
PARTS = """
    import json
    import os

    from scrapy import signals

    from lcc_scrapy import signals as lcc_signals


    def note(**facts):
        with open(os.environ["SHOP_NOTES"], "a") as notes:
            notes.write(json.dumps(facts) + "\\n")


    class Marks:
        def process_request(self, request):
            request.headers["X-Shop"] = "yes"


    class Watches:
        pass


    class Writes:
        def process_item(self, item):
            if isinstance(item, dict):
                note(item=item)
            return item


    class Listens:
        @classmethod
        def from_crawler(cls, crawler):
            made = cls()
            for name in ("lcc_set_accepted", "lcc_document_stored", "lcc_document_confirmed", "lcc_document_removed"):
                method = getattr(made, name)
                crawler.signals.connect(method, getattr(lcc_signals, name))
            return made

        def lcc_set_accepted(self, path):
            note(signal="set_accepted", name=path.name)

        def lcc_document_stored(self, document, row):
            note(signal="stored", url=document.url, docid=document.docid, seq=row.seq, body=document.open().read().decode())

        def lcc_document_confirmed(self, document, row):
            note(signal="confirmed", served=document is not None, at=row.confirmed_time, seq=row.seq)

        def lcc_document_removed(self, docid, pid, reason):
            note(signal="removed", docid=docid, pid=pid, reason=reason)
"""
WORDS = """
    from itemadapter import ItemAdapter
    from scrapy.exceptions import DropItem

    from lcc_scrapy.items import LccDocument


    class Counts:
        def process_item(self, item):
            if isinstance(item, LccDocument):
                ItemAdapter(item)["words"] = len(item.body.split())
            return item


    class Short:
        def process_item(self, item):
            if ItemAdapter(item).get("words", 0) > 4:
                raise DropItem("too long")
            return item
"""
OWN_SPIDER = """
    import os

    import scrapy


    class Own(scrapy.Spider):
        name = "own"
        custom_settings = {"DOWNLOAD_DELAY": 0.01}

        async def start(self):
            yield scrapy.Request(os.environ["SHOP_URL"])

        def parse(self, response):
            yield {"text": response.text}
"""
PUSH_SPIDER = """
    from lcc_scrapy.spiders.lcc_push import LccPushSpider


    class ShopPush(LccPushSpider):
        name = "shop_push"

        async def parse_document(self, response):
            yield {"title": response.css("title::text").get(), "url": response.url}
"""
FILES = {"parts.py": PARTS, "spiders/own.py": OWN_SPIDER, "spiders/push.py": PUSH_SPIDER}
DUMP = """\
import json, sys
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.utils.project import get_project_settings
crawler = AsyncCrawlerRunner(get_project_settings()).create_crawler(sys.argv[1])
def plain(value):
    return dict(value) if hasattr(value, "items") else value
found = {name: (plain(value), crawler.settings.getpriority(name)) for name, value in crawler.settings.items()}
print(json.dumps(found, default=repr, sort_keys=True))
"""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


class Shop:
    """A project, with or without the add-on, and what its parts noted down."""

    def __init__(self, folder: Path, settings: str) -> None:
        folder.mkdir()
        self.folder = make_project(folder, {**FILES, "settings.py": settings})
        self.notes_file = folder / "notes"

    def run(self, lcc: Lcc, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return run(
            [str(BIN / words[0]), *words[1:]],
            env={**lcc.environment, "SHOP_NOTES": str(self.notes_file), **environment},
            cwd=self.folder,
        )

    def notes(self) -> list[dict[str, object]]:
        text = self.notes_file.read_text() if self.notes_file.exists() else ""
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def lcc(make_lcc: Callable[..., Lcc], tmp_path: Path) -> Lcc:
    made = make_lcc(
        project=Shop(tmp_path / "shop", OWN + ADDED).folder, LCC_FILE_GRACE="1s", LCC_RETRY_DELAYS=""
    )
    made.settings["SHOP_NOTES"] = str(tmp_path / "shop" / "notes")
    return made


@pytest.fixture
def shop(lcc: Lcc) -> Shop:
    made = Shop.__new__(Shop)
    assert lcc.project is not None
    made.folder, made.notes_file = lcc.project, lcc.project / "notes"
    return made


def test_a_project_s_own_spider_keeps_every_setting(lcc: Lcc, shop: Shop, tmp_path: Path) -> None:
    without = Shop(tmp_path / "without", OWN)
    dumped = {}
    for name, project in (("with", shop), ("without", without)):
        done = project.run(lcc, "python", "-c", DUMP, "own")
        assert done.returncode == 0, done.stderr
        dumped[name] = json.loads(done.stdout)
    differing = {key for key in dumped["with"] if dumped["with"][key] != dumped["without"].get(key)}
    assert differing == {"ADDONS", "SPIDER_MODULES"}
    assert dumped["with"].keys() == dumped["without"].keys()
    assert dumped["with"]["SPIDER_MODULES"] == [
        ["shop.spiders", "lcc_scrapy.spiders"],
        dumped["without"]["SPIDER_MODULES"][1],
    ]


def test_the_project_s_spiders_and_the_lcc_s_are_known(lcc: Lcc, shop: Shop) -> None:
    known = "import scrapy.crawler as c, scrapy.utils.project as p; print(*c.AsyncCrawlerRunner(p.get_project_settings()).spider_loader.list())"
    assert sorted(shop.run(lcc, "python", "-c", known).stdout.split()) == [
        "lcc_push",
        "lcc_spider",
        "own",
        "shop_push",
    ]


def test_scrapy_list_shows_the_lcc_s_spiders_once_their_module_is_named(lcc: Lcc, shop: Shop) -> None:
    """Scrapy 2.19 does not ask add-ons there."""
    assert shop.run(lcc, "scrapy", "list").stdout.split() == ["own", "shop_push"]
    settings = shop.folder / "shop" / "settings.py"
    settings.write_text(OWN.replace('["shop.spiders"]', '["shop.spiders", "lcc_scrapy.spiders"]') + ADDED)
    assert shop.run(lcc, "scrapy", "list").stdout.split() == ["lcc_push", "lcc_spider", "own", "shop_push"]
    assert shop.run(lcc, "scrapy", "lcc", "status").returncode == 0


def test_a_project_s_own_spider_crawls_as_ever(lcc: Lcc, shop: Shop, site: Site) -> None:
    site.put("/a", page("hello"))
    done = shop.run(lcc, "scrapy", "crawl", "own", SHOP_URL=f"http://127.0.0.1:{site.listen()}/a")
    assert done.returncode == 0, done.stderr
    assert [(visit.path, visit.headers["user-agent"], visit.headers["x-shop"]) for visit in site.visits] == [
        ("/a", "shopbot", "yes")
    ]
    assert shop.notes() == [{"item": {"text": "hello"}}]


@pytest.mark.parametrize(
    ("name", "value"),
    [("SCHEDULER", "scrapy.core.scheduler.Scheduler"), ("DOWNLOADER", "scrapy.core.downloader.Downloader")],
)
def test_an_lcc_spider_refuses_foreign_components_with_one_line(name: str, value: str, lcc: Lcc) -> None:
    said = lcc.refused("-s", f"{name}={value}")
    assert "Traceback" not in said
    ours = {
        "SCHEDULER": "lcc_scrapy.scheduler.ProviderScheduler",
        "DOWNLOADER": "lcc_scrapy.downloader.LccDownloader",
    }
    assert said.splitlines()[-1] == (
        f"scrapy: error: spider lcc_push needs {name} = {ours[name]}, not {value}; remove that setting"
    )


def test_a_foreign_download_handler_is_refused_too(lcc: Lcc) -> None:
    handlers = '{"http": "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"}'
    said = lcc.refused("-s", f"DOWNLOAD_HANDLERS={handlers}")
    assert "Traceback" not in said
    assert said.splitlines()[-1] == (
        "scrapy: error: spider lcc_push needs DOWNLOAD_HANDLERS['http'] = lcc_scrapy.fetch.download_handler.LccDownloadHandler,"
        " not scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler; remove that setting"
    )


def test_the_command_line_cannot_take_away_what_an_lcc_spider_needs(lcc: Lcc, shop: Shop, site: Site) -> None:
    host = f"http://127.0.0.1:{site.listen()}"
    lcc.add_provider(7, f"{host}/")
    site.put("/robots.txt", page("User-agent: *\nDisallow: /secret"))
    site.put("/a", page("", "302 Found", location="/b"))
    site.put("/b", page("hello"))
    given = {
        "DOWNLOADER_MIDDLEWARES": "{}",
        "ITEM_PIPELINES": "{}",
        "EXTENSIONS": "{}",
        "HTTPERROR_ALLOW_ALL": "0",
        "REDIRECT_ENABLED": "1",
        "ROBOTSTXT_OBEY": "1",
    }
    lcc.start(*[word for name, value in given.items() for word in ("-s", f"{name}={value}")])
    urls = [{"curl": f"{host}/{name}", "mimetype": "text/html"} for name in ("secret", "a", "missing")]
    assert lcc.push_urls(7, urls).returncode == 0
    lcc.wait_until_fetched(20)
    assert [visit.path for visit in site.visits] == ["/robots.txt", "/a", "/b", "/missing"]
    assert [error["code"] for error in lcc.check(7)["errors"]] == [611, 404]
    assert lcc.stop() == 0


def test_a_project_s_own_scheduler_setting_does_not_reach_the_lcc_s_spiders(
    make_lcc: Callable[..., Lcc], tmp_path: Path
) -> None:
    own = OWN + ADDED + 'SCHEDULER = "scrapy.core.scheduler.Scheduler"\nJOBDIR = "job"\nDOWNLOAD_DELAY = 9\n'
    lcc = make_lcc(project=Shop(tmp_path / "shop", own).folder)
    lcc.settings["SHOP_NOTES"] = str(tmp_path / "notes")
    lcc.start()
    assert lcc.stop() == 0
    assert not (tmp_path / "shop" / "job").exists()


def test_a_team_s_subclass_its_pipelines_and_signals_work(lcc: Lcc, shop: Shop, site: Site) -> None:
    host = f"http://127.0.0.1:{site.listen()}"
    lcc.add_provider(7, f"{host}/")
    site.put("/a", page("<title>First</title>"))
    lcc.start(spider="shop_push")
    assert lcc.push_urls(7, [{"curl": f"{host}/a", "mimetype": "text/html"}]).returncode == 0
    lcc.wait_until_fetched()
    assert lcc.push_urls(7, [{"curl": f"{host}/a", "mimetype": "text/html", "op": "remove"}]).returncode == 0
    wait_for(lambda: any(note.get("signal") == "removed" for note in shop.notes()), 10, "the removal")
    assert lcc.stop() == 0
    accepted, item, stored, accepted_again, removed = shop.notes()
    assert accepted["signal"] == accepted_again["signal"] == "set_accepted"
    assert item == {"item": {"title": "First", "url": f"{host}/a"}}
    assert (stored["signal"], stored["url"], stored["body"]) == (
        "stored",
        f"{host}/a",
        "<title>First</title>",
    )
    assert removed == {"signal": "removed", "docid": stored["docid"], "pid": 7, "reason": removed["reason"]}
    agent, marked = site.asked("/a")[0].headers["user-agent"], site.asked("/a")[0].headers["x-shop"]
    assert (agent, marked) == ("shopbot", "yes")


def test_a_304_and_the_same_content_once_more_are_each_announced_once(
    lcc: Lcc, shop: Shop, site: Site
) -> None:
    host = f"http://127.0.0.1:{site.listen()}"
    lcc.add_provider(7, f"{host}/")
    lcc.settings["LCC_PROJECT_COMPONENTS"] = "shop.parts.Listens"
    lcc.start()
    for answer in (page("same", etag='"1"'), page("same", etag='"2"'), page("", "304 Not Modified")):
        site.put("/a", answer)
        assert lcc.push_urls(7, [{"curl": f"{host}/a", "mimetype": "text/html"}]).returncode == 0
        lcc.wait_until_fetched()
    assert lcc.stop() == 0
    stored, served, unmodified = (one for one in shop.notes() if one["signal"] != "set_accepted")
    assert [one["signal"] for one in (stored, served, unmodified)] == ["stored", "confirmed", "confirmed"]
    assert (served["served"], unmodified["served"]) == (True, False)
    assert stored["seq"] == served["seq"] == unmodified["seq"]
    assert served["at"] <= unmodified["at"]


def test_a_feed_gets_a_team_s_items_and_no_documents(
    lcc: Lcc, shop: Shop, site: Site, tmp_path: Path
) -> None:
    host = f"http://127.0.0.1:{site.listen()}"
    lcc.add_provider(7, f"{host}/")
    site.put("/a", page("<title>First</title>"))
    feed = tmp_path / "items.jsonl"
    lcc.start("-O", str(feed), spider="shop_push")
    assert lcc.push_urls(7, [{"curl": f"{host}/a", "mimetype": "text/html"}]).returncode == 0
    lcc.wait_until_fetched()
    assert lcc.stop() == 0
    assert json.loads(feed.read_text()) == {"title": "First", "url": f"{host}/a"}
    assert "Traceback" not in lcc.log_text()
    assert shop.notes()


def test_an_lcc_spider_opens_no_port_but_the_uns(lcc: Lcc) -> None:
    lcc.start("-s", "TELNETCONSOLE_ENABLED=1", "-s", "REMOTE_CONTROL_ENABLED=1")
    assert lcc.crawl is not None
    assert listening_ports(lcc.crawl.pid) == {lcc.port}
    assert lcc.stop() == 0


def listening_ports(pid: int) -> set[int]:
    """Return the TCP ports a process listens on, as the kernel says."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            name = link.readlink().name
            inodes |= {name[8:-1]} if name.startswith("socket:[") else set()
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    ]
    return {int(line[1].rpartition(":")[2], 16) for line in lines if line[3] == "0A" and line[9] in inodes}


@pytest.mark.parametrize("program", ["scrapy", "lcc"])
def test_the_command_line_goes_before_the_environment_before_settings_py_before_the_default(
    program: str, lcc: Lcc, shop: Shop, tmp_path: Path
) -> None:
    """Each place names another folder without an LCC; the refusal tells which one was read."""
    settings = shop.folder / "shop" / "settings.py"
    kept = {name: value for name, value in lcc.settings.items() if name != "LCC_DATA_DIR"}
    lcc.settings = kept

    def folder_read(*options: str, **environment: str) -> str:
        words = ["crawl", "lcc_push", *options] if program == "scrapy" else [*options, "status"]
        done = shop.run(lcc, program, *words, **environment)
        assert done.returncode != 0
        line = done.stderr.splitlines()[-1]
        assert line.startswith(f"{program}: error: no LCC data directory at "), done.stderr
        return line.partition(" at ")[2].partition(":")[0]

    given = ("-s", f"LCC_DATA_DIR={tmp_path}/given")
    assert folder_read() == f"{shop.folder}/lcc-data"
    settings.write_text(settings.read_text() + f'LCC_DATA_DIR = "{tmp_path}/settings"\n')
    assert folder_read() == f"{tmp_path}/settings"
    assert folder_read(LCC_DATA_DIR=f"{tmp_path}/environment") == f"{tmp_path}/environment"
    assert folder_read(*given, LCC_DATA_DIR=f"{tmp_path}/environment") == f"{tmp_path}/given"


def test_scrapy_lcc_is_lcc(lcc: Lcc, shop: Shop) -> None:
    done = shop.run(lcc, "scrapy", "lcc", "status", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout).keys() == lcc.status().keys()


def test_items_follow_their_document_and_pipelines_hand_fields_on(
    make_lcc: Callable[..., Lcc], site: Site, tmp_path: Path
) -> None:
    own = OWN + ADDED + 'ITEM_PIPELINES = {"shop.words.Counts": 200, "shop.words.Short": 300}\n'
    lcc = make_lcc(project=Shop(tmp_path / "shop", own).folder)
    lcc.settings["SHOP_NOTES"] = str(tmp_path / "notes")
    (tmp_path / "shop" / "shop" / "words.py").write_text(dedent(WORDS))
    host = f"http://127.0.0.1:{site.listen()}"
    lcc.add_provider(7, f"{host}/")
    titles = [" ".join(["word"] * count) for count in range(1, 9)]
    for title in titles:
        site.put(f"/{title.count(' ')}", page(f"<title>{title}</title>"))
    feed = tmp_path / "items.jsonl"
    lcc.start("-O", str(feed), spider="shop_push")
    urls = [{"curl": f"{host}/{title.count(' ')}", "mimetype": "text/html"} for title in titles]
    assert lcc.push_urls(7, urls).returncode == 0
    lcc.wait_until_fetched(8)
    assert [error["code"] for error in lcc.check(7)["errors"]] == [616] * 4
    assert lcc.stop() == 0
    exported = [json.loads(line)["title"] for line in feed.read_text().splitlines()]
    assert exported == titles[:4]
    assert lcc.sql("select distinct status_line from lccmeta") == [("HTTP/1.1 200 OK",)]
    assert "'lcc/items_withheld': 4" in lcc.log_text()
    assert "Traceback" not in lcc.log_text()
