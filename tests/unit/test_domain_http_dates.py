"""``Retry-After``: what sites write, and what they should not."""

import pytest

from lcc_scrapy.domain.http_dates import retry_after_seconds

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("9" * 400, 999_999_999),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
        ("Sun, 06 Nov 1994 08:48:37 GMT", 0),
        ("Sun, 06 Nov 999999999999 08:48:37 GMT", 0),
        ("Sun, 06 Nov 1994 08:49:99999999999", 0),
        ("Sun, 06 Nov 1994 08:49:37 +010999999999999", 0),
        ("soon", 0),
        ("\u00b2", 0),
        ("", 0),
    ],
)
def test_seconds_and_dates_are_read_and_anything_else_is_nothing(value, seconds):
    assert retry_after_seconds(value, DATE) == seconds
    assert retry_after_seconds(DATE, value) >= 0
