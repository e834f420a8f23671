"""When a crawl looks whom it has to write to, and that it waits longer while the mail server is away."""

from threading import Event
from types import SimpleNamespace

import pytest
from same_thread import SameThread
from twisted.internet.task import Clock

from lcc_scrapy.apps.mail.post import Report
from lcc_scrapy.apps.mail.worker import LONGEST, LOOK, PART, Mailing
from lcc_scrapy.config.config import load
from lcc_scrapy.config.project import PlainSettings
from lcc_scrapy.domain.errors import ConfigurationError


class Posts:
    """Stands in for posts: gives the reports it is told, and counts the runs."""

    def __init__(self):
        self.report, self.runs, self.stopped = Report(), 0, Event()

    def __call__(self):
        return self

    def run(self):
        self.runs += 1
        if isinstance(self.report, Exception):
            raise self.report
        return self.report


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def posts():
    return Posts()


@pytest.fixture
def mailing(clock, posts):
    made = Mailing(SameThread(), clock, posts)
    made.start()
    return made


def waits(clock, posts, count):
    """Return how many seconds each of the next looks is after the one before."""
    found = []
    for _ in range(count):
        (timer,) = clock.getDelayedCalls()
        found.append(timer.getTime() - clock.seconds())
        clock.advance(found[-1])
    return found


def test_it_looks_once_a_minute(mailing, clock, posts):
    assert waits(clock, posts, 3) == [LOOK] * 3
    assert posts.runs == 4


@pytest.mark.parametrize("report", [Report(away=True), ConfigurationError("no password file")])
def test_it_waits_longer_while_no_mail_goes_and_not_afterwards(mailing, clock, posts, report):
    posts.report = report
    assert waits(clock, posts, 8) == [60, 120, 240, 480, 960, 1920, LONGEST, LONGEST]
    posts.report = Report(sent=1)
    assert waits(clock, posts, 2) == [LONGEST, LOOK]


def test_nothing_begins_after_the_end(mailing, clock, posts):
    ended = []
    mailing.stop().addCallback(ended.append)
    assert ended
    assert posts.stopped.is_set()
    assert clock.getDelayedCalls() == []


def test_a_wrong_hour_of_digests_ends_a_crawl_at_its_start():
    config = load(PlainSettings({"LCC_DATA_DIR": "/x", "LCC_MAIL_DIGEST": "25:00"}, {}), {})
    with pytest.raises(ConfigurationError, match="LCC_MAIL_DIGEST: '25:00', expected an hour"):
        PART(SimpleNamespace(config=config))
