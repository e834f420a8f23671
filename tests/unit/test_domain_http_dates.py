"""Dates and ``Retry-After``: what sites write, and what they should not."""

import time

import pytest

from lcc_scrapy.domain.http_dates import epoch_of_date, retry_after_seconds

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
EPOCH = 784_111_777
NOW = EPOCH + 10.0
"""Our clock is ahead of the site's."""

FORMS = [
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
    "Sun, 06-Nov-1994 08:49:37 GMT",
    "06 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 +0000",
    "Sun, 06 Nov 1994 08:49:37 -0000",
    "Sun, 06 Nov 1994 08:49:37",
    "Sun, 06 Nov 1994 10:49:37 +0200",
    "sun, 6 nov 1994 08:49:37 gmt",
]
"""The moment of DATE."""

NO_DATES = ["", "0", "soon", "Sun, 06 Nov 999999999999 08:48:37 GMT", "Sun, 06 Nov 1994 08:49:99999999999",
            "Sun, 06 Nov 1994 08:49:37 +010999999999999", "Sun, 31 Feb 1994 08:49:37 GMT", "1994-11-06T08:49:37Z", "Sun Nov", "\x00"]  # fmt: skip


@pytest.fixture(params=["UTC", "America/New_York"])
def zone(request, monkeypatch):
    """The time zone of this machine."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("text", FORMS)
def test_a_date_is_the_same_moment_in_all_its_forms_and_wherever_we_are(text):
    assert epoch_of_date(text) == EPOCH


@pytest.mark.parametrize("text", NO_DATES)
def test_what_is_no_date_is_none(text):
    assert epoch_of_date(text) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("007", 7),
        ("1.5", 1.5),
        ("0.25", 0.25),
        ("3.", 3),
        ("9" * 400, 999_999_999),
        ("9" * 400 + ".5", 999_999_999),
        *((form, 0) for form in FORMS),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
        ("Sun Nov  6 08:50:37 1994", 60),
        ("Sun, 06 Nov 1994 08:48:37 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 999_999_999),
        *((text, 0) for text in NO_DATES),
        ("-1", 0),
        ("-1.5", 0),
        ("+5", 0),
        (".5", 0),
        ("1e3", 0),
        ("1,5", 0),
        ("inf", 0),
        ("nan", 0),
        ("0x10", 0),
        ("5 s", 0),
        ("\u00b2", 0),
        ("\u0661", 0),
    ],
)
def test_seconds_and_dates_are_read_and_anything_else_is_nothing(value, seconds):
    assert retry_after_seconds(value, DATE, NOW) == seconds
    assert retry_after_seconds(DATE, value, NOW) >= 0


@pytest.mark.parametrize("date", NO_DATES)
@pytest.mark.parametrize("value", ["Sun, 06 Nov 1994 08:50:37 GMT", "Sun Nov  6 08:50:37 1994"])
def test_without_a_usable_date_of_the_answer_a_date_counts_from_our_clock(value, date):
    assert retry_after_seconds(value, date, NOW) == 50
    assert retry_after_seconds(value, date, NOW + 100) == 0


@pytest.mark.parametrize("date", FORMS)
def test_a_date_counts_from_that_of_the_answer_in_whatever_form(date):
    assert retry_after_seconds("Sun, 06 Nov 1994 08:50:37 GMT", date, NOW) == 60
