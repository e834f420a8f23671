"""Cookies of one fetch: which are taken, and who gets them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.http.cookies import MOST, MOST_OCTETS, Cookies

NOW = 1_800_000_000.0
PAST, FUTURE = "Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 31 Dec 2100 23:59:59 GMT"
HERE = "http://a.example/dir/page"


def after(*said, at=HERE):
    cookies = Cookies()
    fields = [(b"Set-Cookie", one if isinstance(one, bytes) else one.encode()) for one in said]
    cookies.take(HttpUrl.parse(at), fields, NOW)
    return cookies


def sent(cookies, url=HERE):
    return cookies.field_for(HttpUrl.parse(url)).decode()


@pytest.mark.parametrize(
    ("said", "pair"),
    [
        ("a=b", "a=b"), (" a = b ; path=/", "a=b"), ("a=", "a="), ('a="b"', 'a="b"'), ('a=""', 'a=""'), ("a=b=c", "a=b=c"),
        ("a=b;", "a=b"), ("a=b;;;", "a=b"), ("a=b; x=y; HttpOnly; SameSite=Strict; Partitioned", "a=b"), ("a=b; Domain=other.example", "a=b"),
        ("a=b; Max-Age=1", "a=b"), (f"a=b; Expires={FUTURE}", "a=b"), ("a=b; Expires=soon", "a=b"), ("a=b; Max-Age=soon", "a=b"),
        (f"a=b; Max-Age=9; Expires={PAST}", "a=b"), ("a=b; Max-Age=0; Max-Age=1", "a=b"), ("!#$%&'*+-.^_`|~=x", "!#$%&'*+-.^_`|~=x"),
        ("", ""), ("a", ""), ("=b", ""), (" =b", ""), (";a=b", ""), ("a b=c", ""), ("a=b c", ""), ('a="b', ""), ('a=b"', ""), ('a="b"c', ""),
        ("a=b,c", ""), ("a=b\\c", ""), ("(a)=b", ""), ("a=é", ""), ("é=b", ""), ("a:b=c", ""),
        ("a=b; Max-Age=0", ""), ("a=b; Max-Age=-1", ""), (f"a=b; Expires={PAST}", ""), ("a=b; expires=Sun Nov  6 08:49:37 1994", ""),
        ("a=b; Expires=Sunday, 06-Nov-94 08:49:37 GMT", ""), (f"a=b; Max-Age=0; Expires={FUTURE}", ""), ("a=b; MAX-AGE = 0", ""),
    ],
)  # fmt: skip
def test_a_cookie_comes_back_if_it_is_one(said, pair):
    assert sent(after(said)) == pair


@pytest.mark.parametrize("octet", range(256))
def test_only_octets_of_the_rfc_come_back(octet):
    one = bytes([octet])
    in_value = octet in {0x21, *range(0x23, 0x2C), *range(0x2D, 0x3B), *range(0x3C, 0x5C), *range(0x5D, 0x7F)}
    in_name = chr(octet).isascii() and (chr(octet).isalnum() or one in b"!#$%&'*+-.^_`|~")
    assert (sent(after(b"n=a" + one + b"b")) != "") == (in_value or octet == 0x3B)
    assert (sent(after(b"n" + one + b"m=v")) != "") == (in_name or octet == 0x3D)


@pytest.mark.parametrize(
    ("setting", "said", "asking", "comes"),
    [
        (HERE, "a=b", "http://a.example/dir/other", True), (HERE, "a=b", "http://a.example/dir", True), (HERE, "a=b", "http://a.example/dir/x/y", True),
        (HERE, "a=b", "http://a.example/", False), (HERE, "a=b", "http://a.example/dirx", False), (HERE, "a=b", "http://a.example/DIR/x", False),
        (HERE, "a=b; Path=/", "http://a.example/", True), (HERE, "a=b; Path=/dir/", "http://a.example/dir", False),
        (HERE, "a=b; Path=/dir/", "http://a.example/dir/x", True), (HERE, "a=b; Path=/dir/page", HERE, True), (HERE, "a=b; Path=/other", HERE, False),
        (HERE, "a=b; Path=", "http://a.example/dir/x", True), (HERE, "a=b; Path=x", "http://a.example/", False), (HERE, "a=b; Path=/x; Path=/", HERE, True),
        ("http://a.example/", "a=b", "http://a.example/x", True), ("http://a.example/page", "a=b", "http://a.example/x", True),
        ("http://a.example/d/?q=/x/", "a=b", "http://a.example/d/x", True),
        (HERE, "a=b", "http://b.example/dir/page", False), (HERE, "a=b; Domain=example", "http://b.example/dir/page", False),
        (HERE, "a=b; Domain=a.example", "http://x.a.example/dir/page", False), ("http://x.a.example/", "a=b; Domain=a.example", "http://a.example/", False),
        (HERE, "a=b", "http://a.example:8080/dir/page", True), (HERE, "a=b", "https://a.example/dir/page", True), (HERE, "a=b; Secure", HERE, False),
        (HERE, "a=b; secure", "https://a.example/dir/page", True), ("https://a.example/dir/page", "a=b; Secure=x", HERE, False),
        ("https://a.example/dir/page", "a=b", HERE, True),
    ],
)  # fmt: skip
def test_a_cookie_goes_where_it_is_for(setting, said, asking, comes):
    assert sent(after(said, at=setting), asking) == ("a=b" if comes else "")


def test_the_longest_path_comes_first_then_the_oldest():
    cookies = after("a=1; Path=/", "b=2; Path=/dir/page", "c=3", "d=4; Path=/dir")
    assert sent(cookies) == "b=2; c=3; d=4; a=1"


def test_a_later_cookie_takes_the_place_of_an_earlier_one_with_its_name_and_path():
    assert sent(after("a=1", "b=2", "a=3", "a=4; Path=/")) == "a=3; b=2; a=4"
    assert sent(after("a=1", "b=2", "a=; Max-Age=0")) == "b=2"
    assert sent(after("a=1", "a=; Max-Age=0; Path=/")) == "a=1"


def test_other_fields_set_nothing():
    cookies = Cookies()
    cookies.take(
        HttpUrl.parse(HERE), [(b"Set-Cookie2", b"a=b"), (b"Cookie", b"c=d"), (b"set-COOKIE", b"e=f")], NOW
    )
    assert sent(cookies) == "e=f"


def test_beyond_twenty_cookies_the_further_ones_are_left_out():
    cookies = after(*(f"c{number}=v" for number in range(MOST + 5)), "c0=w")
    assert sent(cookies).count("=") == MOST
    assert sent(cookies).startswith("c0=w; c1=v;")


def test_beyond_eight_kilobytes_together_the_further_ones_are_left_out():
    room = MOST_OCTETS - len("/dir") - 1
    assert len(sent(after("a=" + "x" * room))) == room + 2
    assert sent(after("a=" + "x" * (room + 1))) == ""
    assert sent(after("a=" + "x" * room, "b=y")) == "a=" + "x" * room
    assert sent(after("a=x", "b=y; path=/" + "z" * MOST_OCTETS)) == "a=x"
    assert sent(after("a=x", "a=" + "x" * (room + 1))) == "", "the site means none of both"


@given(st.lists(st.binary(max_size=30), max_size=30))
def test_whatever_a_site_sets_the_field_is_one_line(said):
    field = after(*said).field_for(HttpUrl.parse(HERE))
    assert not set(field) & set(b"\r\n\0")
    assert field.isascii()
