# ruff: noqa: RUF001 - look-alikes are what this is about
"""References are resolved as the URL Standard has it, and what they lead to is judged as any URL."""

from contextlib import suppress
from posixpath import normpath
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scrapy import Request

from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.references import http_url, redirect, resolve, without_blanks
from lcc_scrapy.domain.roots import HttpUrl, Root, inside

RFC = "http://a/b/c/d;p?q"
ARCHIVE = "http://h.example/x//y/rel?q#f"
TLS = "https://h.example:8443/dir/page"

BY_RFC_3986 = {
    "g": "http://a/b/c/g", "./g": "http://a/b/c/g", "g/": "http://a/b/c/g/", "/g": "http://a/g", "//g": "http://g/",
    "?y": "http://a/b/c/d;p?y", "g?y": "http://a/b/c/g?y", "#s": "http://a/b/c/d;p?q", "g#s": "http://a/b/c/g",
    "g?y#s": "http://a/b/c/g?y", ";x": "http://a/b/c/;x", "g;x": "http://a/b/c/g;x", "g;x?y#s": "http://a/b/c/g;x?y",
    "": "http://a/b/c/d;p?q", ".": "http://a/b/c/", "./": "http://a/b/c/", "..": "http://a/b/", "../": "http://a/b/",
    "../g": "http://a/b/g", "../..": "http://a/", "../../": "http://a/", "../../g": "http://a/g", "../../../g": "http://a/g",
    "../../../../g": "http://a/g", "/./g": "http://a/g", "/../g": "http://a/g", "g.": "http://a/b/c/g.", ".g": "http://a/b/c/.g",
    "g..": "http://a/b/c/g..", "..g": "http://a/b/c/..g", "./../g": "http://a/b/g", "./g/.": "http://a/b/c/g/",
    "g/./h": "http://a/b/c/g/h", "g/../h": "http://a/b/c/h", "g;x=1/./y": "http://a/b/c/g;x=1/y", "g;x=1/../y": "http://a/b/c/y",
    "g?y/./x": "http://a/b/c/g?y/./x", "g?y/../x": "http://a/b/c/g?y/../x", "g#s/../x": "http://a/b/c/g", "http:g": "http://a/b/c/g",
}  # fmt: skip
"""The examples of RFC 3986 section 5.4, as browsers have them."""

OF_AN_ARCHIVE = {
    "z.html": "http://h.example/x//y/z.html", "..": "http://h.example/x//", "../z": "http://h.example/x//z",
    "../../z": "http://h.example/x/z", "../../../z": "http://h.example/z", "../../../../z": "http://h.example/z",
    "a//b": "http://h.example/x//y/a//b", "a//../b": "http://h.example/x//y/a/b", "/": "http://h.example/",
    "/a//": "http://h.example/a//", "/.//a": "http://h.example//a", "/..//a": "http://h.example//a", ".//a": "http://h.example/x//y//a",
    "//": None, "///": None, "///h2/p": "http://h2/p", "////h2/p": "http://h2/p", "//h2": "http://h2/", "//h2//p": "http://h2//p",
    "//h2?q": "http://h2/?q", "//h2#f": "http://h2/", "/\\h2/p": "http://h2/p", "\\/h2/p": "http://h2/p", "\\\\h2\\p": "http://h2/p",
    "\\p": "http://h.example/p", "a\\b": "http://h.example/x//y/a/b", "..\\b": "http://h.example/x//b", "a\\..\\b": "http://h.example/x//y/b",
    "?a\\b": "http://h.example/x//y/rel?a%5Cb", "http:\\\\h2\\p": "http://h2/p", "http:/\\h2/p": "http://h2/p",
    "http:": "http://h.example/x//y/rel?q", "http:p": "http://h.example/x//y/p", "http:/p": "http://h.example/p", "http://": None,
    "http:///h2/p": "http://h2/p", "HTTP://H2/P": "http://h2/P", "http:?a": "http://h.example/x//y/rel?a", "http:../p": "http://h.example/x//p",
    "https:p": "https://p/", "https:/p": "https://p/", "https:///p/q": "https://p/q", "https:": None, "https:..": None,
    "h2:p": None, "h2:8080/p": None, "1:2": "http://h.example/x//y/1:2", "./a:b": "http://h.example/x//y/a:b", "a/b:c": "http://h.example/x//y/a/b:c",
    "mailto:a@b": None, "javascript:void(0)": None, "data:text/html,x": None, "ftp://h2/p": None, "file:///p": None, "ws://h2/p": None,
    "about:blank": None, "blob:http://h2/x": None, "://h2": "http://h.example/x//y/://h2",
}  # fmt: skip

DOTS = {
    "%2e": "http://h.example/x//y/", "%2E": "http://h.example/x//y/", "%2e%2e": "http://h.example/x//", "%2E%2e/z": "http://h.example/x//z",
    ".%2e/z": "http://h.example/x//z", "%2e./z": "http://h.example/x//z", "%2e/z": "http://h.example/x//y/z", "/a/%2e%2e/%2e%2e/z": "http://h.example/z",
    "...": "http://h.example/x//y/...", ".../z": "http://h.example/x//y/.../z", "%2e%2e%2e": "http://h.example/x//y/%2e%2e%2e",
    "%252e%252e/z": "http://h.example/x//y/%252e%252e/z", "..;/z": "http://h.example/x//y/..;/z", "a/..;b/z": "http://h.example/x//y/a/..;b/z",
    "..%2fz": "http://h.example/x//y/..%2fz", "..%5Cz": "http://h.example/x//y/..%5Cz", "a/./": "http://h.example/x//y/a/",
    "a/..": "http://h.example/x//y/", "a/b/../..": "http://h.example/x//y/", "http://h.example/a/./b/../c": "http://h.example/a/c",
    "http://h.example/../..": "http://h.example/", "http://h.example/a/%2e%2E": "http://h.example/", "//h2/a/../b": "http://h2/b",
    ".?a": "http://h.example/x//y/?a", "..#a": "http://h.example/x//", "?../a": "http://h.example/x//y/rel?../a",
}  # fmt: skip

BLANKS = {
    " z ": "http://h.example/x//y/z", "\tz\n": "http://h.example/x//y/z", "z\r\n": "http://h.example/x//y/z", "a\tb\nc\rd": "http://h.example/x//y/abcd",
    "ht\ntp://h2/p": "http://h2/p", "/\t/h2/p": "http://h2/p", ".\n./z": "http://h.example/x//z", "\x00\x01z\x1f": "http://h.example/x//y/z",
    "a b": "http://h.example/x//y/a%20b", "  a  b  ": "http://h.example/x//y/a%20%20b", "?a b ": "http://h.example/x//y/rel?a%20b",
    "a\x00b": "http://h.example/x//y/a%00b", "a\x0bb": "http://h.example/x//y/a%0Bb", "a\x7fb": "http://h.example/x//y/a%7Fb",
    "a\u00a0b": "http://h.example/x//y/a%C2%A0b", "\u00a0z": "http://h.example/x//y/%C2%A0z", "http://h2\t/p": "http://h2/p", "http://h 2/p": None,
    " ": "http://h.example/x//y/rel?q", "\n": "http://h.example/x//y/rel?q", "#a b": "http://h.example/x//y/rel?q",
}  # fmt: skip

HOSTS = {
    "http://h2:80/": "http://h2/", "http://h2:/": "http://h2/", "http://h2:0080/": "http://h2/", "http://h2:81/": "http://h2:81/",
    "http://h2:65535/": "http://h2:65535/", "http://h2:65536/": None, "http://h2:0/": None, "http://h2:a/": None, "http://h2:-1/": None,
    "https://h2:443/": "https://h2/", "https://h2:80/": "https://h2:80/", "http://h2:443/": "http://h2:443/", "//h2:81": "http://h2:81/",
    "http://u@h2/": None, "http://u:p@h2/": None, "http://:p@h2/": None, "http://@h2/": "http://h2/", "//u@h2/": None, "http://u@/": None,
    "http://h.example@h2/": None, "http://h2/@u": "http://h2/@u", "http://h2?@u": "http://h2/?@u", "http://h2\\@u": "http://h2/@u",
    "http://EX%41MPLE.org/": "http://example.org/", "http://%65xample.org/": "http://example.org/", "http://h%2e2/": None,
    "http://stra%C3%9Fe.de/": "http://xn--strae-oqa.de/", "http://straße.de/": "http://xn--strae-oqa.de/", "http://stra%DFe.de/": None,
    "http://BÜCHER.de/": "http://xn--bcher-kva.de/", "http://xn--bcher-kva.de/": "http://xn--bcher-kva.de/", "http://ｈ2/": "http://h2/",
    "http://h2%00/": None, "http://h2%2f/": None, "http://h2%23/": None, "http://h<2/": None, "http://h|2/": None, "http://h^2/": None,
    "http://a_b.example/": "http://a_b.example/", "http://a..b/": None, "http://.a/": None, "http://a./": "http://a./", "http://*.a/": None,
    "http://127.0.0.1/": "http://127.0.0.1/", "http://127.1/": "http://127.0.0.1/", "http://0x7f.1/": "http://127.0.0.1/",
    "http://2130706433/": "http://127.0.0.1/", "http://0177.0.0.1/": "http://127.0.0.1/", "http://256.0.0.1/": None, "http://1.2.3.4.5/": None,
    "http://4294967296/": None, "http://09.1/": None, "http://a.1/": None, "http://127.0.0.1./": "http://127.0.0.1/", "http://１２７。1/": "http://127.0.0.1/",
    "http://[::1]/": "http://[::1]/", "http://[2001:DB8:0:0::1]/": "http://[2001:db8::1]/", "http://[::ffff:127.0.0.1]/": "http://[::ffff:7f00:1]/",
    "http://[::1/": None, "http://::1/": None, "http://[]/": None, "http://[::1%25lo]/": None, "http://[v1.x]/": None, "http://[::1]:81/": "http://[::1]:81/",
}  # fmt: skip

OCTETS = {
    "é": "http://h.example/x//y/%C3%A9", "?é": "http://h.example/x//y/rel?%C3%A9", "%E9": "http://h.example/x//y/%E9", "%e9": "http://h.example/x//y/%e9",
    "%": "http://h.example/x//y/%", "%zz": "http://h.example/x//y/%zz", "%4": "http://h.example/x//y/%4", "a%20b": "http://h.example/x//y/a%20b",
    'a"b': "http://h.example/x//y/a%22b", "a<b>": "http://h.example/x//y/a%3Cb%3E", "a`b": "http://h.example/x//y/a%60b", "a{b}": "http://h.example/x//y/a%7Bb%7D",
    "a^b": "http://h.example/x//y/a%5Eb", "a'b": "http://h.example/x//y/a'b", "?a'b": "http://h.example/x//y/rel?a%27b", '?a"b': "http://h.example/x//y/rel?a%22b",
    "?a<b>": "http://h.example/x//y/rel?a%3Cb%3E", "a~b!$&'()*+,;=:@-._": "http://h.example/x//y/a~b!$&'()*+,;=:@-._", "?a/b?c": "http://h.example/x//y/rel?a/b?c",
    "?a%26b&c": "http://h.example/x//y/rel?a%26b&c", "€": "http://h.example/x//y/%E2%82%AC", "😀": "http://h.example/x//y/%F0%9F%98%80",
    "?a#?b": "http://h.example/x//y/rel?a", "a?b?c": "http://h.example/x//y/a?b?c", "\ufffd": "http://h.example/x//y/%EF%BF%BD",
}  # fmt: skip

STRICTER = {
    "a|b": "http://h.example/x//y/a%7Cb", "a[b]": "http://h.example/x//y/a%5Bb%5D", "?a|b": "http://h.example/x//y/rel?a%7Cb",
    "?a[]=1": "http://h.example/x//y/rel?a%5B%5D=1", "?`{}^": "http://h.example/x//y/rel?%60%7B%7D%5E", "z?": "http://h.example/x//y/z", "?": "http://h.example/x//y/rel",
}  # fmt: skip
"""What RFC 3986 permits nowhere, and an empty query, is written as it is of pushed URLs."""

FROM_TLS = {
    "z": "https://h.example:8443/dir/z", "//h2": "https://h2/", "//h2:443/": "https://h2/", "https:z": "https://h.example:8443/dir/z",
    "https:/z": "https://h.example:8443/z", "http:z": "http://z/", "http:/z": "http://z/", "/z": "https://h.example:8443/z", "?": "https://h.example:8443/dir/page",
}  # fmt: skip

CASES = [
    *((RFC, *case) for case in BY_RFC_3986.items()),
    *((TLS, *case) for case in FROM_TLS.items()),
    *(
        (ARCHIVE, *case)
        for table in (OF_AN_ARCHIVE, DOTS, BLANKS, HOSTS, OCTETS, STRICTER)
        for case in table.items()
    ),
]


@pytest.mark.parametrize(("base", "reference", "target"), [case for case in CASES if case[2]])
def test_a_reference_leads_where_browsers_go(base, reference, target):
    assert str(http_url(reference, base)) == target


@pytest.mark.parametrize(("base", "reference"), [case[:2] for case in CASES if not case[2]])
def test_a_reference_that_leads_to_no_page_is_refused(base, reference):
    with pytest.raises(UrlRefused) as refused:
        http_url(reference, base)
    assert refused.value.code == 705


def test_all_of_that_is_some_two_hundred_cases():
    assert len({(base, reference) for base, reference, _ in CASES}) >= 200


_PARTS = st.sampled_from(
    ["/", "//", ".", "..", "%2e", "%2E%2e", "%2f", "\\", ";", "?", "#", "a", "é", " ", "%20", "[", "|", "'", '"', "~", ":", "@", "%41", "%zz"]
)  # fmt: skip


BY_A_REDIRECT = {
    "a|b": "http://h.example/x//y/a|b", "a[b]": "http://h.example/x//y/a[b]", "?a|b": "http://h.example/x//y/rel?a|b",
    "?a[]=1": "http://h.example/x//y/rel?a[]=1", "?`{}^": "http://h.example/x//y/rel?`{}^", "z?": "http://h.example/x//y/z?", "?": "http://h.example/x//y/rel?",
    "?a\\b": "http://h.example/x//y/rel?a\\b", "z?#f": "http://h.example/x//y/z?", "//h2?": "http://h2/?", "??": "http://h.example/x//y/rel??",
    "?a'b": "http://h.example/x//y/rel?a%27b", "a{b}": "http://h.example/x//y/a%7Bb%7D", "a^b": "http://h.example/x//y/a%5Eb", 'a"b': "http://h.example/x//y/a%22b",
}  # fmt: skip


@pytest.mark.parametrize(("said", "target"), BY_A_REDIRECT.items())
def test_a_redirect_is_asked_for_in_the_very_octets_of_a_browser(said, target):
    url = redirect(said.encode(), HttpUrl.parse(ARCHIVE))
    assert str(url) == target
    assert HttpUrl.as_written(target) == url
    assert inside(url, (Root.parse("http://h.example/x/"), Root.parse("http://h2/")))


def test_a_root_that_is_one_page_covers_it_with_an_empty_query_too():
    url = redirect(b"z?", HttpUrl.parse(ARCHIVE))
    assert Root.parse("http://h.example/x//y/z").covers(url)


@pytest.mark.parametrize(("base", "reference", "target"), [case for case in CASES if case[2]])
def test_a_redirect_leads_to_the_same_page_as_a_link(base, reference, target):
    assert HttpUrl.parse(str(redirect(reference.encode(), HttpUrl.parse(base)))) == HttpUrl.parse(target)


@given(st.text(st.characters(max_codepoint=0x2FF), max_size=30))
def test_a_url_as_written_is_read_again_as_it_is_asked_for(text):
    with suppress(UrlRefused):
        url = redirect(text.encode(), HttpUrl.parse("http://www.example.org/dir/a"))
        assert HttpUrl.as_written(str(url)) == url
        assert Request(str(url), meta={"verbatim_url": True}).url == str(url)
        assert not set(str(url)) & set(' "<>#')


@given(st.lists(_PARTS, max_size=10).map("".join))
def test_a_redirect_is_inside_a_root_where_a_push_of_it_is(reference):
    root = Root.parse("http://www.example.org/dir/")
    with suppress(UrlRefused):
        url = redirect(reference.encode(), HttpUrl.parse("http://www.example.org/dir/a/b"))
        assert root.covers(url) == root.covers(HttpUrl.parse(str(url)))


@pytest.mark.parametrize("octet", range(0x80, 0x100))
def test_octets_of_a_location_are_asked_for_as_they_came(octet):
    base, said = HttpUrl.parse(ARCHIVE), bytes([octet])
    assert str(redirect(b"a" + said + b"b", base)) == f"http://h.example/x//y/a%{octet:02X}b"
    assert str(redirect(b"?a" + said + b"b", base)) == f"http://h.example/x//y/rel?a%{octet:02X}b"
    assert str(redirect(b"\xc3\xa9" + said + b"?\xe9" + said, base)).endswith(
        f"%C3%A9%{octet:02X}?%E9%{octet:02X}"
    )
    with pytest.raises(UrlRefused) as refused:
        redirect(b"http://h" + said + b".example/", base)
    assert refused.value.code == 705


@given(st.binary(max_size=30))
def test_any_octets_of_a_path_arrive(octets):
    path = (
        bytes(set(range(256)) - set(b"\t\r\n?#\\/."))
        if octets == b""
        else octets.translate(None, b"\t\r\n?#\\/.")
    )
    if path.strip(bytes(range(33))) == path:
        url = redirect(b"/dir/" + path, HttpUrl.parse(ARCHIVE))
        assert unquote_to_bytes(url.path) == unquote_to_bytes(b"/dir/" + path)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("straße.de", "xn--strae-oqa.de"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("例え.jp", "xn--r8jz45g.jp"),
    ],
)
def test_a_host_in_utf_8_is_a_name(host, name):
    assert redirect(f"http://{host}/é".encode(), HttpUrl.parse(ARCHIVE)).host == name


def test_what_is_too_long_is_refused_at_once():
    for text in ("x" * 3000, "x" * 1_000_000, "//" + "x" * 3000, "../" * 40_000):
        with pytest.raises(UrlRefused):
            http_url(text + "é" * 3000, ARCHIVE)


def test_blanks_that_do_not_count_are_left_out_before_a_part_is_encoded():
    assert without_blanks(" \ta\n b\r\x00") == "a b"


@given(st.text(max_size=30))
def test_a_lone_surrogate_is_refused_and_nothing_else_raises(text):
    with suppress(UrlRefused):
        http_url(text + "\ud800", ARCHIVE)
        raise AssertionError("a surrogate was taken")
    with suppress(UrlRefused):
        assert str(http_url(text, ARCHIVE)).isascii()


@given(st.lists(_PARTS, max_size=10).map("".join))
@example("/a?b'c[d]|e f")
@example("?")
def test_an_absolute_url_that_is_fetched_as_pushed_means_the_same_as_a_reference(tail):
    """So nothing that is cached gets another name by the way in which it was found."""
    text = "http://www.example.org/dir/" + tail
    with suppress(UrlRefused):
        pushed = HttpUrl.parse(text)
        if inside(pushed, (Root.parse("http://www.example.org/"),)):
            assert http_url(text, ARCHIVE) == pushed


@given(
    st.lists(
        _PARTS | st.sampled_from(["http:", "//www.example.org", "www.example.org", "%5c"]), max_size=10
    ).map("".join)
)
def test_no_reference_climbs_out_of_a_root(reference):
    root = Root.parse("http://www.example.org/dir/")
    with suppress(UrlRefused):
        url = http_url(reference, "http://www.example.org/dir/a/b")
        if root.covers(url):
            decoded = unquote_to_bytes(url.path).decode("latin-1").replace("\\", "/")
            assert (normpath(decoded) + "/").startswith("/dir/")
            assert url.host == "www.example.org"


def test_what_is_no_http_url_is_resolved_too():
    assert resolve("mailto:a@b", RFC) == "mailto:a@b"
    assert resolve("http://a/b#c", "") == "http://a/b"
    with pytest.raises(UrlRefused):
        resolve("b", "")
