"""What becomes of a document that comes while it waits for the annotation engine."""

from dataclasses import replace

from lcc_scrapy.domain.acis import Waiting
from lcc_scrapy.domain.annotation_queue import URDS_MOST, merged, named, urds_of

KEY = b"k" * 16
FIRST = Waiting(KEY, seq=5, position=2, since=100, urdids="", base=3)
LATER = Waiting(KEY, seq=9, position=8, since=400, urdids="", base=7)


def test_what_does_not_wait_yet_is_as_it_comes():
    assert merged(None, FIRST) == FIRST


def test_a_newer_version_takes_the_place_of_the_waiting_one():
    assert merged(FIRST, LATER) == replace(FIRST, seq=9)


def test_changes_are_told_since_the_earlier_base():
    assert merged(replace(FIRST, base=0), LATER).base == 7
    assert merged(FIRST, replace(LATER, base=0)).base == 3
    assert merged(LATER, replace(FIRST, base=4)).base == 4


def test_an_older_version_never_replaces_a_newer_one():
    assert merged(LATER, FIRST).seq == 9


def test_urds_are_united_and_all_of_them_are_more_than_some():
    some, others = replace(FIRST, urdids="7 30"), replace(LATER, urdids="9 30")
    assert merged(some, others).urdids == "7 9 30"
    assert merged(FIRST, others).urdids == merged(some, LATER).urdids == ""
    assert urds_of(some) == [7, 30]
    assert urds_of(FIRST) == []


def test_many_urds_are_named_as_all():
    assert named(set(range(1, URDS_MOST + 1))).startswith("1 2 3")
    assert named(set(range(URDS_MOST + 1))) == ""


def test_the_same_version_is_another_row_once_it_is_for_new_urds():
    new = replace(FIRST, position=9, urdids="4", base=0)
    assert merged(FIRST, new) == replace(FIRST, position=9)
