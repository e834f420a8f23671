"""What ``lcc retry`` and ``lcc refetch`` ask to be told, before they open anything."""

import time

import pytest
from click.testing import CliRunner

from lcc_scrapy.cli import again
from lcc_scrapy.cli.main import lcc


@pytest.mark.parametrize(
    "words",
    [
        ["retry"],
        ["retry", "--dry-run"],
        ["retry", "http://x/", "--code", "404"],
        ["retry", "http://x/", "--all"],
        ["retry", "--failed-since", "yesterday"],
        ["retry", "--code", "1000"],
        ["refetch"],
        ["refetch", "--json"],
    ],
)
def test_nothing_is_fetched_again_unless_somebody_says_what(words):
    told = CliRunner().invoke(lcc, words)
    assert (told.exit_code, told.output.startswith("Usage: ")) == (2, True)


def test_a_period_is_read_as_a_time_before_now():
    assert again.moment_or_period(None, None, None) is None
    assert again.moment_or_period(None, None, "1800000000") == 1_800_000_000
    assert again.moment_or_period(None, None, "2026-11-22T20:00") == 1_795_377_600
    for text, seconds in (("2h", 7200), ("3d", 3 * 86_400), ("90s", 90), ("5m", 300)):
        before = int(time.time()) - seconds
        assert before <= again.moment_or_period(None, None, text) <= int(time.time()) - seconds
