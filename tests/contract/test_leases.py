"""Leases on turn keys and tickets in order (design section 5), on every store."""

import threading
from dataclasses import replace
from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from little_lcc import PID, START, LittleLcc, key, removal, update, url

from lcc_scrapy.db.records import LEASE, LongFetch
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.domain.timeslots import parse_mask
from lcc_scrapy.domain.turn import NEVER
from lcc_scrapy.providers import registration
from lcc_scrapy.providers.groups import pause_everything
from lcc_scrapy.queue.leases import Granted, Member, reap, tell_of_fetches
from lcc_scrapy.queue.window_rows import MASKS_PER_LOOK

NIGHT = parse_mask("20-6")
DAY = parse_mask("6-20")


def keys_of(granted):
    return [one.lease.turnkey for one in granted]


def names_of(tickets):
    return [ticket.row.curl.rpartition("/")[2] for ticket in tickets]


# --- leases -----------------------------------------------------------------------------------------


def test_turns_with_waiting_urls_are_leased_with_their_members(lcc):
    lcc.add(8)
    lcc.push(update("a"))
    granted = lcc.grant()
    assert keys_of(granted) == ["7"]
    assert [member.provider for member in granted[0].members] == [lcc.provider()]
    assert [str(root) for root in granted[0].members[0].roots] == ["http://www.example.org/"]
    assert lcc.grant() == []


@pytest.mark.parametrize("state", ["paused", "disabled", "pending"])
def test_a_provider_that_is_not_active_gets_no_tickets(lcc, state):
    lcc.add(8, state=state)
    lcc.push(update("a"), pid=8)
    window = lcc.window(8)
    assert (window.tickets, window.more, window.look_at) == ((), False, NEVER)


def test_two_owners_never_hold_one_turn_key(lcc):
    lcc.push(update("a"))
    first = lcc.look("one", ttl=60).granted[0].lease
    assert (first.owner, first.turnkey) == ("one", "7")
    lcc.now += 59
    assert lcc.look("two", ttl=60).granted == []
    lcc.now += 1
    assert lcc.look("two", ttl=60).granted[0].lease.token > first.token
    news = lcc.look("one", held=1)
    assert (news.lost, news.granted) == (True, [])


def test_looking_again_keeps_ones_leases_and_nobody_elses(lcc):
    lcc.push(update("a"))
    lcc.look("one", ttl=60)
    lcc.look("two", ttl=1000)
    lcc.now += 59
    assert not lcc.look("one", held=1, ttl=60).lost
    lcc.now += 59
    assert lcc.look("two", ttl=1000).granted == []
    lcc.now += 1
    assert keys_of(lcc.look("two", ttl=1000).granted) == ["7"]


def test_a_dead_owner_is_taken_over_at_once_with_a_higher_token(lcc):
    lcc.push(update("a"))
    first = lcc.look("one").granted[0].lease
    again = lcc.look("two", dead=["one"]).granted[0].lease
    assert (again.owner, again.token > first.token) == ("two", True)


def test_a_restarted_worker_takes_its_old_turns_over_with_a_higher_token(lcc):
    lcc.push(update("a"))
    first = lcc.look("one", token=1).granted[0].lease
    news = lcc.look("one", token=2)
    assert news.lost
    assert news.granted[0].lease.token > first.token


def test_a_worker_that_lost_its_turns_may_take_as_many_anew(lcc):
    lcc.push(update("a"))
    lcc.look("one", ttl=60)
    lcc.now += 60
    lcc.look("two", limit=0)
    news = lcc.look("one", held=1)
    assert (news.lost, keys_of(news.granted)) == (True, ["7"])


def test_a_lease_of_which_its_worker_never_heard_is_given_out_anew(lcc):
    """The commit went through, and its answer was lost with the connection."""
    lcc.push(update("a"))
    first = lcc.look("one").granted[0].lease
    assert lcc.look("one", held=1, known={"7": first.token}).granted == []
    again = lcc.look("one", known={}).granted[0].lease
    assert again.token > first.token
    assert lcc.look("one", known={"7": first.token}).granted[0].lease.token > again.token


def test_signs_of_life_count_more_than_the_row_and_the_word_of_the_dead_most(lcc):
    lcc.push(update("a"))
    lcc.look("one", ttl=60)
    lcc.now += 60
    assert lcc.look("two", lives=lambda _: True).granted == []
    assert not lcc.look("one", held=1, lives=lambda _: False).lost, "it speaks for itself"
    assert keys_of(lcc.look("two", lives=lambda worker: worker.owner != "one").granted) == ["7"]
    assert keys_of(lcc.look("three", dead=["two"], lives=lambda _: True).granted) == ["7"]


def test_a_worker_never_takes_itself_for_dead(lcc):
    lcc.push(update("a"))
    lcc.look("one")
    with lcc.store.begin() as tx:
        alive = reap(tx, "one", lcc.now + 1000, ["one"])
        assert [worker.owner for worker in alive] == ["one"]
        assert tx.leased_turns("one").keys() == {"7"}


def test_a_new_worker_looks_at_turns_that_were_put_off(lcc):
    """Its time zone may be another one, in which it is the hour of some URL."""
    lcc.push(update("a"))
    first = lcc.look("one").granted[0]
    lcc.rest(first, look_at=lcc.now + 100.0, arrivals=lcc.window().arrivals)
    assert lcc.look("one").granted == []
    assert keys_of(lcc.look("two").granted) == ["7"]


def test_a_turn_given_back_is_free_and_the_next_token_is_higher(lcc):
    lcc.push(update("a"))
    first = lcc.grant("one")[0]
    lcc.rest(replace(first, lease=replace(first.lease, owner="two")))
    assert lcc.grant("two") == []
    lcc.rest(first)
    assert lcc.grant("two")[0].lease.token > first.lease.token


def test_a_turn_given_back_for_later_is_free_only_then(lcc):
    lcc.push(update("a"))
    first = lcc.grant("one")[0]
    arrivals = lcc.window().arrivals
    lcc.rest(first, look_at=lcc.now + 100.0, arrivals=arrivals)
    assert lcc.grant("two") == []
    lcc.now += 100
    assert keys_of(lcc.grant("two")) == ["7"]


def test_a_look_takes_no_more_than_asked_and_only_whom_it_is_asked_for(lcc):
    for pid in (8, 9, 10):
        lcc.add(pid)
    for pid in (7, 8, 9, 10):
        lcc.push(update("a"), pid=pid)
    assert keys_of(lcc.grant("one", only=9)) == ["9"]
    assert len(lcc.grant("two", limit=2)) == 2
    assert len(lcc.grant("two")) == 1


def test_a_worker_of_one_provider_has_one_turn_more_and_of_a_group_only_this_member(lcc):
    lcc.change(turngroup="farm")
    lcc.add(8, turngroup="farm")
    lcc.push(update("a"))
    assert lcc.grant(only=99) == []
    (granted,) = lcc.look("one", held=3, only=8).granted
    assert [member.provider.pid for member in granted.members] == [8]


def test_who_finds_nothing_free_takes_no_token(lcc):
    """All workers wait for each other where tokens are taken."""
    lcc.grant()
    lcc.push(update("a"))
    lcc.grant(limit=0)
    with lcc.store.read() as tx:
        assert tx.peek(LEASE) == 0


def test_turns_of_higher_priority_are_leased_first(lcc):
    for pid, priority in ((8, 1), (9, 2)):
        lcc.add(pid, priority=priority)
    for pid in (7, 8, 9):
        lcc.push(update("a"), pid=pid)
    assert [keys_of(lcc.grant("one", limit=1)) for _ in range(3)] == [["9"], ["8"], ["7"]]


def test_workers_share_the_turns_evenly(lcc):
    for pid in range(100, 110):
        lcc.add(pid)
        lcc.push(update("a"), pid=pid)
    assert len(lcc.look("one").granted) == 10
    assert lcc.look("two").granted == []
    news = lcc.look("one", held=10)
    assert (news.share, news.surplus) == (5, 5)
    for granted in lcc_held(lcc, "one")[:5]:
        lcc.rest(granted)
    assert len(lcc.look("two").granted) == 5
    assert lcc.look("one", held=5).surplus == 0
    assert lcc.look("three").granted == []
    assert lcc.look("one", held=5).surplus == 1


def test_a_worker_that_has_its_share_takes_nothing_more(lcc):
    lcc.look("two", limit=0)
    for pid in range(100, 110):
        lcc.add(pid)
        lcc.push(update("a"), pid=pid)
    assert len(lcc.look("one").granted) == 5
    assert len(lcc.look("one", held=4).granted) == 1
    assert lcc.look("one", held=5).granted == lcc.look("one", held=6).granted == []


def lcc_held(lcc, owner):
    with lcc.store.read() as tx:
        return [Granted(tx.turn(turnkey), ()) for turnkey in tx.leased_turns(owner)]


def test_workers_share_one_bandwidth(lcc):
    assert lcc.look("one", bandwidth=1000).bandwidth == 1000
    assert lcc.look("two", bandwidth=1000, rate=500, hungry=True).bandwidth > 900
    one = lcc.look("one", bandwidth=1000, rate=990, hungry=True).bandwidth
    assert (one, lcc.look("two", bandwidth=1000, rate=500, hungry=True).bandwidth) == (500, 500)
    assert lcc.look("one").bandwidth == 0


def test_a_worker_hears_of_changed_members_once(lcc):
    lcc.add(8)
    news = lcc.look("one", seen=-1)
    assert (news.changed, news.existing) == ([], None)
    registration.change(lcc.store, 8, {"priority": 2})
    news = lcc.look("one", seen=news.revision)
    assert [member.provider.priority for member in news.changed] == [2]
    assert lcc.look("one", seen=news.revision).changed == []


def test_a_worker_hears_the_very_first_change(lcc):
    before = lcc.look("one", seen=-1).revision
    registration.change(lcc.store, 7, {"priority": 2})
    assert [member.provider.pid for member in lcc.look("one", seen=before).changed] == [7]


def test_a_worker_hears_whether_the_operator_lets_anybody_fetch(lcc):
    assert not lcc.look("one").paused
    pause_everything(lcc.store, lcc.now)
    assert lcc.look("one").paused


def test_a_worker_hears_which_members_are_left_when_one_was_removed(lcc):
    lcc.change(turngroup="farm")
    lcc.add(8, turngroup="farm")
    lcc.push(update("a"))
    news = lcc.look("one", seen=-1)
    registration.remove(lcc.store, 8, lcc.now, lcc.policy)
    news = lcc.look("one", held=1, seen=news.revision)
    assert news.existing == {7}
    assert lcc.look("one", held=1, seen=news.revision).existing is None


def test_a_change_of_a_provider_wakes_its_turn(lcc):
    lcc.push(update("a"))
    first = lcc.grant("one")[0]
    lcc.rest(first, look_at=lcc.now + 10_000.0, arrivals=lcc.window().arrivals)
    assert lcc.grant("two") == []
    registration.change(lcc.store, 7, {"priority": 2})
    assert [one.lease.priority for one in lcc.grant("two")] == [2]


def test_a_group_has_one_turn_whose_members_alternate(lcc):
    lcc.change(turngroup="farm")
    lcc.add(8, turngroup="farm")
    lcc.add(9)
    for pid in (7, 8, 9):
        lcc.push(*map(update, "abc"), pid=pid)
    granted = lcc.grant()
    assert sorted(keys_of(granted)) == ["9", "farm"]
    assert lcc.grant("two") == []
    tickets = lcc.tickets(7)
    assert [(ticket.row.pid, ticket.row.position) for ticket in tickets] == [
        (7, 1), (8, 1), (7, 2), (8, 2), (7, 3), (8, 3),
    ]  # fmt: skip
    assert {ticket.turnkey for ticket in tickets} == {"farm"}


@pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)
def test_workers_that_look_at_the_same_moment_share_no_turn(lcc):
    pids = range(100, 120)
    for pid in pids:
        lcc.add(pid)
        lcc.push(update("a"), pid=pid)
    granted = {}
    together = threading.Barrier(4)

    def look(owner):
        mine = LittleLcc(lcc.store, now=lcc.now, owner=owner)
        together.wait(300)
        for _ in range(20):
            try:
                granted[owner] = [one.lease for one in mine.grant()]
                return
            except StoreUnavailable:
                continue

    threads = [threading.Thread(target=look, args=(f"worker-{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    taken = [lease.turnkey for leases in granted.values() for lease in leases]
    assert sorted(taken) == sorted(map(str, pids))
    with lcc.store.read() as tx:
        for owner, leases in granted.items():
            assert tx.leased_turns(owner) == {lease.turnkey: lease.token for lease in leases}


def test_fetches_that_take_long_are_told_of_until_they_have_ended(lcc):
    fetch = LongFetch("7", "one", 1, key("a"), lcc.now, 0, 10, 0)
    told = []
    for long, ended in (([fetch], ()), ([], ["8"]), ([], ["7"])):
        with lcc.store.begin() as tx:
            tell_of_fetches(tx, "one", long, ended)
            told.append(tx.long_fetch("7"))
    assert told == [fetch, fetch, None]


# --- members ----------------------------------------------------------------------------------------

EIGHT = START - START % 86_400 + 8 * 3600


@pytest.mark.parametrize(
    ("provider", "mask", "zone", "permitted"),
    [
        ({}, "", UTC, True),
        ({}, DAY, UTC, True),
        ({}, NIGHT, UTC, False),
        ({"timeofday": NIGHT}, "", UTC, False),
        ({"timeofday": NIGHT}, "", ZoneInfo("Pacific/Auckland"), True),
        ({"timezone": "Pacific/Auckland"}, DAY, UTC, False),
        ({"state": "paused"}, "", UTC, False),
    ],
)
def test_a_url_may_be_fetched_in_its_hours_and_in_those_of_its_active_provider(
    provider, mask, zone, permitted
):
    member = Member(Provider(7, "", **provider), ())
    assert member.permits(mask, EIGHT, zone) is permitted


@pytest.mark.parametrize("allowed", [False, True])
def test_the_hosts_of_its_roots_may_have_private_addresses_if_the_provider_is_allowed_that(allowed):
    member = Member(Provider(7, "", allowprivate=allowed), (Root.parse("http://10.0.0.1:8080/a/"),))
    assert member.private_hosts == ({"10.0.0.1:8080"} if allowed else frozenset())


# --- tickets ----------------------------------------------------------------------------------------


def test_tickets_come_by_set_and_position(lcc):
    lcc.push(update("z"), update("m"))
    lcc.push(update("a"), update("m"), update("b"))
    assert names_of(lcc.tickets()) == ["z", "m", "a", "b"]


def test_a_window_says_whether_there_is_more(lcc):
    lcc.push(*map(update, "abcd"))
    window = lcc.window(limit=3)
    assert (names_of(window.tickets), window.more) == (["a", "b", "c"], True)
    assert lcc.window(limit=4).more, "no row is read only to know"
    window = lcc.window(limit=5)
    assert (names_of(window.tickets), window.more, window.look_at) == (["a", "b", "c", "d"], False, NEVER)


def test_keys_that_are_out_are_not_handed_out_again(lcc):
    lcc.push(*map(update, "abcdef"))
    window = lcc.window(limit=2, out=[key("a"), key("b"), key("x")])
    assert (names_of(window.tickets), window.more) == (["c", "d"], True)
    assert names_of(lcc.window(limit=4, out=[key("a"), key("b")]).tickets) == ["c", "d", "e", "f"]


def test_urls_of_closed_hours_are_not_handed_out(lcc):
    lcc.push(update("a", timeofday=NIGHT), update("b"), update("c", timeofday=DAY))
    lcc.push(update("d", timeofday=NIGHT), update("e"))
    with lcc.store.read() as tx:
        assert tx.masks([PID]) == {PID: sorted([NIGHT, DAY, ""])}
    lcc.now = START - START % 86_400 + 12 * 3600
    window = lcc.window()
    assert (names_of(window.tickets), window.look_at) == (["b", "c", "e"], lcc.now + 8 * 3600)
    assert names_of(lcc.tickets(zone=ZoneInfo("Pacific/Auckland"))) == ["a", "b", "d", "e"]


def test_the_providers_own_hours_count_too(lcc):
    lcc.change(timeofday=DAY, timezone="Pacific/Auckland")
    lcc.push(update("a"), update("b", timeofday=NIGHT))
    lcc.now = START - START % 86_400 + 12 * 3600
    window = lcc.window()
    assert (names_of(window.tickets), window.look_at) == ([], lcc.now + 5 * 3600)
    lcc.now += 5 * 3600
    assert names_of(lcc.tickets()) == ["a"]


def test_new_hours_move_a_url_to_another_part_of_its_set(lcc):
    lcc.push(update("a"), update("b"))
    lcc.push(update("a", timeofday=NIGHT))
    with lcc.store.read() as tx:
        parts = {(part.psetid, part.timeofday): (part.nurls, part.starttimeslot) for part in tx.parts(PID)}
    assert parts == {(1, ""): (1, -1), (1, NIGHT): (1, 0)}


def test_the_copy_of_a_providers_priority_stands_in_its_set_parts(lcc):
    lcc.change(priority=2)
    lcc.push(update("a"))
    with lcc.store.read() as tx:
        assert [part.pri for part in tx.parts(PID)] == [2]


def test_the_first_row_set_aside_says_when_to_look_again(lcc):
    also = "1" * 168
    lcc.push(update("a"), update("b", timeofday=also), update("c"))
    a, b, _ = lcc.tickets()
    lcc.settle(lcc.failed(b, 500))
    lcc.now += 10
    lcc.settle(lcc.failed(a, 500))
    window = lcc.window()
    assert (names_of(window.tickets), window.look_at) == (["c"], START + 60)
    lcc.now = START + 60
    window = lcc.window()
    assert (names_of(window.tickets), window.look_at) == (["c", "b"], START + 70)


def test_rows_that_say_nothing_get_tickets_too(lcc):
    lcc.push(update("a"), update("b"))
    lcc.push(removal("a"))
    assert [(t.row.operation, t.row.curl) for t in lcc.tickets()] == [
        ("nothing", url("a")),
        ("fetch", url("b")),
    ]


def test_a_ticket_carries_its_lease_and_the_row_as_it_is(lcc):
    lcc.push(update("a"))
    ticket = lcc.ticket("a")
    assert (ticket.turnkey, ticket.token) == ("7", lcc.granted["7"].lease.token)
    assert ticket.row == lcc.queued("a")


@pytest.mark.parametrize(("etag", "asked"), [('"1"', '"1"'), ('W/"1"', ""), ("1", ""), ("", "")])
def test_a_fetch_is_conditional_when_a_copy_exists_by_what_stands_for_its_bytes(lcc, etag, asked):
    lcc.push(update("a"))
    lcc.fetch("a", b"body", etag=etag, last_modified="Sun, 06 Nov 1994 08:49:37 GMT", final_url=url("moved"))
    lcc.push(update("a"))
    ticket = lcc.ticket("a")
    assert (ticket.etag, ticket.last_modified) == (asked, "")
    assert ticket.validated == url("moved"), "the validators are of where it lies"


@pytest.mark.parametrize("how", ["md5", "len", "furl"])
def test_a_fetch_is_not_conditional_when_the_declaration_says_it_changed(lcc, how):
    lcc.push(update("a"))
    lcc.fetch("a", b"body")
    again = update("a", b"bodies")
    if how == "furl":
        again = replace(update("a"), furl=url("elsewhere"))
    elif how == "md5":
        again = replace(again, declared=replace(again.declared, length=None))
    else:
        again = replace(again, declared=replace(again.declared, md5=None))
    lcc.push(again)
    assert (lcc.ticket("a").etag, lcc.ticket("a").last_modified) == ("", "")


def test_arrivals_rise_with_whatever_comes_into_the_queue_and_with_nothing_else(lcc):
    def arrivals():
        with lcc.store.read() as tx:
            return tx.arrivals(["7", "8"])

    assert arrivals() == {}
    lcc.push(update("a"), update("b"))
    before = arrivals()
    lcc.push(update("a"))
    assert arrivals()["7"] > before["7"]
    before = arrivals()
    lcc.settle(lcc.failed(lcc.ticket("a"), 500))
    lcc.settle(lcc.served(lcc.ticket("b")))
    assert arrivals() == before
    lcc.push(removal("a"))
    assert arrivals()["7"] > before["7"]
    lcc.push(update("c", b"c"))
    lcc.fetch("c", b"c")
    before = arrivals()
    lcc.push(update("c", b"c"))
    assert arrivals() == before, "it is there already"


def test_a_worker_hears_what_arrived_in_turns_that_it_had_drained(lcc):
    lcc.push(update("a"))
    lcc.look("one")
    drained = {"7": lcc.window().arrivals}
    assert lcc.look("one", held=1, drained=drained).refilled == []
    lcc.push(update("b"))
    assert lcc.look("one", held=1, drained=drained).refilled == ["7"]


def test_many_masks_that_are_closed_do_not_hide_one_that_is_open(lcc):
    hour = 4 * 24 + 8  # START is a Friday, 8 o'clock
    later = [f"{number << (167 - hour - 9):0168b}" for number in range(1, MASKS_PER_LOOK + 1)]
    lcc.push(*[update(f"later{number}", timeofday=mask) for number, mask in enumerate(later)])
    lcc.push(update("now", timeofday=f"{1 << (167 - hour):0168b}"))
    assert names_of(lcc.tickets()) == ["now"]


@pytest.mark.parametrize("other", [{"pid": 9}, {"places": 0}])
def test_a_worker_of_one_provider_or_without_fetches_takes_no_share_of_the_turns(lcc, other):
    for pid in range(8, 18):
        lcc.add(pid)
        lcc.push(update("a"), pid=pid)
    lcc.look("other", limit=0, **other)
    assert len(lcc.look("one").granted) == 10
