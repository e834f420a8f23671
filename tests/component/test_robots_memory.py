"""What is remembered of robots.txt is bounded by its size, so that sites with enormous ones do not fill memory."""

from types import SimpleNamespace
from typing import Any

from scrapy.settings import Settings

from lcc_scrapy.robots import KEPT_BYTES, LEAST_BYTES, MAX_BYTES, NO_RULES, RobotsTxt, _Known


def remembering(*sizes: int) -> RobotsTxt:
    crawler: Any = SimpleNamespace(
        settings=Settings({"ROBOTSTXT_PARSER": "lcc_scrapy.robots.LccRobotParser"})
    )
    made = RobotsTxt(crawler)
    for number, size in enumerate(sizes):
        made._remember(("http", f"host-{number}:80", False), _Known(None, NO_RULES, 0.0, size))
    return made


def test_of_large_answers_the_oldest_are_forgotten() -> None:
    made = remembering(*[MAX_BYTES] * 100)
    assert len(made._known) == KEPT_BYTES // MAX_BYTES
    assert next(reversed(made._known)) == ("http", "host-99:80", False)
    assert made._kept <= KEPT_BYTES


def test_of_small_ones_thousands_are_kept() -> None:
    assert len(remembering(*[LEAST_BYTES] * 20_000)._known) == 16_000


def test_an_answer_that_is_renewed_counts_once() -> None:
    made = remembering(1000)
    made._remember(("http", "host-0:80", False), _Known(None, NO_RULES, 0.0, 3000))
    assert made._kept == 3000
