"""How the values of settings are written, and what is refused."""

import pytest

from lcc_scrapy.domain import notations


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (notations.flag, "yes", True),
        (notations.flag, "ON", True),
        (notations.flag, True, True),
        (notations.flag, "no", False),
        (notations.flag, "0", False),
        (notations.flag, False, False),
        (notations.share, "50%", 0.5),
        (notations.share, " 0.5 ", 0.5),
        (notations.share, "0", 0.0),
        (notations.share, "1", 1.0),
        (notations.share, "100 %", 1.0),
        (notations.at_least(5, notations.whole), "5", 5),
        (notations.at_least(5, notations.whole), "6", 6),
        (notations.priority, "2", 2),
        (notations.whole_seconds, "1.2s", 2),
        (notations.durations, "1s, 2m", (1.0, 120.0)),
        (notations.words, "A b,C", ("a", "b", "c")),
        (notations.listed, "a,b  c", ("a,b", "c")),
        (notations.one_of("a", "b"), "b", "b"),
    ],
)
def test_a_value_is_read_as_it_is_meant(read, text, value):
    assert read(text) == value
    assert type(read(text)) is type(value)


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (notations.flag, "maybe", "yes or no"),
        (notations.share, "101%", "a share like 50%"),
        (notations.share, "-1%", "a share like 50%"),
        (notations.share, "50%%", "a share like 50%"),
        (notations.share, "half", "a share like 50%"),
        (notations.at_least(5, notations.whole), "4", "5 or more"),
        (notations.priority, "3", "0, 1 or 2"),
        (notations.period, "0s", "more than nothing"),
        (notations.rate, "0/m", "a rate like"),
        (notations.rate, "5", "a rate like"),
        (notations.one_of("a", "b"), "c", "a or b"),
        (notations.at_least_one, "0", "a whole number from 1 on"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_was_expected(read, text, expected):
    with pytest.raises(ValueError, match=f"expected {expected}"):
        read(text)
