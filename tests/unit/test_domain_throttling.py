"""Failed logins take tokens; known addresses have their own; who waits is served in turns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.fair_queue import FairQueue
from lcc_scrapy.domain.throttling import (
    ADDRESSES_OF_A_PROVIDER,
    Buckets,
    Caller,
    KnownAddresses,
    LoginThrottle,
    Rate,
)

STRANGER = Caller("192.0.2.9", 7)
HOME = Caller("192.0.2.1", 7, known=True)


def test_a_bucket_gives_its_count_at_once_and_then_one_per_interval():
    buckets = Buckets(Rate(3, 60))
    for _ in range(3):
        assert buckets.wait("a", 100.0) == 0
        buckets.take("a", 100.0)
    assert buckets.wait("a", 100.0) == pytest.approx(20)
    assert buckets.wait("a", 115.0) == pytest.approx(5)
    assert buckets.wait("a", 120.0) == 0
    buckets.take("a", 120.0)
    assert buckets.wait("a", 120.0) == pytest.approx(20)
    assert buckets.wait("b", 120.0) == 0


def test_a_token_put_back_is_there_again():
    buckets = Buckets(Rate(1, 60))
    buckets.take("a", 0)
    buckets.give_back("a")
    buckets.give_back("never taken")
    assert buckets.wait("a", 0) == 0


@given(
    st.integers(1, 20),
    st.floats(0.5, 1000),
    st.lists(st.floats(0, 50), min_size=1, max_size=200),
)
def test_no_more_than_the_rate_gets_through_in_any_time(count, seconds, pauses):
    rate, now, taken = Rate(count, seconds), 0.0, []
    buckets = Buckets(rate)
    for pause in pauses:
        now += pause
        if not buckets.wait("a", now):
            buckets.take("a", now)
            taken.append(now)
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            most = count + (taken[last] - taken[first]) / rate.interval
            assert last - first + 1 <= most + 1e-3


def test_as_many_buckets_are_kept_as_is_said_and_the_oldest_counts_as_full():
    buckets = Buckets(Rate(1, 1000), most=3)
    for key in "abc":
        buckets.take(key, 0)
    buckets.take("a", 1)
    buckets.take("d", 2)
    assert len(buckets) == 3
    assert buckets.wait("b", 2) == 0
    assert all(buckets.wait(key, 2) for key in "acd")


def test_addresses_are_remembered_of_so_many_providers_and_so_many_of_each():
    known = KnownAddresses(providers=2)
    for number in range(ADDRESSES_OF_A_PROVIDER + 1):
        known.note(7, f"192.0.2.{number}")
    assert not known.has(7, "192.0.2.0")
    assert known.has(7, f"192.0.2.{ADDRESSES_OF_A_PROVIDER}")
    assert not known.has(8, "192.0.2.1")
    known.note(8, "192.0.2.1")
    known.note(9, "192.0.2.1")
    assert not known.has(7, "192.0.2.1")
    assert known.has(9, "192.0.2.1")
    assert not known.has(None, "192.0.2.1")


def test_guesses_from_a_thousand_addresses_take_nothing_from_the_provider_at_home():
    throttle = LoginThrottle(Rate(30, 60), Rate(10, 60))
    looked_at = 0
    for number in range(1000):
        guess = Caller(f"198.51.{number // 250}.{number % 250}", 7)
        if not throttle.wait(guess, 0):
            throttle.take(guess, 0)
            looked_at += 1
    assert looked_at == 10
    assert throttle.wait(STRANGER, 0) > 0
    assert throttle.wait(HOME, 0) == 0


def test_one_address_that_tries_every_id_is_stopped_and_nobody_else_is():
    throttle = LoginThrottle(Rate(30, 60), Rate(10, 60))
    looked_at = 0
    for pid in range(1000):
        guess = Caller("198.51.100.1", pid)
        if not throttle.wait(guess, 0):
            throttle.take(guess, 0)
            looked_at += 1
    assert looked_at == 30
    assert throttle.address_wait(Caller("198.51.100.1", 7), 0) > 0
    assert throttle.address_wait(Caller("198.51.100.1", 7, known=True), 0) == 0
    assert throttle.wait(Caller("198.51.100.2", 7), 0) == 0


def test_a_provider_may_fail_at_home_too_often_as_well():
    throttle = LoginThrottle(Rate(30, 60), Rate(10, 60))
    for _ in range(10):
        throttle.take(HOME, 0)
    assert throttle.wait(HOME, 0) == pytest.approx(6)
    throttle.give_back(HOME)
    assert throttle.wait(HOME, 0) == 0


def test_whoever_asks_for_an_id_under_attack_pays_with_its_address():
    throttle = LoginThrottle(Rate(2, 60), Rate(1, 60))
    throttle.charge(STRANGER, 0)
    throttle.charge(STRANGER, 0)
    assert throttle.address_wait(STRANGER, 0) > 0


def room(most=4):
    return FairQueue(most, lambda item: item[0])


def everybody(waiting):
    return [item[1] for item in iter(waiting.next, None)]


def caller(address, *, known=False):
    """Known ones are told apart by their provider, strangers by their address: here both by one letter."""
    return Caller("192.0.2.1" if known else address, ord(address) if known else 7, known)


def test_known_ones_go_first_and_addresses_take_turns():
    waiting = room(10)
    for number in range(3):
        waiting.enter((caller("a"), f"a{number}"))
    waiting.enter((caller("b"), "b0"))
    waiting.enter((caller("c", known=True), "c0"))
    assert everybody(waiting) == ["c0", "a0", "b0", "a1", "a2"]
    assert len(waiting) == 0


def test_the_address_with_most_waiting_loses_its_last_to_a_newcomer():
    waiting = room()
    for number in range(4):
        assert waiting.enter((caller("a"), f"a{number}")) is None
    assert waiting.enter((caller("b"), "b0"))[1] == "a3"
    assert waiting.enter((caller("b"), "b1"))[1] == "a2"
    assert waiting.enter((caller("b"), "b2"))[1] == "b2"
    assert waiting.enter((caller("c"), "c0"))[1] in {"a1", "b1"}


def test_a_stranger_does_not_push_out_one_of_another_address_that_waits_for_as_little():
    waiting = room()
    for address in "abcd":
        waiting.enter((caller(address), address))
    newcomer = (caller("e"), "e")
    assert waiting.enter(newcomer) is newcomer
    assert waiting.enter((caller("f", known=True), "f"))[1] in set("abcd")
    assert everybody(waiting)[0] == "f"


def test_known_ones_are_bounded_too_and_strangers_cannot_push_them_out():
    waiting = room(2)
    for number in range(2):
        waiting.enter((caller("a", known=True), f"a{number}"))
    assert waiting.enter((caller("s"), "s"))[1] == "s"
    assert waiting.enter((caller("b", known=True), "b"))[1] == "a1"
    assert len(waiting) == 2


def test_one_that_gives_up_leaves_room_and_may_do_so_twice():
    waiting = room()
    item = (caller("a"), "a")
    waiting.enter(item)
    waiting.leave(item)
    waiting.leave(item)
    assert len(waiting) == 0
    assert waiting.next() is None


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.booleans()), max_size=60), st.integers(1, 10))
def test_never_more_wait_than_may_and_nobody_is_lost_without_a_word(arrivals, most):
    waiting, turned_away = room(most), []
    for number, (address, known) in enumerate(arrivals):
        left = waiting.enter((caller(address, known=known), number))
        turned_away += [] if left is None else [left[1]]
        assert len(waiting) <= most
    assert sorted(turned_away + everybody(waiting)) == list(range(len(arrivals)))


def test_of_too_many_providers_the_one_not_seen_for_longest_is_forgotten():
    known = KnownAddresses(providers=2)
    for pid in (1, 2, 1, 3):
        known.note(pid, "192.0.2.1")
    assert [known.has(pid, "192.0.2.1") for pid in (1, 2, 3, None)] == [True, False, True, False]


@pytest.mark.parametrize("caller", [STRANGER, HOME])
def test_a_right_password_gives_the_tokens_back_that_it_took(caller):
    throttle = LoginThrottle(Rate(1, 60), Rate(1, 60))
    throttle.take(caller, 100.0)
    assert throttle.wait(caller, 100.0) == pytest.approx(60)
    throttle.give_back(caller)
    assert throttle.wait(caller, 100.0) == 0
