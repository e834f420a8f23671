"""Where a new provider goes."""

import pytest

from lcc_scrapy.domain.front import FrontError, SubLcc, SubState, place

A, B = SubLcc("a", "h:1", capacity=100), SubLcc("b", "h:2", capacity=1000)


def test_the_least_full_sub_lcc_takes_a_new_provider():
    assert place([A, B], {"a": 50, "b": 499}, {"a": 0, "b": 9}) == B
    assert place([A, B], {"a": 50, "b": 501}, {"a": 9, "b": 0}) == A


def test_of_those_that_are_equally_full_the_one_with_fewest_providers_takes_it():
    assert place([A, B], {}, {"a": 2, "b": 1}) == B
    assert place([A, B], {}, {}) == A


def test_one_without_a_capacity_is_never_full():
    endless = SubLcc("c", "h:3")
    assert place([A, endless], {"a": 1, "c": 10**9}, {"c": 10**6}) == endless


@pytest.mark.parametrize(
    "subs", [[], [SubLcc("a", "h:1", state=SubState.FULL)], [SubLcc("a", "h:1", capacity=10)]]
)
def test_without_an_active_one_that_has_room_nobody_takes_it(subs):
    with pytest.raises(FrontError, match="no active sub-LCC has room"):
        place(subs, {"a": 10}, {})
