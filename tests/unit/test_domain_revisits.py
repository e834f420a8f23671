"""When to look at a page again of which nobody says that it changed."""

from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.entries import Origin
from lcc_scrapy.domain.revisits import (
    Bounds,
    Visits,
    after_visit,
    bounds_of,
    due,
    first_visit,
    may_be_guessed,
)

HOUR, DAY = 3600, 86_400
BOUNDS = Bounds(DAY, HOUR, 30 * DAY)

seconds = st.integers(1, 10**9)
bounds_ = (
    st.lists(seconds, min_size=3, max_size=3).map(sorted).map(lambda one: Bounds(one[1], one[0], one[2]))
)
visits_ = st.builds(Visits, seconds, st.integers(0, 2**33), st.integers(0, 100))
gaps = st.integers(-(10**9), 10**9)


def test_a_new_page_is_visited_again_after_the_interval_that_was_asked_for():
    assert due(first_visit(1000, BOUNDS)) == 1000 + DAY


def test_a_page_that_never_changes_is_visited_less_and_less():
    visits, gaps = first_visit(0, BOUNDS), []
    for _ in range(200):
        gaps.append(visits.interval)
        visits = after_visit(visits, changed=False, now=due(visits), bounds=BOUNDS)
    assert gaps == sorted(gaps)
    assert visits.interval == 30 * DAY


def test_what_changes_at_every_look_is_not_visited_ever_sooner():
    visits = first_visit(0, BOUNDS)
    for _ in range(50):
        visits = after_visit(visits, changed=True, now=due(visits), bounds=BOUNDS)
    assert visits.interval > DAY * 0.7


@given(visits_, gaps, st.booleans(), bounds_)
def test_the_interval_is_always_within_its_bounds(visits, gap, changed, bounds):
    after = after_visit(visits, changed=changed, now=visits.visited + gap, bounds=bounds)
    assert bounds.shortest <= after.interval <= bounds.longest
    assert due(after) == after.visited + after.interval == visits.visited + gap + after.interval


@given(visits_, gaps, bounds_)
def test_unchanged_is_never_sooner_and_changed_never_later(visits, gap, bounds):
    now, before = visits.visited + gap, bounds.hold(visits.interval)
    assert after_visit(visits, changed=False, now=now, bounds=bounds).interval >= before
    assert after_visit(visits, changed=True, now=now, bounds=bounds).interval <= before


@given(st.integers(100, 10**8), bounds_)
def test_a_visit_that_comes_later_says_more_when_nothing_changed(interval, bounds):
    def after(gap):
        visits = Visits(interval, 0)
        return after_visit(visits, changed=False, now=gap, bounds=bounds).interval

    assert after(0) <= after(interval // 2) <= after(interval) <= after(10 * interval)


@pytest.mark.parametrize("wrong", [(10, 0, 20), (10, 11, 20), (10, 5, 9)])
def test_bounds_that_contradict_each_other_are_refused(wrong):
    with pytest.raises(ValueError, match="shortest <= every <= longest"):
        Bounds(*wrong)


@given(bounds_)
def test_bounds_come_back_as_they_were_written(bounds):
    assert Bounds.of(str(bounds)) == bounds
    assert (bounds_of(str(bounds), BOUNDS), bounds_of("", bounds)) == (bounds, bounds)


def test_what_a_provider_declares_wins_over_guesses():
    assert may_be_guessed(Origin.SPIDER)
    assert not may_be_guessed(Origin.PUSH)
    assert may_be_guessed(Origin.DIRECTIVE)


# --- a month -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bench():
    file = Path(__file__).parents[2] / "bench/revisits.py"
    return SimpleNamespace(**run_path(str(file)))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("hours", "fresher", "younger"), [(12, 0.015, 0.75), (48, 0.01, 0.85)])
def test_in_a_month_copies_are_fresher_than_with_a_fixed_interval_at_equal_cost(
    bench, hours, fresher, younger, seed
):
    pages = bench.pages(300, seed)
    ours = bench.adaptive(pages, hours * HOUR)
    fixed = bench.fixed(pages, 30 * DAY * len(pages) / ours.fetches)
    print(f"\n{ours}\n{fixed}")
    assert ours.fetches == pytest.approx(fixed.fetches, rel=0.01)
    assert ours.freshness > fixed.freshness + fresher
    assert ours.age < fixed.age * younger
