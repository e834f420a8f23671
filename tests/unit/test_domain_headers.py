"""Of what a site sends as headers, a documented list is kept, and 8 kB of that."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.headers import KEPT, LONGEST, length_of
from lcc_scrapy.domain.headers import kept as kept_of_fields

NAMES = st.sampled_from([*sorted(KEPT), "Set-Cookie", "X-Anything", "ETag", "LINK"])
LATIN = st.text(st.characters(max_codepoint=0xFF), max_size=3000)
PAIRS = st.lists(st.tuples(NAMES, LATIN), max_size=40)


def kept(pairs: Iterable[Sequence[str]]) -> str:
    return kept_of_fields((name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs)


def test_headers_are_kept_in_their_order_and_spelling() -> None:
    pairs = [["Server", "x"], ["content-TYPE", "text/html"], ["Link", "<a>"], ["Link", "<b>"]]
    assert json.loads(kept(pairs)) == pairs


@pytest.mark.parametrize("name", ["Set-Cookie", "X-Anything", "Content-Security-Policy", "", "X-Robots-Tags"])
def test_others_are_not(name: str) -> None:
    assert kept([(name, "x"), ("Age", "1")]) == '[["Age", "1"]]'


def test_one_that_does_not_fit_is_left_out_and_a_shorter_one_behind_it_is_not() -> None:
    pairs = [("Age", "1"), ("Link", "x" * LONGEST), ("Date", "now")]
    assert kept(pairs) == '[["Age", "1"], ["Date", "now"]]'


def test_up_to_the_last_byte_all_are_kept() -> None:
    room = LONGEST - len('[["Link", ""]]')
    assert len(kept([("Link", "x" * room)])) == LONGEST
    assert kept([("Link", "x" * (room + 1))]) == "[]"


@given(PAIRS)
def test_no_more_is_kept_than_the_bound(pairs: list[tuple[str, str]]) -> None:
    text = kept(pairs)
    assert len(text) <= LONGEST
    assert text.isascii()
    assert all(tuple(pair) in pairs and pair[0].lower() in KEPT for pair in json.loads(text))
    wanted = [pair for pair in pairs if pair[0].lower() in KEPT]
    if len(json.dumps(wanted)) <= LONGEST:
        assert text == json.dumps(wanted)


def test_what_is_kept_counts_and_nothing_counts_nothing() -> None:
    assert length_of(kept([])) == 0
    assert length_of('[["Age", "1"]]') == len('["Age", "1"]')


def test_the_documented_list_is_the_one_that_is_kept() -> None:
    text = Path("docs/content.md").read_text().partition("<!-- kept headers -->")[2].partition("\n\n")[0]
    assert {name.lower() for name in re.findall(r"`([A-Za-z0-9-]+)`", text)} == KEPT


def test_once_not_all_fit_each_that_does_takes_its_bytes() -> None:
    third = "x" * (LONGEST // 3)
    assert [name for name, _ in json.loads(kept([("Age", third), ("Date", third), ("Link", third)]))] == [
        "Age",
        "Date",
    ]


def test_one_that_takes_the_last_byte_is_kept_before_one_that_does_not_fit() -> None:
    value = "x" * (LONGEST - len('[["Age", ""], ]'))
    assert kept([("Age", value), ("Date", "now")]) == json.dumps([["Age", value]])
