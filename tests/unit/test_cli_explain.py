"""The one reason why a URL waits."""

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from lcc_scrapy.db.records import FailingHost, LastOutcome, LongFetch, StoredTurn, WorkerRow
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.queue import NOTHING, QueuedUrl
from lcc_scrapy.domain.timeslots import parse_mask
from lcc_scrapy.queue.explanation import Known, Surroundings, Work, why_waiting

KEY = b"k" * 16
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()  # a Friday
ROW = QueuedUrl(KEY, 7, "c", "text/html", "", None, "f", None, None, None, "", 1, 1, "fetch", 1, 0, 0)
PROVIDER = Provider(7, "a hash")
AROUND = Surroundings(NOW, ZoneInfo("UTC"), running=True)


def wait(
    row=ROW, provider=PROVIDER, around=AROUND, before=0, *, outcome=None, turn=None, work=None, host=None
):
    known = Known(KEY, 7, "c", "text/html", queued=row, before=before, outcome=outcome)
    return why_waiting(known, provider, turn, around, work, host=host)


def why(*args, **kwargs):
    return wait(*args, **kwargs).reason


def worker(owner, expires, **values):
    return WorkerRow(owner, 1, 1, 1, 0, expires, **{"places": 64, **values})


def at_work(fetch=None, above=0, **values):
    return Work(worker("1/0", int(NOW) + 9, **values), fetch, above)


def fetch(key=KEY, **values):
    told = {"since": int(NOW) - 60, "paced": 0, "transferred": 12_000, "size": 30_000}
    return LongFetch("7", "1/0", 3, key, **{**told, **values})


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
    assert why(work=at_work()) == "it is being fetched, or is the next of its provider (worker 1/0)"
    assert "a worker will take it" in why(turn=StoredTurn("7", "1/0", 3))
    assert "a worker will take it" in why()


def test_a_fetch_that_takes_long_is_told_of_with_what_has_arrived():
    assert why(work=at_work(fetch(), in_use=64)) == (
        "it is being fetched since 2026-11-20 11:59:00: 12000 of 30000 bytes have arrived (worker 1/0)"
    )
    assert "12000 bytes have arrived" in why(work=at_work(fetch(size=0)))


def test_a_body_that_is_paced_says_since_when_whatever_else_is_true():
    closed = replace(PROVIDER, timeofday=parse_mask("mon"))
    paced = at_work(fetch(paced=int(NOW) - 50), in_use=64)
    for provider in (PROVIDER, closed):
        assert why(provider=provider, work=paced, before=9).endswith(
            "12000 of 30000 bytes have arrived, at the pace of bandwidth limits since 2026-11-20 11:59:10 (worker 1/0)"
        )


def test_who_comes_later_hears_of_the_fetch_before_it():
    work = at_work(fetch(b"o" * 16, paced=int(NOW) - 50))
    assert why(work=work, before=2).startswith(
        "2 other URLs of its provider come first; one of its turn is being fetched since 2026-11-20 11:59:00"
    )
    assert why(work=work).startswith("another URL of its turn is being fetched since")  # of its group


def test_no_free_place_is_the_reason_also_for_a_provider_with_a_limit():
    slow = replace(PROVIDER, bandwidth=300)
    for provider in (PROVIDER, slow):
        assert why(provider=provider, work=at_work(in_use=64)) == (
            "no place is free: all 64 of worker 1/0 are in use"
        )
        assert why(provider=provider, work=at_work(above=3, in_use=64)) == (
            "no place is free: all 64 of worker 1/0 are in use; 3 of its turns have a higher priority and go first"
        )


def test_as_many_paced_bodies_as_may_hold_up_providers_with_a_limit_only():
    around, many = replace(AROUND, paced=1000), at_work(in_use=3, paced=1000)
    assert why(provider=replace(PROVIDER, bandwidth=300), around=around, work=many) == (
        "1000 bodies arrive at the pace of limits, as many as may (worker 1/0);"
        " a provider with a limit waits until one of them ends"
    )
    assert "being fetched" in why(around=around, work=many)


def test_a_short_wait_for_the_own_limit_is_named():
    assert "whose limit of 300 bytes a second may delay it" in why(
        provider=replace(PROVIDER, bandwidth=300), work=at_work()
    )


def test_a_failing_host_says_since_when_and_when_it_is_asked_next():
    fails = FailingHost("7", "h", NOW + 600, 3, NOW - 60, 240, "[]")
    failed = LastOutcome(KEY, 7, 503, "Service Unavailable", int(NOW))
    found = wait(host=fails, outcome=failed, before=9)
    assert found.until == NOW + 600
    assert found.reason == (
        "host h has failed since 2026-11-20 11:59:00Z (3 times in a row), next request at 2026-11-20 12:10:00Z;"
        " this URL: 503 (Service Unavailable)"
    )


def test_used_up_bandwidth_says_until_when():
    assert "bandwidth is used up until" in why(turn=StoredTurn("7", not_before=NOW + 600))


def test_a_pause_of_everything_is_named():
    assert "lcc provider resume --all" in why(around=replace(AROUND, paused=True), before=9)


def test_a_worker_that_hands_out_nothing_says_why_before_other_urls_count():
    idle = "no room on /data: 5 bytes free"
    assert why(before=9, work=at_work(idle=idle)) == f"worker 1/0 hands out no URL: {idle}"
    assert "9 other URLs" in why(before=9, work=at_work())


def test_a_failing_host_is_told_before_an_idle_worker():
    fails = FailingHost("7", "h", NOW + 60, 1, NOW, 60, "[]")
    assert "host h has failed since" in why(host=fails, work=at_work(idle="no room"))


@pytest.mark.parametrize(
    ("workers", "told"),
    [
        ((worker("1/0", int(NOW) + 9, idle="no room"),), True),
        ((worker("1/0", int(NOW) + 9, idle="no room"), worker("1/1", int(NOW) + 9)), False),
        ((worker("1/0", int(NOW) - 9, idle="no room"),), False),
    ],
    ids=["all are idle", "one is not", "it is gone"],
)
def test_a_url_whose_turn_nobody_has_waits_for_workers_that_are_all_idle(workers, told):
    reason = why(around=replace(AROUND, workers=workers))
    assert ("worker 1/0 hands out no URL: no room" in reason) is told
