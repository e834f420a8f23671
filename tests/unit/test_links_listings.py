"""Sitemaps and feeds, in every format that is in use, and broken ones."""

import gzip
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.links import listings
from lcc_scrapy.links.listings import Listed, Listing, read_listing
from lcc_scrapy.links.rules import IgnoreList, LinkRules

URL = "http://www.example.org/dir/list"
DEFAULT = LinkRules()
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
SITEMAP = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset {NS} xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
  <url><loc> http://www.example.org/a?b&amp;c </loc><lastmod>2005-01-01</lastmod><priority>0.8</priority>
    <image:image><image:loc>http://www.example.org/i.png</image:loc></image:image></url>
  <url><loc>http://www.example.org/b</loc></url>
  <url><lastmod>2005-01-01</lastmod></url>
</urlset>"""
PAGES = (Listed("http://www.example.org/a?b&c", 1104537600), Listed("http://www.example.org/b"))


def read(body: str | bytes, rules: LinkRules = DEFAULT) -> Listing:
    return read_listing(body.encode() if isinstance(body, str) else body, URL, rules)


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        *(
            ("utf-8", "utf-8"),
            ("x-sjis", "cp932"),
            ("Windows-31J", "cp932"),
            ("x-gbk", "gbk"),
        ),
        *(
            ("ISO-2022-JP", "iso2022_jp"),
            ("utf-16", "utf-16"),
            ("utf-16", "utf-16-le"),
            ("utf-16", "utf-16-be"),
        ),
    ],
)
def test_a_list_may_be_in_any_encoding(label: str, codec: str) -> None:
    text = f'<?xml version="1.0" encoding="{label}"?><urlset><url><loc>http://h/日本</loc></url></urlset>'
    (page,) = read_listing(text.encode(codec), "http://h/", LinkRules()).pages
    assert page.url == "http://h/%E6%97%A5%E6%9C%AC"


@pytest.mark.parametrize(
    "body", [SITEMAP, "\ufeff" + SITEMAP, gzip.compress(SITEMAP.encode()), SITEMAP.replace("UTF-8", "UTF-16").encode("utf-16"), f"<?xml version='1.0'?>{SITEMAP[38:]}"]
)  # fmt: skip
def test_a_sitemap_names_pages(body: str | bytes) -> None:
    assert read(body) == Listing(PAGES)


def test_a_sitemap_index_names_sitemaps() -> None:
    entry = "<sitemap><loc>http://www.example.org/1.xml.gz</loc><lastmod>2004-10-01T18:23:17+00:00</lastmod></sitemap>"
    index = Listing((), (Listed("http://www.example.org/1.xml.gz", 1096654997),))
    assert read(f"<sitemapindex {NS}>{entry}</sitemapindex>") == index


def test_a_sitemap_may_be_text() -> None:
    text = "\ufeffhttp://www.example.org/a\r\n\r\nsomething else\nhttp://www.example.org/é\n"
    assert read(text).pages == (Listed("http://www.example.org/a"), Listed("http://www.example.org/%C3%A9"))


FEEDS = {
    "RSS 0.91": '<!DOCTYPE rss PUBLIC "-//Netscape//" "http://x.example/rss.dtd"><rss version="0.91"><channel><link>http://no.example/</link><item><link>a</link></item></channel></rss>',
    "RSS 1.0": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="x"><link>http://no.example/</link></channel><item><link>a</link><dc:date>2003-12-13T18:30:02Z</dc:date></item></rdf:RDF>',
    "RSS 2.0": '<rss version="2.0"><channel><item><title>&nbsp;</title><link><![CDATA[ a ]]></link><guid>http://no.example/</guid><pubDate>Sat, 13 Dec 2003 18:30:02 GMT</pubDate></item></channel></rss>',
    "RSS 2.0 without link": '<rss><channel><item><guid isPermaLink="false">x</guid></item><item><guid>http://www.example.org/dir/a</guid></item></channel></rss>',
    "Atom": '<feed xmlns="http://www.w3.org/2005/Atom"><link href="http://no.example/"/><entry><link rel="edit" href="e"/><link href="a"/><id>x</id><published>2001-01-01T00:00:00Z</published><updated>2003-12-13T18:30:02Z</updated></entry></feed>',
    "Atom with a base": '<feed xmlns="http://www.w3.org/2005/Atom" xml:base="/other/"><entry xml:base="../dir/"><link href="a"/></entry></feed>',
}  # fmt: skip


@pytest.mark.parametrize("name", FEEDS)
def test_a_feed_names_its_entries(name: str) -> None:
    (page,) = read(FEEDS[name]).pages
    assert page.url == "http://www.example.org/dir/a"
    assert page.modified in {None, 1071340202}
    assert (page.modified is None) == ("2003" not in FEEDS[name])


def test_a_feed_names_its_next_page() -> None:
    feed = '<feed xmlns="http://www.w3.org/2005/Atom"><link rel="next" href="?p=2"/></feed>'
    assert read(feed).sitemaps == (Listed("http://www.example.org/dir/list?p=2"),)


@pytest.mark.parametrize(
    ("text", "modified"),
    [("2005", 1104537600), ("2005-01", 1104537600), ("2005-01-01T01:00:00+01:00", 1104537600), ("Sat, 01 Jan 2005 00:00:00 GMT", 1104537600),
     ("yesterday", None), ("", None), ("9" * 5000, None), ("2005-13-01", None)],
)  # fmt: skip
def test_times_come_in_several_notations(text: str, modified: int | None) -> None:
    assert (
        read(f"<urlset><url><loc>/a</loc><lastmod>{text}</lastmod></url></urlset>").pages[0].modified
        == modified
    )


def test_what_is_cut_short_or_broken_is_read_as_far_as_it_goes() -> None:
    assert read(SITEMAP[: SITEMAP.index("<url><lastmod>") + 8]) == Listing(PAGES)
    assert read(gzip.compress(SITEMAP.encode() * 50)[:200]).pages[:2] in {PAGES, PAGES[:1], ()}


def test_no_other_file_is_read() -> None:
    evil = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    listing = read(f"{evil}<urlset><url><loc>http://www.example.org/&x;</loc></url></urlset>")
    assert "root" not in str(listing)


def test_entities_do_not_grow() -> None:
    laugh = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(10))
    start = time.process_time()
    read(f'<!DOCTYPE a [<!ENTITY a0 "ha">{laugh}]><urlset><url><loc>http://h/&a10;</loc></url></urlset>')
    assert time.process_time() - start < 2


def test_lists_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "MOST", 300)
    monkeypatch.setattr(listings, "LONGEST", 2_000_000)
    many = b"".join(b"<url><loc>/%d</loc></url>" % number for number in range(5000))
    assert len(read(b"<urlset>" + many).pages) == 300
    assert len(read("\n".join(f"http://h/{number}" for number in range(5000))).pages) == 300
    assert len(read("http://h/x\n" * 3 + "http://h/y\n").pages) == 2
    beyond = b"<urlset><url><loc>/a</loc></url>" + b" " * 2_000_000 + b"<url><loc>/b</loc></url>"
    assert len(read(gzip.compress(beyond)).pages) == len(read(beyond).pages) == 1


@pytest.mark.parametrize(
    "body", ["", "<", "<html><a href=x>", "\x1f\x8b", "{}", "<urlset>" * 1000, "<a/>" * 1000]
)
def test_what_is_no_list_names_nothing(body: str) -> None:
    assert read(body) == Listing()


def test_what_is_ignored_is_not_named() -> None:
    assert read(SITEMAP, LinkRules(ignore=IgnoreList.parse(["/b"]))) == Listing(PAGES[:1])


@given(st.binary(max_size=300))
def test_any_bytes_are_read(body: bytes) -> None:
    read(body)
    read(b"<urlset><url><loc>" + body)
    read(b"\x1f\x8b" + body)


LONG = "http://www.example.org/" + "a" * 2020 + "/"


def bases(*written: str) -> Listing:
    opened = "".join(f'<e xml:base="{base}">' for base in written)
    return read(f"<feed>{opened}<entry><link href='x'/></entry></feed>")


def test_a_base_that_is_too_long_counts_as_absent() -> None:
    assert bases(LONG) == Listing((Listed(LONG + "x"),))
    assert bases(LONG + "aaaaaaaa/") == Listing((Listed("http://www.example.org/dir/x"),))


def test_nested_bases_do_not_grow_beyond_a_url() -> None:
    assert bases("http://www.example.org/") == bases("/")
    (given,) = bases(*["a" * 90 + "/"] * 100).pages
    assert 1900 < len(given.url) <= 2048


@pytest.mark.parametrize(
    "base", ["ftp://www.example.org/y/", "mailto:somebody", "http://[", "javascript:x/y"]
)
def test_a_base_that_is_no_http_url_does_not_count(base: str) -> None:
    assert bases(base) == Listing((Listed("http://www.example.org/dir/x"),))


def test_a_text_may_end_its_lines_in_three_ways_and_have_lines_that_are_no_urls() -> None:
    text = b"http://www.example.org/a\rhttp://www.example.org/b\r\n\nhttp://www.example.org/c\nhttp://x y\n"
    assert [one.url[-1] for one in read(text).pages] == ["a", "b", "c"]
