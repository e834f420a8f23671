"""Caches and their networks that mean harm: datagrams cost the event loop little, and get no more than they are."""

import pytest

from lcc_scrapy.domain.icp import LONGEST, Query
from tests.faults.growth import cpu_of

FAIR = 1e-8
"""CPU seconds for a byte of a message: a link of 100 Mbit/s brings 12 MB in a second."""


@pytest.mark.parametrize(
    "url", ["http://a/" + "a" * 16_000, "http://a/" + "a" * 16_000 + "\x01"], ids=("good", "bad")
)
def test_a_long_query_costs_the_event_loop_little(url):
    data = bytes(Query(1, url))
    assert len(data) <= LONGEST
    assert cpu_of(Query.parse, data) < FAIR * len(data)
