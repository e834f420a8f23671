"""Files of sources: what each kind says, and what is refused."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.apps.sources.links import link_headers
from lcc_scrapy.apps.sources.pages import HeadLink, head_links
from lcc_scrapy.apps.sources.reading import Unreadable, read
from lcc_scrapy.apps.sources.rules import MOST_ENTRIES, Change, Role, compare, stamp_of
from lcc_scrapy.domain.references import resolve
from lcc_scrapy.domain.retries import due_after_failures

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
RS = 'xmlns:rs="http://www.openarchives.org/rs/terms/"'


def said(body, pieces=None):
    data = body if isinstance(body, bytes) else body.encode()
    size = pieces or len(data) or 1
    return read(data[begin : begin + size] for begin in range(0, len(data), size))


def urls(listing):
    return [resolve(one.url, listing.base) if listing.base else one.url for one in listing.entries]


def sitemap(inner):
    return f'<?xml version="1.0"?>\n<urlset {NS} {RS}>{inner}</urlset>'


def test_a_sitemap_names_all_urls_with_a_stamp_of_their_times():
    found = said(
        sitemap("<url><loc> http://x/a </loc><lastmod>2024</lastmod></url><url><loc>http://x/b</loc></url>")
    )
    assert found.role is Role.LIST
    assert urls(found) == ["http://x/a", "http://x/b"]
    first, second = (one.stamp for one in found.entries)
    assert (first != 0, second) == (True, 0)
    assert first == said(sitemap("<url><lastmod>2024</lastmod><loc>http://x/a</loc></url>")).entries[0].stamp


def test_a_sitemap_may_be_text_packed_or_have_a_prefix():
    text = "http://x/a\r\n\nhttps://x/b"
    assert urls(said(text)) == urls(said(gzip.compress(text.encode()))) == ["http://x/a", "https://x/b"]
    assert urls(said("<s:urlset xmlns:s='y'><s:url><s:loc>http://x/a</s:loc></s:url></s:urlset>")) == [
        "http://x/a"
    ]


@pytest.mark.parametrize("coding", ["utf-16", "iso-8859-1"])
def test_a_sitemap_in_another_coding_is_read(coding):
    text = f'<?xml version="1.0" encoding="{coding}"?><urlset><url><loc>http://x/é</loc></url></urlset>'
    assert urls(said(text.encode(coding))) == ["http://x/é"]


def test_an_index_names_files():
    found = said(
        f"<sitemapindex {NS}><sitemap><loc>http://x/1</loc><lastmod>1</lastmod></sitemap></sitemapindex>"
    )
    (one,) = found.files
    assert (found.role, found.entries, one.url, one.role) == (Role.INDEX, (), "http://x/1", None)
    assert one.told == stamp_of("1", "", "", "", "", "", "")


@pytest.mark.parametrize(
    "body",
    [
        "<rss><channel><link>http://x/</link><item><link>http://x/a</link><pubDate>1</pubDate></item></channel></rss>",
        "<rss><channel><item><guid>http://x/a</guid></item></channel></rss>",
        '<rdf:RDF xmlns:rdf="r"><item><link>http://x/a</link></item></rdf:RDF>',
        '<feed><entry><link rel="self" href="http://x/no"/><link href="http://x/a"/><id>1</id></entry></feed>',
        '<feed xml:base="http://x/"><entry><link rel="alternate" href="a"/></entry></feed>',
        '{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "1", "url": "http://x/a"}, 5]}',
    ],
)
def test_a_feed_names_what_is_new(body):
    found = said(body)
    assert (found.role, urls(found)) == (Role.NEWS, ["http://x/a"])


def test_a_feed_names_its_hub_and_itself():
    links = '<link rel="hub" href="http://h/"/><link rel="self" href="http://x/f"/>'
    for body in (f"<feed>{links}<entry/></feed>", f"<rss><channel>{links}</channel></rss>"):
        found = said(body)
        assert (found.hubs, found.topic) == (("http://h/",), "http://x/f")
    body = '{"version":"https://jsonfeed.org/version/1","feed_url":"f","hubs":[{"type":"WebSub","url":"h"},{"type":"x","url":"y"}]}'
    assert (said(body).hubs, said(body).topic) == (("h",), "f")


def test_a_change_list_names_what_was_deleted():
    changes = '<url><loc>http://x/a</loc><rs:md change="updated" datetime="1"/></url><url><loc>http://x/b</loc><rs:md change="deleted"/></url>'
    found = said(sitemap('<rs:md capability="changelist"/>' + changes))
    assert (found.role, [(one.url, one.gone) for one in found.entries]) == (
        Role.NEWS,
        [("http://x/a", False), ("http://x/b", True)],
    )
    assert said(sitemap(changes + '<rs:md capability="changelist"/>')).role is Role.NEWS


def test_resourcesync_leads_to_lists_and_not_to_dumps():
    named = "".join(
        f'<url><loc>http://x/{one}</loc><rs:md capability="{one}"/></url>'
        for one in ("capabilitylist", "resourcelist", "changelist", "resourcedump", "changedump-manifest")
    )
    for capability in ("description", "capabilitylist"):
        found = said(sitemap(f'<rs:md capability="{capability}"/>' + named))
        assert [(one.url, one.role) for one in found.files] == [
            ("http://x/capabilitylist", Role.INDEX),
            ("http://x/resourcelist", Role.LIST),
            ("http://x/changelist", Role.NEWS),
        ]
    assert said(sitemap('<rs:md capability="resourcedump"/>' + named)).files == ()
    index = f'<sitemapindex {RS}><rs:md capability="changelist"/><sitemap><loc>http://x/c</loc></sitemap></sitemapindex>'
    assert [one.role for one in said(index).files] == [Role.NEWS]


def test_of_more_entries_than_are_read_the_first_ones_count_and_it_is_cut():
    for body in (
        sitemap("<url><loc>http://x/</loc></url>" * (MOST_ENTRIES + 1)),
        "http://x/\n" * (MOST_ENTRIES + 1),
    ):
        found = said(body)
        assert (len(found.entries), found.cut) == (MOST_ENTRIES, True)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('<!DOCTYPE urlset [<!ENTITY a "b">]><urlset><url><loc>&a;</loc></url></urlset>', "DOCTYPE"),
        ('<!DOCTYPE urlset SYSTEM "file:///etc/passwd"><urlset/>', "DOCTYPE"),
        ("<urlset><url><loc>&a;</loc></url></urlset>", "undefined entity"),
        ("<html><body/></html>", "<html> is no sitemap"),
        ("<urlset><url><loc>http://x/a</loc></url>", "line 1"),
        ("<urlset>\n<a></b></urlset>", "line 2"),
        ("", "no sitemap"),
        ("not found", "no sitemap"),
        ("{}", "no JSON Feed"),
        ('{"version":"https://jsonfeed.org/version/1"', "Expecting"),
        ('{"version":"https://jsonfeed.org/version/1","items":' + "[" * 200_000, "recursion"),
        ("<urlset>" + "<a>" * 64, "inside of each other"),
        ("<urlset><url x='" + "x" * 1_200_000, "more than 1000000 bytes"),
        ("<urlset><!--" + "x" * 1_200_000, "more than 1000000 bytes"),
        (gzip.compress(b"<urlset/>")[:-9], "cut"),
        (b"\x1f\x8b\x08junk", "Error"),
        ("<urlset>" + " " * 6_000_000, "5000000 bytes"),
        (gzip.compress(b" " * 6_000_000), "5000000 bytes"),
    ],
    ids=lambda value: "bytes" if isinstance(value, bytes) else value[:40],
)
def test_what_is_not_as_it_should_be_is_refused_as_a_whole(body, why):
    data = body if isinstance(body, bytes) else body.encode()
    with pytest.raises(Unreadable, match="." if why == "Error" else why):
        read([data], most=5_000_000)


PARTS = [
    "<urlset>", "</urlset>", "<url>", "</url>", "<loc>", "</loc>", "http://x/a", "<lastmod>", "</lastmod>", "2024", "<rss>", "</rss>",
    "<item>", "</item>", "<link>", "</link>", '<link href="x"/>', "<feed>", "</feed>", "<!--", "-->", "<![CDATA[", "]]>", "&amp;", "&#0;",
    '<md change="deleted"/>', "é", "\n", "{", '"version":"https://jsonfeed.org"', "}", "[", "]",
]  # fmt: skip


@given(st.lists(st.sampled_from(PARTS), max_size=20).map("".join), st.integers(1, 7))
def test_any_cutting_gives_the_same_listing(body, size):
    def outcome(pieces):
        try:
            return said(body, pieces)
        except Unreadable as error:
            return str(error).partition(",")[0]

    assert outcome(size) == outcome(None)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body):
    try:
        listing = said(body)
    except Unreadable:
        return
    assert listing.role in Role


def test_what_differs_from_what_was_listed_is_news():
    known = {b"same": 1, b"changed": 2, b"gone": 3, b"timeless": 4}
    listed = [
        Change(b"same", "s", 1),
        Change(b"changed", "c", 5),
        Change(b"new", "n", 0),
        Change(b"timeless", "t", 0),
    ]
    found = compare(known, [Change(b"changed", "c", 2), *listed])
    assert [one.key for one in found.changes] == [b"changed", b"new"]
    assert found.absent == (b"gone",)
    assert compare({}, []) == compare({b"a": 1}, [Change(b"a", "a", 1)])


def test_a_source_that_fails_is_looked_at_later_each_time_up_to_an_hour():
    assert [due_after_failures(n, 0, 60.0) for n in (1, 2, 3, 9)] == [60, 120, 240, 3600]
    assert due_after_failures(1, 100, 60.0, 500.0) == 600


def test_link_headers_and_heads_name_relations():
    assert link_headers(['<http://h/>; rel="hub self"; x=y, <b>;rel=hub', "<c>", "junk <"]) == [
        ("http://h/", "hub"),
        ("http://h/", "self"),
        ("b", "hub"),
    ]
    page = b'<html><head><LINK rel=alternate type="application/rss+xml; x" href=/f><a rel=hub href=h>'
    assert head_links([page]) == [HeadLink("/f", "alternate", "application/rss+xml"), HeadLink("h", "hub")]
    assert head_links([b""]) == head_links([b"\0" * 9]) == []


def test_an_entry_without_a_url_is_left_out():
    assert said("<rss><channel><item><title>x</title></item></channel></rss>").entries == ()
