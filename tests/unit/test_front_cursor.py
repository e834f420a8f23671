"""Cursors of the front: one part for each LCC, bounded, and read by the front only."""

import base64
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.cursor import BadCursor, Position, StartOver
from lcc_scrapy.domain.front_cursor import (
    FRONT_CURSOR_MAX,
    LCC_ID_MAX,
    PARTS_MAX,
    TOLD_MAX,
    FrontPosition,
    Note,
    Part,
)

_A, _B = Position("a", 1, 7, 3, "text"), Position("b", 2, 9, 0, "text")
_BOTH = FrontPosition((Part(_A), Part(_B, 4)), "text", 5, (Note(2, 5, (("a", 6), ("gone", 1))),))
_HUGE = 2**63 - 1

_numbers = st.integers(0, _HUGE)
_ids = st.text(st.characters(codec="utf-8"), max_size=LCC_ID_MAX)


@st.composite
def _positions(draw: st.DrawFn) -> FrontPosition:
    selection = draw(st.text("0123456789abcdef", max_size=16))
    lccs = sorted(draw(st.sets(_ids, max_size=5)))
    parts = tuple(
        Part(Position(lcc, draw(_numbers), draw(_numbers), draw(_numbers), selection), draw(_numbers))
        for lcc in lccs
    )
    moves = draw(st.integers(0, _HUGE))
    told = tuple((lcc, draw(_numbers)) for lcc in draw(st.sets(_ids, max_size=3)))
    notes = (Note(draw(st.integers(1, moves)), moves, told),) if moves and draw(st.booleans()) else ()
    return FrontPosition(parts, selection, moves, notes)


@given(_positions())
def test_a_cursor_is_read_as_it_was_written(position: FrontPosition) -> None:
    assert FrontPosition.parse(f" {position}\n") == position


@given(st.one_of(st.text(), st.text("ABCabc012-_"), st.recursive(_numbers | st.text(), st.lists).map(str)))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    with pytest.raises(BadCursor):
        FrontPosition.parse(text)


@given(
    st.dictionaries(
        st.sampled_from(["parts", "sel", "moves", "notes"]),
        st.recursive(_numbers | st.text(max_size=3) | st.none() | st.booleans(), st.lists, max_leaves=8),
    )
)
def test_facts_of_other_shapes_are_no_cursor_or_read_and_written_again(facts: dict[str, object]) -> None:
    try:
        position = FrontPosition.parse(_text({"v": "front-1", **facts}))
    except BadCursor:
        return
    assert FrontPosition.parse(str(position)) == position


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"parts": [["a", 1], ["a", 2]]},
        {"parts": [["a" * (LCC_ID_MAX + 1), 1]]},
        {"parts": [["a", -1]]},
        {"parts": [["a", True]]},
        {"parts": [["a", 1.5]]},
        {"parts": [["a", 1, 2, 3, 4, 5]]},
        {"parts": [["a", 2**63]]},
        {"parts": [[str(number), 1] for number in range(PARTS_MAX + 1)]},
        {"parts": [], "sel": "0" * 17},
        {"parts": [], "moves": 1, "notes": [[1, 2, []]]},
        {"parts": [], "moves": 2, "notes": [[2, 1, []]]},
        {"parts": [], "moves": 2, "notes": [[0, 1, []]]},
        {"parts": [], "moves": 2, "notes": [[1, 1, [[0, 1]]]]},
        {"parts": [["a", 1]], "moves": 2, "notes": [[1, 1, [[0, 1]] * TOLD_MAX], [2, 2, [[0, 1]]]]},
    ],
)
def test_what_cannot_be_a_position_is_refused(facts: dict[str, object]) -> None:
    with pytest.raises(BadCursor, match="not a cursor"):
        FrontPosition.parse(_text({"v": "front-1", **facts}))


def test_the_largest_cursor_is_within_the_bound() -> None:
    lccs = [f"{number:0{LCC_ID_MAX}}" for number in range(PARTS_MAX)]
    parts = tuple(Part(Position(lcc, 10**12, 10**12, 10**12, "f" * 16), 10**12) for lcc in lccs)
    told = tuple((f"x{lcc[1:]}", 10**12) for lcc in lccs[:TOLD_MAX])
    position = FrontPosition(parts, "f" * 16, 10**12, (Note(1, 10**12, told),))
    assert FrontPosition.parse(str(position)) == position
    assert len(str(position)) < FRONT_CURSOR_MAX


def test_what_says_nothing_is_left_out() -> None:
    facts = json.loads(base64.urlsafe_b64decode(str(FrontPosition((Part(Position("a", 1, 7)),))) + "=="))
    assert facts == {"v": "front-1", "parts": [["a", 1, 7]]}
    facts = json.loads(base64.urlsafe_b64decode(str(FrontPosition((Part(Position("a", 0, 0), 1),))) + "=="))
    assert facts["parts"] == [["a", 0, 0, 0, 1]]


def test_as_many_notes_are_read_as_can_be_written() -> None:
    notes = tuple(Note(number, number, (("a", 1),)) for number in range(1, TOLD_MAX + 1))
    position = FrontPosition((Part(Position("a", 1, 7)),), "", 100, (*notes, Note(99, 99, ())))
    assert FrontPosition.parse(str(position)) == position


def test_the_cursor_of_one_lcc_is_none_of_the_front_and_the_other_way_round() -> None:
    with pytest.raises(BadCursor, match="not of a front"):
        FrontPosition.parse(str(_A))
    with pytest.raises(BadCursor, match="version"):
        Position.parse(str(_BOTH))


def test_a_new_part_begins_with_the_moves_of_now_and_keeps_that() -> None:
    position = FrontPosition(selection="text", moves=4).within(["b"])
    begun = position.part("b")
    assert begun == Part(Position("b", 0, 0, 0, "text"), 4)
    assert begun.since is None
    later = replace(position, moves=6).at(replace(_B, selection="")).part("b")
    assert later == Part(_B, 4)
    assert later.since == _B


def test_a_part_that_is_started_over_begins_anew_and_the_others_stay() -> None:
    assert _BOTH.anew("b").parts == (Part(_A), Part(Position("b", 0, 0, 0, "text"), 5))


def test_parts_of_lccs_that_are_gone_are_dropped_and_new_ones_read_from_their_starts() -> None:
    position = _BOTH.within(["b", "c"])
    assert position.parts == (Part(_B, 4), Part(Position("c", 0, 0, 0, "text"), 5))
    assert position.notes == _BOTH.notes
    assert replace(_BOTH, notes=()).within(["b", "c"]).parts == position.parts


def test_a_cursor_of_another_front_is_followed_nowhere() -> None:
    with pytest.raises(StartOver, match="another front"):
        replace(_BOTH, notes=()).within(["c"])
    assert len(_BOTH.within(["c"]).parts) == 1  # all its providers have moved away


def test_a_cursor_goes_with_its_filters_only() -> None:
    _BOTH.check("text")
    with pytest.raises(BadCursor, match="same filters"):
        _BOTH.check("")


def _text(facts: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(facts).encode()).decode().rstrip("=")
