"""Sources that mean harm: bombs, loops, other hosts, private addresses. Each ends with one line for the operator."""

import gzip
from collections.abc import Callable, Iterator

import pytest

from lcc_scrapy.domain.providers import Provider
from tests.faults.canary import Canary
from tests.harness import Lcc
from tests.integration.site import Site, page, raw
from tests.integration.test_sources import Scene, xml

MB = 1_000_000


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.fixture
def scene(make_lcc: Callable[..., Lcc], site: Site) -> Scene:
    return Scene(make_lcc, site)


def failed(scene: Scene, pid: str = "7") -> str:
    """Run a source that fails, and return what its operator is told; nothing was submitted."""
    done = scene.lcc.lcc("source", "run", pid, check=False)
    assert done.returncode == 1
    assert scene.sets() == []
    (line,) = done.stderr.splitlines()
    assert scene.lcc.sql("select failures from sources") == [(1,)]
    return line


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (gzip.compress(bytes(60 * MB)), "more than 50000000 bytes"),
        (gzip.compress(b"<urlset>" + b" " * 60 * MB), "more than 50000000 bytes"),
        (b'<!DOCTYPE a [<!ENTITY b "cc">]><urlset><url><loc>&b;</loc></url></urlset>', "DOCTYPE"),
        (b"<urlset>" * 1000, "inside of each other"),
        (b"<urlset><url><loc>http://x/", "not well-formed"),
        (b"<html>sorry</html>", "no sitemap"),
        (b'<?xml version="1.0" encoding="none"?><urlset/>', "its encoding 'none' is not known"),
    ],
    ids=lambda value: "bytes" if isinstance(value, bytes) else value,
)
def test_bombs_and_documents_that_are_none_are_refused(scene: Scene, body: bytes, why: str) -> None:
    scene.site.put("/sitemap.xml", xml(body))
    scene.add()
    assert why in failed(scene)


@pytest.mark.parametrize(
    "body",
    [gzip.compress(bytes(60 * MB)), b"\x1f\x8b\x08\x08" + bytes(6) + b"name" * (15 * MB)],
    ids=["much", "nothing"],
)
def test_a_coded_bomb_is_refused_while_it_arrives(scene: Scene, body: bytes) -> None:
    scene.site.put("/sitemap.xml", xml(body, content_encoding="gzip"))
    scene.add()
    assert "more than 50000000 bytes" in failed(scene)


def test_an_index_that_names_itself_or_another_index_is_not_followed(scene: Scene) -> None:
    index = scene.index(sitemap="1", inner="1", good="1")
    scene.site.put("/sitemap.xml", xml(index))
    scene.site.put("/inner.xml", xml(index))
    scene.site.put("/good.xml", xml(scene.sitemap("a")))
    scene.add()
    (note,) = scene.run()["notes"]
    assert "an index inside of an index" in note
    assert scene.files_asked() == ["/sitemap.xml", "/inner.xml", "/good.xml"]
    assert scene.waiting() == {"a"}


def test_an_index_of_very_many_files_is_followed_as_far_as_the_bound(scene: Scene) -> None:
    names = {f"s{number}": "1" for number in range(3000)}
    scene.site.put("/sitemap.xml", xml(scene.index(**names)))
    for name in names:
        scene.site.put(f"/{name}.xml", xml(scene.sitemap(name)))
    scene.add()
    report = scene.run()
    assert "only 999 of its files are read" in report["notes"][0]
    assert (report["files"], report["queued"], len(scene.waiting())) == (1000, 999, 999)


def test_nothing_connects_to_other_hosts_whatever_names_them(scene: Scene) -> None:
    with Canary() as canary:
        evil = f"http://127.0.0.1:{canary.port}"
        scene.site.put("/moved", raw(f"HTTP/1.1 302 Found\r\nLocation: {evil}/s\r\n\r\n".encode()))
        index = scene.index(x="1").replace(f"{scene.host}/x.xml", f"{evil}/x.xml")
        scene.site.put("/index", xml(index))
        scene.site.put("/robots.txt", raw(f"HTTP/1.1 302 Found\r\nLocation: {evil}/r\r\n\r\n".encode()))
        scene.add("sitemap", "/moved")
        scene.add("sitemap", "/index")
        done = scene.lcc.lcc("source", "run", "7", check=False)
        assert "does not lie on a host of the provider's roots" in done.stderr
        refused = scene.lcc.lcc("source", "add", "7", "--feed", f"{evil}/", check=False)
        assert (refused.returncode, "does not lie on a host" in refused.stderr) == (1, True)
        assert canary.visitors == []
    assert scene.sets() == []


def test_a_provider_without_leave_reaches_no_private_address(scene: Scene) -> None:
    with Canary() as canary:
        host = f"http://127.0.0.1:{canary.port}"
        scene.lcc.register(Provider(8, ""), roots=[[f"{host}/d/"]])
        scene.lcc.lcc("source", "add", "8", "--sitemap", f"{host}/s.xml")
        assert "its address is private" in failed(scene, "8")
        done = scene.lcc.lcc("source", "discover", f"{host}/", check=False)
        assert (done.returncode, "its address is private" in done.stderr) == (1, True)
        assert canary.visitors == []


def test_a_redirect_without_end_and_a_server_error_are_failures(scene: Scene) -> None:
    scene.site.put("/sitemap.xml", raw(b"HTTP/1.1 301 Moved\r\nLocation: /sitemap.xml\r\n\r\n"))
    scene.add()
    assert "more than 5 redirects" in failed(scene)
    scene.site.put("/sitemap.xml", page("x", "503 Busy", retry_after="9000"))
    assert scene.lcc.lcc("source", "run", "7", check=False).returncode == 1
    assert scene.lcc.sql("select due - at, failures from sources") == [(9000, 2)]


def test_robots_txt_is_obeyed(scene: Scene) -> None:
    scene.site.put("/robots.txt", page("User-agent: *\nDisallow: /sitemap.xml\n"))
    scene.add()
    assert "robots.txt forbids" in failed(scene)
    assert scene.files_asked() == []


def test_a_feed_of_very_many_entries_with_times_that_mean_nothing_is_read_in_part(scene: Scene) -> None:
    entry = f"<item><link>{scene.root}a</link><pubDate>in the year 2525, maybe</pubDate></item>"
    scene.site.put("/feed", xml(gzip.compress((f"<rss><channel>{entry * 300_000}</channel></rss>").encode())))
    scene.add("feed", "/feed")
    report = scene.run()
    assert (report["entries"], report["queued"], scene.waiting()) == (50_000, 1, {"a"})
    assert "more than is read" in report["notes"][0]


def test_what_is_beyond_the_bound_of_urls_is_not_submitted(make_lcc: Callable[..., Lcc], site: Site) -> None:
    scene = Scene(make_lcc, site, LCC_SOURCE_URLS="3")
    scene.site.put(
        "/sitemap.xml", xml(scene.sitemap("a", "b", "c", "d", "e")), xml(scene.sitemap("b", "c", "d", "e"))
    )
    scene.add()
    assert scene.run()["queued"] == 3
    scene.run()
    report = scene.run()
    assert len(scene.waiting()) == 3
    assert "LCC_SOURCE_URLS" in report["notes"][0]
