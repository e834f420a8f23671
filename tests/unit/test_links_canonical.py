"""The canonical form: one spelling, which is what is fetched."""

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.references import resolve
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.links.canonical import _HAS_PATH, _folder, canonical

BASE = "http://www.example.org/dir/page?q"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("HTTP://WWW.Example.ORG:80/a", "http://www.example.org/a"),
        ("https://example.org:443", "https://example.org/"),
        ("http://example.org:8080/", "http://example.org:8080/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://[0:0::1]/", "http://[::1]/"),
        ("other#part", "http://www.example.org/dir/other"),
        ("?x=1", "http://www.example.org/dir/page?x=1"),
        ("//other.example/a", "http://other.example/a"),
        ("/a/./b/../c", "http://www.example.org/a/c"),
        ("../../../x", "http://www.example.org/x"),
        ("http://example.org/a/%2e%2E/b", "http://example.org/b"),
        ("/%7euser/%c3%a9", "http://www.example.org/~user/%C3%A9"),
        ("/é", "http://www.example.org/%C3%A9"),
        ("/a b", "http://www.example.org/a%20b"),
        ("/a%2fb", "http://www.example.org/a%2Fb"),
        ("/a%2Bb+c", "http://www.example.org/a%2Bb+c"),
        ("/100%", "http://www.example.org/100%25"),
        ("/x?", "http://www.example.org/x"),
        ("/x?b=2&a=1&a=0", "http://www.example.org/x?b=2&a=1&a=0"),
        ("/x?a=b+c%20d&&e", "http://www.example.org/x?a=b+c%20d&&e"),
        ("//www.example.org//a//b", "http://www.example.org//a//b"),
        ("\\dir\\x", "http://www.example.org/dir/x"),
        (" \n/a\tb\r\nc ", "http://www.example.org/abc"),
        ("", "http://www.example.org/dir/page?q"),
    ],
)
def test_one_place_has_one_spelling(text: str, url: str) -> None:
    assert canonical(text, BASE) == url


@pytest.mark.parametrize(
    "text",
    [
        "mailto:a@b",
        "javascript:void(0)",
        "data:,x",
        "ftp://x/",
        "http://u:p@h/",
        "http://[::",
        "http://a b/",
        "http://h:99999/",
        "http://h:0/",
    ],
)
def test_what_cannot_be_fetched_is_refused(text: str) -> None:
    with pytest.raises(UrlRefused):
        canonical(text, BASE)


def test_a_query_is_in_the_charset_of_its_page() -> None:
    assert canonical("/é?é=ü#ü", BASE, "windows-1252") == "http://www.example.org/%C3%A9?%E9=%FC"
    assert canonical("/?ж", BASE, "windows-1252") == "http://www.example.org/?%26%231078%3B"


def test_parameters_are_left_out_when_they_are_listed() -> None:
    strip = frozenset({"phpsessid", "jsessionid"})
    assert (
        canonical("/a;JSESSIONID=1?x=1&PHPSESSID=2&y", BASE, strip=strip) == "http://www.example.org/a?x=1&y"
    )
    assert canonical("/a?PHPSESSID=2", BASE, strip=strip) == "http://www.example.org/a"
    assert canonical("/a?PHPSESSID=2", BASE) == "http://www.example.org/a?PHPSESSID=2"


def test_a_url_that_is_too_long_is_refused_at_once() -> None:
    with pytest.raises(UrlRefused):
        canonical("/" + "x" * 5_000_000, BASE)


_PIECES = st.sampled_from(
    [
        "/",
        "//",
        "..",
        ".",
        "%2e",
        "%2E%2e",
        "%",
        "%25",
        "%7e",
        "%2f",
        "?",
        "&",
        "=",
        "#",
        ";",
        "a",
        "é",
        " ",
        "'",
        '"',
        "|",
        "[",
        "]",
        "@",
        ":",
        "\\",
        "+",
        "*",
        "http://h/",
    ]
)


@given(st.lists(_PIECES, max_size=12).map("".join) | st.text(max_size=40))
@example("/a/..;x/%2e%2e/b")
@example("/%252e%252e/")
@example("http://h/?'%27")
@example("//h\\@x/")
def test_the_canonical_form_is_what_is_fetched_and_its_own_canonical_form(text: str) -> None:
    with suppress(UrlRefused):
        url = canonical(text, BASE)
        assert canonical(url) == url
        assert str(HttpUrl.parse(url)) == url


@given(
    st.sampled_from(
        [BASE, "http://h", "http://h/", "http://h/a;b/c;d?e/f", "http://h/a/b#c/d", "https://h/a//b"]
    ),
    st.lists(_PIECES, max_size=6).map("".join) | st.text(max_size=20) | st.text("/.:;?#ab", max_size=9),
)
@example(BASE, "http:")
@example(BASE, "//?x")
@example(BASE, ".;x")
def test_a_link_with_a_path_looks_the_same_from_all_pages_of_a_folder(base: str, text: str) -> None:
    with suppress(UrlRefused):
        if _HAS_PATH.fullmatch(text):
            assert resolve(text, _folder(base)) == resolve(text, base)
