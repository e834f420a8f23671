"""Sources of sites that do not push: sitemaps and feeds, followed by real commands and a real crawl."""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.providers import Provider
from tests.harness import Lcc, wait_for
from tests.integration.site import Answer, Site, page

PID = 7
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


def xml(body: str | bytes, etag: str = "", **headers: str) -> Answer:
    return page(body, content_type="application/xml", etag=etag, **headers)


UNMODIFIED = Answer((b"HTTP/1.1 304 Not Modified\r\n\r\n",), last=False)


class Scene:
    """A site, and an LCC with one provider that has its folder ``/d/`` as root."""

    def __init__(self, make_lcc: Callable[..., Lcc], site: Site, **settings: str) -> None:
        self.site = site
        self.lcc = make_lcc(**{"LCC_HOST_BACKOFF": "1s", "LCC_RETRY_DELAYS": "1s"} | settings)
        self.host = f"http://127.0.0.1:{site.listen()}"
        self.root = f"{self.host}/d/"
        self.lcc.register(Provider(PID, "", allowprivate=True), roots=[[self.root]])

    def sitemap(self, *names: str, lastmod: str = "2024-01-01", **times: str) -> str:
        urls = [
            f"<url><loc>{self.root}{name}</loc><lastmod>{times.get(name, lastmod)}</lastmod></url>"
            for name in names
        ]
        return f"<urlset {NS}>{''.join(urls)}</urlset>"

    def index(self, **files: str) -> str:
        named = [
            f"<sitemap><loc>{self.host}/{name}.xml</loc><lastmod>{time}</lastmod></sitemap>"
            for name, time in files.items()
        ]
        return f"<sitemapindex {NS}>{''.join(named)}</sitemapindex>"

    def add(self, kind: str = "sitemap", path: str = "/sitemap.xml", *options: str) -> None:
        self.lcc.lcc("source", "add", str(PID), f"--{kind}", f"{self.host}{path}", *options)

    def run(self, *, check: bool = True) -> dict:
        done = self.lcc.lcc("source", "run", str(PID), "--json", check=check)
        return json.loads(done.stdout)[-1]

    def make_due(self) -> None:
        """Let the one source be due, as soon as no run of it is under way."""
        store = SqlStore(self.lcc.shared_url)
        try:
            with store.begin() as tx:
                (one,) = tx.sources()
                tx.put_source(replace(one, owner="", due=0))
        finally:
            store.close()

    def sets(self) -> list[int]:
        return [count for (count,) in self.lcc.sql("select received from psets order by psetid")]

    def waiting(self) -> set[str]:
        rows = self.lcc.sql("select furl from qdb where operation = 'fetch'")
        return {str(url).removeprefix(self.root) for (url,) in rows}

    def cached(self) -> set[str]:
        return {str(url).removeprefix(self.root) for (url,) in self.lcc.sql("select furl from lccurl")}

    def files_asked(self) -> list[str]:
        """Return what was asked for but robots.txt and documents; forget it."""
        paths = [one.path for one in self.site.visits if not one.path.startswith(("/robots", "/d/"))]
        self.site.visits.clear()
        return paths


@pytest.fixture
def scene(make_lcc: Callable[..., Lcc], site: Site) -> Scene:
    return Scene(make_lcc, site)


def test_a_sitemap_of_50000_urls_costs_one_conditional_request_and_no_set_the_second_time(
    scene: Scene,
) -> None:
    names = [f"p{number}" for number in range(50_000)]
    changed = dict.fromkeys(names[100:105], "2024-02-02")
    first = gzip.compress(scene.sitemap(*names).encode())
    second = gzip.compress(scene.sitemap(*names, **changed).encode())
    scene.site.put("/sitemap.xml", xml(first, '"one"'), UNMODIFIED, xml(second, '"two"'))
    scene.add()
    assert scene.run()["queued"] == 50_000
    assert (scene.sets(), len(scene.waiting())) == ([50_000], 50_000)
    scene.site.visits.clear()
    again = scene.run()
    (asked,) = scene.site.asked("/sitemap.xml")
    assert asked.headers["if-none-match"] == '"one"'
    assert (again["files"], again["unmodified"], again["sets"]) == (1, 1, 0)
    assert scene.sets() == [50_000]
    last = scene.run()
    assert (last["queued"], last["sets"], scene.sets()) == (5, 1, [50_000, 5])


def test_a_crawl_follows_a_sitemap_by_itself(scene: Scene) -> None:
    for name in "abcd":
        scene.site.put(f"/d/{name}", page(name))
    before, after = scene.sitemap("a", "b", "c"), scene.sitemap("b", "c", "d", c="2024-02-02")
    scene.site.put("/sitemap.xml", xml(before, '"1"'), xml(after, '"2"'), UNMODIFIED)
    scene.add()
    scene.lcc.start()
    wait_for(lambda: scene.cached() == {"a", "b", "c"}, 30, "the first documents")
    assert scene.lcc.sql("select distinct origin, mimetype from lccurl") == [("source", "text/html")]
    wait_for(lambda: scene.lcc.sql("select owner from sources") == [("",)], 30, "the run to end")
    scene.make_due()
    wait_for(lambda: scene.cached() == {"b", "c", "d"}, 30, "what changed")
    wait_for(lambda: not scene.waiting(), 30, "all fetches")
    assert {name: len(scene.site.asked(f"/d/{name}")) for name in "abcd"} == {"a": 1, "b": 1, "c": 2, "d": 1}
    (row,) = json.loads(scene.lcc.lcc("source", "list", "--json").stdout)
    assert (row["listed"], row["failures"], row["error"], row["removed"]) == (3, 0, "", 1)
    assert len(scene.site.asked("/robots.txt")) == 2  # once by fetches, once by sources
    assert scene.lcc.stop() == 0


def test_of_an_index_only_files_are_asked_for_that_it_says_changed(scene: Scene) -> None:
    site = scene.site
    site.put(
        "/sitemap.xml",
        xml(scene.index(s1="1", s2="1")),
        xml(scene.index(s1="1", s2="2")),
        xml(scene.index(s1="1")),
    )
    site.put("/s1.xml", xml(scene.sitemap("a", "b")))
    site.put("/s2.xml", xml(scene.sitemap("b", "c")), xml(scene.sitemap("b", "d")))
    scene.add()
    scene.run()
    assert scene.files_asked() == ["/sitemap.xml", "/s1.xml", "/s2.xml"]
    assert scene.waiting() == {"a", "b", "c"}
    scene.run()
    assert scene.files_asked() == ["/sitemap.xml", "/s2.xml"]
    assert scene.waiting() == {"a", "b", "d"}
    scene.run()
    assert scene.files_asked() == ["/sitemap.xml"]
    assert scene.waiting() == {"a", "b"}  # b is in the file that is left


def test_a_file_that_could_not_be_read_is_asked_for_again_although_its_index_is_unmodified(
    scene: Scene,
) -> None:
    scene.site.put("/sitemap.xml", xml(scene.index(s1="1", s2="1"), '"1"'), UNMODIFIED)
    scene.site.put("/s1.xml", page("oops", "500 Oops"), xml(scene.sitemap("a")))
    scene.site.put("/s2.xml", xml(scene.sitemap("b")))
    scene.add()
    first = scene.run()
    assert "s1.xml answers 500" in first["notes"][0]
    assert scene.waiting() == {"b"}
    scene.files_asked()
    scene.run()
    assert scene.files_asked() == ["/sitemap.xml", "/s1.xml"]
    assert scene.waiting() == {"a", "b"}


def test_a_sitemap_that_loses_everything_removes_nothing(scene: Scene) -> None:
    names = [f"p{number}" for number in range(30)]
    for name in names:
        scene.site.put(f"/d/{name}", page(name))
    scene.site.put(
        "/sitemap.xml", xml(scene.sitemap(*names)), xml(scene.sitemap()), xml(scene.sitemap(*names))
    )
    scene.add()
    scene.run()
    scene.lcc.start()
    scene.lcc.wait_until_fetched(60)
    assert scene.lcc.stop() == 0
    lost = scene.run()
    assert (lost["removed"], lost["held"], len(scene.cached())) == (0, 30, 30)
    assert scene.lcc.sql("select heldremovals from pidb") == [(30,)]
    assert scene.run()["queued"] == 30
    scene.lcc.start()
    wait_for(lambda: scene.lcc.sql("select heldremovals from pidb") == [(0,)], 60, "the holds to end")
    assert scene.lcc.stop() == 0


def test_urls_outside_the_roots_are_refused_counted_and_shown(scene: Scene) -> None:
    outside = f"<url><loc>{scene.host}/e/x</loc></url><url><loc>ftp://x/</loc></url>"
    scene.site.put("/sitemap.xml", xml(scene.sitemap("a").replace("</urlset>", outside + "</urlset>")))
    scene.add()
    done = scene.lcc.lcc("source", "run", str(PID))
    assert "1 URLs queued" in done.stdout
    assert "refused: 1 with 704, 1 with 705" in done.stdout
    assert scene.waiting() == {"a"}
