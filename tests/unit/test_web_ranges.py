"""Ranges and entity tags: RFC 9110's own examples, and any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.web.ranges import Unsatisfiable, is_named, part

TAG = '"abc"'


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("bytes=0-499", range(500)),
        ("bytes=500-999", range(500, 1000)),
        ("bytes=-500", range(9500, 10000)),
        ("bytes=9500-", range(9500, 10000)),
        ("bytes=0-0", range(1)),
        ("bytes=-20000", range(10000)),
        ("bytes=9999-99999", range(9999, 10000)),
        ("BYTES= 0-1 ", range(2)),
    ],
)
def test_one_range_is_found(header, found):
    assert part(header, 10_000) == found


@pytest.mark.parametrize(
    "header",
    [
        "bytes=0-0,-1", "bytes=5-4", "bytes=-", "bytes=", "bytes", "items=0-1", "bytes=a-b", "bytes=+1-2", "bytes=1 -2",
        "bytes=²-", "bytes=--1", "bytes=0-" + "9" * 5000,
    ],
)  # fmt: skip
def test_several_ranges_and_what_is_none_are_ignored(header):
    assert part(header, 10_000) is None


@pytest.mark.parametrize(("header", "length"), [("bytes=100-", 100), ("bytes=-0", 100), ("bytes=0-", 0)])
def test_a_range_behind_the_end_cannot_be_satisfied(header, length):
    with pytest.raises(Unsatisfiable):
        part(header, length)


@given(st.integers(0, 200), st.none() | st.integers(0, 200), st.integers(1, 150))
def test_a_range_is_what_a_slice_is(first, last, length):
    data = bytes(range(length))
    header = f"bytes={first}-{'' if last is None else last}"
    try:
        found = part(header, length)
    except Unsatisfiable:
        assert data[first:] == b""
    else:
        wanted = data[first:] if last is None else data[first : last + 1]
        assert (wanted or data) == (data if found is None else data[found.start : found.stop])


@given(st.text(), st.integers(0, 1000))
def test_any_text_gives_a_part_or_all(text, length):
    try:
        found = part(text, length)
    except Unsatisfiable:
        return
    assert found is None or 0 <= found.start < found.stop <= length


@pytest.mark.parametrize(
    ("header", "strongly", "weakly"),
    [
        (TAG, True, True), ("*", True, True), (f'"x", {TAG}', True, True), (f"W/{TAG}", False, True),
        ('"x"', False, False), ("abc", False, False), ("", False, False), ('"abc', False, False),
    ],
)  # fmt: skip
def test_a_tag_is_found_in_a_list(header, strongly, weakly):
    assert is_named(header, TAG, weakly=False) == strongly
    assert is_named(header, TAG, weakly=True) == weakly
