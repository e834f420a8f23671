"""Hours in which fetching is permitted, daylight-saving days included (design section 5 "Hours")."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.timeslots import (
    ALWAYS,
    first_slot,
    intersect,
    never_opens,
    next_permitted,
    parse_mask,
    permits,
    unite,
)

AMSTERDAM = ZoneInfo("Europe/Amsterdam")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")
CHATHAM = ZoneInfo("Pacific/Chatham")
ZONES = [ZoneInfo(name) for name in ("UTC", "Europe/Amsterdam", "Australia/Lord_Howe", "Pacific/Chatham", "Asia/Kathmandu",
                                     "America/St_Johns", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati")]  # fmt: skip


def hours(mask):
    return {slot for slot, bit in enumerate(mask) if bit == "1"}


def week(days, start, end):
    return {(24 * day + hour) % 168 for day in days for hour in range(start, end)}


def at(year, month, day, hour=0, minute=0, zone=UTC, fold=0):  # noqa: PLR0917 - as datetime has them
    return datetime(year, month, day, hour, minute, tzinfo=zone, fold=fold).timestamp()


# --- notation ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0-8", week(range(7), 0, 8)),
        ("20-6", week(range(7), 20, 30)),
        ("mon-fri 20-06", week(range(5), 20, 30)),
        ("MON-FRI 20-06", week(range(5), 20, 30)),
        ("sat", week([5], 0, 24)),
        ("saturday", week([5], 0, 24)),
        ("sat-sun", week([5, 6], 0, 24)),
        ("fri-mon 22-2", week([4, 5, 6, 0], 22, 26)),
        ("sun 23-1", week([6], 23, 25)),
        ("!12-14", week(range(7), 0, 24) - week(range(7), 12, 14)),
        ("!sat, !sun", week(range(5), 0, 24)),
        ("0-24, !12-14", week(range(7), 0, 24) - week(range(7), 12, 14)),
        ("8-18, !wed, wed 10-11", week(set(range(7)) - {2}, 8, 18) | week([2], 10, 11)),
        ("8-8", week(range(7), 0, 24)),
        ("0-0", week(range(7), 0, 24)),
        ("20-0", week(range(7), 20, 24)),
        ("1" * 8 + "0" * 16, week(range(7), 0, 8)),
        ("1" + "0" * 167, {0}),
        ("0" * 167 + "1", {167}),
        (" mon 0-1 ", {0}),
    ],
)
def test_notation_of_a_week(text, expected):
    mask = parse_mask(text)
    assert (len(mask), hours(mask)) == (168, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0-8", set(range(8))),
        ("20-6", {20, 21, 22, 23, 0, 1, 2, 3, 4, 5}),
        ("!12-14", set(range(24)) - {12, 13}),
        ("01" * 12, set(range(1, 24, 2))),
    ],
)
def test_notation_of_a_day(text, expected):
    mask = parse_mask(text, 24)
    assert (len(mask), hours(mask)) == (24, expected)


def test_no_wish_is_always():
    assert parse_mask("") == parse_mask("  ") == ALWAYS
    assert not never_opens(ALWAYS)
    assert permits(ALWAYS, 0.0, UTC)
    assert first_slot(ALWAYS) == -1


@pytest.mark.parametrize(
    "text",
    ["x", "mon-", "-8", "8-", "8", "24-8", "8-25", "mon 8", "foo 8-9", "mon-foo 8-9", "!", ",", "8-9,", "mon8-9", "8-9 mon",
     "0" * 23, "0" * 25, "1" * 167, "8:30-9", "012"],
)  # fmt: skip
def test_what_is_no_mask_is_refused(text):
    with pytest.raises(UrlRefused) as refused:
        parse_mask(text)
    assert refused.value.code == 706


@pytest.mark.parametrize("text", ["mon", "mon-fri 8-9", "0" * 168])
def test_an_lcc_with_the_hours_of_a_day_knows_no_days(text):
    with pytest.raises(UrlRefused) as refused:
        parse_mask(text, 24)
    assert refused.value.code == 706


def test_masks_are_intersected():
    night, weekend = parse_mask("20-6"), parse_mask("sat-sun")
    assert hours(intersect(night, weekend)) == hours(night) & hours(weekend)
    assert intersect(ALWAYS, night) == intersect(night, ALWAYS) == night
    assert intersect(ALWAYS, ALWAYS) == ALWAYS
    assert hours(intersect(parse_mask("0-8", 24), weekend)) == week([5, 6], 0, 8)
    assert never_opens(intersect(parse_mask("0-8"), parse_mask("8-0")))


def test_the_first_slot_is_the_first_open_hour():
    assert first_slot(parse_mask("tue 5-6")) == 29


# --- hours of real days -----------------------------------------------------------------------------


def test_hours_are_those_of_the_zone():
    mask = parse_mask("mon 8-9")
    assert permits(mask, at(2026, 6, 1, 8, 30, AMSTERDAM), AMSTERDAM)
    assert not permits(mask, at(2026, 6, 1, 8, 30), AMSTERDAM)
    assert permits(mask, at(2026, 6, 1, 6, 30), AMSTERDAM)
    assert permits(mask, at(2026, 12, 7, 7, 30), AMSTERDAM)


def test_the_end_of_an_hour_does_not_belong_to_it():
    mask = parse_mask("8-9")
    end = at(2026, 6, 1, 9)
    assert permits(mask, end - 0.001, UTC)
    assert not permits(mask, end, UTC)
    assert next_permitted(mask, end, UTC) == end + 23 * 3600


def test_an_hour_that_spring_skips_opens_on_the_next_day():
    mask = parse_mask("2-3")
    eve = at(2026, 3, 29, 0, 0, AMSTERDAM)
    assert next_permitted(mask, eve, AMSTERDAM) == at(2026, 3, 30, 2, 0, AMSTERDAM)


def test_hours_after_the_skipped_one_open_an_hour_early_in_utc():
    mask = parse_mask("3-4")
    assert next_permitted(mask, at(2026, 3, 28, 4, 0, AMSTERDAM), AMSTERDAM) == at(2026, 3, 29, 1)


def test_an_hour_that_autumn_doubles_is_open_twice():
    mask = parse_mask("2-3")
    first = at(2026, 10, 25, 2, 0, AMSTERDAM)
    assert next_permitted(mask, at(2026, 10, 25, 0, 0, AMSTERDAM), AMSTERDAM) == first
    assert all(permits(mask, first + minutes * 60, AMSTERDAM) for minutes in range(120))
    assert not permits(mask, first + 7200, AMSTERDAM)
    closed = parse_mask("3-4")
    assert next_permitted(closed, first, AMSTERDAM) == first + 7200


def test_a_zone_that_changes_by_half_an_hour():
    spring = at(2026, 10, 4, 1, 59, LORD_HOWE) + 60
    assert datetime.fromtimestamp(spring, LORD_HOWE).strftime("%H:%M") == "02:30"
    assert next_permitted(parse_mask("2-3"), spring - 7200, LORD_HOWE) == spring
    assert next_permitted(parse_mask("3-4"), spring - 7200, LORD_HOWE) == spring + 1800
    autumn = at(2026, 4, 5, 1, 59, LORD_HOWE, fold=0) + 60
    assert datetime.fromtimestamp(autumn, LORD_HOWE).strftime("%H:%M") == "01:30"
    assert next_permitted(parse_mask("2-3"), autumn - 3600, LORD_HOWE) == autumn + 1800


def test_a_zone_that_changes_at_a_quarter_to():
    spring = at(2026, 9, 27, 2, 44, CHATHAM) + 60
    assert datetime.fromtimestamp(spring, CHATHAM).strftime("%H:%M") == "03:45"
    assert next_permitted(parse_mask("sun 3-4"), spring - 7200, CHATHAM) == spring


def test_a_mask_of_nothing_never_opens():
    assert next_permitted("0" * 168, 0.0, UTC) == float("inf")
    assert never_opens("0" * 24)


def test_an_open_moment_is_its_own_answer():
    assert (
        next_permitted(parse_mask("8-9"), at(2026, 6, 1, 8, 30) + 0.25, UTC) == at(2026, 6, 1, 8, 30) + 0.25
    )


moments = st.integers(int(at(2024, 1, 1)) * 8, int(at(2034, 1, 1)) * 8).map(lambda eighths: eighths / 8)
changes = st.sampled_from(
    [
        at(2026, 3, 29, 1),
        at(2026, 10, 25, 1),
        at(2026, 10, 3, 15, 30),
        at(2026, 4, 4, 15),
        at(2026, 9, 26, 14),
        at(2026, 4, 4, 14),
    ]
)
near_changes = st.builds(lambda moment, off: moment + off, changes, st.integers(-90_000, 90_000))
masks = st.one_of(
    st.lists(st.sampled_from("01"), min_size=24, max_size=24).map("".join),
    st.sets(st.integers(0, 167), max_size=4).map(lambda slots: "".join("01"[n in slots] for n in range(168))),
    st.integers(0, 23).map(lambda hour: parse_mask(f"{hour}-{hour + 1}")),
)


@given(masks, st.one_of(moments, near_changes), st.sampled_from(ZONES))
def test_the_next_permitted_moment_is_permitted_and_nothing_before_it_is(mask, now, zone):
    found = next_permitted(mask, now, zone)
    if "1" not in mask:
        assert found == float("inf")
        return
    assert now <= found < now + timedelta(days=15).total_seconds()
    assert permits(mask, found, zone)
    probe = now
    while probe < found:
        assert not permits(mask, probe, zone)
        probe = max(probe + 900, now // 900 * 900)
    if found > now:
        assert not permits(mask, found - 0.01, zone)


@given(st.lists(st.text("01", min_size=24, max_size=24) | st.text("01", min_size=168, max_size=168)))
def test_united_masks_are_open_when_one_of_them_is(masks):
    for hour in range(0, 168, 5):
        at = 1_800_000_000.0 + hour * 3600
        assert permits(unite(masks), at, UTC) == any(permits(mask, at, UTC) for mask in masks)


def test_a_notation_has_so_many_characters_and_no_more():
    assert parse_mask("0-24".rjust(512)) == "1" * 168
    with pytest.raises(UrlRefused, match="at most 512"):
        parse_mask("0-24".rjust(513))


def test_the_hours_of_two_days_are_those_of_a_day():
    assert intersect("1" * 12 + "0" * 12, "01" * 12) == "01" * 6 + "0" * 12


def test_masks_that_never_open_stay_closed_together():
    assert unite(["0" * 168, "0" * 24]) == "0" * 168
