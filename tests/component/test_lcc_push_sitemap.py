"""``lcc-push --sitemap``: a site that is what its sitemap says."""

import gzip

import pytest

from tests.component.test_lcc_push import Owner
from tests.http_lcc import HttpLcc

XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
SITE = "http://www.example.org/"


def urlset(*urls):
    """Return a sitemap; each URL is a name, or (name, lastmod)."""
    pairs = [url if isinstance(url, tuple) else (url, "") for url in urls]
    entries = "".join(
        f"<url><loc>{SITE}{name}</loc>{f'<lastmod>{date}</lastmod>' if date else ''}</url>"
        for name, date in pairs
    )
    return f'<?xml version="1.0"?><urlset {XMLNS}>{entries}</urlset>'.encode()


class Site:
    """The sitemaps of a site, with ETags; ``answered`` has the status of each request."""

    def __init__(self, lcc):
        self.lcc, self.answered = lcc, []

    def put(self, name, body, status=200, **headers):
        def served(handler, _body):
            tag = f'"{hash(body)}"'
            known = handler.headers.get("If-None-Match") == tag
            self.answered.append((name, 304 if known else status))
            return (304, {}, b"") if known else (status, {"ETag": tag, **headers}, body)

        self.lcc.routes["GET", f"/{name}"] = served

    def index(self, *names):
        entries = "".join(f"<sitemap><loc>{name}</loc></sitemap>" for name in names)
        return f"<sitemapindex {XMLNS}>{entries}</sitemapindex>".encode()


@pytest.fixture
def owner(tmp_path):
    with HttpLcc() as lcc:
        made = Owner(tmp_path, lcc)
        made.configure(docroot="", url="", sitemap=f"{lcc.url}sitemap.xml")
        yield made


@pytest.fixture
def site(owner):
    return Site(owner.lcc)


def test_a_sitemap_that_did_not_change_costs_one_conditional_request(owner, site):
    site.put("sitemap.xml", urlset("a", ("b.pdf", "2024-05-01"), ("c&amp;d", "2024-05-01T10:00:00+02:00")))
    assert owner()[0] == 0
    assert owner.lcc.sets == [[SITE + "a", SITE + "b.pdf", SITE + "c&d"]]
    assert owner.lcc.held[SITE + "b.pdf"]["mimetype"] == "application/pdf"
    assert owner.lcc.held[SITE + "c&d"]["mtime"] == "1714550400"
    assert owner() == (0, "")
    assert (len(owner.lcc.sets), site.answered) == (1, [("sitemap.xml", 200), ("sitemap.xml", 304)])


def test_another_lastmod_is_a_change_and_a_missing_url_a_removal(owner, site):
    site.put("sitemap.xml", urlset("a", ("b", "2024-05-01"), "c"))
    owner()
    site.put("sitemap.xml", urlset("a", ("b", "2024-05-02")))
    assert owner()[0] == 0
    assert sorted(owner.lcc.sets[-1]) == [f"-{SITE}c", f"{SITE}b"]


def test_an_index_asks_for_each_sitemap_only_if_it_changed(owner, site):
    site.put("sitemap.xml", site.index(f"{owner.lcc.url}one.xml.gz", f"{owner.lcc.url}two.xml"))
    site.put("one.xml.gz", gzip.compress(urlset("a", "b")))
    site.put("two.xml", urlset("c"))
    assert owner()[0] == 0
    site.put("two.xml", urlset("c", "d"))
    assert owner()[0] == 0
    assert owner.lcc.sets[-1] == [SITE + "d"]
    assert [status for _, status in site.answered] == [200, 200, 200, 304, 304, 200]


def test_an_undated_url_whose_set_was_lost_is_told_again(owner, site):
    site.put("sitemap.xml", urlset("a"))
    lost = []

    def lose(lcc, _handler):
        lost.append(1)
        if lcc.requests[-1][0] == "POST" and len(lost) == 3:
            return 200, {"Content-Type": "application/xml"}, b""
        return None

    owner.lcc.before = lose
    assert owner()[0] == 75
    assert owner()[0] == 0
    assert list(owner.lcc.held) == [SITE + "a"]


def test_a_file_is_a_sitemap_too(owner, tmp_path):
    (tmp_path / "map.xml").write_bytes(urlset("a"))
    assert owner("--sitemap", "map.xml")[0] == 0
    assert list(owner.lcc.held) == [SITE + "a"]


def test_redirects_stay_on_the_host(owner, site):
    site.put("sitemap.xml", b"", 301, Location="/moved.xml")
    site.put("moved.xml", urlset("a"))
    assert owner()[0] == 0
    site.put("sitemap.xml", b"", 301, Location="http://localhost/sitemap.xml")
    status, said = owner()
    assert (status, "redirects to another host" in said) == (65, True), said


BOMB = gzip.compress(b"<urlset>" + b" " * 60_000_000, 1)
HUGE = gzip.compress(b"<urlset>" + (b"<url>" + b" " * 50_000 + b"</url>") * 1100, 1)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<!DOCTYPE x [<!ENTITY a 'b'>]><urlset/>", "DOCTYPE"),
        (b"<html><body>not here</body></html>", "instead of <urlset>"),
        (urlset("a")[:-5], "not well-formed"),
        (gzip.compress(urlset("a"))[:-9], "cut short"),
        (b"\x1f\x8bgarbage" * 9, "cannot be unpacked"),
        (BOMB, "without an end"),
        (HUGE, "larger than 50 MB"),
        (b"<urlset>" + b"<a>" * 100, "nested too deeply"),
        (b"<urlset><url><loc" + b" " * 1_000_000, "without an end"),
        (b"", "empty"),
        (
            b"<sitemapindex><sitemap><loc>http://localhost/x.xml</loc></sitemap></sitemapindex>",
            "another host",
        ),
    ],
)
def test_a_hostile_sitemap_sends_nothing(owner, site, body, said):
    site.put("sitemap.xml", urlset("a"))
    owner()
    site.put("sitemap.xml", body)
    status, words = owner()
    assert (status, said in words) == (65, True), words
    assert words.count("\n") == 1
    assert list(owner.lcc.held) == [SITE + "a"]
    site.put("sitemap.xml", urlset("a", "b"))
    assert owner()[0] == 0


def test_an_index_that_names_itself_and_others_without_end_ends(owner, site):
    site.put(
        "sitemap.xml",
        site.index(*(f"{owner.lcc.url}s{n}.xml" for n in range(1100)), f"{owner.lcc.url}sitemap.xml"),
    )
    for number in range(1100):
        site.put(f"s{number}.xml", urlset())
    status, said = owner()
    assert (status, "too many sitemaps" in said) == (65, True), said


@pytest.mark.parametrize(("code", "status"), [(404, 65), (500, 75), (503, 75)])
def test_a_sitemap_that_is_not_there_removes_nothing(owner, site, code, status):
    site.put("sitemap.xml", urlset("a"))
    owner()
    site.put("sitemap.xml", b"away", code)
    assert owner()[0] == status
    assert list(owner.lcc.held) == [SITE + "a"]
