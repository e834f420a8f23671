"""Reading foreign input costs no more than its length, whichever way it grows (``growth`` says what is held)."""

import os
from dataclasses import replace

import pytest

from tests.faults import (
    growth_annotation,
    growth_mirrors,
    growth_providers,
    growth_push,
    growth_pushes,
    growth_sites,
    growth_sources,
    growth_tracker,
    growth_users,
)
from tests.faults.growth import Cost, Dimension, Parser, check, grown

PARSERS = (
    *growth_sites.PARSERS,
    *growth_sources.PARSERS,
    *growth_providers.PARSERS,
    *growth_push.PARSERS,
    *growth_pushes.PARSERS,
    *growth_mirrors.PARSERS,
    *growth_users.PARSERS,
    *growth_tracker.PARSERS,
    *growth_annotation.PARSERS,
)
ALL_LARGE = os.environ.get("LCC_GROWTH") == "large"
"""``make soak`` tries large inputs in every dimension, CI in the last one of each parser."""

LARGE = 8 if ALL_LARGE else 4
"""Times as large as in a short run: what is in no short run is steep only from some size on."""


def cases(parsers: tuple[Parser, ...]) -> list[object]:
    return [
        pytest.param(parser, dimension, id=f"{parser.name}: {dimension.name}")
        for parser in parsers
        for dimension in parser.dimensions
    ]


def large_cases(parsers: tuple[Parser, ...]) -> list[object]:
    """Return the cases that are tried with large inputs."""
    return cases(
        parsers if ALL_LARGE else tuple(replace(one, dimensions=one.dimensions[-1:]) for one in parsers)
    )


@pytest.mark.parametrize(("parser", "dimension"), cases(PARSERS))
def test_reading_costs_no_more_than_the_length_of_what_is_read(parser: Parser, dimension: Dimension) -> None:
    check(parser, dimension)


@pytest.mark.slow
@pytest.mark.parametrize(("parser", "dimension"), large_cases(PARSERS))
def test_so_it_does_for_large_inputs(parser: Parser, dimension: Dimension) -> None:
    check(parser, dimension, LARGE)


def reading(read: object) -> Parser:
    return Parser("x", "here", 1 << 30, read, lambda n: b"x" * n, (), start=2000)  # type: ignore[arg-type]


STEEP = {
    "quadratic CPU": lambda data: [data.count(b"y", at) for at in range(data.count(b"y"))],
    "slow for each byte": lambda data: [sum(range(40)) for one in data if one == ord("y")],
    "much memory": lambda data: [[None] * 9 for one in data if one == ord("y")],
}


@pytest.mark.parametrize("what", STEEP)
def test_what_grows_too_fast_is_seen(what: str) -> None:
    with pytest.raises(AssertionError, match="x"):
        check(reading(STEEP[what]), grown("ys", "y"), 4)


def test_what_costs_little_is_not_measured_by_its_noise() -> None:
    check(reading(len), grown("ys", "y"))
    assert Cost(0.1, 2) == Cost(0.1, 2)
