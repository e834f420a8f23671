"""Ignore lists: what is not fetched although it is linked to."""

import pytest

from lcc_scrapy.links.rules import IgnoreList

LIST = IgnoreList.parse(
    """
    # endings
    .gif
    .tar.gz   # packed
    ads.example.org
    BÜCHER.example
    /cgi-bin/
    /*?print=
    */private/*
    http://www.example.org/old/
    https://*.example.net/*.php$
    """.splitlines()
)


@pytest.mark.parametrize(
    "url",
    [
        "http://h/a.gif",
        "http://h/A.GIF",
        "http://h/a.gif;v=1",
        "http://h/a.gif?x",
        "http://h/a.tar.gz",
        "http://h/b.1.tar.gz",
        "http://ads.example.org/",
        "https://a.b.ads.example.org:8080/x",
        "http://xn--bcher-kva.example/",
        "http://h/cgi-bin/x",
        "http://h/a/b?print=1",
        "http://h/x/private/y",
        "http://www.example.org/old/x",
        "https://a.example.net/x.php",
    ],
)
def test_what_is_on_the_list_is_covered(url: str) -> None:
    assert LIST.covers(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://h/a.gif/b",
        "http://h/gif",
        "http://h/a.gz",
        "http://h/?x=a.gif",
        "http://example.org/",
        "http://badads.example.org/",
        "http://h/x/cgi-bin/",
        "https://www.example.org/old/x",
        "http://www.example.org/older",
        "https://a.example.net/x.php?y",
    ],
)
def test_what_is_not_on_it_is_not(url: str) -> None:
    assert not LIST.covers(url)


@pytest.mark.parametrize(
    "line", ["two words", "ftp://x/", "http://", "a:b", "*.example.org", ".", "http://u@h/", "/a b"]
)
def test_a_line_that_means_nothing_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="line 3"):
        IgnoreList.parse(["# one", ".ok", line])


def test_extensions_may_be_added_with_or_without_their_dot() -> None:
    both = IgnoreList().with_extensions(["GIF", ".png"])
    assert [both.covers(f"http://h/a.{end}") for end in ("gif", "png", "html")] == [True, True, False]
    assert not IgnoreList().covers("http://h/a.gif")
