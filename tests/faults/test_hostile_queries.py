"""Questions that mean harm, and trees that make them dear: each has a bound, whatever is asked and listed."""

import pytest

from lcc_scrapy.apps.tracker import lookup
from lcc_scrapy.apps.tracker.lookup import look_up
from lcc_scrapy.apps.tracker.rules.icp import LONGEST, Query
from lcc_scrapy.apps.tracker.rules.tracked import Place
from lcc_scrapy.apps.tracker.store import TrackerRows
from tests.faults.growth import cpu_of
from tests.mirrors import NOW, Tracker, tree_of
from tests.sqlite_store import sqlite_store

FAIR = 1e-8
"""CPU seconds for a byte of a message: a link of 100 Mbit/s brings 12 MB in a second."""


@pytest.mark.parametrize(
    "url", ["http://a/" + "a" * 16_000, "http://a/" + "a" * 16_000 + "\x01"], ids=("good", "bad")
)
def test_a_long_query_costs_the_event_loop_little(url):
    data = bytes(Query(1, url))
    assert len(data) <= LONGEST
    assert cpu_of(Query.parse, data) < FAIR * len(data)


def test_a_walk_past_many_directories_that_nobody_is_offered_ends(monkeypatch):
    """All of them are at one site, and each level of them is looked for anew."""
    tracker, read = Tracker(sqlite_store()), []
    real = TrackerRows.directories_with

    def counted(tx, *what):
        found = real(tx, *what)
        read.append(len(found))
        return found

    monkeypatch.setattr(TrackerRows, "directories_with", counted)
    for number in range(5):
        tracker.load(f"ftp://ftp.example.org/{number}/", tree_of("a/b/c/d/e/f 1"), at=NOW)
    place = Place.parse("ftp://ftp.example.org/0/a/b/c/d/e/f")
    assert look_up(tracker.store, place).known
    assert read == [4] * 6
    read.clear()
    monkeypatch.setattr(lookup, "LOOKED_AT", 10)
    assert look_up(tracker.store, place).replicas == ()
    assert read == [4, 4, 2]
