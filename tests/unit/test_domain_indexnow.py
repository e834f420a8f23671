"""The rules of IndexNow: what a submission covers, and what its key file proves."""

import json
import secrets
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.apps.indexnow.body import read_body
from lcc_scrapy.apps.indexnow.rules import (
    PORTION,
    Asked,
    NotTaken,
    Owners,
    Submission,
    holds_key,
    may_follow,
    portions,
    probe_of,
    read_submission,
)
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.roots import HttpUrl, Root, compared_path

KEY = "0123456789abcdef"


def asked(*urls, **values):
    return read_submission(Asked(**{"key": KEY, "urls": urls, **values}))


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("www.example.org", "www.example.org"),
        ("WWW.Example.ORG", "www.example.org"),
        ("www.example.org:443", "www.example.org"),
        ("https://www.example.org", "www.example.org"),
        ("www.example.org/blog", "www.example.org"),
    ],
)
def test_a_host_is_read_as_clients_write_it(host, site):
    assert asked("https://www.example.org/a", host=host).site == site


def test_a_port_of_its_own_is_part_of_the_site():
    found = asked("http://h:8080/a", host="h:8080")
    assert (found.site, found.location) == ("h:8080", f"http://h:8080/{KEY}.txt")
    with pytest.raises(NotTaken, match="not of the host h"):
        asked("http://h:8080/a", host="h")


def test_the_file_lies_at_the_top_by_the_scheme_of_the_first_url():
    assert asked("http://h/a/b", "https://h/c").location == f"http://h/{KEY}.txt"
    assert asked("https://h/c", "http://h/a/b").location == f"https://h/{KEY}.txt"


def test_the_same_url_is_one_however_it_is_written():
    assert asked("http://h/a", "http://H:80/a", "http://h/a#x").urls == ("http://h/a",)


def test_the_digest_tells_keys_and_places_apart():
    first = asked("http://h/a")
    assert first.digest == asked("http://h/b").digest
    assert first.digest != asked("https://h/a").digest
    assert first.digest != asked("http://h/a", key="another-key").digest


def test_portions_have_all_urls_once_in_order():
    urls = tuple(f"http://h/{number}" for number in range(2 * PORTION + 1))
    found = list(portions(Submission("h", KEY, "http://h/k.txt", urls), 5))
    assert [one.count for one in found] == [PORTION, PORTION, 1]
    assert tuple(url for one in found for url in json.loads(one.urls)) == urls
    assert all(one.size > len(one.urls) for one in found)


@given(st.binary(max_size=300))
def test_no_other_file_holds_the_key(body):
    assert holds_key(body, KEY) is (body.removeprefix(b"\xef\xbb\xbf").strip() == KEY.encode())


def test_a_probe_has_another_name_wherever_the_key_stands():
    assert probe_of(f"http://h/{KEY}/x{KEY.upper()}.txt", KEY, "other") == "http://h/other/xother.txt"
    assert probe_of("http://h/k.txt", KEY, "other") == ""
    assert probe_of(f"http://{KEY}.org/k.txt", KEY, "other") == ""


@pytest.mark.parametrize(
    ("target", "follow"),
    [
        ("https://h/docs/other.txt", True),
        ("http://h/docs/k.txt/", True),
        ("http://h/k.txt", False),
        ("http://h:8080/docs/k.txt", False),
        ("http://www.h/docs/k.txt", False),
        ("http://h/docs/../k.txt", False),
    ],
)
def test_redirects_stay_in_the_scope(target, follow):
    assert may_follow(HttpUrl.parse("http://h/docs/k.txt"), HttpUrl.parse(target)) is follow


def test_the_longest_root_decides_and_among_equal_ones_the_lowest_pid():
    rooted = [
        (pid, Root.parse(root)) for pid, root in ((9, "http://h/a/"), (1, "http://h/"), (5, "http://h/a/"))
    ]
    owners = Owners(rooted)
    assert owners.of(HttpUrl.parse("http://h/a/b")) == 5
    assert owners.of(HttpUrl.parse("https://h/b")) == 1
    assert owners.of(HttpUrl.parse("http://x/b")) is None


PARTS = st.sampled_from(["", "a", "a/", "a/b", "a//", "%61/", "a%2fb", "../a", "é/", "b", "a/b/c.html"])
SITES = st.sampled_from(["http://h/", "https://h/", "http://h:8080/", "http://x/"])


@given(st.lists(st.tuples(st.integers(1, 3), SITES, PARTS), max_size=8), SITES, PARTS)
def test_owners_are_those_whose_roots_cover_a_url_and_none_has_a_longer_one(roots, site, part):
    rooted = []
    for pid, where, folder in roots:
        with suppress(UrlRefused):
            rooted.append((pid, Root.parse(where + folder)))
    url = HttpUrl.parse(site + part)
    covering = [(len(compared_path(root.url).rstrip("/")), -pid) for pid, root in rooted if root.covers(url)]
    assert Owners(rooted).of(url) == (-max(covering)[1] if covering else None)


def test_many_roots_at_one_host_cost_nothing_for_each_url():
    rooted = [(pid, Root.parse(f"http://h/{pid}/")) for pid in range(1, 20_001)]
    owners, urls = Owners(rooted), [HttpUrl.parse(f"http://h/{pid}/x") for pid in range(1, 20_001)]
    assert [owners.of(url) for url in urls] == list(range(1, 20_001))  # each with each would take minutes


TEXTS = st.text(st.characters(codec="utf-8"), max_size=50)


@given(
    TEXTS, TEXTS.filter(bool), TEXTS, st.lists(TEXTS, max_size=20),
    st.dictionaries(TEXTS.map("x{}".format), st.one_of(TEXTS, st.integers(), st.none(), st.booleans(), st.lists(TEXTS)), max_size=5),
    st.booleans(), st.sampled_from([None, 2]),
)  # fmt: skip
def test_whatever_json_says_is_what_is_read(key, host, location, urls, more, ascii_only, indent):  # noqa: PLR0917
    said = {"key": key, "host": host, "keyLocation": location, "urlList": urls, **more}
    read = read_body(json.dumps(said, ensure_ascii=ascii_only, indent=indent).encode())
    assert (read.key, read.host, read.location, read.urls) == (key, host, location, urls)
    assert read.ignored == tuple(name[:40] for name in more)


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_be_refused(body):
    with pytest.raises(NotTaken) as caught:
        read_body(body)
    assert caught.value.status == 400


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_no_texts_do_more_than_be_refused(url, host, location):
    try:
        read_submission(Asked(secrets.token_hex(8), [f"http://h/{url}"], host or "!", location))
    except NotTaken as error:
        assert error.status in {400, 422}  # noqa: PT017 - some of them make sense
