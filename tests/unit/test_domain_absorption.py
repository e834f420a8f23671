"""Whose set goes into the queue next: in turns, in the order of logins, and nobody fills the room alone."""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.absorption import COMPLETE, IDLE, OPEN, TURN, Line, View, WaitRule
from lcc_scrapy.domain.dynamic_threshold import NO_LIMIT, room_left
from lcc_scrapy.domain.failure_detector import FailureDetector


@dataclass(frozen=True)
class Spooled:
    pid: int
    seq: int
    steps: int = 1
    arrived: int = 0


def line_of(*sets):
    line = Line()
    for one in sets:
        line.add(one)
    return line


def absorb(line):
    """Absorb everything without obstacles; return (pid, seq) of each step."""
    left, done = {}, []
    while line:
        (head,) = line.heads(1)
        done.append((head.pid, head.seq))
        left[head] = left.get(head, head.steps) - 1
        if left[head]:
            line.stepped()
        else:
            line.remove(head)
    return done


# --- the line ----------------------------------------------------------------------------------------


def test_a_huge_set_delays_the_others_by_one_turn_only():
    steps = absorb(line_of(Spooled(1, 1, steps=1000), Spooled(2, 1), Spooled(3, 1, steps=2)))
    assert steps[:7] == [(1, 1)] * TURN + [(2, 1)] + [(3, 1)] * 2
    assert len(steps) == 1003


def test_the_sets_of_one_provider_go_one_at_a_time_in_the_order_of_their_logins():
    sets = [Spooled(1, seq, steps=6, arrived=arrived) for seq, arrived in ((3, 1), (1, 2), (2, 3))]
    steps = absorb(line_of(*sets, Spooled(2, 7)))
    assert [seq for pid, seq in steps if pid == 1] == [1] * 6 + [2] * 6 + [3] * 6
    assert steps.index((2, 7)) == TURN


def test_many_small_sets_of_one_provider_take_turns_with_another_s():
    steps = absorb(line_of(*(Spooled(1, seq) for seq in range(50)), *(Spooled(2, seq) for seq in range(3))))
    assert [pid for pid, _ in steps[:6]] == [1, 2, 1, 2, 1, 2]


def test_a_set_that_arrives_later_gets_its_turn_in_the_running_round():
    line = line_of(Spooled(1, 1, steps=100), Spooled(2, 1, steps=100))
    line.stepped()
    line.add(Spooled(3, 1))
    seen = []
    for _ in range(3 * TURN):
        seen.append(line.heads(1)[0].pid)
        line.stepped()
    assert seen == [1] * (TURN - 1) + [2] * TURN + [3] * TURN + [1]


def test_those_who_have_to_wait_are_passed_by_and_keep_their_order():
    line = line_of(*(Spooled(pid, 1) for pid in (1, 2, 3)))
    assert [one.pid for one in line.heads(2)] == [1, 2]
    line.pass_by(2)
    assert [one.pid for one in line.heads(9)] == [3, 1, 2]


def test_a_line_knows_the_logins_whose_sets_wait_in_it():
    line = line_of(Spooled(1, 5), Spooled(1, 3))
    assert (1, 3) in line
    assert (1, 5) in line
    assert (1, 4) not in line
    assert (2, 3) not in line
    line.remove(line.heads(1)[0])
    assert (1, 3) not in line
    assert len(line) == 1


def test_two_sets_of_one_login_are_taken_in_the_order_of_their_arrival():
    """A database restored from a backup counts logins from an earlier number on."""
    old, new = Spooled(1, 3, arrived=10), Spooled(1, 3, arrived=20)
    line = line_of(new, old)
    assert line.heads(1) == [old]
    line.remove(old)
    assert line.heads(1) == [new]


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 30), st.integers(1, 9)), unique_by=lambda t: t[:2])
)
def test_everything_is_absorbed_once_in_order_and_nobody_waits_for_more_than_a_turn_of_each_other(given_sets):
    sets = [Spooled(*values) for values in given_sets]
    steps = absorb(line_of(*sets))
    for pid in {one.pid for one in sets}:
        seqs = [seq for who, seq in steps if who == pid]
        assert seqs == sorted(seqs)
        assert len(seqs) == sum(one.steps for one in sets if one.pid == pid)
        mine = [at for at, (who, _) in enumerate(steps) if who == pid]
        others = len({one.pid for one in sets}) - 1
        assert all(later - at <= others * TURN + 1 for at, later in pairwise(mine))


# --- the view ----------------------------------------------------------------------------------------


def view(**values):
    return View(**{"queue_max": 100, "queued": 0, "own": {}, "held_up": (), **values})


def test_a_set_waits_while_one_of_an_earlier_login_of_its_provider_may_still_come():
    expected = view(held_up={1})
    assert not expected.admits(1)
    assert expected.admits(2)


def test_a_full_queue_takes_nothing_from_anybody():
    assert not view(queued=100).admits(1)
    assert view(queued=99).admits(1)


def test_a_provider_may_have_as_many_urls_waiting_as_there_is_room_left():
    assert view(queued=49, own={1: 49}).admits(1)
    assert not view(queued=50, own={1: 50}).admits(1)
    assert view(queued=50, own={1: 50}).admits(2)


def test_without_a_limit_there_is_always_room():
    assert view(queue_max=0, queued=10**9, own={1: 10**9}).admits(1)


def test_a_queue_is_full_for_everybody_when_nothing_more_may_wait():
    assert view(queued=100).full
    assert not view(queued=99).full
    assert not view(queue_max=0, queued=100).full


def test_what_others_get_in_the_meantime_takes_from_the_room():
    assert view(queued=40).room(1, 20) == view(queued=60).room(1) < view(queued=40).room(1)
    assert not view(queued=40).admits(1, 60)


# --- earlier logins that are not complete ------------------------------------------------------------


@dataclass(frozen=True)
class Login:
    uns: str = "me"
    stage: str = OPEN
    overtaken: bool = False


@pytest.mark.parametrize(
    ("login", "sending_here", "holds"),
    [
        (Login(), True, "bounded"),
        (Login(), False, "never"),
        (Login(overtaken=True), True, "never"),
        (Login(stage=COMPLETE), False, "never"),
        (Login("other"), False, "bounded"),
        (Login("other", overtaken=True), True, "never"),
        (Login("other", IDLE), False, "never"),
        (Login("other", COMPLETE), False, "ever"),
        (Login("other", COMPLETE, overtaken=True), False, "ever"),
    ],
)
def test_how_long_a_complete_set_waits_for_an_earlier_login(login, sending_here, holds):
    over = [
        WaitRule("me", 60.0).is_over(waited, sending_here=sending_here, earlier=[Login("other", IDLE), login])
        for waited in (0.0, 59.9, 60.0)
    ]
    assert (
        over
        == {
            "never": [True, True, True],
            "bounded": [False, False, True],
            "ever": [False, False, False],
        }[holds]
    )


# --- sharing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("providers", "each"), [(1, 500), (2, 333), (3, 250), (9, 100)])
def test_n_providers_that_want_everything_get_a_fair_part_and_leave_one(providers, each):
    own = [0] * providers
    for _ in range(5000):
        for one in range(providers):
            own[one] += min(1, room_left(own[one], sum(own), 1000))
    assert all(each <= mine <= each + 1 for mine in own)
    assert room_left(0, sum(own), 1000) > 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 300))), st.integers(1, 1000))
def test_the_room_is_never_overfilled_and_a_newcomer_always_gets_in(wishes, limit):
    own = [0] * 6
    for who, wish in wishes:
        own[who] += min(wish, room_left(own[who], sum(own), limit))
    assert sum(own) <= limit
    assert room_left(0, sum(own), limit) > 0 or sum(own) == limit


def test_one_who_has_too_much_by_now_gets_nothing_more():
    assert room_left(80, 90, 100) == 0
    assert room_left(5, 5, 0) == NO_LIMIT


# --- signs of life -----------------------------------------------------------------------------------


def looks(detector, *signs_at):
    return [detector.is_dead("a", sign, now) for sign, now in signs_at]


def test_one_without_a_new_sign_for_too_long_is_dead():
    assert looks(FailureDetector(100), (1, 0), (1, 40), (1, 80), (1, 99), (1, 100)) == [False] * 4 + [True]


def test_every_new_sign_starts_the_wait_anew_even_an_earlier_one():
    assert looks(FailureDetector(100), (5, 0), (5, 50), (4, 90), (4, 140), (4, 189), (4, 190)) == [
        False
    ] * 5 + [True]


def test_time_in_which_nobody_looked_does_not_count():
    detector = FailureDetector(100)
    assert looks(detector, (1, 0), (1, 500), (1, 550), (1, 600)) == [False, False, False, True]


def test_one_is_not_judged_by_another_s_signs():
    detector = FailureDetector(100)
    for now in (0, 50, 100):
        detector.is_dead("a", 1, now)
    assert not detector.is_dead("b", 1, 100)
