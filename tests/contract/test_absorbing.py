"""Sets of several providers on their way into the queue together, and killed on the way; on every store."""

from dataclasses import replace
from pathlib import Path

import pytest
from little_lcc import PID, key, removal, update
from twisted.internet.task import Clock

from lcc_scrapy.db.records import ABSORBING_COUNT, ABSORBING_ENTRIES, OpenLogin
from lcc_scrapy.domain.absorption import WaitRule
from lcc_scrapy.domain.errors import PassedOver
from lcc_scrapy.domain.removal_guard import FEW
from lcc_scrapy.intake import absorbing, login_rows
from lcc_scrapy.intake.absorber import Absorber, Terms
from lcc_scrapy.intake.absorbing import Intake, Step
from lcc_scrapy.intake.login_rows import Head
from lcc_scrapy.intake.spooled import record_loss
from lcc_scrapy.uns.spool import ReadySet
from tests.component.same_thread import ByHand
from tests.memory_store import MemoryStore

NAMES = [f"n{number:02}" for number in range(16)]
MORE = (8, 9)


class Spool:
    """Keeps sets as a folder does that survives its process."""

    def __init__(self, lcc):
        self.lcc = lcc
        self.sets = {}

    def put(self, spooled):
        waiting = ReadySet(Path("spool"), spooled.pid, spooled.connseq, 0)
        self.sets[waiting] = spooled
        with self.lcc.store.begin() as tx:
            tx.insert_logins([OpenLogin(spooled.pid, spooled.connseq, "me", 1)])

    def open(self, waiting):
        return self.sets[waiting]

    def remove(self, sets):
        for waiting in sets:
            del self.sets[waiting]

    def set_aside(self, waiting, reason):
        raise AssertionError(reason)


def start(lcc, spool):
    """Begin to absorb, as a process does that finds these sets in its spool."""
    thread = ByHand()
    absorber = Absorber(
        spool, lcc.store, thread, Clock(), policy=lcc.policy, terms=Terms("me"),
        absorbed=lambda step: None, put_away=lambda pid, seq: None, now=lambda: lcc.now,
    )  # fmt: skip
    for waiting in spool.sets:
        absorber.add(waiting)
    absorber.look()
    return thread


def prepare(lcc):
    """Give three providers documents, and sets that change them in every way."""
    for pid in MORE:
        lcc.add(pid)
    for pid in (PID, *MORE):
        lcc.store_pages(*NAMES[:4], pid=pid)
    spool = Spool(lcc)
    spool.put(lcc.spooled(*map(update, NAMES[2:12]), removal(NAMES[0])))
    spool.put(lcc.spooled(*map(update, NAMES[:10]), pid=8, full=True))
    spool.put(lcc.spooled(removal(NAMES[3]), update(NAMES[0], b"new"), pid=9))
    spool.put(lcc.spooled(*map(update, NAMES[6:16]), *map(removal, NAMES[2:5])))
    spool.put(lcc.spooled(update(NAMES[15]), removal(NAMES[9]), pid=8))
    return spool


def outcome(lcc):
    with lcc.store.read() as tx:
        left = tx.earlier_logins(dict.fromkeys([PID, *MORE], 1 << 40))
    return left, {pid: (lcc.documents(pid), lcc.waiting(pid), lcc.held(pid)) for pid in (PID, *MORE)}


def kills(store):
    """Return after how many jobs to kill: after each one where that is quick."""
    return range(1, 21) if isinstance(store, MemoryStore) else range(2, 21, 5)


def test_a_kill_between_any_two_jobs_of_several_sets_changes_nothing_of_the_outcome(lcc, empty):
    spool = prepare(lcc)
    jobs = start(lcc, spool).work_off()
    assert spool.sets == {}
    assert jobs > 20
    expected = outcome(lcc)
    assert expected[0] == []
    assert expected[1][8][1] == [(name, "fetch") for name in [*NAMES[:9]]] + [
        (NAMES[9], "nothing"),
        (NAMES[15], "fetch"),
    ]
    for number in kills(lcc.store):
        empty(lcc.store)
        lcc.files.clear()
        lcc.granted.clear()
        lcc.connseq = 0
        lcc.add()
        spool = prepare(lcc)
        assert start(lcc, spool).work_off(number) == number
        start(lcc, spool).work_off()
        assert spool.sets == {}
        assert outcome(lcc) == expected


# --- logins ------------------------------------------------------------------------------------------


def note(lcc, spooled, uns="me"):
    with lcc.store.begin() as tx:
        tx.insert_logins([OpenLogin(spooled.pid, spooled.connseq, uns, 1)])
    return spooled


def is_noted(lcc, spooled):
    with lcc.store.read() as tx:
        return bool(tx.logins([(spooled.pid, spooled.connseq)]))


def test_the_last_step_of_a_set_forgets_its_login(lcc):
    spooled = note(lcc, lcc.spooled(*map(update, "abcd")))
    intake = Intake(lcc.store, spooled, lcc.policy)
    assert not intake.step(lcc.now).finished
    assert is_noted(lcc, spooled)
    assert intake.step(lcc.now).finished
    assert not is_noted(lcc, spooled)


def test_a_resend_and_a_set_absorbed_before_forget_their_logins_too(lcc):
    first = note(lcc, lcc.spooled(update("a"), setid="s", digest="d"))
    lcc.absorb(first)
    again = note(lcc, lcc.spooled(update("a"), setid="s", digest="d"))
    lcc.absorb(again)
    assert not is_noted(lcc, again)
    lcc.absorb(note(lcc, first))
    assert not is_noted(lcc, first)


@pytest.mark.parametrize("steps", [0, 1])
def test_a_set_that_was_passed_over_is_not_absorbed_any_further(lcc, steps):
    spooled = note(lcc, lcc.spooled(*map(update, "abcd")))
    intake = Intake(lcc.store, spooled, lcc.policy)
    for _ in range(steps):
        intake.step(lcc.now)
    assert login_rows.pass_over(lcc.store, PID, spooled.connseq + 1, "me") == 1
    before = lcc.waiting()
    with pytest.raises(PassedOver):
        intake.step(lcc.now)
    assert lcc.waiting() == before
    assert is_noted(lcc, spooled)


def test_logins_at_another_uns_or_later_ones_are_not_passed_over(lcc):
    elsewhere = note(lcc, lcc.spooled(update("a")), "other")
    later = note(lcc, lcc.spooled(update("b")))
    assert login_rows.pass_over(lcc.store, PID, later.connseq, "me") == 0
    for spooled in (elsewhere, later):
        lcc.absorb(spooled)
    assert lcc.waiting() == [("a", "fetch"), ("b", "fetch")]


def test_a_lost_set_is_asked_for_and_the_same_one_sent_again_is_taken(lcc):
    lost = lcc.spooled(*map(update, "abcd"), setid="s", digest="d")
    Intake(lcc.store, lost, lcc.policy).step(lcc.now)
    record_loss(lcc.store, PID, lost.connseq)
    assert lcc.provider().fullsetwanted == "cache crash"
    lcc.push(*map(update, "abcd"), setid="s", digest="d")
    assert lcc.waiting() == [(name, "fetch") for name in "abcd"]


def test_a_look_shows_room_and_earliest_logins(lcc):
    lcc.add(8)
    lcc.push(*map(update, "abc"))
    mine, other = (note(lcc, lcc.spooled(update("x"), pid=pid)) for pid in (PID, 8))
    heads = [ReadySet(Path("spool"), spooled.pid, spooled.connseq + 1, 0) for spooled in (mine, other)]
    now = {pid: Head(waited=0.0, sending=False) for pid in (PID, 8)}
    view, earlier = login_rows.look_at(lcc.store, heads, now, 100, WaitRule("other", 60.0))
    assert (view.queue_max, view.queued, dict(view.own)) == (100, 3, {PID: 3, 8: 0})
    assert set(view.held_up) == {PID, 8}
    assert {pid: [login.connseq for login in found] for pid, found in earlier.items()} == {
        PID: [mine.connseq],
        8: [other.connseq],
    }
    later = dict.fromkeys((PID, 8), Head(waited=60.0, sending=False))
    view, _ = login_rows.look_at(lcc.store, heads, later, 100, WaitRule("other", 60.0))
    assert set(view.held_up) == set()


# --- sets that overtake others -------------------------------------------------------------------------


def absorb(lcc, spooled, *, overtakes=False):
    intake = Intake(lcc.store, spooled, lcc.policy)
    while not intake.step(lcc.now, overtakes=overtakes).finished:
        pass


def overtaken(lcc, *content, **values):
    """Note a login whose set is still being sent."""
    return note(lcc, lcc.spooled(*content, **values))


def test_of_a_set_that_was_overtaken_only_that_takes_effect_which_no_later_one_named(lcc):
    lcc.store_pages("a", "b", "c")
    late = overtaken(lcc, removal("a"), removal("b"), update("x", b"old"), update("y"))
    absorb(lcc, lcc.spooled(update("a", b"new"), update("x", b"new"), removal("c")), overtakes=True)
    absorb(lcc, late)
    assert sorted(lcc.waiting()) == [("a", "fetch"), ("x", "fetch"), ("y", "fetch")]
    assert lcc.documents() == ["a"]
    with lcc.store.read() as tx:
        (x,) = tx.queued([key("x")]).values()
    assert x.declared.length == len(b"new")


def test_a_set_that_a_full_one_overtook_has_no_effect(lcc):
    late = overtaken(lcc, update("gone"), update("a", b"old"))
    absorb(lcc, lcc.spooled(update("a", b"new"), update("b"), full=True), overtakes=True)
    absorb(lcc, late)
    assert lcc.waiting() == [("a", "fetch"), ("b", "fetch")]
    assert not is_noted(lcc, late)


def test_a_full_set_that_was_overtaken_neither_removes_nor_holds_what_later_ones_named(lcc):
    late = overtaken(lcc, update("a"), full=True)
    absorb(lcc, lcc.spooled(*(update(f"new{number}") for number in range(30))), overtakes=True)
    absorb(lcc, late)
    assert sorted(name for name, _ in lcc.waiting()) == sorted(["a", *(f"new{n}" for n in range(30))])
    with lcc.store.read() as tx:
        pset = tx.pset_of(PID, late.connseq)
        assert (pset.phase, pset.held, pset.counted) == ("absorbed", 0, 31 - 1)


def test_what_is_meant_if_absent_does_not_stand_against_an_earlier_set(lcc):
    late = overtaken(lcc, update("a", b"declared"))
    absorb(lcc, lcc.spooled(update("a"), ifabsent=True), overtakes=True)
    absorb(lcc, late)
    with lcc.store.read() as tx:
        (row,) = tx.queued([key("a")]).values()
    assert row.declared.length == len(b"declared")


def test_only_earlier_logins_are_overtaken(lcc):
    late, later = overtaken(lcc, update("a")), lcc.spooled(update("a", b"x"))
    last = overtaken(lcc, update("b"))
    absorb(lcc, later, overtakes=True)
    with lcc.store.read() as tx:
        found = tx.logins([(PID, late.connseq), (PID, last.connseq)])
    assert {seq: login.overtaken for (_, seq), login in found.items()} == {
        late.connseq: True,
        last.connseq: False,
    }


@pytest.mark.parametrize(("removals", "phase"), [(FEW, ABSORBING_ENTRIES), (FEW + 1, ABSORBING_COUNT)])
def test_removals_are_counted_first_where_the_guard_may_hold_them(lcc, removals, phase):
    spooled = lcc.spooled(*(removal(f"n{number}") for number in range(removals)))
    assert Intake(lcc.store, spooled, lcc.policy).new_pset(1, lcc.now).phase == phase


def test_new_urls_are_absorbed_in_long_steps_known_ones_in_short_ones(lcc, monkeypatch):
    monkeypatch.setattr(absorbing, "CHUNK", 2)
    monkeypatch.setattr(absorbing, "NEW_CHUNK", 4)

    def steps(names):
        intake, done = Intake(lcc.store, lcc.spooled(*map(update, names)), lcc.policy), []
        while not (step := intake.step(lcc.now)).finished:
            done.append(step.entries)
        return [count for count in (*done, step.entries) if count]

    assert steps(NAMES[:8]) == [4, 4]
    assert steps(NAMES[:4]) == [2, 2]


def test_two_steps_as_one_have_what_both_had():
    first = Step(7, finished=False, entries=2, removed=((b"a", "why"),), held=5)
    assert first.then(Step(7, finished=True, entries=3)) == replace(first, finished=True, entries=5)
    assert first.then(Step(7, finished=True, held=6)).held == 6
