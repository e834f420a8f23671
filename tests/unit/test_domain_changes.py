"""What changed between two versions of a text: sentences and a unified diff, whatever the versions are."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.changes import CONTEXT, DIFF_MAX, LINE_SHOWN, Changes, changes_between, sentences_of

VERSIONS = st.lists(st.sampled_from("abcdefgh"), max_size=25)


def patched(old: list[str], diff: str) -> list[str]:
    """Apply a unified diff as the program `patch` does, and hold what it says about lines that stay."""
    new, at = [], 0
    for line in diff.splitlines()[2:]:
        if found := re.match(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@$", line):
            begin = int(found[1]) - (found[2] != "0")
            new += old[at:begin]
            at = begin
            assert len(new) == int(found[3]) - (found[4] != "0")
            continue
        if line[0] in " -":
            assert old[at] == line[1:]
            at += 1
        if line[0] in " +":
            new.append(line[1:])
    return new + old[at:]


def test_sentences_end_at_their_marks_and_with_their_paragraph() -> None:
    text = ["It costs 3.50 EUR. Buy! Now? Wait… no", "Head", "今日。明日\uff01", ""]
    assert sentences_of(text) == [
        "It costs 3.50 EUR.",
        "Buy!",
        "Now?",
        "Wait…",
        "no",
        "Head",
        "今日。",
        "明日\uff01",
    ]


def test_added_and_removed_sentences_and_their_diff() -> None:
    old = ["Head", "One.", "Two.", "Three.", "Four.", "Price: 12 EUR.", "Foot"]
    new = ["Head", "One.", "Two.", "Three.", "Four.", "Price: 13 EUR.", "Sale!", "Foot"]
    diff = """--- before
+++ after
@@ -4,4 +4,5 @@
 Three.
 Four.
-Price: 12 EUR.
+Price: 13 EUR.
+Sale!
 Foot
"""
    assert changes_between(old, new) == Changes(("Price: 13 EUR.", "Sale!"), ("Price: 12 EUR.",), diff, False)


def test_changes_far_from_each_other_give_two_hunks() -> None:
    lines = [f"line {number}." for number in range(20)]
    changed = changes_between(lines, ["new first", *lines[1:18], "other", lines[19]])
    assert changed is not None
    assert re.findall("@@.*", changed.diff) == ["@@ -1,3 +1,3 @@", "@@ -17,4 +17,4 @@"]


@pytest.mark.parametrize(("between", "hunks"), [(2 * CONTEXT, 1), (2 * CONTEXT + 1, 2)])
def test_hunks_that_would_touch_are_one(between: int, hunks: int) -> None:
    kept = [f"{number}." for number in range(between)]
    changed = changes_between(["a", *kept, "b"], ["c", *kept, "d"])
    assert changed is not None
    assert changed.diff.count("@@ -") == hunks


@pytest.mark.parametrize(
    ("old", "new"), [([], []), (["a"], ["a"]), (["a", "b", "a"], ["b", "a", "a"]), (["a"] * 3, ["a"] * 3)]
)
def test_the_same_sentences_in_whatever_order_are_no_change(old: list[str], new: list[str]) -> None:
    assert changes_between(old, new) is None


def test_one_more_of_the_same_is_a_change() -> None:
    changed = changes_between(["a", "b"], ["a", "b", "a"])
    assert changed is not None
    assert (changed.added, changed.removed) == (("a",), ())


def test_everything_is_added_to_nothing() -> None:
    changed = changes_between([], ["a", "b"])
    assert changed == Changes(("a", "b"), (), "--- before\n+++ after\n@@ -0,0 +1,2 @@\n+a\n+b\n", False)


def test_a_diff_is_cut_between_lines_and_says_so() -> None:
    changed = changes_between([], [f"{number} " + "x" * 1000 for number in range(1000)])
    assert changed is not None
    assert changed.cut
    assert DIFF_MAX - LINE_SHOWN - 10 < len(changed.diff) <= DIFF_MAX
    assert changed.diff.endswith("x…\n")
    assert max(map(len, changed.diff.splitlines())) == LINE_SHOWN + 1
    assert len(changed.added) == 1000


@given(VERSIONS, VERSIONS)
def test_a_diff_makes_the_new_version_of_the_old_one(old: list[str], new: list[str]) -> None:
    changed = changes_between(old, new)
    if changed is None:
        assert sorted(old) == sorted(new)
    else:
        assert patched(old, changed.diff) == new


@given(VERSIONS, VERSIONS)
def test_what_was_removed_and_added_is_all_the_difference(old: list[str], new: list[str]) -> None:
    changed = changes_between(old, new)
    added, removed = (changed.added, changed.removed) if changed else ((), ())
    assert sorted([*old, *added]) == sorted([*new, *removed])
    assert set(added).isdisjoint(removed)


def test_lines_that_stand_once_are_aligned_as_far_as_possible() -> None:
    """The longest rising sequence of them stays; only the line that moved is shown as changed."""
    old = ["a", "b", "c", "d", "e", "f"]
    changed = changes_between(old, ["b", "c", "d", "a", "e", "f", "g"])
    assert changed is not None
    assert [line for line in changed.diff.splitlines()[3:] if line[0] in "+-"] == ["-a", "+a", "+g"]
