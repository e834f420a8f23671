"""The one guard over mass removals (design section 5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.removal_guard import DAY, FEW, doubts, notice, removed_within_day, room


def holds(removing, removed_today, known, max_share):
    return removing > room(removed_today, known, max_share)


@pytest.mark.parametrize(
    ("removing", "today", "known", "held"),
    [
        (20, 0, 20, False),
        (21, 0, 21, True),
        (21, 0, 41, True),
        (21, 0, 42, False),
        (1, 20, 0, True),
        (1, 20, 22, False),
        (1, 20, 21, True),
        (999, 0, 1000, True),
        (500, 0, 1000, False),
        (501, 0, 1000, True),
        (0, 500, 500, False),
    ],
)
def test_more_than_half_of_the_documents_of_a_day_are_held(removing, today, known, held):
    assert holds(removing, today, known, 0.5) is held


def test_a_share_of_nothing_holds_all_but_a_few_and_of_everything_holds_none():
    assert holds(FEW + 1, 0, 10**6, 0.0)
    assert not holds(FEW, 0, 10**6, 0.0)
    assert not holds(1000, 0, 1000, 1.0)


def test_removals_count_for_a_day():
    assert removed_within_day(5, 1000, 1000 + DAY - 1) == 5
    assert removed_within_day(5, 1000, 1000 + DAY) == 0


@given(st.integers(0, 500), st.integers(0, 500), st.floats(0, 1))
def test_the_room_is_the_most_that_the_share_or_the_few_let_pass(today, known, share):
    most = room(today, known, share)
    total = known + today
    assert most == 0 or today + most <= max(FEW, share * total)
    assert today + most + 1 > FEW
    assert today + most + 1 > share * total


@pytest.mark.parametrize(
    ("named", "unreadable", "doubtful"), [(0, 0, True), (1, 0, False), (1, 1, True), (0, 1, True)]
)
def test_a_full_set_that_names_nothing_or_has_unreadable_keys_is_doubtful(named, unreadable, doubtful):
    assert doubts(named, unreadable) is doubtful


def test_a_notice_says_who_decides():
    assert notice(7, 980, "answered 404") == (
        "provider 7: 980 removals are held (answered 404): `lcc provider confirm-removals 7` carries them out,"
        " a later full set decides anew"
    )


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(0, 300), st.floats(0, 1))
def test_however_removals_are_cut_into_sets_no_more_than_the_share_goes(parts, documents, share):
    left, gone = documents, 0
    for wanted in parts:
        part = min(wanted, left)
        if not holds(part, gone, left, share):
            left, gone = left - part, gone + part
    assert gone <= max(FEW, share * documents)
