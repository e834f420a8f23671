"""The request scheduler on every store: URDs that are due, what is asked for them, and what refuses it."""

from dataclasses import replace

import pytest
from little_lcc import PID, SITE, key, update, url
from test_directives import visit

from lcc_scrapy.annotation import requests as module
from lcc_scrapy.annotation.requests import OUTSIDE, Looked, RequestRounds
from lcc_scrapy.domain.entries import Origin, furlkey
from lcc_scrapy.domain.urd_rules import NEVER
from lcc_scrapy.domain.urds import Method, Urd

MINUTE = 60_000


def urd(name, owner="anna", **values):
    return Urd(0, owner, url(name), **{"timing": MINUTE, **values})


def add(lcc, *urds):
    with lcc.store.begin() as tx:
        return [one.urdid for one in tx.add_urds(urds)]


def look(lcc, now=None, queue_max=0):
    return RequestRounds(lcc.store, lcc.policy, queue_max, lambda: lcc.now).look(now or ms(lcc))


def ms(lcc):
    return lcc.now * 1000


def waiting(lcc):
    with lcc.store.read() as tx:
        return [
            row.furl.removeprefix(SITE)
            for row in sorted(tx.queued_of(PID, 0, 100), key=lambda r: (r.psetid, r.position))
        ]


def owners(lcc, name):
    at = furlkey(PID, url(name))
    with lcc.store.read() as tx:
        return {one.owner: (one.reach, one.asked) for one in tx.owners_of([at]).get(at, ())}


def test_what_is_due_is_asked_for_most_urgent_first(lcc):
    add(
        lcc,
        urd("a", urgency=0),
        urd("b", urgency=2),
        urd("c"),
        urd("d", urgency=2),
        urd("e", lastcheck=ms(lcc)),
    )
    done = look(lcc)
    assert (done.asked, done.queued, done.refused) == (4, 4, 0)
    assert waiting(lcc) == ["b", "d", "c", "a"]
    assert done.next_due == ms(lcc) + MINUTE
    assert look(lcc) == Looked(next_due=ms(lcc) + MINUTE)


def test_equal_uris_are_one_fetch_at_the_smallest_timing_for_all_their_owners(lcc):
    add(
        lcc,
        urd("b", urgency=1),
        urd("a", "anna", timing=5 * MINUTE, urgency=2, depth=3),
        urd("a", "bert", urgency=0),
        urd("a", "carl", method=Method.PUSH),
        urd("a", "dora", expires=1),
    )
    assert look(lcc).queued == 2
    assert waiting(lcc) == ["a", "b"]
    assert owners(lcc, "a") == {"anna": (3, -1), "bert": (0, -1)}
    lcc.fetch_all()
    assert look(lcc, ms(lcc) + MINUTE).asked == 2
    with lcc.store.read() as tx:
        assert {one.lastcheck for one in tx.all_urds(0, 9) if one.owner in {"anna", "bert"}} == {
            ms(lcc) + MINUTE
        }


def test_what_is_cached_is_asked_for_again_and_what_waits_is_not(lcc):
    lcc.store_pages("a")
    add(lcc, urd("a"), urd("b"))
    assert look(lcc).queued == 2
    [again] = [ticket for ticket in lcc.tickets() if ticket.row.furl == url("a")]
    assert again.row.origin == Origin.REFETCH
    assert look(lcc, ms(lcc) + MINUTE) == Looked(asked=2, next_due=ms(lcc) + 2 * MINUTE)
    visit(lcc, "b")
    lcc.fetch_all()
    with lcc.store.read() as tx:
        assert tx.cached([key("a")])[key("a")].origin == Origin.PUSH
        [found] = tx.cached_at([furlkey(PID, url("b"))]).values()
    assert found[0].origin == Origin.DIRECTIVE
    assert look(lcc, ms(lcc) + 2 * MINUTE).queued == 2


def test_what_lies_outside_all_roots_is_marked_and_never_fetched(lcc):
    [outside] = add(lcc, replace(urd("a"), uri="http://elsewhere.example/"))
    done = look(lcc)
    assert (done.asked, done.refused, waiting(lcc)) == (0, 1, [])
    with lcc.store.read() as tx:
        assert tx.refusals([outside, 99]) == {outside: OUTSIDE}
        assert tx.next_due_urd() == ms(lcc) + module.OUTSIDE_AGAIN
    with lcc.store.begin() as tx:
        tx.put_urds([replace(one, uri=url("a")) for one in tx.urds([outside]).values()])
        assert tx.refusals([outside]) == {}
    assert look(lcc).queued == 1


def test_nobody_asks_for_pushed_expired_and_whole_caches(lcc):
    add(lcc, urd("a", method=Method.PUSH), urd("b", timing=0), replace(urd("c"), uri="*", timing=0))
    [expired] = add(lcc, urd("d", lastcheck=ms(lcc) - 2 * MINUTE, expires=ms(lcc) - 1))
    assert look(lcc) == Looked()
    with lcc.store.read() as tx:
        assert tx.next_due_urd() == NEVER
        assert tx.refusals([expired]) == {}
    assert waiting(lcc) == []


def test_what_a_urd_reached_is_withdrawn_when_it_expires(lcc):
    add(lcc, urd("a", expires=ms(lcc) + 10, timing=9 * MINUTE, depth=1))
    look(lcc)
    assert owners(lcc, "a") == {"anna": (1, -1)}
    assert look(lcc, ms(lcc) + 9).withdrawn == 0
    lcc.now += 1
    assert look(lcc).withdrawn == 1
    assert owners(lcc, "a") == {}


def test_what_the_queue_has_no_room_for_stays_due(lcc):
    lcc.push(update("x"), update("y"))
    [one] = add(lcc, urd("a"))
    done = look(lcc, queue_max=1)
    assert (done.asked, done.refused, done.next_due) == (0, 1, ms(lcc) + module.AGAIN)
    with lcc.store.read() as tx:
        assert "no room" in tx.refusals([one])[one]
        assert tx.urds([one])[one].lastcheck == 0
    lcc.fetch_all()
    assert look(lcc, ms(lcc) + module.AGAIN).queued == 1
    with lcc.store.read() as tx:
        assert tx.refusals([one]) == {}


def test_a_look_takes_so_many_and_the_next_one_the_rest(lcc, monkeypatch):
    monkeypatch.setattr(module, "DUE", 2)
    monkeypatch.setattr(module, "MOST", 4)
    add(lcc, *(urd(f"p{n}") for n in range(7)))
    assert (look(lcc).asked, look(lcc).asked, look(lcc).asked) == (4, 3, 0)
    assert len(waiting(lcc)) == 7


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_look_that_was_killed_is_done_by_the_next_one_and_nothing_twice(lcc, monkeypatch, at):
    monkeypatch.setattr(module, "DUE", 2)
    add(lcc, *(urd(f"p{n}") for n in range(6)))
    rounds = RequestRounds(lcc.store, lcc.policy, 0, lambda: lcc.now)
    real, calls = rounds._ask, []

    def killed(*arguments):
        calls.append(at)
        if len(calls) == at:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(rounds, "_ask", killed)
    with pytest.raises(KeyboardInterrupt):
        rounds.look(ms(lcc))
    assert len(waiting(lcc)) == 2 * (at - 1)
    assert look(lcc).queued == 6 - 2 * (at - 1)
    assert sorted(waiting(lcc)) == [f"p{n}" for n in range(6)]


def test_a_dry_look_changes_nothing(lcc):
    add(lcc, urd("a"), replace(urd("b"), uri="http://elsewhere.example/", urgency=2))
    rounds = RequestRounds(lcc.store, lcc.policy, 0, lambda: lcc.now)
    told = [(one.uri, why) for one, why in rounds.preview(ms(lcc))]
    assert told == [("http://elsewhere.example/", OUTSIDE), (url("a"), "")]
    assert waiting(lcc) == []
    assert look(lcc).queued == 1
