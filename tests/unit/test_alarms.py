"""Rules of alarms, and when an alarm is told."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.apps.alarms.rules import (
    ADVICE,
    FEW_FETCHES,
    TITLES,
    Alarm,
    Facts,
    Fetching,
    Notice,
    Rule,
    wrong,
)
from lcc_scrapy.apps.alarms.settings import MAILS_MAX, AlarmRules, addresses

RULES = AlarmRules()
GOOD = Facts(workers=1, free={"/srv": 10**12})
STEADY = 60
LOOKS = st.lists(st.tuples(st.integers(0, 200), st.booleans()), max_size=40)


@pytest.mark.parametrize(
    ("rule", "below", "bad", "said"),
    [
        (Rule.STALLED, {"idle": 899}, {"idle": 900}, "no fetch has ended for 15 min"),
        (Rule.FAILURES, {"tried": 20, "failed": 9}, {"tried": 20, "failed": 10}, "10 of 20 fetches"),
        (Rule.FAILURES, {"tried": FEW_FETCHES - 1, "failed": 19}, {"tried": 30, "failed": 30}, "100%"),
        (Rule.DISK, {"free": {"/srv": 10**9}}, {"free": {"/srv": 10**9 - 1}}, "1.0 GB free at /srv"),
        (Rule.DISK, {}, {"short": "the disk is full"}, "have stopped: the disk is full"),
        (Rule.HELD, {"held": 0}, {"held": 1}, "1 removals are held"),
        (Rule.SILENT, {}, {"silent": (7,), "silent_count": 1}, "provider 7"),
        (Rule.SILENT, {}, {"silent": (1, 2), "silent_count": 5}, "providers 1, 2 and 3 more"),
        (Rule.WORKERS, {"workers": 1}, {"workers": 0}, "0 crawl processes are at work, 1 are expected"),
    ],
)
def test_each_rule_has_its_bound(rule, below, bad, said):
    assert wrong(replace(GOOD, **below), RULES) == {}
    found = wrong(replace(GOOD, **bad), RULES)
    assert list(found) == [rule]
    assert said in found[rule]


def test_a_rule_that_is_off_finds_nothing():
    off = replace(RULES, stalled=0.0, failures=0.0, free=0, held=0, silent=0, workers=0)
    bad = Facts(idle=1e9, tried=100, failed=100, free={"/": 0}, held=9, silent=(7,), silent_count=1)
    assert wrong(bad, off) == {}


def test_every_rule_has_a_title_and_advice():
    assert set(TITLES) == set(ADVICE) == set(Rule)


@given(LOOKS)
def test_beginnings_and_ends_alternate_and_each_lasted_for_a_while(looks):
    alarm, now, told, lasted = Alarm(), 1_800_000_000, [], 0
    before = False
    for seconds, bad in looks:
        now += seconds
        lasted = lasted + seconds if bad == before else 0
        before = bad
        after = alarm.seen(now, STEADY, {0}, bad=bad)
        if after.number != alarm.number:
            assert (after.number, after.on, after.at) == (alarm.number + 1, bad, now)
            assert lasted >= STEADY
            told.append(after.on)
        alarm = Alarm.read(after.text)
        assert alarm == after
    assert told == [number % 2 == 0 for number in range(len(told))]


@given(LOOKS, st.randoms(use_true_random=False))
def test_a_channel_hears_of_the_two_by_turns_even_if_it_is_away_now_and_then(looks, chance):
    alarm, now, heard = Alarm(), 1_800_000_000, {0: [], 1: []}
    for seconds, bad in looks:
        now += seconds
        alarm = alarm.seen(now, STEADY, {0, 1}, bad=bad)
        for channel in alarm.left:
            if chance.random() < 0.5:
                heard[channel].append(alarm.on)
                alarm = alarm.told(channel)
    for channel, states in heard.items():
        assert states == [number % 2 == 0 for number in range(len(states))]
        knows = bool(states and states[-1])
        assert (channel in alarm.left) == (knows != alarm.on)


def test_it_fits_where_it_is_kept():
    channels = range(2 * MAILS_MAX + 1)
    alarm = Alarm(10**6, True, 1_800_000_000, False, 1_800_000_000, tuple(channels))
    assert len(alarm.text) <= 255


def test_a_channel_that_is_gone_is_told_nothing():
    alarm = Alarm().seen(100, 0, {0, 1}, bad=True)
    assert alarm.left == (0, 1)
    assert alarm.seen(200, 0, {0}, bad=True).left == (0,)


def test_fetching_stands_still_only_while_something_is_due():
    seen = Fetching().seen(10, 100, due=True)
    assert seen == Fetching(10, 100)
    assert seen.seen(10, 200, due=True) == seen
    assert seen.seen(11, 200, due=True) == Fetching(11, 200)
    assert seen.idle(400) == 300
    assert seen.seen(10, 200, due=False) == Fetching()
    assert Fetching().idle(400) == 0


def test_a_notice_says_what_is_wrong_and_what_to_do_and_at_the_end_only_that_it_is_over():
    begun = Notice(Rule.HELD, on=True, at=0, text="3 removals are held", name="held-1")
    assert begun.body == (
        "alarm: removals are held\n3 removals are held\n"
        "`lcc provider confirm-removals PID` carries them out; see `lcc status` for whose they are\n"
    )
    assert replace(begun, on=False).body == "over: removals are held\n"


def test_more_addresses_than_that_are_for_a_mailing_list():
    def given(count):
        return ", ".join(f"a{one}@example.org" for one in range(count))

    assert len(addresses(given(20))) == 20
    with pytest.raises(ValueError, match="20 at most"):
        addresses(given(21))
