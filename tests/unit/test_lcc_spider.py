"""The arguments of ``scrapy crawl lcc_spider``."""

import pytest

from lcc_scrapy.spidering.scanner import Visits
from lcc_scrapy.spiders.lcc_spider import read_arguments


@pytest.mark.parametrize(
    ("arguments", "visits"),
    [
        ({}, Visits(7)),
        ({"every": "6h"}, Visits(7, every=21600.0, once=False)),
        ({"every": "6h", "stop_when_done": "1"}, Visits(7, every=21600.0)),
        ({"depth": "0", "max_pages": "10", "sitemaps": "yes"}, Visits(7, depth=0, urls=10, sitemaps=True)),
        ({"directives": "1"}, Visits(7, directives=True)),
        (
            {"start": "http://A.example/x,https://b.example"},
            Visits(7, start=("http://a.example/x", "https://b.example/")),
        ),
    ],
)
def test_arguments_are_read(arguments, visits):
    assert read_arguments({"provider": "7", **arguments}) == visits


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"provider": ""}, "-a provider=N"),
        ({"provider": "x"}, "whole number from 1"),
        ({"provider": "0"}, "whole number from 1"),
        ({"every": "soon"}, "every=soon"),
        ({"every": "0"}, "more than nothing"),
        ({"depth": "-1"}, "depth=-1"),
        ({"max_pages": "0"}, "max_pages=0"),
        ({"start": "ftp://x/"}, "start=ftp://x/"),
        ({"sitemaps": "maybe"}, "sitemaps=maybe: expected 1 or 0"),
        ({"every": "6h", "stop_when_done": "y"}, "stop_when_done=y: expected 1 or 0"),
        ({"directives": "1", "depth": "2"}, "leave out depth"),
        ({"directives": "1", "start": "http://a.example/"}, "leave out start"),
        ({"evry": "6h"}, "unknown argument evry, did you mean every. there are depth, directives, every"),
    ],
)
def test_wrong_arguments_are_told_in_one_line(arguments, words):
    with pytest.raises(ValueError, match=words) as error:
        read_arguments({"provider": "7", **arguments})
    assert "\n" not in str(error.value)


def test_a_sample_follows_no_links():
    assert read_arguments({"provider": "7", "sample": "100", "every": "1d"}) == Visits(
        7, every=86400.0, once=False, sample=100
    )
    for wrong in ({"sample": "0"}, {"sample": "100001"}, {"sample": "5", "depth": "2"}, {"sample": "x"}):
        with pytest.raises(ValueError, match="sample"):
            read_arguments({"provider": "7", **wrong})
