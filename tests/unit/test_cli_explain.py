"""The one reason why a URL waits."""

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.queue import NOTHING, QueuedUrl
from lcc_scrapy.domain.timeslots import parse_mask
from lcc_scrapy.storage.explanation import Known, Surroundings, why_waiting
from lcc_scrapy.storage.records import LastOutcome, StoredTurn, WorkerRow

KEY = b"k" * 16
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()  # a Friday
ROW = QueuedUrl(KEY, 7, "c", "text/html", "", None, "f", None, None, None, "", 1, 1, "fetch", 1, 0, 0)
PROVIDER = Provider(7, "a hash")
AROUND = Surroundings(NOW, ZoneInfo("UTC"), running=True)


def wait(row=ROW, provider=PROVIDER, around=AROUND, before=0, *, outcome=None, turn=None):
    known = Known(KEY, 7, "c", "text/html", queued=row, before=before, outcome=outcome)
    return why_waiting(known, provider, turn, around)


def why(*args, **kwargs):
    return wait(*args, **kwargs).reason


def worker(owner, expires):
    return WorkerRow(owner, 1, 1, 1, 0, expires)


@pytest.mark.parametrize("state", [State.PAUSED, State.DISABLED, State.PENDING])
def test_a_provider_that_is_not_active_comes_first(state):
    assert f"its provider is {state}" in why(provider=replace(PROVIDER, state=state), before=9)


def test_a_provider_that_went_is_named():
    assert why(provider=None) == "its provider does not exist any more"


def test_a_removal_needs_no_fetch():
    assert "its removal arrived" in why(replace(ROW, operation=NOTHING))


def test_closed_hours_say_when_they_open_and_where():
    provider = replace(PROVIDER, timeofday=parse_mask("mon-fri 20-06"), timezone="Europe/Amsterdam")
    assert (
        why(provider=provider, before=9)
        == "its hours are closed until Fri 2026-11-20 20:00 in Europe/Amsterdam"
    )


def test_the_hours_of_the_url_itself_count_too():
    assert (
        why(replace(ROW, timeofday=parse_mask("sat")))
        == "its hours are closed until Sat 2026-11-21 00:00 in UTC"
    )


def test_hours_that_never_meet_are_named():
    provider = replace(PROVIDER, timeofday=parse_mask("mon"))
    assert "never open together" in why(replace(ROW, timeofday=parse_mask("tue")), provider)


def test_waiting_to_try_again_says_until_when_and_after_what():
    failed = LastOutcome(KEY, 7, 503, "Service Unavailable", int(NOW))
    reason = why(replace(ROW, not_before=int(NOW) + 600, tries=1), outcome=failed)
    assert reason == "it waits to try again until Fri 2026-11-20 12:10 in UTC after 503 (Service Unavailable)"


def test_without_a_crawl_process_that_is_the_reason():
    idle = replace(AROUND, running=False, workers=(worker("1/0", int(NOW) - 1),))
    assert "no crawl process runs" in why(around=idle, before=9)


def test_a_crawl_process_on_another_machine_counts():
    elsewhere = replace(AROUND, running=False, workers=(worker("2/0", int(NOW) + 9),))
    assert "come first" in why(around=elsewhere, before=9)


def test_urls_before_it_are_counted():
    assert why(before=9) == "9 other URLs of its provider come first"
    assert why(before=1) == "1 other URL of its provider comes first"


def test_the_first_url_of_a_leased_turn_is_being_worked_on():
    at_work = replace(AROUND, workers=(worker("1/0", int(NOW) + 9),))
    assert "being fetched" in why(around=at_work, turn=StoredTurn("7", "1/0", 3))
    assert "a worker will take it" in why(turn=StoredTurn("7", "1/0", 3))
    assert "a worker will take it" in why()


def test_a_failing_host_says_until_when_the_turn_waits():
    turn = StoredTurn("7", not_before=NOW + 600, failures=3, failing_since=NOW - 60)
    failed = LastOutcome(KEY, 7, 503, "Service Unavailable", int(NOW))
    found = wait(turn=turn, outcome=failed, before=9)
    assert found.until == NOW + 600
    assert found.reason == (
        "its host failed 3 times in a row: 503 (Service Unavailable);"
        " its provider's turn waits until Fri 2026-11-20 12:10 in UTC"
    )


def test_used_up_bandwidth_says_until_when():
    assert "bandwidth is used up until" in why(turn=StoredTurn("7", not_before=NOW + 600))


def test_a_pause_of_everything_is_named():
    assert "lcc provider resume --all" in why(around=replace(AROUND, paused=True), before=9)
