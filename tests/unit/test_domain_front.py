"""Where a new provider goes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.front import FrontError, Load, SubLcc, SubState, next_to_move, place

A, B = SubLcc("a", "h:1", capacity=100), SubLcc("b", "h:2", capacity=1000)


def test_the_least_full_sub_lcc_takes_a_new_provider():
    assert place([A, B], Load({"a": 50, "b": 499}, {"a": 0, "b": 9})) == B
    assert place([A, B], Load({"a": 50, "b": 501}, {"a": 9, "b": 0})) == A


def test_of_those_that_are_equally_full_the_one_with_fewest_providers_takes_it():
    assert place([A, B], Load({}, {"a": 2, "b": 1})) == B
    assert place([A, B], Load({})) == A


def test_one_without_a_capacity_is_never_full():
    endless = SubLcc("c", "h:3")
    assert place([A, endless], Load({"a": 1, "c": 10**9}, {"c": 10**6})) == endless


@pytest.mark.parametrize(
    "subs", [[], [SubLcc("a", "h:1", state=SubState.FULL)], [SubLcc("a", "h:1", capacity=10)]]
)
def test_without_an_active_one_that_has_room_nobody_takes_it(subs):
    with pytest.raises(FrontError, match="no active sub-LCC has room"):
        place(subs, Load({"a": 10}))


def test_a_new_provider_counts_as_one_of_average_size():
    assert Load({}).average == 1
    assert Load({"a": 30, "b": 0}, {"a": 2, "b": 3}, {"b": 2}).average == 10
    assert Load({"a": 30}, {"a": 2, "down": 7}, {"a": 2}).average == 30
    assert place([A, B], Load({"a": 10, "b": 190}, {"a": 10}, {"a": 9})) == B
    assert place([A, B], Load({"a": 10, "b": 190}, {"a": 10}, {})) == A


def test_new_providers_keep_nobody_out_for_what_they_may_have_one_day():
    assert place([A], Load({"a": 99}, {"a": 3}, {"a": 2})) == A


@given(st.integers(1, 60), st.integers(0, 100), st.integers(0, 100))
def test_many_are_spread_by_capacity(count, first, second):
    load = Load({"a": first, "b": second}, {"a": 1, "b": 1})
    large = SubLcc("b", "h:2", capacity=200)
    small = SubLcc("a", "h:1", capacity=101)
    for _ in range(count):
        load = load.with_one_more(place([small, large], load).name)
    shares = [
        (load.urls[one.name] + load.fresh.get(one.name, 0) * load.average) / one.capacity
        for one in (small, large)
    ]
    begun = [load.urls[one.name] / one.capacity for one in (small, large)]
    step = load.average / small.capacity
    assert abs(shares[0] - shares[1]) <= max(step, abs(begun[0] - begun[1])) + 1e-9
    assert sum(load.fresh.values()) == count
    assert sum(load.providers.values()) == count + 2


@pytest.mark.parametrize(
    ("urls", "target", "which"),
    [
        ({}, 0, None),
        ({1: 10}, 0, None),
        ({1: 10, 2: 10}, 0, 1),
        ({2: 10}, 10, None),
        ({1: 100, 2: 40, 3: 30}, 0, 2),
        ({1: 100, 3: 30}, 40, 3),
        ({1: 100}, 70, None),
        ({1: 0, 2: 0}, 0, None),
        ({1: 3, 2: 3}, 9, None),
    ],
)
def test_the_largest_provider_moves_that_does_not_make_the_other_one_fuller(urls, target, which):
    assert next_to_move(urls, target) == which


@given(st.dictionaries(st.integers(1, 50), st.integers(0, 100), max_size=20), st.integers(0, 500))
def test_a_split_ends_and_never_turns_the_scales(urls, target):
    left, fuller = dict(urls), sum(urls.values()) >= target
    while (pid := next_to_move(left, target)) is not None:
        target += left.pop(pid)
    assert not fuller or sum(left.values()) >= target
