"""Sampling pushed documents, and what is counted of it, on every store."""

from dataclasses import replace
from itertools import pairwise

import pytest
from little_lcc import PID, SITE, START, key, removal, update, url

from lcc_scrapy.cache import misses
from lcc_scrapy.cache.misses import REASON, counts_of
from lcc_scrapy.db.records import Missed, Suspect
from lcc_scrapy.domain.entries import Declared, Origin
from lcc_scrapy.domain.misses import DAY, first_day, share_missed
from lcc_scrapy.domain.policy import STRICT, QueuePolicy
from lcc_scrapy.intake.absorbing import Intake
from lcc_scrapy.ops.housekeeping import _judge_samples_of
from lcc_scrapy.providers.registration import remove
from lcc_scrapy.spidering import sampling as sampling_module
from lcc_scrapy.spidering.sampling import Sampling
from lcc_scrapy.spidering.submitting import Spidering, Terms

GRACE = 3600


@pytest.fixture
def sampler(lcc):
    lcc.change(created=START)
    lcc.policy = replace(lcc.policy, retry_delays=())  # the first look counts
    return Sampling(lcc.store, PID, lcc.policy, 0)


def counted(lcc):
    with lcc.store.read() as tx:
        return tx.missed(PID, first_day(lcc.now))


def share(lcc):
    with lcc.store.read() as tx:
        return share_missed(counts_of(tx, tx.provider(PID), lcc.now, GRACE))


def suspects(lcc):
    with lcc.store.read() as tx:
        return tx.count_suspects(PID, lcc.now)


def pages(lcc, count):
    names = [f"{number:02}" for number in range(count)]
    lcc.push(*[update(name, name.encode()) for name in names])
    for name in names:
        lcc.fetch(name, name.encode())
    return names


def look(lcc, changed=(), gone=()):
    """Carry out the visits that wait: sites answer 304 but where something changed."""
    for ticket in lcc.tickets():
        name = ticket.row.curl.removeprefix(SITE)
        if name in gone:
            lcc.settle(lcc.failed(ticket, 404, final=True))
        elif name in changed:
            lcc.settle(lcc.served(ticket, b"new " + name.encode()))
        else:
            lcc.settle(lcc.not_modified(ticket))


def test_a_full_sample_finds_half_of_the_changes_when_half_were_pushed(lcc, sampler):
    names = pages(lcc, 20)
    lcc.now += DAY
    lcc.push(*[update(name, b"new") for name in names[:3]])
    for name in names[:3]:
        lcc.fetch(name, b"new")
    lcc.now += DAY
    assert counted(lcc) == Missed(pushed=3)
    assert sum(sampler.draw(100, lcc.now)) == 20
    assert {lcc.queued(name).origin for name in names} == {Origin.SAMPLE}
    assert all(ticket.etag for ticket in lcc.tickets())
    look(lcc, changed=names[3:6])
    assert (counted(lcc).sampled, counted(lcc).missed, suspects(lcc)) == (20, 0, 3)
    lcc.now += GRACE
    assert not sampler.judge(lcc.now)
    assert counted(lcc) == Missed(3, 20, 3, 17 * 2 * DAY + 3 * DAY)
    found = share(lcc)
    assert found.lowest < 0.5 < found.highest
    assert (suspects(lcc), lcc.waiting(), lcc.errors()) == (0, [], [])


def test_a_page_that_is_gone_is_a_change_too(lcc, sampler):
    pages(lcc, 3)
    sum(sampler.draw(9, lcc.now))
    look(lcc, gone=["01"])
    assert (suspects(lcc), lcc.documents(), lcc.errors()) == (1, ["00", "02"], [])


@pytest.mark.parametrize("full", [False, True])
def test_a_push_within_the_grace_was_only_late(lcc, sampler, full):
    names = pages(lcc, 3)
    sum(sampler.draw(9, lcc.now))
    look(lcc, changed=["00"], gone=["02"])
    lcc.now += GRACE - 1
    late = (
        [update("00", b"new 00"), update("01", b"01")] if full else [update("00", b"new 00"), removal("02")]
    )
    lcc.push(*late, full=full)
    assert lcc.waiting() in ([], [("02", "nothing")])
    lcc.now += DAY
    sampler.judge(lcc.now)
    assert (counted(lcc).missed, counted(lcc).pushed, len(names)) == (0, 2, 3)


def test_a_push_after_the_grace_comes_too_late(lcc, sampler):
    pages(lcc, 1)
    sum(sampler.draw(9, lcc.now))
    look(lcc, changed=["00"])
    lcc.now += GRACE
    lcc.push(update("00", b"new 00"))
    sampler.judge(lcc.now)
    assert (counted(lcc).missed, counted(lcc).pushed, lcc.waiting()) == (1, 0, [])


@pytest.mark.parametrize("declared", ["record", STRICT])
def test_what_a_visit_found_is_what_pushes_are_compared_with(lcc, sampler, declared):
    lcc.change(declared=declared)
    pages(lcc, 1)
    sum(sampler.draw(1, lcc.now))
    look(lcc, changed=["00"])
    row = lcc.cached("00")
    assert (row.origin, row.len, row.fetched_len) == (Origin.PUSH, 2, 6)
    lcc.push(update("00", b"new 00"))
    assert lcc.waiting() == []
    lcc.push(update("00", b"00"))
    assert lcc.waiting() == [("00", "fetch")]
    lcc.fetch("00", b"00")
    assert lcc.cached("00").fetched_len == 2


def test_a_visit_that_finds_nothing_new_leaves_what_was_declared(lcc, sampler):
    lcc.push(update("a", declared=Declared(5, 6, None), subtype="x:y"))
    lcc.fetch("a", b"a body")
    before = lcc.cached()
    lcc.now += 100
    sum(sampler.draw(1, lcc.now))
    look(lcc)
    assert lcc.cached() == replace(before, confirmed_time=lcc.now, confirmed_seq=1)
    sum(sampler.draw(1, lcc.now))
    lcc.settle(lcc.served(lcc.ticket(), b"a body"))
    assert lcc.cached() == replace(before, confirmed_time=lcc.now, confirmed_seq=2)


def test_a_full_set_that_began_before_the_visit_still_removes_what_it_does_not_name(lcc, sampler):
    pages(lcc, 4)
    steps = Intake(lcc.store, lcc.spooled(update("00", b"00"), full=True), lcc.policy)
    steps.step(lcc.now)
    sum(sampler.draw(9, lcc.now))
    look(lcc, changed=["01"])
    while not steps.step(lcc.now).finished:
        pass
    assert lcc.documents() == ["00"]


def test_a_push_takes_the_place_of_a_visit_that_waits(lcc, sampler):
    pages(lcc, 1)
    sum(sampler.draw(1, lcc.now))
    lcc.push(update("00", b"new"))
    lcc.fetch("00", b"new")
    assert (counted(lcc), suspects(lcc), lcc.waiting()) == (Missed(pushed=1), 0, [])


def test_a_push_during_the_visit_leaves_nothing_to_suspect(lcc, sampler):
    pages(lcc, 1)
    sum(sampler.draw(1, lcc.now))
    ticket = lcc.ticket("00")
    lcc.push(update("00", b"new"))
    lcc.settle(lcc.served(ticket, b"new"))
    assert (counted(lcc), suspects(lcc), lcc.waiting()) == (Missed(pushed=1), 0, [])


def test_a_removal_during_the_visit_wins(lcc, sampler):
    pages(lcc, 1)
    sum(sampler.draw(1, lcc.now))
    ticket = lcc.ticket("00")
    lcc.push(removal("00"))
    lcc.settle(lcc.served(ticket, b"new"))
    assert (lcc.documents(), lcc.waiting(), suspects(lcc)) == ([], [], 0)


def test_a_visit_that_fails_says_nothing_and_its_provider_is_not_told(lcc, sampler):
    pages(lcc, 1)
    sum(sampler.draw(1, lcc.now))
    lcc.settle(lcc.failed(lcc.ticket("00"), 607, final=True))
    assert (counted(lcc), suspects(lcc), lcc.errors(), lcc.documents()) == (Missed(), 0, [], ["00"])


def test_only_pushed_documents_that_do_not_wait_and_are_not_held_are_drawn(lcc, sampler):
    Spidering(lcc.store, PID, Terms(), lcc.policy).seed([url("found")], lcc.now)
    ticket = lcc.tickets()[0]
    lcc.settle(lcc.served(ticket, served_type="text/html"))
    pages(lcc, 2)
    lcc.push(update("00", b"waits"))
    assert sum(sampler.draw(9, lcc.now)) == 1
    assert lcc.queued("01").origin == Origin.SAMPLE
    assert sum(sampler.draw(9, lcc.now)) == 0


def test_a_sample_goes_round_from_a_random_key_and_takes_nothing_twice(lcc, monkeypatch):
    monkeypatch.setattr(sampling_module, "PORTION", 3)
    keys = sorted(key(name) for name in pages(lcc, 10))
    for begin in (b"\0" * 16, keys[4], b"\xff" * 16):
        drawn = Sampling(lcc.store, PID, lcc.policy, 0, lambda begin=begin: begin)
        assert sum(drawn.draw(4, lcc.now)) == 4
        at = sum(one <= begin for one in keys)
        expected = {*(keys + keys)[at : at + 4]}
        assert {ticket.row.urlkey for ticket in lcc.tickets()} == expected
        look(lcc)
    assert sum(Sampling(lcc.store, PID, lcc.policy, 0).draw(99, lcc.now)) == 10
    look(lcc)


def test_a_job_that_draws_looks_at_one_portion(lcc, monkeypatch):
    monkeypatch.setattr(sampling_module, "PORTION", 3)
    keys = sorted(key(name) for name in pages(lcc, 10))
    assert list(Sampling(lcc.store, PID, lcc.policy, 0, lambda: keys[0]).draw(7, lcc.now)) == [3, 3, 1]
    nothing_left = Sampling(lcc.store, PID, lcc.policy, 0, lambda: b"").draw(99, lcc.now)
    assert [next(nothing_left) for _ in range(4)] == [1, 0, 1, 1]


def note_suspects(lcc, count):
    with lcc.store.begin() as tx:
        tx.put_suspects([Suspect(key(f"{number}"), PID, lcc.now) for number in range(count)])


def test_suspects_are_judged_in_portions(lcc, monkeypatch):
    monkeypatch.setattr(misses, "AT_ONCE", 2)
    note_suspects(lcc, 5)
    lcc.now += GRACE
    left = []
    for _ in _judge_samples_of(lcc.store, replace(lcc.policy, push_grace=GRACE), PID, lcc.now):
        left.append(suspects(lcc))
    assert (left, counted(lcc).missed) == ([3, 1, 0, 0], 5)


def test_a_full_set_settles_suspects_in_portions(lcc, monkeypatch):
    monkeypatch.setattr(misses, "AT_ONCE", 2)
    lcc.push(update())
    note_suspects(lcc, 5)
    intake = Intake(lcc.store, lcc.spooled(update(), full=True), lcc.policy)
    left = [suspects(lcc)]
    while not intake.step(lcc.now).finished:
        left.append(suspects(lcc))
    assert all(before - after <= 2 for before, after in pairwise(left))
    assert (left[-1], counted(lcc).pushed) == (0, 5)


def test_too_many_missed_changes_turn_visits_on_and_many_pushed_ones_off_again(lcc, sampler):
    lcc.change(fallback=0.2)
    names = pages(lcc, 12)
    lcc.now += DAY
    sum(sampler.draw(12, lcc.now))
    look(lcc, changed=names[:6])
    assert not sampler.judge(lcc.now)
    lcc.now += GRACE
    assert sampler.judge(lcc.now)
    provider = lcc.provider()
    assert (provider.fallingback, provider.fullsetwanted) == (True, REASON)
    with lcc.store.begin() as tx:
        tx.add_missed(PID, lcc.now // DAY, {"pushed": 30})
    assert not sampler.judge(lcc.now)
    assert (lcc.provider().fallingback, lcc.provider().fullsetwanted) == (False, "")


def test_missed_changes_are_forgotten_after_thirty_days(lcc, sampler):
    lcc.change(fallback=0.2)
    names = pages(lcc, 12)
    lcc.now += DAY
    sum(sampler.draw(12, lcc.now))
    look(lcc, changed=names)
    lcc.now += GRACE
    assert sampler.judge(lcc.now)
    lcc.now += 31 * DAY
    lcc.push(*[update(name, b"newer") for name in names])
    lcc.fetch_all(body=b"newer")
    lcc.now += DAY
    sum(sampler.draw(12, lcc.now))
    look(lcc)
    assert not sampler.judge(lcc.now)


def test_visits_of_everything_leave_out_what_was_confirmed_lately(lcc, sampler, monkeypatch):
    monkeypatch.setattr(sampling_module, "PORTION", 2)
    names = pages(lcc, 5)
    lcc.now += 100
    lcc.push(update(names[0], b"new"))
    lcc.fetch(names[0], b"new")
    after, queued = b"", 0
    while after is not None:
        portion = sampler.visit_overdue(after, lcc.now, lcc.now)
        after, queued = portion.after, queued + portion.queued
    assert queued == 4
    full = Sampling(lcc.store, PID, lcc.policy, 1).visit_overdue(b"x", lcc.now, lcc.now)
    assert (full.after, full.queued, full.held_up) == (b"x", 0, True)
    look(lcc)


def test_what_is_counted_is_kept_by_provider_and_day(lcc):
    lcc.add(8)
    with lcc.store.begin() as tx:
        tx.add_missed(PID, 10, {"pushed": 1})
        tx.add_missed(PID, 10, {"pushed": 2, "missed": 3})
        tx.add_missed(PID, 11, {"sampled": 4, "watched": 1 << 40})
        tx.add_missed(8, 11, {"pushed": 5})
    with lcc.store.begin() as tx:
        assert tx.missed(PID, 10) == Missed(3, 4, 3, 1 << 40)
        assert tx.missed(PID, 11) == Missed(0, 4, 0, 1 << 40)
        assert tx.missed(9, 0) == Missed()
        assert tx.all_missed(10) == {PID: Missed(3, 4, 3, 1 << 40)}
        assert (tx.all_missed(11), tx.all_missed(12)) == ({PID: Missed(0, 4, 0, 1 << 40)}, {})
        assert (tx.sampled_providers(11), tx.sampled_providers(12)) == ([PID], [])
        tx.forget_missed(11)
        assert tx.missed(PID, 0) == Missed(0, 4, 0, 1 << 40)


def test_suspects_are_counted_and_dropped_by_when_they_were_found(lcc):
    rows = [Suspect(key(name), PID, at) for name, at in (("a", 5), ("b", 6), ("c", 7))]
    with lcc.store.begin() as tx:
        tx.put_suspects(rows)
        tx.put_suspects([Suspect(key("c"), PID, 8)])
    with lcc.store.begin() as tx:
        assert [tx.count_suspects(PID, at) for at in (4, 6, 7, 8)] == [0, 2, 2, 3]
        assert tx.count_suspects(8, 9) == 0
        assert (tx.all_suspects(4), tx.all_suspects(7)) == ({}, {PID: 2})
        assert tx.drop_suspects(PID, 5, 8, [key("a"), key("b"), key("x")]) == 1
        assert len(tx.suspects(PID, 0, 9, 1)) == 1
        assert tx.drop_suspects(PID, 0, 7, tx.suspects(PID, 0, 7, 9)) == 1
        assert tx.count_suspects(PID, 9) == 1


def test_all_of_it_goes_with_its_provider(lcc, sampler):
    pages(lcc, 2)
    lcc.now += 5
    sum(sampler.draw(2, lcc.now))
    look(lcc, changed=["00"])
    remove(lcc.store, PID, lcc.now, QueuePolicy(), lambda *_: None)
    with lcc.store.read() as tx:
        assert (tx.missed(PID, 0), tx.count_suspects(PID, lcc.now)) == (Missed(), 0)
        assert tx.sampled_providers(0) == []
