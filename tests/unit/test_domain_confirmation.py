"""How long a document may go unconfirmed."""

import pytest

from lcc_scrapy.domain.confirmation import Age, age
from lcc_scrapy.domain.policy import QueuePolicy

DAY = 86_400
NOW = 1_800_000_000


@pytest.mark.parametrize(
    ("row", "provider", "expected"),
    [
        (0, 0, Age.FRESH),
        (90, 400, Age.STALE),
        (400, 90, Age.STALE),
        (89, 400, Age.FRESH),
        (400, 89, Age.FRESH),
        (179, 179, Age.STALE),
        (180, 180, Age.EXPIRED),
        (4000, 180, Age.EXPIRED),
    ],
)
def test_the_later_of_both_confirmations_counts(row, provider, expected):
    assert age(NOW - row * DAY, NOW - provider * DAY, NOW, QueuePolicy()) is expected


def test_it_is_a_matter_of_seconds():
    assert age(NOW - 90 * DAY + 1, 0, NOW, QueuePolicy()) is Age.FRESH


@pytest.mark.parametrize(
    ("stale", "expire", "expected"),
    [(0, 0, Age.FRESH), (0, 10, Age.EXPIRED), (10, 0, Age.STALE), (20, 10, Age.EXPIRED)],
)
def test_zero_means_never(stale, expire, expected):
    assert age(0, 0, NOW, QueuePolicy(stale_after=stale, expire_after=expire)) is expected
