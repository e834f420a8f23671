"""Places: who may begin a fetch, whatever others wait for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.slots import LONG, TOLD_AGAIN, Fetch, Pacing, Slots

NOW = 1_700_000_000.0
KEY = b"k" * 16


def begin(places, number, priority=0, pacing=Pacing.NONE):
    fetch = Fetch((str(number), 1, KEY), priority, NOW)
    places.begin(fetch)
    places.give_on(fetch, pacing, NOW)
    return fetch


def filled(*pacings, total=2, paced=3, priority=0):
    places = Slots(total, paced)
    for number, pacing in enumerate(pacings):
        begin(places, number, priority, pacing)
    return places


def test_as_many_fetches_run_as_there_are_places():
    places = filled(Pacing.NONE)
    assert places.is_open(0, limited=False)
    begin(places, "b")
    assert not any(places.is_open(priority, limited) for priority in (0, 1, 2) for limited in (False, True))
    places.end(("b", 1, KEY))
    assert places.is_open(0, limited=True)


def test_who_is_behind_a_limit_of_its_own_takes_no_place_from_anybody():
    places = filled(*[Pacing.OWN] * 3, total=1, paced=1000)
    assert places.is_open(0, limited=False)
    assert places.is_open(0, limited=True)


def test_beyond_the_bound_of_paced_ones_only_turns_with_a_limit_wait():
    places = filled(*[Pacing.OWN] * 3)
    assert not places.is_open(2, limited=True)
    assert places.is_open(0, limited=False)
    places.end(("0", 1, KEY))
    assert places.is_open(0, limited=True)


def test_who_is_behind_the_common_limit_holds_its_place_against_its_priority_and_below():
    places = filled(Pacing.COMMON, Pacing.COMMON, priority=1)
    assert [places.is_open(priority, limited=False) for priority in (0, 1, 2)] == [False, False, True]


def test_what_gave_its_place_on_stays_without_to_its_end():
    places = Slots(1, 10)
    fetch = begin(places, "a", pacing=Pacing.OWN)
    assert not places.give_on(fetch, Pacing.COMMON, NOW)
    assert not places.give_on(fetch, Pacing.OWN, NOW)
    assert places.is_open(0, limited=True)


def test_giving_on_tells_whether_it_changed_anything_and_notes_the_first_moment():
    places = Slots(1, 10)
    fetch = begin(places, "a")
    assert places.give_on(fetch, Pacing.COMMON, NOW + 1)
    assert places.give_on(fetch, Pacing.OWN, NOW + 2)
    assert fetch.paced_since == NOW + 1
    assert (places.count(Pacing.COMMON), places.count(Pacing.OWN), len(places)) == (0, 1, 1)


def test_an_end_that_comes_twice_counts_once():
    places = filled(Pacing.OWN, Pacing.NONE)
    places.end(("0", 1, KEY))
    places.end(("0", 1, KEY))
    places.end(("1", 2, KEY))  # another lease
    assert (len(places), places.count(Pacing.OWN)) == (1, 0)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "end", *Pacing]), st.integers(0, 40), st.integers(0, 2), st.booleans()
    ),
    max_size=150,
)


@given(STEPS, st.integers(1, 4), st.integers(1, 6))
def test_whatever_happens_the_bounds_hold(steps, total, paced):
    places, known = Slots(total, paced), {}
    for step, number, priority, limited in steps:
        key = (str(number), 1, KEY)
        if step == "begin" and key not in known and places.is_open(priority, limited):
            known[key] = (Fetch(key, priority, NOW), limited)
            places.begin(known[key][0])
        elif step == "end":
            places.end(key)
            known.pop(key, None)
        elif key in known and isinstance(step, Pacing) and (known[key][1] or step != Pacing.OWN):
            places.give_on(known[key][0], step, NOW)
        kinds = [fetch.pacing for fetch, _ in known.values()]
        assert [places.count(kind) for kind in Pacing] == [kinds.count(kind) for kind in Pacing]
        assert kinds.count(Pacing.NONE) <= total
        assert kinds.count(Pacing.COMMON) <= 3 * total
        assert kinds.count(Pacing.OWN) <= paced - 1 + 3 * total
        assert len(places) == len(known) <= paced + 8 * total


# --- what is told of them ------------------------------------------------------------------------


def test_what_takes_long_is_told_of_now_and_again_until_it_has_ended():
    places = Slots(2, 10)
    fetch = begin(places, "a")
    assert places.to_tell(NOW + LONG - 1, 10) == []
    assert places.to_tell(NOW + LONG, 10) == [fetch]
    fetch.told = NOW + LONG
    assert places.to_tell(NOW + LONG + 1, 10) == []
    assert places.to_tell(NOW + LONG + TOLD_AGAIN, 10) == [fetch]
    assert places.ended() == frozenset()
    places.end(("a", 1, KEY))
    assert places.ended() == {"a"}
    places.forget({"a"})
    assert places.ended() == frozenset()


def test_what_was_never_told_of_needs_no_word_at_its_end():
    places = filled(Pacing.OWN)
    places.end(("0", 1, KEY))
    assert places.ended() == frozenset()


def test_no_more_are_told_of_at_a_time_than_asked_for_those_least_lately_first():
    places = Slots(50, 10)
    for number in range(30):
        begin(places, number).told = NOW - 100 + number
    assert [fetch.key[0] for fetch in places.to_tell(NOW + LONG, 3)] == ["0", "1", "2"]


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_clock_that_is_moved_makes_nothing_long(step):
    places = Slots(2, 10)
    begin(places, "a", pacing=Pacing.OWN)
    places.moved(step)
    assert places.to_tell(NOW + step + LONG - 1, 10) == []
    assert places.get(("a", 1, KEY)).paced_since == NOW + step


@pytest.mark.parametrize("step", [3600, -3600])
def test_moments_move_with_the_clock_and_those_that_have_not_come_stay_away(step):
    places = Slots(2, 2)
    told, begun = begin(places, "a", pacing=Pacing.OWN), begin(places, "b")
    told.told = NOW + 1
    places.moved(step)
    assert (told.begun, told.paced_since, told.told) == (NOW + step, NOW + step, NOW + 1 + step)
    assert (begun.begun, begun.paced_since, begun.told) == (NOW + step, 0.0, 0.0)
