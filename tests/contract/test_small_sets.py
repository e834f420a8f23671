"""Small sets of many providers in one transaction, the same on every store."""

from dataclasses import replace
from itertools import pairwise

import pytest
import sqlalchemy
from little_lcc import PID, removal, update

from lcc_scrapy.db.records import OpenLogin, SetName
from lcc_scrapy.intake import absorbing
from lcc_scrapy.intake.absorbing import Intake
from lcc_scrapy.intake.small_sets import SMALL, SmallSet, absorb_together, read_small
from tests.memory_store import MemoryStore


def together(lcc, *sets, **states):
    """Absorb sets of different providers in one transaction; ``states`` of the login of the second one."""
    small = [SmallSet(one, read_small(one), Intake(lcc.store, one, lcc.policy)) for one in sets]
    logins = [OpenLogin(one.pid, one.connseq, "me", 1) for one in sets]
    logins[1:2] = [replace(login, **states) for login in logins[1:2]]
    with lcc.store.begin() as tx:
        tx.insert_logins(logins)
    return absorb_together(lcc.store, small, lcc.policy, lcc.now)


def crowd(lcc, first, count):
    """Give as many new providers a set each."""
    pids = range(first, first + count)
    for pid in pids:
        lcc.add(pid)
    return [lcc.spooled(update("a"), update("b"), pid=pid, setid=f"s{pid}", digest="d") for pid in pids]


def test_an_exact_resend_brings_nothing_again_and_the_others_of_its_group_come_in(lcc):
    for pid in (8, 9):
        lcc.add(pid)
    first = lcc.spooled(update("a"), setid="S", digest="d")
    together(lcc, first)
    lcc.push(removal("a"))
    again = lcc.spooled(update("a"), setid="S", digest="d")
    steps = together(
        lcc,
        again,
        lcc.spooled(update("a"), pid=8, setid="S", digest="d"),
        lcc.spooled(update("a"), pid=9),
    )
    assert [(step.finished, step.entries) for step in steps] == [(True, 0), (True, 1), (True, 1)]
    assert lcc.waiting() == [("a", "nothing")]
    assert lcc.waiting(8) == lcc.waiting(9) == [("a", "fetch")]


@pytest.mark.parametrize("values", [{"digest": "e"}, {"setid": "T"}, {"setid": "s"}])
def test_a_set_with_the_same_id_or_the_same_content_only_is_no_resend(lcc, values):
    together(lcc, lcc.spooled(update("a"), setid="S", digest="d"))
    lcc.push(removal("a"))
    together(lcc, lcc.spooled(update("a"), **{"setid": "S", "digest": "d", **values}))
    assert lcc.waiting() == [("a", "fetch")]


def test_a_set_that_came_before_the_period_of_resends_is_a_new_one(lcc):
    together(lcc, lcc.spooled(update("a"), setid="S", digest="d"))
    lcc.push(removal("a"))
    lcc.now += int(lcc.policy.resend_period) + 1
    together(lcc, lcc.spooled(update("a"), setid="S", digest="d"))
    assert lcc.waiting() == [("a", "fetch")]


@pytest.mark.parametrize("state", ["passed", "overtaken"])
def test_a_set_that_is_out_of_order_and_those_behind_it_are_left_for_another_time(lcc, state):
    sets = crowd(lcc, 100, 4)
    steps = together(lcc, *sets, **{state: True})
    assert [step.finished for step in steps] == [True, False, False, False]
    assert [lcc.waiting(one.pid) for one in sets[1:]] == [[], [], []]
    with lcc.store.read() as tx:
        assert tx.logins([(one.pid, one.connseq) for one in sets]).keys() == {
            (one.pid, one.connseq) for one in sets[1:]
        }


def test_as_many_sets_go_together_as_the_rules_may_see_urls_of_in_one_transaction(lcc, monkeypatch):
    monkeypatch.setattr(absorbing, "CHUNK", 2)
    for pid in (8, 9, 10):
        lcc.add(pid)
    steps = together(lcc, *(lcc.spooled(removal("a"), pid=pid) for pid in (PID, 8, 9, 10)))
    assert [step.finished for step in steps] == [True, True, False, False]


def test_a_set_is_small_up_to_so_many_urls(lcc, monkeypatch):
    monkeypatch.setattr(absorbing, "CHUNK", SMALL + 1)
    names = [f"n{number}" for number in range(SMALL + 1)]
    assert read_small(lcc.spooled(*map(update, names))) is None
    assert len(read_small(lcc.spooled(*map(update, names[1:])))) == SMALL
    monkeypatch.setattr(absorbing, "CHUNK", 5)
    assert read_small(lcc.spooled(*map(update, names[:6]))) is None
    assert len(read_small(lcc.spooled(*map(update, names[:5])))) == 5


def test_of_many_sets_and_logins_those_are_found_that_are_asked_for(lcc):
    sets = crowd(lcc, 100, 121)
    together(lcc, *sets[:-1])
    names = [SetName(one.pid, one.setid, one.digest) for one in sets]
    mixed = [SetName(one.pid, other.setid, "d") for one, other in pairwise(sets)]
    logins = [(one.pid, one.connseq) for one in sets]
    crossed = [(one.pid, other.connseq) for one, other in pairwise(sets)]
    with lcc.store.begin() as tx:
        assert tx.sent_before(names, lcc.now) == set(names[:-1])
        assert (
            tx.sent_before(names, lcc.now + 1) == tx.sent_before(mixed, 0) == tx.sent_before([], 0) == set()
        )
        assert tx.psets_of(logins).keys() == set(logins[:-1])
        assert tx.psets_of(crossed) == {}
        tx.insert_logins([OpenLogin(*login, "me", 1) for login in logins])
        tx.drop_logins(crossed)
        assert tx.logins(logins).keys() == set(logins)
        assert tx.logins(crossed) == {}
        tx.drop_logins(logins[1:])
        assert tx.logins(logins).keys() == {logins[0]}


def test_a_set_more_in_a_group_takes_less_than_half_a_statement(lcc):
    if isinstance(lcc.store, MemoryStore):
        pytest.skip("has no statements")
    statements = []
    sqlalchemy.event.listen(lcc.store.engine, "before_cursor_execute", lambda *a: statements.append(a[2]))
    counts = []
    for first, count in ((100, 20), (200, 60)):
        sets = crowd(lcc, first, count)
        statements.clear()
        assert all(step.finished for step in together(lcc, *sets))
        counts.append(len(statements))
    assert counts[1] - counts[0] < 20
    assert lcc.waiting(PID) == []
    assert lcc.waiting(259) == [("a", "fetch"), ("b", "fetch")]


def test_a_first_set_that_is_out_of_order_goes_one_step_alone(lcc):
    sets = crowd(lcc, 100, 3)
    small = [SmallSet(one, read_small(one), Intake(lcc.store, one, lcc.policy)) for one in sets]
    with lcc.store.begin() as tx:
        tx.insert_logins([OpenLogin(one.pid, one.connseq, "me", 1, overtaken=one is sets[0]) for one in sets])
    steps = absorb_together(lcc.store, small, lcc.policy, lcc.now)
    assert [(step.pid, step.finished) for step in steps] == [(100, True), (101, False), (102, False)]
    assert [lcc.waiting(one.pid) for one in sets] == [[("a", "fetch"), ("b", "fetch")], [], []]


def test_a_group_of_resends_brings_nothing(lcc):
    for _ in range(2):
        (step,) = together(lcc, lcc.spooled(update("a"), setid="S", digest="d"))
    assert (step.finished, step.entries) == (True, 0)
