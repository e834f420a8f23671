"""Who is told of what, and when: pure rules."""

from dataclasses import replace
from datetime import time
from zoneinfo import ZoneInfo

import pytest

from lcc_scrapy.domain import alerts
from lcc_scrapy.domain.acis import Aci, Alert, AlertState, Channel, Recipient
from lcc_scrapy.domain.alert_limits import AlertRules, Deadlines
from lcc_scrapy.domain.alerts import (
    BadRecipient,
    Schedule,
    address_for,
    alerts_of,
    format_for,
    messages,
    name_of,
    wait,
)

HOUR = 3_600_000
NOW = 1_800_000_000_000  # 2027-01-15 08:00 UTC
FETCHED = NOW - 5000
ACI = Aci(
    b"k" * 16, 9, "alice", 41, 3, 7, "html", "text/html", 18, FETCHED, 2000, "http://www.example.org/",
    1, "1/5", False, "A title", "Words", "{}", NOW,
)  # fmt: skip
ALICE = Recipient(1, "alice", Channel.MAIL, "a@example.org", "html", False, "", False, 0, "")
DEADLINES = Deadlines(90_000, 600, 60)
UTC = ZoneInfo("UTC")


def told(aci=ACI, recipients=(ALICE,), now=NOW, zone=UTC, since=None):
    return alerts_of(aci, recipients, now, Schedule(time(9, 0), DEADLINES, zone), since)


@pytest.mark.parametrize(("urgency", "seconds"), [(1, 600), (2, 60), (3, 60)])
def test_deadlines_count_from_the_fetch(urgency, seconds):
    (one,) = told(replace(ACI, urgency=urgency))
    assert one == Alert(41, 1, AlertState.WAITING, 0, NOW, FETCHED + seconds * 1000, 0, 0)


def test_an_old_page_that_becomes_of_interest_has_its_deadline_from_then_on():
    (one,) = told(since=NOW - 1000)
    assert one.deadline == NOW - 1000 + 600_000


@pytest.mark.parametrize(("urgency", "digest"), [(0, False), (-1, False), (2, True)])
def test_level_0_and_who_wants_so_waits_for_the_digest(urgency, digest):
    (one,) = told(replace(ACI, urgency=urgency), [replace(ALICE, digest=digest)])
    at = NOW + HOUR
    assert (one.not_before, one.digest, one.deadline) == (at, at, FETCHED + 25 * HOUR)


def test_the_digest_has_its_hour_in_the_operators_zone_and_takes_nothing_of_the_last_minute():
    quiet = replace(ACI, urgency=0)
    assert told(quiet, zone=ZoneInfo("Europe/Athens"))[0].digest == NOW + 23 * HOUR
    assert told(quiet, now=NOW + HOUR - 61_000)[0].digest == NOW + HOUR
    assert told(quiet, now=NOW + HOUR - 60_000)[0].digest == NOW + 25 * HOUR


def test_a_digest_is_never_due_after_its_deadline():
    (one,) = told(replace(ACI, urgency=0, updatetime=NOW - 1000 * HOUR))
    assert one.deadline == one.digest
    assert told(replace(ACI, updatetime=0))[0].deadline == NOW


def test_only_recipients_of_the_owner_that_are_on_are_told():
    others = [replace(ALICE, recipientid=2, owner="bob"), replace(ALICE, recipientid=3, off=True)]
    others.append(replace(ALICE, recipientid=4, refused="550"))
    assert [one.recipientid for one in told(recipients=[*others, ALICE])] == [1]


def test_waits_double_up_to_an_hour():
    assert [wait(n) for n in (0, 1, 2, 3, 8, 9, 10, 10_000)] == [15, 15, 30, 60, 1920, 3600, 3600, 3600]


def test_an_alert_is_tried_for_some_time_after_its_deadline():
    (one,) = told()
    end = one.deadline + 7 * 24 * HOUR
    assert not alerts.is_hopeless(one, end - 1, 7 * 86400)
    assert alerts.is_hopeless(one, end, 7 * 86400)


def alert(number, deadline=NOW, digest=0):
    return Alert(number, 1, AlertState.WAITING, 0, NOW, deadline, 0, digest)


def test_alerts_of_one_digest_are_told_together_and_others_alone():
    rows = [alert(4), alert(1, NOW + 1, NOW), alert(3, NOW, NOW), alert(2, NOW - 1), alert(5, NOW, NOW - 1)]
    assert [[one.number for one in told] for told in messages(rows)] == [[2], [3, 1], [4], [5]]


def test_a_long_digest_comes_in_parts():
    parts = messages([alert(n, digest=NOW) for n in range(1, 402)])
    assert [len(part) for part in parts] == [200, 200, 1]
    assert len({name_of(part, "lcc") for part in parts}) == 3


def test_the_end_of_a_digest_waits_while_it_may_not_be_complete():
    rows = [alert(n, digest=NOW) for n in range(1, 251)] + [alert(400, NOW + 9)]
    assert [len(part) for part in messages(rows, cut=True)] == [200, 1]
    assert [len(part) for part in messages(rows[:50], cut=True)] == [50], "something has to be told"
    before = messages([alert(n, NOW - n, digest=NOW) for n in range(1, 401)], cut=True)
    after = messages([alert(n, NOW - n, digest=NOW) for n in range(1, 201)], cut=True)
    assert before[1] == after[0], "what is left is put together as before"


def test_a_message_is_called_the_same_whenever_it_is_sent():
    one, two = alert(1, digest=NOW), alert(2, digest=NOW)
    assert name_of([one, two], "x") == name_of([replace(one, tries=3), replace(two, not_before=1)], "x")
    assert name_of([one, two], "x") == name_of([two, one], "x")
    assert name_of([one, two], "x") != name_of([one], "x")
    assert name_of([alert(1)], "x") == "alert-1-1.x"


@pytest.mark.parametrize(
    ("channel", "text", "private", "used"),
    [
        ("mail", " a@Example.ORG ", False, "a@example.org"),
        ("webhook", "https://Example.org:443/a b?c", False, "https://example.org/a%20b?c"),
        ("webhook", "http://10.0.0.1/x", True, "http://10.0.0.1/x"),
    ],
)
def test_addresses_are_kept_as_they_are_used(channel, text, private, used):
    assert address_for(Channel(channel), text, private=private) == used


@pytest.mark.parametrize(
    ("channel", "text"),
    [
        ("mail", "a@example.org\r\nBcc: b@example.org"),
        ("mail", "a@example.org, b@example.org"),
        ("mail", ""),
        ("webhook", "http://example.org/"),
        ("webhook", "ftp://example.org/"),
        ("webhook", "https://example.org/\r\nX: y"),
        ("webhook", "https://user:password@example.org/"),
        ("webhook", ""),
    ],
)
def test_what_is_no_address_is_refused_in_one_line(channel, text):
    with pytest.raises(BadRecipient) as refused:
        address_for(Channel(channel), text, private=False)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith("address ")


def test_formats():
    assert (format_for(Channel.MAIL, ""), format_for(Channel.WEBHOOK, "")) == ("html", "json")
    assert format_for(Channel.MAIL, "xml") == "xml"
    with pytest.raises(BadRecipient):
        format_for(Channel.MAIL, "pdf")


@pytest.mark.parametrize("text", ["1h", "1h 2h", "1h 2h 3h 4h", "1h 0 1s", "a b c"])
def test_deadlines_that_cannot_be_used_are_refused(text):
    with pytest.raises(ValueError, match="expected"):
        AlertRules.__dataclass_fields__["deadlines"].metadata["setting"].read(text)
