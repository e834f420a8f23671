"""Cache digests: the format of Squid's version 5."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.apps.tracker.rules.cache_digest import bits_of, digest_of


def is_in(digest, url):
    return all(digest[128 + (bit >> 3)] & 1 << (bit & 7) for bit in bits_of(url, len(digest) - 128))


def test_the_header_says_what_squid_checks():
    made = digest_of(["http://a/", "http://b/"])
    assert struct.unpack("!hhiiiiBBh", made[:24]) == (5, 3, 2, 2, 0, 2, 5, 4, 0)
    assert made[24:128] == bytes(104)
    assert len(made) == 130


def test_the_bits_are_those_that_squid_sets():
    assert bits_of("http://127.0.0.1/f0", 125) == KNOWN


KNOWN = [541, 552, 682, 23]
"""The words of MD5 of the byte 1 and the URL, modulo 1000."""


@given(st.lists(st.text(), max_size=50, unique=True))
def test_every_url_is_in_its_digest(urls):
    made = digest_of(urls)
    assert len(made) == 128 + (max(1, len(urls)) * 5 + 7) // 8
    assert all(is_in(made, url) for url in urls)


def test_an_empty_digest_has_nothing_in_it():
    made = digest_of([])
    assert struct.unpack("!hhiiii", made[:20]) == (5, 3, 1, 0, 0, 1)
    assert made[128:] == b"\0"


def test_about_as_few_wrong_urls_are_in_it_as_five_bits_for_each_give():
    made = digest_of([f"http://a/{number}" for number in range(2000)])
    wrong = sum(is_in(made, f"http://b/{number}") for number in range(2000))
    assert 100 < wrong < 300  # 0.55 ** 4
