"""Which pages are asked for because URDs are due, for whom, and when a change asks for less."""

from dataclasses import replace

import pytest

from lcc_scrapy.domain.directives import OWNERS_MAX
from lcc_scrapy.domain.requests import asks_for_less, is_asked_for, requests
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.domain.urds import Method, Urd

PAGE = "http://x/p"
BASE = Urd(1, "anna", PAGE, timing=1000, depth=2)


@pytest.mark.parametrize(
    ("less", "change"),
    [
        (False, {}),
        (False, {"depth": 3, "timing": 5000}),
        (True, {"depth": 1}),
        (True, {"uri": "http://x/q"}),
        (True, {"timing": 0}),
        (True, {"method": Method.PUSH}),
        (False, {"expires": 1, "threshold": 9}),
    ],
)
def test_a_change_asks_for_less_if_pages_may_not_be_reached_any_more(less, change):
    assert asks_for_less(BASE, replace(BASE, **change)) is less
    assert not asks_for_less(replace(BASE, timing=0), replace(replace(BASE, **change), timing=0))


def test_expired_and_pushed_ones_are_never_asked_for():
    assert is_asked_for(replace(BASE, expires=100), 99)
    assert not is_asked_for(replace(BASE, expires=100), 100)
    assert not is_asked_for(replace(BASE, method=Method.PUSH), 0)
    assert not is_asked_for(replace(BASE, uri="*"), 0)


def test_a_thousand_owners_of_one_page_are_one_request_of_several_directives():
    urds = [Urd(n, f"o{n:04}", PAGE, timing=1000 + n, depth=n % 2, urgency=n % 3) for n in range(1000)]
    [one] = requests([*urds, *urds[:5]], 0)
    assert (one.urgency, len(one.urds)) == (2, 1000)
    asked = one.directives(HttpUrl.parse(PAGE))
    assert [one.depth for one in asked] == [1] * 5 + [0] * 5
    assert {len(one.owners) for one in asked} == {OWNERS_MAX}
    assert len({owner for one in asked for owner in one.owners}) == 1000


def test_an_owner_with_two_urds_of_one_page_goes_as_deep_as_the_deeper_one():
    [one] = requests([replace(BASE, urdid=2, depth=5), BASE], 0)
    assert [(said.depth, said.owners) for said in one.directives(HttpUrl.parse(PAGE))] == [(5, ("anna",))]


def test_the_most_urgent_page_comes_first():
    urds = [replace(BASE, urdid=n, uri=f"http://x/{n}", urgency=n) for n in (0, 1, 2)]
    assert [one.urgency for one in requests(urds, 0)] == [2, 1, 0]
