"""A simulated season of adaptive revisits: intervals follow the pages, inside of the provider's bounds and hours."""

from collections import defaultdict
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from test_scanner import POLL, Pages, World, links

from lcc_scrapy.domain.revisits import Bounds
from lcc_scrapy.domain.timeslots import HOURS_PER_WEEK, parse_mask
from tests.contract.little_lcc import SITE, START, update

HOUR, DAY = 3600, 86_400
DAYS = 90
BOUNDS = Bounds(DAY, 6 * HOUR, 5 * DAY)
CHANGES_EVERY = {"index": 0, "never": 0, "weekly": 7 * DAY, "daily": DAY, "always": 1}
"""Seconds; 0 = never."""


def content(name, at):
    """Return a page as it is at a moment."""
    every = CHANGES_EVERY[name]
    return f"{name} {(at - START) // every if every else 0}".encode()


def season(days=DAYS, *, hours="", push_at=None):
    """Let days go by hour after hour; returns the times of each page's visits, and the world."""
    world = World(Pages(index=links(*CHANGES_EVERY)), adaptive=True, once=False)
    world.lcc.change(revisit=str(BOUNDS), timeofday=parse_mask(hours, HOURS_PER_WEEK) if hours else "")
    visits, last = defaultdict(list), {}
    for number in range(days * 24):
        world.lcc.now = START + number * HOUR
        if number == push_at:
            world.lcc.push(update("daily", last["daily"]))
        world.clock.advance(POLL)
        while tickets := world.lcc.tickets():
            for ticket in tickets:
                name = ticket.row.furl.removeprefix(SITE)
                visits[name].append(world.lcc.now)
                world.lcc.settle(answer(world, ticket, name, last))
            world.clock.advance(POLL)
    return visits, world


def answer(world, ticket, name, last):
    body, before = content(name, world.lcc.now), last.get(name)
    last[name] = body
    if body == before and ticket.etag:
        return world.lcc.not_modified(ticket)
    return world.lcc.served(ticket, body, served_type="text/html")


def gaps(times, days=DAYS):
    """Return the intervals of visits in the last third of the season, in days."""
    late = [at for at in times if at > START + days * DAY * 2 / 3]
    return [(after - before) / DAY for before, after in pairwise(late)]


def mean(times):
    found = gaps(times)
    return sum(found) / len(found)


def test_intervals_follow_the_changes_of_pages_inside_their_bounds():
    visits, _ = season()
    every = [(after - before) / DAY for times in visits.values() for before, after in pairwise(times)]
    assert 0.25 <= min(every) <= max(every) <= 5 + 1 / 24
    assert max(gaps(visits["never"])) == pytest.approx(5, abs=1 / 24)
    assert mean(visits["weekly"]) == pytest.approx(7**0.5, rel=0.35)
    assert mean(visits["daily"]) == pytest.approx(1, rel=0.35)
    assert mean(visits["always"]) < mean(visits["weekly"]) < mean(visits["never"])
    fetched = sum(map(len, visits.values()))
    assert fetched < 0.8 * DAYS * len(CHANGES_EVERY)


def test_guesses_wait_for_the_hours_of_the_provider():
    visits, _ = season(20, hours="20-06")
    at = {datetime.fromtimestamp(one, UTC).hour for times in visits.values() for one in times}
    assert at <= {*range(20, 24), *range(6)}
    assert len(visits["daily"]) > 10


def test_from_a_push_on_its_provider_says_when_a_page_changed():
    visits, world = season(20, push_at=10 * 24)
    assert max(visits["daily"]) < START + 10 * DAY < max(visits["always"])
    assert world.lcc.cached("daily").origin == "push"
