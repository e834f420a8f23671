"""What alarms look at, on every store, and that each is told once."""

from dataclasses import replace
from threading import Event

import pytest
from little_lcc import PID, START, update

from lcc_scrapy.apps.alarms.facts import FactsReader
from lcc_scrapy.apps.alarms.rules import Rule
from lcc_scrapy.apps.alarms.settings import AlarmRules
from lcc_scrapy.apps.alarms.store import alarm_of
from lcc_scrapy.apps.alarms.watching import Watch
from lcc_scrapy.apps.alarms.webhooks import NotTold
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.providers import State
from lcc_scrapy.providers.groups import pause_everything

pytestmark = pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)

DAY = 86_400
RULES = AlarmRules(steady=60, workers=0)
MINUTE = 60


def facts(lcc, rules=RULES):
    return FactsReader(lcc.store, lambda: ({"/": 10**12}, "")).read(rules, lcc.now)


@pytest.mark.parametrize(
    ("values", "silent"),
    [
        ({}, True),
        ({"lastconntime": START - 5 * DAY // 10}, False),  # five times a tenth of a day, and no second more
        ({"lastconntime": START - 5 * DAY // 10 - 1}, True),
        ({"lastconnseq": 4}, False),
        ({"state": State.PAUSED}, False),
        ({"created": START - 3600, "lastconntime": START - 3600}, False),
    ],
)
def test_a_provider_is_silent_by_its_own_measure(lcc, values, silent):
    usual = {"lastconnseq": 10, "lastconntime": START - DAY, "created": START - 2 * DAY}
    if values.get("lastconntime", 0) >= START - DAY:
        usual["created"] = values["lastconntime"] - DAY
    lcc.change(**{**usual, **values})
    found = facts(lcc)
    assert (found.silent, found.silent_count) == (((PID,), 1) if silent else ((), 0))
    assert facts(lcc, replace(RULES, silent=0)).silent == ()


def test_time_counts_while_urls_are_due_and_no_fetch_ends(lcc):
    assert facts(lcc).idle == 0
    lcc.push(update("a"), update("b"))
    facts(lcc)
    lcc.now += 300
    assert facts(lcc).idle == 300
    pause_everything(lcc.store, lcc.now)
    assert facts(lcc).idle == 0


def test_time_counts_while_a_worker_holds_the_turn_and_not_while_its_host_rests(lcc):
    lcc.push(update("a"))
    (granted,) = lcc.grant()
    facts(lcc)
    lcc.now += 300
    assert facts(lcc).idle == 300
    lcc.rest(granted, not_before=lcc.now + 1000.0)
    assert facts(lcc).idle == 0


def test_failures_are_those_of_the_last_hour(lcc):
    lcc.push(*[update(f"{number}") for number in range(4)])
    lcc.settle(*[lcc.failed(ticket, 404, final=True) for ticket in lcc.tickets()[:3]])
    lcc.fetch_all()
    found = facts(lcc)
    assert (found.tried, found.failed) == (4, 3)


# --- telling ----------------------------------------------------------------------------------------


class Channel:
    name = "somebody"

    def __init__(self):
        self.told, self.away = [], False

    def tell(self, notice):
        if self.away:
            raise NotTold("it is away")
        self.told.append((notice.rule, notice.on, notice.name))


class Claim:
    def hold(self, tx):
        pass


class House:
    def __init__(self, lcc):
        self.lcc, self.channels = lcc, [Channel(), Channel()]
        reader = FactsReader(lcc.store, lambda: ({}, ""))
        self.watch = Watch(lcc.store, reader.read, lambda: (RULES, self.channels), lambda: lcc.now)

    def look(self, times=1):
        for _ in range(times):
            self.watch.look(Claim(), RULES, self.channels)
            self.lcc.now += MINUTE // 2

    @property
    def told(self):
        return [channel.told for channel in self.channels]


@pytest.fixture
def house(lcc):
    lcc.push(update("a"))
    return House(lcc)


STALLED, OVER = (Rule.STALLED, True, "stalled-1"), (Rule.STALLED, False, "stalled-2")


def test_each_channel_is_told_once_when_it_begins_and_once_when_it_ends(house):
    house.look(29)
    assert house.told == [[], []], "it has to last"
    house.look(20)
    assert house.told == [[STALLED], [STALLED]]
    house.lcc.fetch_all()
    house.look(10)
    assert house.told == [[STALLED, OVER], [STALLED, OVER]]


def test_a_channel_that_is_away_hears_of_it_when_it_is_back(house):
    house.channels[1].away = True
    house.look(50)
    house.channels[1].away = False
    house.look(5)
    assert house.told == [[STALLED], [STALLED]]


def test_a_channel_that_was_away_all_the_time_hears_nothing(house):
    house.channels[1].away = True
    house.look(50)
    house.lcc.fetch_all()
    house.look(10)
    house.channels[1].away = False
    house.look(10)
    assert house.told == [[STALLED, OVER], []]


def test_a_process_that_starts_again_goes_on_where_the_last_one_was(house):
    house.look(50)
    again = House(house.lcc)
    again.look(20)
    assert again.told == [[], []]
    house.lcc.fetch_all()
    again.look(10)
    assert again.told == [[OVER], [OVER]]


def test_a_database_that_does_not_answer_is_asked_again(house):
    def away(_rules, _now):
        raise StoreUnavailable("it is away")

    watch = replace(house.watch, facts=away)
    watch.run(Claim(), Event(), once=True)
    with house.lcc.store.read() as tx:
        assert not alarm_of(tx, Rule.STALLED).on
