"""Reading robots.txt, sitemaps and feeds costs no more than their length, whichever way they grow."""

import pytest

from tests.faults.growth import Dimension, Parser, check
from tests.faults.growth_lists import PARSERS
from tests.faults.test_growth import LARGE, cases, large_cases


@pytest.mark.parametrize(("parser", "dimension"), cases(PARSERS))
def test_reading_costs_no_more_than_the_length_of_what_is_read(parser: Parser, dimension: Dimension) -> None:
    check(parser, dimension)


@pytest.mark.slow
@pytest.mark.parametrize(("parser", "dimension"), large_cases(PARSERS))
def test_so_it_does_for_large_inputs(parser: Parser, dimension: Dimension) -> None:
    check(parser, dimension, LARGE)
