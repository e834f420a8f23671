"""Cookies of this server, out of what a browser sends."""

import pytest

from lcc_scrapy.web.cookies import cookie_of


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ([], ""),
        (["mine=a"], "a"),
        (["x=y; mine=a;z"], "a"),
        (["x=y", "mine=a"], "a"),
        (["mine=a; mine=a"], "a"),
        (["mine = a "], "a"),
        (["mine=a=b"], "a=b"),
        (["mine"], ""),
        (["Mine=a; mine2=b; xmine=c"], ""),
        (["x=mine=a"], ""),
    ],
)
def test_a_cookie_is_found_by_its_name(lines, value):
    assert cookie_of(lines, "mine") == value


@pytest.mark.parametrize("lines", [["mine=a; mine=b"], ["mine=b; mine=a"], ["mine=a", "mine=b"]])
def test_of_two_that_differ_none_counts_as_one_may_be_planted(lines):
    assert cookie_of(lines, "mine") == ""
