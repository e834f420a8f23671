"""What the mirror tracker is asked over HTTP, and how mirrors stand in headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.apps.tracker.rules.mirror_links import LINK_BYTES, country_of, digest_header, link_header
from lcc_scrapy.apps.tracker.rules.questions import TYPES, BadQuestion, Question, preferred

HTML, JSON, META4 = TYPES.values()


@pytest.mark.parametrize(
    ("accept", "best"),
    [
        ("", HTML), ("*/*", HTML), ("image/png", HTML), ("application/*", JSON), (JSON.upper(), JSON),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", HTML),
        (f"{HTML};q=0.1, */*;q=0.5", JSON), (f"{META4};charset=utf-8;q=1.0, */*;q=0.9", META4),
        (f"{HTML};q=0, */*;q=0.1", JSON), (f"{JSON};q=2", JSON), (f"{JSON};q=x, {META4}", JSON),
        (", , ;q=1,", HTML), (f"{'a/b,' * 49}{JSON}", JSON), (f"{'a/b,' * 50}{JSON}", HTML),
    ],
    ids=range(14),
)  # fmt: skip
def test_the_type_that_is_liked_best_is_taken(accept, best):
    assert preferred(accept, (HTML, JSON, META4)) == best


@given(st.text())
def test_any_accept_has_an_answer(accept):
    assert preferred(accept, (HTML, JSON)) in {HTML, JSON}


@given(st.binary(max_size=300) | st.binary(max_size=30).map(b"url=".__add__))
def test_any_query_is_a_question_or_refused(query):
    try:
        asked = Question.parse(query)
    except BadQuestion:
        return
    assert not any(ord(one) <= 32 or ord(one) == 127 for one in asked.url)
    assert str(asked).isascii()


WRITTEN = st.text(
    st.characters(min_codepoint=33, exclude_categories=["Cs", "Z"], exclude_characters="\x7f\x85"), min_size=1
)


@given(WRITTEN, st.lists(st.sampled_from(["de", "uk"]), max_size=20), st.none() | st.integers(1, 1000))
def test_a_question_that_is_written_is_read_again(url, tlds, limit):
    asked = Question(url, tuple(tlds), limit)
    assert Question.parse(str(asked).encode()) == asked


def test_only_countries_are_told_as_such():
    told = [country_of(one) for one in ("de", "uk", "eu", "su", "ac", "org", "x1", "")]
    assert told == ["de", "gb", "", "", "", "", "", ""]


def test_links_that_do_not_fit_are_left_out_and_those_behind_them_are_not():
    long, short = f"http://a.example/{'x' * LINK_BYTES}", "http://b.example/"
    assert link_header([(long, "de"), (short, "de")]) == f"<{short}>; rel=duplicate; pri=2; geo=de"
    assert link_header([(short, "org")], ["<./x>; rel=describedby"], short) == (
        f'<./x>; rel=describedby; anchor="{short}", <{short}>; rel=duplicate; pri=1; anchor="{short}"'
    )


@pytest.mark.parametrize(("size", "name"), [(16, "MD5"), (20, "SHA"), (32, "SHA-256"), (64, "SHA-512")])
def test_digests_have_the_names_of_their_lengths(size, name):
    assert digest_header(bytes(size)).startswith(f"{name}=AAAA")
    assert digest_header(b"") == digest_header(bytes(5)) == ""
