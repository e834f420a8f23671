"""The share of changes that was not pushed: its arithmetic, and how sure it is."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.misses import (
    DAY,
    WINDOW,
    Counts,
    Share,
    begin_of,
    falls_back,
    first_day,
    share_missed,
    wilson,
)

trials = st.floats(0.01, 1e9)
counts_ = st.builds(
    Counts,
    st.integers(0, 10**7),
    st.integers(0, 30 * DAY),
    st.integers(0, 10**7),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**13),
)


def counts(**values):
    return Counts(
        **{"documents": 60, "period": DAY, "pushed": 0, "sampled": 60, "missed": 0, "watched": 60 * DAY}
        | values
    )


def test_of_twenty_changes_half_are_missed_when_ten_were_pushed():
    share = share_missed(counts(pushed=10, missed=10))
    assert share.value == 0.5
    assert (round(share.lowest, 3), round(share.highest, 3)) == (0.299, 0.701)


def test_wilson_is_as_in_the_books():
    assert wilson(0, 10) == pytest.approx((0, 0.2775), abs=1e-4)
    assert wilson(1, 1) == pytest.approx((0.2065, 1), abs=1e-4)
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)


def test_a_sample_of_a_tenth_stands_for_ten_times_as_many_missed_changes():
    share = share_missed(counts(documents=600, pushed=100, missed=10))
    assert share.value == 0.5


def test_samples_day_after_day_do_not_count_a_pushed_change_twice():
    daily = counts(period=30 * DAY, sampled=30 * 60, watched=30 * 60 * DAY, pushed=90, missed=10)
    assert share_missed(daily).value == 0.1


@pytest.mark.parametrize(
    "nothing", [{"watched": 0, "missed": 3}, {}, {"documents": 0, "pushed": 5}, {"period": 0, "pushed": 5}]
)
def test_where_nothing_was_watched_or_nothing_changed_nothing_is_known(nothing):
    assert share_missed(counts(**nothing)) is None


@given(counts_)
def test_a_share_lies_between_its_bounds(counts):
    share = share_missed(counts)
    if share is not None:
        assert 0 <= share.lowest <= share.value + 1e-9
        assert share.value - 1e-9 <= share.highest <= 1


@given(counts_)
def test_more_missed_changes_never_make_the_share_smaller(counts):
    more = Counts(
        counts.documents, counts.period, counts.pushed, counts.sampled, counts.missed + 1, counts.watched
    )
    first, second = share_missed(counts), share_missed(more)
    if first is not None:
        assert second.value >= first.value


@given(st.floats(0, 1), trials)
def test_more_trials_make_the_bounds_narrower(part, number):
    few, many = wilson(part * number, number), wilson(part * number * 4, number * 4)
    assert many[1] - many[0] <= few[1] - few[0] + 1e-9


def test_the_true_share_is_inside_of_the_bounds_as_often_as_is_said():
    rng = random.Random(7)
    inside = 0
    for _ in range(400):
        missed = {rng.randrange(1000) for _ in range(50)}
        sample = rng.sample(range(1000), 200)
        found = sum(one in missed for one in sample)
        share = share_missed(Counts(1000, DAY, 150, 200, found, 200 * DAY))
        true = len(missed) / (len(missed) + 150)
        inside += share.lowest <= true <= share.highest
    assert inside >= 0.95 * 400


def test_it_falls_back_when_the_share_is_surely_too_high_and_ends_when_it_is_probably_low_again():
    unsure, sure, low = Share(0.5, 0.1, 0.9), Share(0.5, 0.3, 0.7), Share(0.19, 0.1, 0.4)
    assert not falls_back(unsure, 0.2, falling=False)
    assert falls_back(sure, 0.2, falling=False)
    assert falls_back(unsure, 0.2, falling=True)
    assert not falls_back(low, 0.2, falling=True)
    assert not falls_back(sure, 0.0, falling=True)
    assert not falls_back(None, 0.2, falling=True)
    assert not falls_back(None, 0.2, falling=False)


def test_the_days_that_count_are_thirty_with_today():
    now = 20_000 * DAY + 7
    assert now // DAY - first_day(now) == WINDOW - 1
    assert begin_of(now, 0) == (20_000 - 29) * DAY
    assert begin_of(now, now - 5) == now - 5


@pytest.mark.parametrize(
    ("share", "falling", "visited"),
    [
        (Share(0.5, 0.2, 0.6), False, False),  # as high as permitted, and not surely higher
        (Share(0.5, 0.3, 0.6), False, True),
        (Share(0.2, 0.1, 0.3), True, True),  # not lower yet
        (Share(0.1, 0.0, 0.3), True, False),
    ],
)
def test_a_provider_is_visited_while_it_surely_misses_more_than_is_permitted(share, falling, visited):
    assert falls_back(share, 0.2, falling=falling) is visited
