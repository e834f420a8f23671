"""Links of pages: whatever leads to a document, in whatever state the page is."""

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.links.html import candidates, refresh_target
from lcc_scrapy.links.links import Link, Page, read_page
from lcc_scrapy.links.rules import DOCUMENTS, REQUISITES, IgnoreList, LinkRules

URL = "http://www.example.org/dir/page.html"
DEFAULT = LinkRules()
EVERYTHING = LinkRules(relations=DOCUMENTS | REQUISITES)


def read(body: str | bytes, rules: LinkRules = DEFAULT, charset: str = "", **headers: str) -> Page:
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return read_page(
        body.encode() if isinstance(body, str) else body, URL, "text/html", charset, named, rules
    )


def paths(page: Page) -> list[str]:
    return [link.url.removeprefix("http://www.example.org") for link in page.links]


@pytest.mark.parametrize(
    ("markup", "relation"),
    [
        ("<a href=x>", "a"),
        ("<A HREF = 'x'>", "a"),
        ("<svg><a xlink:href=x></a></svg>", "a"),
        ("<map><area href=x></map>", "area"),
        ("<frameset><frame src=x>", "frame"),
        ("<iframe src=x></iframe>", "iframe"),
        ("<link rel=next href=x>", "next"),
        ("<link rel='Previous' href=x>", "prev"),
        ("<link rel=canonical href=x>", "canonical"),
        ("<link rel=alternate hreflang=nl href=x>", "alternate"),
        ("<link rel=alternate type='application/rss+xml' href=x>", "feed"),
        ("<link rel=up href=x>", "link"),
        ("<meta http-equiv=Refresh content='0; url=x'>", "refresh"),
        ("<noscript><a href=x></noscript>", "a"),
        ("<table><a href=x>", "a"),
    ],
)
def test_what_leads_to_a_document_is_a_link(markup: str, relation: str) -> None:
    assert read(markup).links == (Link("http://www.example.org/dir/x", relation),)


@pytest.mark.parametrize(
    ("markup", "relation"),
    [
        ("<link rel='alternate stylesheet' href=x>", "stylesheet"),
        ("<link rel='shortcut icon' href=x>", "icon"),
        ("<img src=x>", "img"),
        ("<img srcset='x 2x'>", "img"),
        ("<picture><source srcset=x></picture>", "source"),
        ("<video src=x>", "video"),
        ("<video poster=x>", "img"),
        ("<audio src=x>", "audio"),
        ("<embed src=x>", "embed"),
        ("<object data=x>", "object"),
        ("<script src=x></script>", "script"),
        ("<input type=image src=x>", "img"),
        ("<body background=x>", "img"),
    ],
)
def test_parts_of_a_page_are_links_only_when_they_are_wanted(markup: str, relation: str) -> None:
    assert read(markup).links == ()
    assert read(markup, EVERYTHING).links == (Link("http://www.example.org/dir/x", relation),)


@pytest.mark.parametrize(
    "markup",
    ["<!-- <a href=x> -->", "<script>'<a href=x>'</script>", "<textarea><a href=x></textarea>", "<form action=x>",
     "<a name=x>", "<a href=#x>", "<a href=''>", "<a href='mailto:x@y'>", "<a href='javascript:x'>", "<a href='data:,x'>",
     "<a href='http://[x'>", "<link rel=preconnect href=x>", "<link href=x>", "<a href='http://u:p@h/'>"],
)  # fmt: skip
def test_what_leads_nowhere_is_none(markup: str) -> None:
    assert read(markup, EVERYTHING).links == ()


def test_a_base_holds_for_all_links_and_only_the_first_counts() -> None:
    assert paths(read("<a href=x><base target=_top><base href='/sub/'><base href='/no/'><a href=y>")) == [
        "/sub/x",
        "/sub/y",
    ]


def test_a_base_elsewhere_is_obeyed_and_one_that_is_no_place_is_not() -> None:
    assert read("<base href='http://other.example/a/'><a href=x>").links[0].url == "http://other.example/a/x"
    assert paths(read("<base href='javascript:x'><a href=x>")) == ["/dir/x"]


def test_each_place_is_named_once_in_the_order_of_the_page() -> None:
    assert paths(read("<a href=b><a href=a><a href='b#c'><area href='./b'>")) == ["/dir/b", "/dir/a"]


def test_nofollow_holds_where_every_link_to_a_place_says_so() -> None:
    page = read(
        "<a rel='noopener NOFOLLOW' href=a><a rel=ugc href=b><a rel=sponsored href=c><a rel=nofollow href=d><a href='d#x'>"
    )
    assert [link.nofollow for link in page.links] == [True, True, True, False]


@pytest.mark.parametrize(
    ("content", "index", "follow"),
    [("noindex", False, True), ("NoFollow , x", True, False), ("none", False, False), ("index,follow", True, True), ("all", True, True)],
)  # fmt: skip
def test_meta_robots_says_what_may_be_done(content: str, index: bool, follow: bool) -> None:
    for name in ("robots", "LCC-Scrapy"):
        page = read(f"<meta name={name} content='{content}'>")
        assert (page.index, page.follow) == (index, follow)
    assert read(f"<meta name=otherbot content='{content}'>") == Page()


@pytest.mark.parametrize(
    ("value", "index", "follow"),
    [
        ("noindex", False, True),
        ("noindex, nofollow", False, False),
        ("otherbot: noindex, nofollow", True, True),
        ("otherbot: noindex, lcc-scrapy: nofollow", True, False),
        ("unavailable_after: 25 Jun 2030 15:00:00 GMT, noindex", False, True),
        ("max-snippet:5, none", False, False),
    ],
)
def test_the_header_says_it_too_for_us_or_for_any(value: str, index: bool, follow: bool) -> None:
    page = read("", X_Robots_Tag=value)
    assert (page.index, page.follow) == (index, follow)


def test_the_header_counts_for_any_type_of_document() -> None:
    page = read_page(b"%PDF", URL, "application/pdf", "", [("x-robots-tag", "noindex")], LinkRules())
    assert page == Page((), index=False)


@pytest.mark.parametrize(
    ("srcset", "urls"),
    [
        ("a.jpg", ["a.jpg"]),
        ("a.jpg, b.jpg 2x", ["a.jpg", "b.jpg"]),
        ("a.jpg 1x,b.jpg 2x", ["a.jpg", "b.jpg"]),
        (" a,b.jpg 100w , c.jpg", ["a,b.jpg", "c.jpg"]),
        (",,a.jpg,,b", ["a.jpg,,b"]),
        ("", []),
    ],
)
def test_srcset_names_candidates(srcset: str, urls: list[str]) -> None:
    assert list(candidates(srcset)) == urls


@pytest.mark.parametrize(
    ("content", "target"),
    [("5; url=x", "x"), ("0;URL='x y'z", "x y"), ("1,x", "x"), ('0; url = "x"', "x"), ("5", None), ("", None), ("x", None), ("0;url=", None)],
)  # fmt: skip
def test_refresh_leads_somewhere(content: str, target: str | None) -> None:
    assert refresh_target(content) == target


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        ("<a href='?é'>".encode("latin-1"), "iso-8859-1"),
        (b"<meta charset=iso-8859-1><a href='?\xe9'>", ""),
        (b"<a href='?\xe9'>", ""),
        (b"<a href='?\xe9'>", "no-such-charset"),
        (b"<a href='?\xe9'>", "zlib"),
        (b"<a href='?\xe9'>", "punycode"),
    ],
)
def test_the_charset_is_as_served_as_declared_or_as_it_looks(body: bytes, charset: str) -> None:
    assert paths(read(body, charset=charset)) == ["/dir/page.html?%E9"]


def test_a_byte_order_mark_says_more_than_the_server() -> None:
    assert paths(read("\ufeff<a href=é>".encode("utf-16"), charset="iso-8859-1")) == ["/dir/%C3%A9"]


def test_what_is_ignored_is_not_given() -> None:
    rules = LinkRules(ignore=IgnoreList.parse([".gif", "bad.example"]))
    assert paths(read("<a href=a.gif><a href=http://bad.example/><a href=b>", rules)) == ["/dir/b"]


def test_listed_parameters_are_left_out() -> None:
    assert paths(read("<a href='a?sid=1'><a href='a?sid=2'>", LinkRules(strip=frozenset({"sid"})))) == [
        "/dir/a"
    ]


def test_links_are_bounded() -> None:
    many = "".join(f"<a href={number}>" for number in range(50_000))
    assert len(read(many, LinkRules(most=100)).links) == 100
    assert paths(read("<a href=a>" + " " * 100 + "<a href=b>", LinkRules(longest=50))) == ["/dir/a"]


HOSTILE = {
    "open elements": b"<div>" * 700_000,
    "a million links": b"<a href=x>" * 400_000,
    "different links": b"".join(b"<a href=%d>" % number for number in range(250_000)),
    "links that lead nowhere": b"".join(b"<a href=x:%d>" % number for number in range(250_000)),
    "invented elements": b"".join(b"<x%d>" % number for number in range(400_000)),
    "invented attributes": b"<a " + b" ".join(b"x%d=1" % number for number in range(300_000)) + b">",
    "zeros": bytes(4_000_000),
    "unfinished tags": b"<" * 4_000_000,
    "unfinished comments": b"<!--" * 1_000_000,
    "unfinished attributes": b'<a href="' * 400_000,
    "entities": b"&amp" * 1_000_000,
    "a srcset of commas": b"<img srcset='" + b"," * 4_000_000,
    "a srcset of blanks": b"<img srcset='" + b"a " * 2_000_000,
    "an endless refresh": b"<meta http-equiv=refresh content='" + b" ;" * 2_000_000,
    "an endless base": b"<base href='" + b"/" * 3_900_000 + b"'>",
    "an endless directive": b"<meta name=robots content='" + b"," * 3_900_000 + b"'>",
    "bytes of no charset": bytes(range(256)) * 15_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_costs_no_more_than_a_moment(name: str) -> None:
    start = time.process_time()
    page = read(HOSTILE[name] + b"<a href=end>", EVERYTHING)
    assert len(page.links) <= LinkRules().most
    assert time.process_time() - start < 5


def test_a_link_in_ever_so_deep_a_page_is_found() -> None:
    assert paths(read(b"<div>" * 100_000 + b"<a href=x>")) == ["/dir/x"]


INVENTED = """
from lcc_scrapy.links.links import read_page
from lcc_scrapy.links.rules import LinkRules

def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096

def read(number):
    names = b" ".join(b"x%d-%d=1" % (number, one) for one in range(200_000))
    read_page(b"<a %b>" % names, "http://www.example.org/", "text/html", "", [], LinkRules())

for number in range(3):
    read(number)
before = resident()
for number in range(3, 13):
    read(number)
print(resident() - before)
"""


def test_invented_names_do_not_stay_in_memory() -> None:
    """In a process of its own: one with much else in it collects its garbage late."""
    grown = subprocess.run([sys.executable, "-c", INVENTED], check=True, capture_output=True, text=True)
    assert int(grown.stdout) < 75_000_000  # ten times 15 MB otherwise


@given(
    st.binary(max_size=400), st.sampled_from(["", "utf-8", "utf-16", "latin-1", "shift_jis", "hex", "idna"])
)
def test_any_bytes_are_a_page(body: bytes, charset: str) -> None:
    for link in read(b"<a href=" + body, EVERYTHING, charset).links:
        assert link.url.startswith("http")


@given(st.text("<>/=\"' \n&;#aehrfimgs!-\0\u00e9", max_size=80))
def test_any_markup_is_a_page(text: str) -> None:
    read(text, EVERYTHING)
