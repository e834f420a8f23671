"""What is shown of an ACI, also of one whose details others wrote."""

import json

import pytest

from lcc_scrapy.annotation.aci_details import shown
from tests.alert_house import aci


def of(**detail):
    return shown(aci(1, detail=json.dumps(detail)))


def test_extracts_are_cut_at_their_marks():
    (pieces,) = of(extracts=[{"text": "a lamp and a lamp", "marks": [[2, 6], [13, 17]]}]).extracts
    assert pieces == (("a ", False), ("lamp", True), (" and a ", False), ("lamp", True))


@pytest.mark.parametrize(
    "marks", [[[5, 99]], [[-1, 2]], [[3, 3]], [[4, 2]], [["a", 2]], [[1]], [True], None, [[1.5, 2]], 7]
)
def test_marks_that_lead_nowhere_mark_nothing(marks):
    (pieces,) = of(extracts=[{"text": "a lamp", "marks": marks}]).extracts
    assert pieces == (("a lamp", False),)


def test_marks_that_overlap_lose_no_text():
    (pieces,) = of(extracts=[{"text": "a lamp", "marks": [[0, 4], [2, 6]]}]).extracts
    assert "".join(text for text, _ in pieces) == "a lamp"
    assert pieces[0] == ("a la", True)


@pytest.mark.parametrize(
    "detail", ["", "x", "[]", "null", "[" * 100_000, '{"extracts": 7, "keywords": "a", "diff": []}']
)
def test_details_of_others_show_the_summary(detail):
    found = shown(aci(1, summary="So it is.", detail=detail))
    assert found.extracts == ((("So it is.", False),),)
    assert (found.words, found.added, found.diff) == ((), (), "")


def test_of_a_change_sentences_are_shown_and_no_summary():
    found = of(added=["new", 7], removed=["old"], diff="+new\n-old")
    assert (found.extracts, found.added, found.removed, found.diff) == ((), ("new",), ("old",), "+new\n-old")


def test_much_of_anything_is_cut():
    found = of(
        extracts=[{"text": str(n), "marks": []} for n in range(99)],
        added=["x"] * 99,
        diff="+" * 99_999,
        keywords=[{"key": "a", "occurrences": 2}, {"key": 3}, 7],
    )
    assert (len(found.extracts), len(found.added), len(found.diff)) == (10, 20, 20_000)
    assert found.words == (("a", 2),)
