"""What follows when a site does not serve what its provider declared: every case of the table."""

from hashlib import md5
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.convergence import (
    MISMATCHES,
    MISMATCHES_IN_A_ROW,
    OTHER_CONTENT,
    OTHER_TYPE,
    Copy,
    Mismatch,
    after_mismatch,
    is_empty,
    next_try,
    one_more,
    strong,
)
from lcc_scrapy.domain.entries import Declared

DELAYS = (60.0, 600.0, 3600.0)
NOW = 1000.0


def decide(**values) -> Mismatch:
    usual = {"empty": False, "copy": Copy.OTHER, "strict": False, "tries": 0, "delays": DELAYS, "now": NOW}
    return after_mismatch(values.pop("code", OTHER_CONTENT), **{**usual, **values})


def test_each_try_but_the_last_is_followed_by_another_after_its_delay():
    assert [decide(tries=tries).again for tries in range(5)] == [1060, 1600, 4600, 0, 0]
    assert decide(delays=()).again == 0


@pytest.mark.parametrize(("tries", "stored"), [(0, True), (2, True), (3, True)])
def test_other_bytes_of_the_declared_type_are_stored_at_once(tries, stored):
    assert [decide(tries=tries, copy=copy).stored for copy in (Copy.NONE, Copy.OTHER)] == [stored, stored]


@pytest.mark.parametrize(("tries", "stored"), [(0, False), (2, False), (3, True)])
def test_another_type_is_stored_at_the_last_try_only(tries, stored):
    decided = [decide(code=OTHER_TYPE, tries=tries, copy=copy) for copy in (Copy.NONE, Copy.OTHER)]
    assert [one.stored for one in decided] == [stored, stored]


@pytest.mark.parametrize("code", sorted(MISMATCHES))
@pytest.mark.parametrize("tries", range(5))
def test_an_empty_body_never_replaces_a_copy(code, tries):
    assert not decide(code=code, empty=True, tries=tries).stored
    assert decide(code=code, empty=True, tries=tries, copy=Copy.NONE).stored == (tries >= 3)


@given(
    code=st.sampled_from(sorted(MISMATCHES)),
    empty=st.booleans(),
    copy=st.sampled_from(Copy),
    strict=st.booleans(),
    tries=st.integers(0, 9),
    delays=st.lists(st.floats(0.001, 1e6), max_size=5).map(tuple),
    in_a_row=st.integers(0, 2 * MISMATCHES_IN_A_ROW),
)
def test_what_holds_in_every_case(code, empty, copy, strict, tries, delays, in_a_row):  # noqa: PLR0917
    decided = after_mismatch(
        code, empty=empty, copy=copy, strict=strict, tries=tries, delays=delays, now=NOW, in_a_row=in_a_row
    )
    assert not (decided.stored and strict), "strict stores only what was declared"
    assert not (decided.stored and copy is Copy.AS_DECLARED), "nothing takes the place of what is right"
    assert not (decided.stored and empty and copy is Copy.OTHER)
    assert bool(decided.again) == (tries < len(delays) and in_a_row < MISMATCHES_IN_A_ROW)
    assert decided.again == 0 or decided.again > NOW
    last = decide(code=code, empty=empty, copy=copy, strict=strict, tries=9)
    if decided.again and last.stored and not decided.stored and tries + 1 >= len(delays):
        assert not decided.conditional, "a 304 would bring nothing to store at the last try"


def test_after_twenty_mismatches_in_a_row_the_first_answer_counts():
    assert decide(in_a_row=19).again
    assert not decide(in_a_row=20).again
    assert decide(code=OTHER_TYPE, in_a_row=20).stored
    assert (next_try(0, DELAYS, NOW, 19), next_try(0, DELAYS, NOW, 20)) == (1060, 0)


@pytest.mark.parametrize(
    ("declared", "length", "empty"),
    [
        (Declared(), 0, False),
        (Declared(length=0), 0, False),
        (Declared(length=0, md5=md5(b"").hexdigest()), 0, False),
        (Declared(length=1), 0, True),
        (Declared(md5="a" * 32), 0, True),
        (Declared(length=1, md5="a" * 32), 1, False),
    ],
)
def test_a_body_is_empty_where_bytes_were_declared(declared, length, empty):
    assert is_empty(declared, length) == empty


def test_a_declaration_whose_tries_are_over_is_asked_for_once_per_last_delay():
    assert one_more(NOW, NOW + 10, DELAYS) == NOW + 3600
    assert one_more(NOW, NOW + 3600, DELAYS) == 0
    assert one_more(NOW, NOW, ()) == 0


@pytest.mark.parametrize("etag", ["", '"', '""', 'W/"a"', 'w/"a"', "a", '"a', 'a"', "W/a"])
def test_only_strong_entity_tags_stand_for_bytes(etag):
    assert strong(etag) == ""
    assert strong('"a"') == '"a"'


def test_of_all_cases_those_are_stored():
    stored = {
        (code, empty, copy, strict, last)
        for code, empty, copy, strict, last in product(
            sorted(MISMATCHES), (False, True), Copy, (False, True), (False, True)
        )
        if decide(code=code, empty=empty, copy=copy, strict=strict, tries=3 * last).stored
    }
    assert stored == {
        (OTHER_CONTENT, False, Copy.NONE, False, False),
        (OTHER_CONTENT, False, Copy.NONE, False, True),
        (OTHER_CONTENT, False, Copy.OTHER, False, False),
        (OTHER_CONTENT, False, Copy.OTHER, False, True),
        (OTHER_CONTENT, True, Copy.NONE, False, True),
        (OTHER_TYPE, False, Copy.NONE, False, True),
        (OTHER_TYPE, False, Copy.OTHER, False, True),
        (OTHER_TYPE, True, Copy.NONE, False, True),
    }
