"""Which names URLs have when a root was renamed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.apps.renaming.rules import RenameRefused, Renaming
from lcc_scrapy.domain.cache import key_after, renamed_to
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.roots import URL_MAX, Root


def between(old, new):
    return Renaming.between(Root.parse(old), Root.parse(new))


@pytest.mark.parametrize(
    ("old", "new", "url", "renamed"),
    [
        ("http://a.org/", "https://a.org/", "http://a.org/x?y=1", "https://a.org/x?y=1"),
        ("http://a.org/", "https://a.org/", "https://a.org/x", "https://a.org/x"),
        ("http://a.org/", "http://b.org/", "http://a.org/x", "http://b.org/x"),
        ("http://a.org/", "http://b.org/", "https://a.org/x", "https://b.org/x"),
        ("http://a.org/", "https://b.org/", "https://a.org/x", "https://b.org/x"),
        ("http://a.org/", "http://b.org:8080/", "https://a.org/x", "http://b.org:8080/x"),
        ("https://a.org/", "https://b.org/", "http://a.org/x", "http://a.org/x"),
        ("http://a.org:81/", "http://b.org/", "https://a.org:81/x", "https://a.org:81/x"),
        ("http://a.org/docs/", "http://a.org/manual/", "http://a.org/docs/x", "http://a.org/manual/x"),
        ("http://a.org/docs/", "http://a.org/manual/", "http://a.org/docs", "http://a.org/docs"),
        ("http://a.org/docs/", "http://a.org/manual/", "http://a.org/docs2/x", "http://a.org/docs2/x"),
        ("http://a.org/docs", "http://a.org/man", "http://a.org/docs", "http://a.org/man"),
        ("http://a.org/docs", "http://a.org/man", "http://a.org/docs?x", "http://a.org/man?x"),
        ("http://a.org/docs", "http://a.org/man", "http://a.org/docs2", "http://a.org/docs2"),
        ("http://a.org/", "http://b.org/", "http://a.org.evil/x", "http://a.org.evil/x"),
        ("http://a.org/", "http://b.org/", "http://A.Org/Päge", "http://b.org/Päge"),
        ("http://a.org/", "http://b.org/", "HTTP://İ.org/x", "HTTP://İ.org/x"),
        ("http://a.org/", "http://b.org/", "a.html", "a.html"),
        ("http://a.org/", "http://b.org/", "urn:x:http://a.org/", "urn:x:http://a.org/"),
        ("http://a.org/", "http://b.org/", "", ""),
    ],
)
def test_a_url_below_the_old_root_lies_below_the_new_one(old, new, url, renamed):
    assert between(old, new).url(url) == renamed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("http://a.org/", "http://a.org/"),
        ("http://a.org/", "http://A.org:80/"),
        ("http://a.org/", "http://a.org/new/"),
        ("http://a.org/new/", "http://a.org/"),
        ("http://a.org/docs", "http://a.org/manual/"),
    ],
)
def test_roots_within_each_other_and_the_same_one_are_refused(old, new):
    with pytest.raises(RenameRefused):
        between(old, new)


@pytest.mark.parametrize("new", ["b.org", "ftp://b.org/", "http://b.org/?x", "http://b.org/../"])
def test_what_is_no_root_is_refused(new):
    with pytest.raises(UrlRefused):
        between("http://a.org/", new)


def test_below_a_path_of_its_own_host_with_https_only_what_was_http_is_renamed():
    renaming = between("http://a.org/", "https://a.org/p/")
    assert renaming.url("http://a.org/x") == "https://a.org/p/x"
    assert renaming.url("https://a.org/x") == "https://a.org/x"


def test_a_url_that_would_be_too_long_stays_and_is_told():
    renaming = between("http://a.org/", "http://longer.example.org/")
    url = "http://a.org/" + "x" * (URL_MAX - 13)
    assert renaming.url(url) == url
    assert renaming.is_too_long(url)
    assert not renaming.is_too_long("http://a.org/x")


def test_two_urls_that_get_the_same_name_are_alike():
    renaming = between("http://a.org/", "https://b.org/")
    assert renaming.alike("http://a.org/x") == ["https://a.org/x"]
    assert renaming.alike("https://a.org/x") == ["http://a.org/x"]
    assert renaming.alike("http://A.org/x") == ["http://a.org/x", "https://a.org/x"]
    assert renaming.alike("x") == []
    assert between("http://a.org/", "http://b.org/").alike("http://a.org/x") == []


def test_a_tombstone_tells_the_new_name():
    assert key_after(renamed_to("00ff")) == b"\0\xff"
    assert key_after("removed by its provider") is None
    assert len(renamed_to("00" * 16)) <= 64


ROOTS = st.sampled_from(["http://a.org/", "https://a.org/", "http://b.org/p/", "http://b.org:81/q/"])


@given(ROOTS, ROOTS, st.text("abc/?%é.", max_size=9))
def test_to_and_fro_gives_the_same_name_and_nothing_is_renamed_twice(old, new, rest):
    try:
        to, fro = between(old, new), between(new, old)
    except RenameRefused:
        return
    url = old + rest
    named = to.url(url)
    assert named == new + rest
    assert to.url(named) == named
    assert fro.url(named) == url
