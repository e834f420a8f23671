"""Turns: who fetches next (design section 5 "Order", "Between providers")."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate, pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.bandwidth import AHEAD, CREDIT, Pace
from lcc_scrapy.domain.entries import UrlEntry
from lcc_scrapy.domain.queue import Place, Ticket, update_row
from lcc_scrapy.domain.retries import Backoff, next_to_ask, section_of
from lcc_scrapy.domain.turn import NEVER, Turn
from lcc_scrapy.domain.turns import (
    CROWD,
    SESSION,
    SESSION_SECONDS,
    STALE,
    Turns,
    fair_share,
    interleave,
)

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp()


def ticket(key, number):
    row = update_row(UrlEntry(f"{key}{number}", "text/html"), b"%d" % number, 7, Place(1, number))
    return Ticket(row, key, 1)


def turns_of(*specs, everything=0, crowd=CROWD):
    """Make turns from (key, how many tickets, priority)."""
    turns = Turns(Pace(everything), crowd=crowd)
    for key, count, *priority in specs:
        turns.add(Turn(key, 1, *priority))
        turns.refill(key, [ticket(key, number) for number in range(count)], NOW, more=False)
    return turns


def crowded(*specs):
    return turns_of(*specs, crowd=0)


def name(got):
    return got.row.curl if got else None


def run(turns, count, now=NOW):
    """Fetch one URL after the other, each ending at once."""
    names = []
    for _ in range(count):
        got = turns.next(now)
        names.append(name(got))
        if got:
            turns.done(got, now)
    return names


def test_providers_take_turns_in_a_ring():
    assert run(turns_of(("a", 3), ("b", 2), ("c", 1)), 7) == ["a0", "b0", "c0", "a1", "b1", "a2", None]


def test_in_a_crowd_providers_are_fetched_from_in_sessions_which_end():
    turns = crowded(("a", 20), ("b", 3), ("c", 1))
    names = run(turns, 25)
    assert names[:SESSION] == [f"a{n}" for n in range(SESSION)]
    assert names[SESSION : SESSION + 4] == ["b0", "b1", "b2", "c0"]
    assert names[SESSION + 4 :] == [*(f"a{n}" for n in range(SESSION, 20)), None]


def test_a_session_ends_after_a_while_and_for_higher_priorities():
    turns = crowded(("slow", 9), ("other", 9))
    got = turns.next(NOW)
    turns.done(got, NOW + SESSION_SECONDS)
    assert run(turns, 2, NOW + SESSION_SECONDS) == ["other0", "other1"]
    turns.add(Turn("high", 1, 2))
    turns.refill("high", [ticket("high", 0)], NOW, more=False)
    assert run(turns, 2, NOW + SESSION_SECONDS) == ["high0", "other2"]


def test_a_session_waits_for_nothing():
    turns = crowded(("a", 9), ("b", 9))
    got = turns.next(NOW)
    turns.get("a").spacing = 5.0
    turns.done(got, NOW)
    assert run(turns, 1) == ["b0"]


def test_a_session_that_runs_dry_asks_for_its_window_when_it_is_time():
    turns = crowded(("a", 1), ("b", 1))
    turns.look_by("a", NOW + 60, NOW)
    assert run(turns, 3) == ["a0", "b0", None]
    assert turns.wake_at() == NOW + 60


def test_where_few_are_ready_there_are_no_sessions():
    turns = turns_of(("a", 3), ("b", 3), crowd=2)
    assert run(turns, 3) == ["a0", "b0", "a1"]


def test_higher_priority_comes_first():
    turns = turns_of(("low", 2, 0), ("middle", 2, 1), ("high", 2, 2))
    assert run(turns, 6) == ["high0", "high1", "middle0", "middle1", "low0", "low1"]


def test_a_provider_that_becomes_ready_takes_the_next_free_place():
    turns = turns_of(("low", 3, 0))
    assert run(turns, 1) == ["low0"]
    turns.add(Turn("high", 1, 2))
    turns.refill("high", [ticket("high", 0)], NOW, more=False)
    assert run(turns, 3) == ["high0", "low1", "low2"]


def test_one_fetch_is_in_flight_per_turn():
    turns = turns_of(("a", 3), ("b", 1))
    first = turns.next(NOW)
    assert [name(first), name(turns.next(NOW)), turns.next(NOW)] == ["a0", "b0", None]
    turns.refill("a", [ticket("a", 8)], NOW, more=False)
    assert turns.next(NOW) is None
    turns.done(first, NOW)
    assert name(turns.next(NOW)) == "a8"


def test_only_the_ticket_in_flight_ends_a_turn_and_only_once():
    turns = turns_of(("a", 3))
    first = turns.next(NOW)
    turns.done(ticket("a", 0), NOW)
    assert turns.next(NOW) is None
    turns.done(first, NOW)
    turns.done(first, NOW)
    assert [name(turns.next(NOW)), turns.next(NOW)] == ["a1", None]


def test_a_ticket_that_is_put_back_is_the_next_again():
    turns = turns_of(("a", 3))
    first = turns.next(NOW)
    turns.put_back(first, NOW)
    assert turns.next(NOW) is None
    turns.done(first, NOW)
    assert run(turns, 4) == ["a0", "a1", "a2", None]


def test_the_last_ticket_put_back_after_its_turn_ended_is_not_lost():
    turns = turns_of(("a", 1))
    first = turns.next(NOW)
    turns.done(first, NOW)
    turns.put_back(first, NOW)
    assert run(turns, 2) == ["a0", None]


def test_bandwidth_delays_one_turn_and_not_the_others():
    turns = turns_of(("a", 3), ("b", 3))
    turns.get("a").pace = Pace(1000, NOW)
    got = turns.next(NOW)
    turns.get("a").pace.charge(NOW, 5000)
    turns.done(got, NOW)
    assert run(turns, 4) == ["b0", "b1", "b2", None]
    assert turns.wake_at() == NOW + 5
    assert turns.next(NOW + 4.9) is None
    assert name(turns.next(NOW + 5)) == "a1"


def test_the_global_limit_delays_everybody():
    turns = turns_of(("a", 1), ("b", 1), everything=1000)
    turns.everything.ready_at = NOW
    assert run(turns, 1) == ["a0"]
    turns.everything.charge(NOW, 2000)
    assert turns.next(NOW + 1.4) is None
    assert turns.wake_at() == NOW + 2 - AHEAD
    assert name(turns.next(NOW + 1.5)) == "b0"


def test_a_large_body_that_uses_the_global_limit_up_keeps_nobody_from_starting():
    turns = turns_of(("a", 1), ("b", 20), everything=1000)
    turns.next(NOW)
    now, started = NOW, 0
    for _ in range(100):
        turns.everything.charge(now, 100)
        now += turns.everything.pause(now) or 0.05
        got = turns.next(now)
        if got:
            started += 1
            turns.done(got, now)
    assert started == 20


def test_an_empty_turn_asks_for_its_window_when_it_is_time():
    turns = Turns(Pace())
    turns.add(Turn("a", 1))
    turns.refill("a", [], NOW, more=False, look_at=NOW + 7200)
    assert (turns.next(NOW), turns.wake_at(), turns.due()) == (None, NOW + 7200, [])
    assert (turns.next(NOW + 7200), turns.due(), turns.due()) == (None, ["a"], [])
    turns.refill("a", [ticket("a", 0)], NOW + 7200, more=False)
    assert name(turns.next(NOW + 7200)) == "a0"


def test_an_empty_turn_that_waits_for_nothing_asks_for_nothing():
    turns = Turns(Pace())
    turns.add(Turn("a", 1))
    turns.refill("a", [], NOW, more=False)
    assert (turns.next(NOW), turns.wake_at(), turns.due()) == (None, NEVER, [])


def on_hosts(*places):
    """Make a turn of one ticket for each host named, or host/section, in order; all hosts are its roots."""
    turns = Turns(Pace())
    turns.add(Turn("a", 1, roothosts=frozenset(place.partition("/")[0] for place in places)))
    tickets = [replace(one, row=replace(one.row, furl=f"http://{place}/{n}")) for n, place in enumerate(places)
               for one in [ticket("a", n)]]  # fmt: skip
    turns.refill("a", tickets, NOW, more=False)
    return turns, tickets


def failed(turns, got, now, **options):
    since = turns.host_failed(got, now, **options)
    turn = turns.get("a")
    row = got.row
    blamed = (row.urlkey, row.pid, row.tries, section_of(row.furl))
    turn.hosts[got.host] = turn.hosts[got.host].blames(blamed)
    turns.done(got, now)
    return since


def read_again(turns, tickets, now):
    """Read the window as the store would, without the URLs that are kept out of it."""
    blamed = {url[0] for one in turns.get("a").failing().values() for url in one.blamed}
    turns.refill("a", [one for one in tickets if one.row.urlkey not in blamed], now, more=False)


def test_a_failing_host_is_asked_less_and_less_each_time_for_another_url_until_it_answers():
    turns, tickets = on_hosts(*["h"] * 5)
    now, waits, failing, asked = NOW, [], [], []
    for _ in range(3):
        got = turns.next(now)
        asked.append(got.row.position)
        failing.append(failed(turns, got, now))
        assert turns.next(now) is None
        waits.append(turns.wake_at() - now)
        now = turns.wake_at()
        assert (turns.next(now), turns.due()) == (None, ["a"]), "its window is read first"
        read_again(turns, tickets, now)
    assert (waits, failing, asked) == ([60, 120, 240], [0, 60, 180], [0, 1, 4])
    got = turns.next(now)
    assert turns.next(now) is None, "one request, whatever else waits"
    before = turns.host_answered(got, now)
    assert [url[0] for url in before.blamed] == [tickets[n].row.urlkey for n in (0, 1, 4)]
    turns.done(got, now)
    left = [one for one in tickets if one is not got]
    turns.refill("a", left, now, more=False)
    turns.host_failed(turns.next(now), now)
    assert turns.get("a").hosts["h"].not_before == now + 60, "a quarter of the last wait"


def test_when_all_urls_of_a_failing_host_have_failed_the_first_is_asked_for_again():
    turns, tickets = on_hosts("h", "h")
    now = NOW
    asked = []
    for _ in range(4):
        got = turns.next(now)
        asked.append(got.row.position)
        failed(turns, got, now)
        now = turns.get("a").hosts["h"].not_before
        for _ in range(2):
            read_again(turns, tickets, now)
    assert asked == [0, 1, 0, 1]


def test_other_hosts_of_a_turn_go_on_while_one_fails():
    turns, tickets = on_hosts("dead", "dead", "good", "dead", "good")
    failed(turns, turns.next(NOW), NOW)
    assert turns.get("a").waits(NOW) == {"dead": NOW + 60}
    read_again(turns, tickets, NOW)
    got = turns.next(NOW)
    assert got is tickets[2]
    turns.host_answered(got, NOW)
    turns.done(got, NOW)
    assert turns.next(NOW) is tickets[4]
    turns.done(tickets[4], NOW)
    assert (turns.next(NOW), turns.wake_at()) == (None, NOW + 60)


def after_failures(*urls, **values):
    """Return how a host waits that failed with these URLs, one after the other."""
    backoff = Backoff(failures=len(urls), **values)
    for url in urls:
        backoff = backoff.blames((url.encode(), 7, 0, section_of(url)))
    return backoff


def test_a_run_of_broken_urls_is_left_for_another_section():
    urls = [f"http://h/shop/{n}" for n in range(300)] + ["http://h/news/1"]
    assert urls[next_to_ask(urls[1:], after_failures(urls[0])) + 1] == "http://h/news/1"


def test_a_run_of_broken_urls_of_one_section_is_left_by_the_second_wait():
    urls = [f"http://h/{n}" for n in range(330)]
    asked = [next_to_ask(urls, after_failures(*urls[:n])) for n in range(1, 6)]
    assert asked == [0, 329, 164, 82, 246]


def test_a_run_of_broken_urls_without_numbers_is_left_by_the_second_wait():
    words = ["".join(letters) for letters in product("abcdefg", repeat=3)]
    urls = [f"http://h/{word}" for word in words]
    assert [next_to_ask(urls[n:], after_failures(*urls[:n])) for n in range(3)] == [0, 0, len(urls) - 3]


def test_a_request_that_taught_nothing_is_followed_by_another_one():
    turns, tickets = on_hosts("h", "h", "h")
    failed(turns, turns.next(NOW), NOW)
    read_again(turns, tickets, NOW + 60)
    turns.done(turns.next(NOW + 60), NOW + 61)
    assert (turns.next(NOW + 61), turns.due()) == (None, ["a"])
    read_again(turns, tickets[2:], NOW + 61)
    assert turns.next(NOW + 61) is tickets[2]


def test_a_host_that_somebody_wants_asked_is_asked_now_and_its_failures_go_on():
    turns, tickets = on_hosts("h", "h")
    failed(turns, turns.next(NOW), NOW)
    turns.get("a").hurry({"h": NOW + 5, "other": NOW})
    turns.get("a").weigh_hosts()
    read_again(turns, tickets, NOW + 5)
    assert failed(turns, turns.next(NOW + 5), NOW + 5) == 5
    assert turns.get("a").hosts["h"].not_before == NOW + 5 + 120


def section_breaks(*places, at_once=1):
    """Make a turn as ``on_hosts`` does whose first URL failed; the second answers as the wait is over."""
    turns, tickets = on_hosts(*places)
    turns.get("a").at_once = at_once
    failed(turns, turns.next(NOW), NOW, code=503)
    now = NOW + 60
    read_again(turns, tickets, now)
    got = turns.next(now)
    turns.host_answered(got, now)
    turns.done(got, now)
    left = [one for one in tickets if one not in {tickets[0], got}]
    read_again(turns, left, now)
    return turns, left, now


def test_after_a_failure_in_a_broken_section_another_section_is_asked_for_at_once():
    turns, tickets, now = section_breaks(*["h/shop", "h/news"] * 3)
    for _ in range(2):
        failed(turns, turns.next(now), now, code=503)
        assert turns.next(now) is None, "its window is read first"
        tickets = tickets[1:]
        read_again(turns, tickets, now)
        got = turns.next(now)
        assert got is tickets[0]
        assert "news" in got.row.furl
        assert turns.next(now) is None, "one request"
        assert len(turns.host_answered(got, now).blamed) == 1
        turns.done(got, now)
        tickets = tickets[1:]
        read_again(turns, tickets, now)


def test_where_no_other_section_is_found_the_host_waits():
    turns, tickets, now = section_breaks("h/shop", "h/news", "h/shop", "h/shop")
    failed(turns, turns.next(now), now, code=503)
    read_again(turns, tickets, now)
    assert (turns.next(now), turns.due()) == (None, ["a"])
    read_again(turns, tickets, now)
    assert (turns.next(now), turns.wake_at()) == (None, now + 15)
    read_again(turns, tickets, now + 15)
    assert turns.next(now + 15) is tickets[1]


def test_a_window_that_was_read_before_the_failure_does_not_say_that_there_is_no_other_section():
    turns, tickets, now = section_breaks("h/shop", "h/news", "h/shop", "h/shop", "h/news")
    failed(turns, turns.next(now), now, code=503)
    turns.refill("a", tickets[1:2], now, more=True, outdated=True)
    assert turns.next(now) is None
    read_again(turns, tickets, now)
    assert turns.next(now) is tickets[2]


@pytest.mark.parametrize("code", [429, 601, 602, 612])
def test_what_cannot_be_of_a_section_alone_is_waited_for(code):
    turns, tickets, now = section_breaks("h/shop", "h/news", "h/shop", "h/news")
    failed(turns, turns.next(now), now, code=code)
    read_again(turns, tickets, now)
    assert (turns.next(now), turns.wake_at()) == (None, now + 15)


def test_a_section_that_answered_since_is_not_broken():
    turns, tickets, now = section_breaks("h/shop", "h/news", "h/shop", "h/shop", "h/news")
    got = turns.next(now)
    turns.host_answered(got, now)
    turns.done(got, now)
    failed(turns, turns.next(now), now, code=503)
    read_again(turns, tickets[1:], now)
    assert (turns.next(now), turns.wake_at()) == (None, now + 15)


def test_what_fails_beside_others_of_a_broken_section_is_one_failure_and_no_earlier_answer_undoes_it():
    turns, tickets, now = section_breaks("h/shop", "h/news", *["h/shop"] * 3, "h/news", "h/news", at_once=4)
    under_way = begun(turns, now)
    assert under_way == tickets[:4]
    for one in under_way[:2]:
        failed(turns, one, now, code=503)
    assert turns.get("a").hosts["h"].failures == 1
    read_again(turns, tickets[4:], now)
    assert turns.next(now) is None, "others are under way"
    turns.host_answered(under_way[3], now)
    turns.done(under_way[3], now)
    failed(turns, under_way[2], now, code=503)
    assert turns.get("a").hosts["h"].failures == 1
    read_again(turns, tickets[4:], now)
    got = turns.next(now)
    assert got is tickets[4]
    assert len(turns.host_answered(got, now).blamed) == 3


@pytest.mark.parametrize(("code", "retry_after", "wait"), [(429, 100, 100), (602, 0, 15), (503, 0, 15)])
def test_what_fails_beside_a_broken_section_and_is_not_of_it_is_waited_for(code, retry_after, wait):
    turns, tickets, now = section_breaks("h/shop", "h/news", "h/shop", "h/old", "h/news", at_once=4)
    first, second, third = begun(turns, now)
    failed(turns, first, now, code=503)
    failed(turns, second, now, code=code, retry_after=retry_after)
    turns.done(third, now)
    read_again(turns, tickets, now)
    assert (turns.next(now), turns.wake_at()) == (None, now + wait)


def test_a_host_that_dies_behind_a_broken_section_gets_no_request_more():
    turns, tickets, now = section_breaks(*["h/shop", "h/news"] * 20)
    died, asked, last = now, [], now + 3 * 3600
    while now < last:
        read_again(turns, tickets, now)
        got = turns.next(now) or turns.next(now)
        if got is None:
            now = turns.wake_at()
            continue
        asked.append(now - died)
        failed(turns, got, now, code=503)
    waits = [0, 15, 30, 60, 120, 240, 480, 960, 1920, 3600]
    each_waited_for = list(accumulate(waits))
    assert asked == [0, 0, *each_waited_for[2:]], "the early one stands for that after the first wait"


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c", "a/x", "a/y"]), st.booleans()), min_size=1, max_size=25
    ),
    st.sets(st.sampled_from("abc")),
)
def test_every_good_url_of_a_living_host_is_fetched_and_a_dead_one_is_asked_as_one_alone(urls, dead):
    turns, tickets = on_hosts(*[place for place, _ in urls])
    good = {n for n, (place, works) in enumerate(urls) if works and place[0] not in dead}
    now, waiting, moved, asked = NOW, list(tickets), [], {host: [] for host in "abc"}
    while now < NOW + 50_000:
        got = turns.next(now)
        if got is None:
            read_again(turns, waiting, now)
            turns.due()
            got = turns.next(now)
        if got is None:
            now = max(min((b.not_before for b in turns.get("a").failing().values()), default=now), now + 1)
            continue
        asked[got.host].append(now)
        if got.row.position in good:
            before = turns.host_answered(got, now)
            blamed = {url[0] for url in before.blamed} if before else set()
            moved += [one for one in waiting if one.row.urlkey in blamed]
            waiting = [one for one in waiting if one is not got and one.row.urlkey not in blamed]
            turns.done(got, now)
            read_again(turns, waiting, now)
        else:
            failed(turns, got, now, code=503)
    assert not good & {one.row.position for one in [*waiting, *moved]}
    for host in dead:
        steps = [later - earlier for earlier, later in pairwise(asked[host])]
        assert all(step >= min(60 * 2**n, 3600) for n, step in enumerate(steps))


# --- several fetches at a time, which a provider has permitted -------------------------------------


def permitted(at_once, *specs):
    """Make turns of which the first permits several fetches at a time; its host has answered once."""
    turns = turns_of(*specs)
    key = specs[0][0]
    turns.get(key).at_once = at_once
    first = turns.next(NOW)
    assert turns.next(NOW) is None or len(specs) > 1, "one until its host has answered"
    turns.host_answered(first, NOW)
    turns.done(first, NOW)
    return turns


def begun(turns, now=NOW):
    """Begin all that may be."""
    return list(iter(lambda: turns.next(now), None))


def test_so_many_fetches_run_as_are_permitted_begun_in_their_order():
    turns = permitted(3, ("a", 9))
    running = begun(turns)
    assert list(map(name, running)) == ["a1", "a2", "a3"]
    turns.done(running[1], NOW)
    assert list(map(name, begun(turns))) == ["a4"]


def test_each_fetch_waits_for_its_round_in_the_ring():
    turns = turns_of(("a", 9), ("b", 9))
    turns.get("a").at_once = 3
    first, second = turns.next(NOW), turns.next(NOW)
    for one in (first, second):
        turns.host_answered(one, NOW)
        turns.done(one, NOW)
    assert list(map(name, begun(turns))) == ["a1", "b1", "a2", "a3"]


def test_a_permission_that_is_withdrawn_holds_from_then_on():
    turns = permitted(3, ("a", 9))
    running = begun(turns)
    turns.get("a").at_once = 1
    for one in running:
        assert begun(turns) == []
        turns.done(one, NOW)
    assert list(map(name, begun(turns))) == ["a4"]


def test_what_fails_together_is_one_failure_of_the_host_and_earlier_answers_do_not_undo_it():
    turns = permitted(4, ("a", 9))
    first, second, third, fourth = begun(turns)
    assert turns.host_failed(first, NOW) == 0
    assert turns.host_failed(second, NOW + 1) == 1
    turns.host_answered(third, NOW + 2)
    for one in (first, second, third, fourth):
        turns.done(one, NOW + 2)
    assert turns.get("a").hosts[first.host] == Backoff(NOW + 60, 1, NOW, 60)
    turns.refill("a", [ticket("a", n) for n in range(5, 9)], NOW + 60, more=False)
    assert len(begun(turns, NOW + 60)) == 1, "one, to see whether it answers"


def test_a_site_that_asks_for_time_between_fetches_gets_one_at_a_time():
    turns = permitted(3, ("a", 9))
    running = begun(turns)
    turns.get("a").space(running[0], 10)
    turns.get("a").space(running[1], 0)
    now = NOW
    for one in running:
        now += 1
        turns.host_answered(one, now)
        turns.done(one, now)
        assert begun(turns, now) == []
    assert begun(turns, now + 9.9) == []
    (alone,) = begun(turns, now + 10)
    turns.host_answered(alone, now + 10)
    turns.done(alone, now + 10)
    assert len(begun(turns, now + 10)) == 1, "it did not ask again, but has asked before"


def test_a_ticket_that_is_put_back_is_not_handed_out_before_its_fetch_ends():
    turns = permitted(3, ("a", 9))
    running = begun(turns)
    turns.put_back(running[0], NOW)
    turns.done(running[1], NOW)
    assert begun(turns) == []
    turns.done(running[0], NOW)
    assert list(map(name, begun(turns))) == ["a1", "a4"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["next", "done", "back", "failed", "answered", "1", "5"]), st.integers(0, 9)
        )
    ),
    st.integers(1, 5),
)
def test_there_are_never_more_fetches_than_permitted_nor_one_twice(steps, at_once):
    turns, running, now = turns_of(("a", 60)), [], NOW
    turn = turns.get("a")
    turn.at_once = at_once
    for step, which in steps:
        now += 1000
        one = running[which % len(running)] if running else None
        if step == "next":
            got = turns.next(now)
            if got is not None:
                assert len(running) < turn.at_once
                running.append(got)
        elif step in {"1", "5"}:
            turn.at_once = int(step)
        elif one is not None:
            running.remove(one)
            if step == "failed":
                turns.host_failed(one, now)
            if step == "answered":
                turns.host_answered(one, now)
            if step == "back":
                turns.put_back(one, now)
            turns.done(one, now)
        assert list(turn.fetching.values()) == running
        assert len({one.row.urlkey for one in running}) == len(running)


def test_retry_after_is_honoured():
    turns = turns_of(("a", 2))
    got = turns.next(NOW)
    turns.host_failed(got, NOW, retry_after=1000)
    turns.done(got, NOW)
    assert (turns.next(NOW), turns.wake_at()) == (None, NOW + 1000)


def test_a_limit_that_is_lifted_takes_effect_at_once():
    turns = turns_of(("a", 3))
    turn = turns.get("a")
    turn.pace = Pace(1, NOW)
    got = turns.next(NOW)
    turn.pace.charge(NOW, 10**6)
    turns.done(got, NOW)
    assert turns.next(NOW) is None
    turn.pace.limit = 0
    turns.requeue(turn, NOW)
    assert run(turns, 3) == ["a1", "a2", None]


def test_a_limit_that_is_set_takes_effect_at_once():
    turns = turns_of(("a", 3))
    turn = turns.get("a")
    turn.pace = Pace(1000, NOW + 60)
    assert turns.next(NOW) is None
    assert turns.wake_at() == NOW + 60


def test_a_new_priority_takes_effect_at_once_and_gives_no_second_turn():
    turns = turns_of(("a", 2, 0), ("b", 2, 1))
    turn = turns.get("a")
    turn.priority = 2
    turns.requeue(turn, NOW)
    first = turns.next(NOW)
    assert [name(first), name(turns.next(NOW)), turns.next(NOW)] == ["a0", "b0", None]


def test_a_turn_that_was_dropped_hands_out_nothing_and_can_come_back():
    turns = turns_of(("a", 3), ("b", 1))
    turn = turns.get("a")
    got = turns.next(NOW)
    turns.drop("a")
    turns.drop("a")
    turns.done(got, NOW)
    turns.put_back(got, NOW)
    turns.requeue(turn, NOW)
    turns.refill("a", [ticket("a", 1)], NOW, more=False)
    assert run(turns, 2) == ["b0", None]
    assert ("a" in turns, "b" in turns, len(turns), turns.get("a")) == (False, True, 1, None)
    turns.add(turn)
    turns.refill("a", [ticket("a", 1)], NOW, more=False)
    assert run(turns, 2) == ["a1", None]


def test_a_turn_that_was_dropped_while_it_waited_is_not_run_from_its_old_place():
    turns = turns_of(("a", 2))
    turn = turns.get("a")
    turns.drop("a")
    turns.add(turn)
    turns.refill("a", [ticket("a", 5), ticket("a", 6)], NOW, more=False)
    first = turns.next(NOW)
    assert (name(first), turns.next(NOW)) == ("a5", None)


def test_a_turn_that_comes_back_does_not_wait_as_it_did():
    turns = Turns(Pace())
    turn = Turn("a", 1, closed_until=NOW + 7200)
    turns.add(turn)
    turns.refill("a", [ticket("a", 0)], NOW, more=False)
    assert turns.next(NOW) is None
    turns.drop("a")
    turn.closed_until = 0.0
    turns.add(turn)
    turns.refill("a", [ticket("a", 0)], NOW, more=False)
    assert name(turns.next(NOW)) == "a0"


def test_a_turn_that_is_looked_at_again_and_again_gets_no_larger_share():
    turns = turns_of(("a", 3), ("b", 3))
    for _ in range(3):
        turns.requeue(turns.get("a"), NOW)
    assert run(turns, 6) == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_verbs_about_unknown_turns_do_nothing():
    turns = Turns(Pace())
    stranger = ticket("x", 0)
    turns.done(stranger, NOW)
    turns.put_back(stranger, NOW)
    turns.host_answered(stranger, NOW)
    turns.refill("x", [stranger], NOW, more=True)
    assert (turns.host_failed(stranger, NOW), turns.next(NOW), turns.wake_at()) == (0.0, None, float("inf"))


steps = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "next",
                "next",
                "next",
                "done",
                "back",
                "wait",
                "drop",
                "requeue",
                "charge",
            ]
        ),
        st.sampled_from("abc"),
    ),
    max_size=80,
)


@given(st.sampled_from([0, CROWD]), steps)
def test_whatever_happens_the_order_holds_and_no_two_fetches_share_a_turn(crowd, events):
    turns = turns_of(("a", 30), ("b", 30), ("c", 30, 2), crowd=crowd)
    now, flying, last = NOW, {}, {}
    for event, key in events:
        turn = turns.get(key)
        if event == "next":
            got = turns.next(now)
            if got is None:
                continue
            assert got.turnkey not in flying
            assert turns.get(got.turnkey).opens_at(now) <= now
            assert got.row.position >= last.get(got.turnkey, 0)
            flying[got.turnkey] = got
            last[got.turnkey] = got.row.position + 1
        elif event in {"done", "back"} and key in flying:
            got = flying.pop(key)
            if event == "back":
                turns.put_back(got, now)
                last[key] -= 1
            turns.done(got, now)
        elif event == "wait":
            now += 100
        elif event == "drop" and turn:
            turns.drop(key)
            flying.pop(key, None)
        elif turn and event == "charge":
            turn.pace.limit = 1000
            turn.pace.charge(now, 50_000)
        elif turn and event == "requeue":
            turns.requeue(turn, now)
    for got in list(flying.values()):
        turns.done(got, now)
    now += 10**6
    for turn in turns:
        turns.requeue(turn, now)
        rest = 30 - last.get(turn.key, 0)
        assert len(turn.window) == rest


@pytest.mark.parametrize("priority", [0, 1, 2])
def test_every_priority_is_served(priority):
    assert run(turns_of(("a", 1, priority)), 2) == ["a0", None]


@given(st.lists(st.lists(st.integers()), max_size=5))
def test_interleaving_keeps_every_order_and_loses_nothing(queues):
    mixed = interleave([[(number, one) for one in queue] for number, queue in enumerate(queues)])
    for number, queue in enumerate(queues):
        assert [one for owner, one in mixed if owner == number] == queue
    assert len(mixed) == sum(map(len, queues))


def test_interleaving_goes_round():
    assert "".join(interleave(["abc", "", "x", "12"])) == "ax1b2c"


def test_where_no_worker_is_counted_yet_one_takes_all():
    assert fair_share(5, 0) == 5


def test_a_turn_without_urls_whose_moment_is_over_is_to_be_read():
    turns = turns_of(("a", 0))
    turns.refill("a", [], NOW, more=False, look_at=NOW - 1)
    assert turns.next(NOW) is None
    assert turns.due() == ["a"]


@given(st.integers(0, 10_000), st.integers(1, 50))
def test_fair_shares_leave_no_turn_over(turns, workers):
    share = fair_share(turns, workers)
    assert share * workers >= turns
    assert (share - 1) * workers < turns or not turns


def test_turns_with_a_limit_do_not_wait_for_the_common_one_while_all_of_them_fit_into_it():
    turns = turns_of(("free", 2), ("a", 2), ("b", 2), everything=1000)
    for key in "ab":
        turns.get(key).pace = Pace(400)
        turns.requeue(turns.get(key), NOW)
    turns.weigh()
    turns.everything.charge(NOW, 10_000)
    assert run(turns, 5) == ["a0", "b0", "a1", "b1", None]
    assert turns.pause(turns.get("a"), NOW) == 0
    assert turns.pause(turns.get("free"), NOW) >= 9
    turns.get("a").pace.limit = 700
    turns.weigh()
    assert turns.pause(turns.get("a"), NOW) >= 9


def test_limits_that_do_not_fit_together_all_wait_for_the_common_one():
    turns = turns_of(("a", 1), ("b", 1), everything=1000)
    for key in "ab":
        turns.get(key).pace = Pace(600)
        turns.requeue(turns.get(key), NOW)
    turns.weigh()
    turns.everything.charge(NOW, 10_000)
    assert run(turns, 1) == [None]


def test_bodies_that_use_the_common_limit_up_do_not_keep_a_fetch_from_its_place_in_line():
    turns = turns_of(("a", 1), ("b", 1), everything=1000)
    turns.everything.charge(NOW, 2000)
    assert turns.next(NOW) is None
    begins = turns.wake_at()
    turns.everything.charge(begins, 5000)
    assert name(turns.next(begins)) == "a0"
    assert turns.next(begins) is None
    assert turns.wake_at() > begins + 4


def test_a_wait_for_the_common_limit_that_has_lost_its_reason_wakes_nobody():
    turns = turns_of(everything=1000)
    turns.add(Turn("a", 1, pace=Pace(2000)))
    turns.refill("a", [ticket("a", 0)], NOW, more=False)
    turns.weigh()
    turns.everything.charge(NOW, 5000)
    assert turns.next(NOW) is None
    assert turns.wake_at() == NOW + 5 - CREDIT - AHEAD
    turns.everything.limit = 3000
    turns.weigh()
    assert run(turns, 2) == ["a0", None]
    assert turns.wake_at() == NEVER


def test_a_turn_whose_window_is_read_again_keeps_its_place_in_the_ring():
    turns = turns_of(("a", 9), ("b", 9), ("c", 9))
    names = []
    for _ in range(4):
        turns.refill("a", [ticket("a", number) for number in range(9)], NOW, more=False)
        names += run(turns, 1)
    assert names == ["a0", "b0", "c0", "a0"]


def test_a_turn_that_is_read_again_and_empty_leaves_the_ring():
    turns = turns_of(("a", 1), ("b", 1))
    turns.refill("a", [], NOW, more=False)
    turns.refill("a", [], NOW, more=False, look_at=NOW + 5)
    assert run(turns, 2) == ["b0", None]
    assert turns.wake_at() == NOW + 5


def test_a_turn_that_changes_its_priority_or_its_limit_leaves_its_old_queue():
    turns = turns_of(("a", 9), ("b", 9))
    turn = turns.get("b")
    turn.priority = 2
    turns.requeue(turn, NOW)
    assert run(turns, 2) == ["b0", "b1"]
    turn.pace.limit, turn.priority = 1000, 0
    turns.requeue(turn, NOW)
    assert run(turns, 4) == ["a0", "b2", "a1", "b3"]


def test_turns_that_come_and_go_leave_nothing_behind():
    turns = Turns(Pace())
    for number in range(10_000):
        turns.add(Turn("a", number))
        turns.refill("a", [], NOW, more=False, look_at=NOW + 8 * 3600)
        turns.drop("a")
    assert len(turns._delayed) <= STALE + 2


@pytest.mark.parametrize("step", [3600, -3600])
def test_what_waits_keeps_its_wait_when_the_clock_is_moved(step):
    turns = turns_of(("a", 0), ("b", 1))
    turns.look_by("a", NOW + 10, NOW)
    assert run(turns, 2) == ["b0", None]
    turns.moved(step, NOW + step)
    assert turns.wake_at() == NOW + 10 + step
    assert turns.next(NOW + 9 + step) is None
    assert turns.due() == []
    assert turns.next(NOW + 10 + step) is None
    assert turns.due() == ["a"]


def test_a_window_is_read_again_no_later_than_was_asked_for():
    turns = turns_of(("a", 0))
    turns.look_by("a", NOW + 5, NOW)
    turns.look_by("a", NOW + 9, NOW)
    assert turns.get("a").look_at == NOW + 5
    turns.look_by("unknown", NOW + 1, NOW)
    assert turns.wake_at() == NOW + 5


def test_the_store_is_asked_before_the_first_fetch_from_the_moment_at_which_an_earlier_url_is_due():
    turns = turns_of(("a", 0))
    turns.refill("a", [ticket("a", 0), ticket("a", 1)], NOW, more=False, look_at=NOW + 5)
    assert run(turns, 1, NOW + 4.9) == ["a0"]
    assert turns.next(NOW + 5) is None
    assert turns.due() == ["a"]
    assert turns.get("a").look_at == NEVER, "once is enough"


def test_a_turn_that_was_dropped_holds_no_tickets_any_more():
    turns = turns_of(("a", 2))
    turn = turns.get("a")
    turns.drop("a")
    assert (len(turn.window), turn.fetching, turn.waiting) == (0, {}, 0)


def test_of_some_turns_those_are_given_that_are_held():
    turns = turns_of(("a", 1), ("b", 1))
    assert turns.those(["b", "unknown"]) == [turns.get("b")]


def test_a_window_that_is_read_on_goes_on_behind_what_it_had():
    turns = turns_of(("a", 1))
    turns.extend("a", [ticket("a", 1), ticket("a", 2)], NOW, more=True)
    turns.extend("unknown", [ticket("unknown", 1)], NOW, more=True)
    assert turns.get("a").more
    assert run(turns, 4) == ["a0", "a1", "a2", None]


@pytest.mark.parametrize("step", [3600, -3600])
def test_a_wait_for_bandwidth_and_for_a_site_keeps_its_length_when_the_clock_is_moved(step):
    turns = turns_of(("limited", 2), ("spaced", 2), everything=1000)
    limited, spaced = turns.get("limited"), turns.get("spaced")
    limited.pace.change(NOW, 100)
    limited.pace.charge(NOW, 10_000)
    turns.everything.charge(NOW, 100_000)
    spaced.spaced_until = NOW + 7
    before = limited.pace.pause(NOW), turns.everything.pause(NOW)
    assert before[0] > 0
    assert before[1] > 0
    assert turns.next(NOW) is None
    turns.moved(step, NOW + step)
    assert (limited.pace.pause(NOW + step), turns.everything.pause(NOW + step)) == before
    assert spaced.spaced_until == NOW + 7 + step
    assert turns._start_at == NOW + before[1] + step


def test_a_ticket_that_is_put_back_keeps_the_place_of_its_turn_in_the_ring():
    turns = turns_of(("a", 2), ("b", 2), ("c", 2))
    first = turns.next(NOW)
    turns.done(first, NOW)
    second = turns.next(NOW)
    turns.done(second, NOW)
    turns.put_back(first, NOW)
    assert run(turns, 3) == ["c0", "a0", "b1"]


def test_a_session_goes_on_in_the_queue_of_its_priority():
    turns = crowded(("a", 2, 1), ("b", 2, 1))
    assert run(turns, 4) == ["a0", "a1", "b0", "b1"]


def test_a_session_begins_where_just_as_many_others_are_ready_as_make_a_crowd():
    assert run(turns_of(("a", 2), ("b", 2), crowd=1), 4) == ["a0", "a1", "b0", "b1"]
    assert run(turns_of(("a", 2), ("b", 2), crowd=2), 4) == ["a0", "b0", "a1", "b1"]


def test_a_wait_that_has_ended_early_costs_nobody_its_place():
    turns = turns_of(("a", 0))
    turns.look_by("a", NOW + 5, NOW)
    turns.refill("a", [ticket("a", 0)], NOW, more=False)
    turns.add(Turn("b", 1))
    turns.refill("b", [ticket("b", 0)], NOW, more=False)
    assert run(turns, 2, NOW + 6) == ["a0", "b0"]


def test_the_next_wait_is_the_shortest_one_however_many_have_lost_their_reason():
    turns = turns_of(*((str(number), 0) for number in range(20)))
    for moment in range(2000 + STALE, 0, -1):
        turns.look_by(str(moment * 7 % 20), NOW + moment // 2 + moment * 13 % 11, NOW)
        assert turns.wake_at() <= min(turn.look_at for turn in turns)
    for at in sorted({turn.look_at for turn in turns}):
        turns.next(at - 0.5)
        assert turns.wake_at() <= at
        turns.next(at)
    assert {turn.look_at for turn in turns} == {NEVER}
