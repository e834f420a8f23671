"""The model of many machines on one database, on cases whose figures are known."""

import random
from argparse import Namespace
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest

GIVEN = {
    "workers": 1, "group": 100, "worker_us": 400.0, "database_us": 1.0, "processors": 64, "counter_ms": 4.0,
    "row_bytes": 1.0, "network": 1e9,
}  # fmt: skip
COUNTER_LIMIT = 25_000
"""Pages a second: 100 for each 4 ms."""


@pytest.fixture(scope="module")
def model():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2] / "bench")
        import machines
    return SimpleNamespace(**vars(machines))


def rate(row):
    return int(row[1].replace(",", ""))


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_one_queue_with_random_arrivals_and_services_takes_as_long_as_theory_says(model, load):
    chance = random.Random(7)
    times = accumulate(model.exponential(1 / load, chance)() for _ in range(200_000))
    station = model.Station("one", model.exponential(1.0, chance))
    assert model.opened(times, station) == pytest.approx(1 / (1 - load), rel=0.1)  # M/M/1


def test_two_servers_do_two_jobs_at_once_and_the_third_waits(model):
    station = model.Station("two", lambda: 10.0, servers=2)
    assert [station.serve(0.0) for _ in range(3)] == [10.0, 10.0, 20.0]
    assert station.busy == 30.0


def test_jobs_that_share_nothing_scale_with_their_number(model):
    assert model.closed(7, lambda: 1.0, [], 100.5) == 7 * 100


def test_a_serial_section_bounds_many_jobs_at_one_over_its_time(model):
    serial = model.Station("serial", lambda: 0.5)
    assert model.closed(50, lambda: 1.0, [serial], 1000.0) == pytest.approx(2000, rel=0.01)


def test_few_machines_do_nearly_what_they_can_and_many_meet_the_first_limit(model):
    given = Namespace(**GIVEN)
    assert rate(model.simulated(1, given)) == pytest.approx(100 / (0.040 + 0.004 + 0.0001), rel=0.1)
    many = model.simulated(50, given)
    assert rate(many) == pytest.approx(COUNTER_LIMIT, rel=0.05)
    assert many[3] == "counter"


def test_limits_are_named_in_the_order_in_which_they_are_met(model):
    given = Namespace(**GIVEN | {"network": 1e4, "database_us": 1000.0})
    assert model.limits(given) == [
        (10_000, "network of the database"),
        (25_000, "counter of the feed"),
        (64_000, "processors of the database"),
    ]


def test_the_chart_is_an_image_with_a_bar_for_each_row(model):
    rows = [("1", "1,000", "", "counter", "5%", "", ""), ("50", "2,000", "", "network", "99%", "", "")]
    drawn = ET.fromstring(model.chart(rows, "pages/s"))
    bars = [one.get("width") for one in drawn.iter() if one.tag.endswith("rect")]
    assert bars[1:] == ["240", "480"]
