"""Sources of sites that do not push: sitemaps and feeds, followed by real commands and a real crawl."""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from lcc_scrapy.apps.sources.store import rows_in
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.providers import Provider
from tests.harness import Lcc, wait_for
from tests.integration.site import Answer, Site, page
from tests.ports import free_port

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
                (one,) = rows_in(tx).sources()
                rows_in(tx).put_source(replace(one, owner="", due=0))
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


def test_a_file_behind_a_redirect_is_asked_for_unconditionally(scene: Scene) -> None:
    """Its validators are of another URL, and the redirect may lead elsewhere the next time."""
    scene.site.put(
        "/sitemap.xml", page("", "302 M", location="/one.xml"), page("", "302 M", location="//%5b")
    )
    scene.site.put("/one.xml", xml(scene.sitemap("a"), '"1"', last_modified="Tue, 01 Jan 2030 00:00:00 GMT"))
    scene.add()
    assert scene.run()["queued"] == 1
    scene.site.put("/sitemap.xml", page("", "302 M", location="x/..\\two.xml"))
    scene.site.put(
        "/two.xml", xml(scene.sitemap("a", "b"), '"1"', last_modified="Tue, 01 Jan 2030 00:00:00 GMT")
    )
    scene.site.visits.clear()
    assert scene.run()["queued"] == 1
    assert not any("if-none-match" in one.headers for one in scene.site.visits)
    assert scene.files_asked() == ["/sitemap.xml", "/two.xml"]
    scene.site.put(
        "/sitemap.xml", xml(scene.sitemap("a", "b", "c"), '"1"'), page("", "302 M", location="/three.xml")
    )
    scene.site.put("/three.xml", UNMODIFIED)
    scene.site.visits.clear()
    assert scene.run()["queued"] == 1
    assert "if-none-match" not in scene.site.asked("/sitemap.xml")[0].headers
    scene.site.visits.clear()
    assert "answers 304" in scene.run(check=False)["error"]
    first, second = (one for one in scene.site.visits if not one.path.startswith("/robots"))
    assert first.headers["if-none-match"] == '"1"'
    assert "if-none-match" not in second.headers


def test_urls_of_a_feed_are_seen_from_its_base_as_browsers_see_them(scene: Scene) -> None:
    entries = "".join(f'<entry><link href="{href}"/></entry>' for href in ("a", "../b", "\\d\\c", "http:e"))
    scene.site.put("/feed/x.xml", xml(f'<feed xml:base="../d//x/">{entries}</feed>'))
    scene.add("feed", "/feed/x.xml")
    assert scene.run()["queued"] == 4
    assert scene.waiting() == {"/x/a", "/b", "c", "/x/e"}


def test_a_wall_before_a_sitemap_that_sets_a_cookie_is_passed(scene: Scene) -> None:
    wall = page("", "302 M", location="/sitemap.xml", set_cookie="passed=yes")
    scene.site.put("/sitemap.xml", wall, xml(scene.sitemap("a")))
    scene.add()
    assert scene.run()["queued"] == 1
    told = [(one.path, one.headers.get("cookie")) for one in scene.site.visits]
    assert told == [("/robots.txt", None), ("/sitemap.xml", None), ("/sitemap.xml", "passed=yes")]


def test_what_a_sitemap_names_by_a_name_of_before_is_not_gone(scene: Scene) -> None:
    scene.lcc.lcc("provider", "set", str(PID), "--root", scene.root, "--root", "http://strasse.example/")
    documents = (
        f"<urlset {NS}><url><loc>http://%s.example/x</loc></url><url><loc>{scene.root}%s</loc></url></urlset>"
    )
    scene.site.put("/sitemap.xml", xml(documents % ("strasse", "a")), xml(documents % ("straße", "b")))
    scene.add()
    assert scene.run()["queued"] == 2
    told = scene.run()
    assert (told["queued"], told["removed"], told["refused"]) == (1, 0, {"704": 1})
    assert any("add the root http://xn--strae-oqa.example/" in note for note in told["notes"])
    assert scene.waiting() == {"a", "b", "http://strasse.example/x"}


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


def test_a_feed_tells_what_is_new_and_nothing_of_what_is_gone(scene: Scene) -> None:
    def rss(*names: str, **times: str) -> str:
        items = [
            f"<item><link>/d/{name}</link><pubDate>{times.get(name, '1')}</pubDate></item>" for name in names
        ]
        return f"<rss><channel>{''.join(items)}</channel></rss>"

    scene.site.put("/feed", xml(rss("a", "b")), xml(rss("b", "c", b="2")), xml(rss("c", "a")))
    scene.add("feed", "/feed")
    assert scene.run()["queued"] == 2
    second = scene.run()
    assert (second["queued"], second["removed"], scene.waiting()) == (2, 0, {"a", "b", "c"})
    assert scene.run()["queued"] == 1  # a has come back


def test_resourcesync_is_followed_from_its_description_to_its_changes(scene: Scene) -> None:
    rs = 'xmlns:rs="http://www.openarchives.org/rs/terms/"'

    def document(capability: str, *urls: tuple[str, str]) -> Answer:
        named = "".join(f"<url><loc>{url}</loc><rs:md {said}/></url>" for url, said in urls)
        return xml(f'<urlset {NS} {rs}><rs:md capability="{capability}"/>{named}</urlset>')

    def place(name: str) -> str:
        return f"{scene.host}/{name}"

    site = scene.site
    site.put(
        "/.well-known/resourcesync", document("description", (place("caps"), 'capability="capabilitylist"'))
    )
    lists = (place("changes"), 'capability="changelist"'), (place("all"), 'capability="resourcelist"')
    site.put("/caps", document("capabilitylist", *lists))
    site.put("/all", document("resourcelist", *((scene.root + name, 'hash="1"') for name in "abc")))
    changes = [
        (scene.root + "b", 'change="deleted" datetime="1"'),
        (scene.root + "d", 'change="created" datetime="2"'),
    ]
    site.put(
        "/changes",
        document("changelist", *changes),
        document("changelist", *changes, (scene.root + "a", 'change="updated" datetime="3"')),
    )
    scene.add("resourcesync", "/.well-known/resourcesync")
    scene.run()
    assert scene.files_asked() == ["/.well-known/resourcesync", "/caps", "/all", "/changes"]
    assert scene.waiting() == {"a", "c", "d"}
    assert scene.run()["queued"] == 1


def test_a_site_offers_its_sources_with_the_commands_that_add_them(scene: Scene) -> None:
    site = scene.site
    site.put("/robots.txt", page(f"Sitemap: {scene.host}/maps/1.xml\n"))
    head = '<link rel="alternate" type="application/rss+xml" href="/news?a=1&amp;b=2">'
    site.put("/d/", page(f"<html><head>{head}</head></html>"))
    done = scene.lcc.lcc("source", "discover", scene.root)
    assert [line.split("\t")[3] for line in done.stdout.splitlines()[1:]] == [
        f"lcc source add {PID} --sitemap {scene.host}/maps/1.xml",
        f"lcc source add {PID} --feed '{scene.host}/news?a=1&b=2'",
    ]
    nothing = scene.lcc.lcc("source", "discover", f"{scene.host}/nothing", check=False)
    assert nothing.returncode == 1


def test_a_site_that_is_away_is_told_in_words(scene: Scene) -> None:
    assert "no sources yet" in scene.lcc.lcc("source", "list").stderr
    away = f"http://127.0.0.1:{free_port()}/"
    scene.lcc.register(Provider(8, "", allowprivate=True), roots=[[away]])
    scene.lcc.lcc("source", "add", "8", "--sitemap", f"{away}sitemap.xml")
    done = scene.lcc.lcc("source", "run", "8", check=False)
    assert (done.returncode, done.stderr) == (1, f"lcc: source 1: {away}robots.txt: connection refused\n")


def test_a_source_lies_on_a_host_of_the_roots_and_is_added_once(scene: Scene) -> None:
    scene.add()
    for url, why in (
        (f"{scene.host}/sitemap.xml", "it is source 1 already"),
        ("http://other.example/s.xml", "does not lie on a host of the provider's roots"),
        ("ftp://x/", "scheme"),
    ):
        done = scene.lcc.lcc("source", "add", str(PID), "--sitemap", url, check=False)
        assert (done.returncode, why in done.stderr) == (1, True)
    few = scene.lcc.lcc("source", "add", str(PID), "--feed", f"{scene.host}/f", "--every", "5s", check=False)
    assert "at least 60" in few.stderr
    assert scene.lcc.lcc("source", "run", "7", "9", check=False).returncode == 2
    shown = json.loads(scene.lcc.lcc("source", "show", "1", "--json").stdout)
    assert (shown["kind"], shown["files"], "secret" in shown) == ("sitemap", [], False)
    assert "removed" in scene.lcc.lcc("source", "remove", "1").stdout
    assert scene.lcc.lcc("source", "show", "1", check=False).returncode == 1
