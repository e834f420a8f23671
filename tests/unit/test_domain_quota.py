"""What fits into a provider's quota."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.providers import Provider, quota_refusal


@pytest.mark.parametrize(
    ("filesmax", "spacemax", "files", "space", "before", "length", "code"),
    [
        (0, 0, 10**9, 10**15, None, 10**12, 0),
        (3, 0, 2, 0, None, 1, 0),
        (3, 0, 3, 0, None, 0, 609),
        (3, 0, 9, 0, 5, 7, 0),
        (0, 100, 0, 90, None, 10, 0),
        (0, 100, 0, 90, None, 11, 610),
        (0, 100, 0, 90, 5, 15, 0),
        (0, 100, 0, 90, 5, 16, 610),
        (0, 100, 0, 500, 60, 60, 0),
        (0, 100, 0, 500, 60, 61, 610),
        (0, 100, 0, 500, None, 0, 0),
        (3, 100, 3, 500, None, 1, 609),
    ],
)
def test_a_body_fits_or_is_refused_with_its_code(*, filesmax, spacemax, files, space, before, length, code):
    provider = Provider(7, "", filesmax=filesmax, spacemax=spacemax)
    assert quota_refusal(provider, files, space, before, length) == code


numbers = st.integers(0, 1000)


@given(numbers, numbers, st.lists(st.tuples(st.integers(0, 9), numbers), max_size=50))
def test_usage_never_grows_beyond_the_quota(filesmax, spacemax, arrivals):
    provider = Provider(7, "", filesmax=filesmax, spacemax=spacemax)
    stored: dict[int, int] = {}
    for name, length in arrivals:
        if not quota_refusal(provider, len(stored), sum(stored.values()), stored.get(name), length):
            stored[name] = length
        assert not filesmax or len(stored) <= filesmax
        assert not spacemax or sum(stored.values()) <= spacemax
