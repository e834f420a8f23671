"""Numbers as people read them."""

import pytest

from lcc_scrapy.domain.shown import number


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1\u202f000"),
        (1_234_567, "1\u202f234\u202f567"),
        (-1000, "-1\u202f000"),
    ],
)
def test_thousands_stand_apart(count, shown):
    assert number(count) == shown
