"""What a trial takes from the real store, and what it leaves there: nothing but the turn, while it lasts."""

from hashlib import md5
from types import SimpleNamespace

import pytest
from little_lcc import PID, removal, update, url

from lcc_scrapy.domain.entries import Declared
from lcc_scrapy.ops import trial
from lcc_scrapy.ops.trial import TurnTaken
from lcc_scrapy.providers.registration import NoSuchProvider
from tests.memory_store import MemoryStore

ANOTHER = "another"


def slot(dead=()):
    return SimpleNamespace(owner="1/9", machineid=1, dead_owners=lambda: set(dead))


def turn(lcc):
    with lcc.store.read() as tx:
        return tx.turn(str(PID))


def lease_to(lcc, owner, expires):
    lcc.push(update("waiting"))
    lcc.look(owner, ttl=expires - lcc.now)


def hold(lcc, *dead):
    with trial.turn_of(lcc.store, lcc.provider(), slot(dead), lcc.now, 60):
        with lcc.store.read() as tx:
            expires = {worker.owner: worker.expires for worker in tx.workers()}
        assert expires["1/9"] == lcc.now + 60
        return turn(lcc)


def test_the_turn_is_held_under_a_token_of_its_own_and_given_back(lcc):
    held = hold(lcc)
    assert held.owner == "1/9"
    assert turn(lcc) is None
    assert hold(lcc).token > held.token
    with lcc.store.read() as tx:
        assert tx.workers() == []


def test_a_turn_with_urls_is_given_back_with_them(lcc):
    lcc.push(update("a"))
    assert hold(lcc).waiting == 1
    assert (turn(lcc).owner, turn(lcc).waiting) == ("", 1)


def test_a_turn_that_another_worker_holds_is_not_taken(lcc):
    lease_to(lcc, ANOTHER, lcc.now + 5)
    before = turn(lcc)
    with pytest.raises(TurnTaken, match="worker another holds the turn of provider 7"):
        hold(lcc)
    assert turn(lcc) == before


@pytest.mark.parametrize(("ends_in", "dead"), [(0, ()), (5, (ANOTHER,))])
def test_a_turn_whose_lease_or_worker_has_ended_is_taken(lcc, ends_in, dead):
    lease_to(lcc, ANOTHER, lcc.now + ends_in)
    assert hold(lcc, *dead).owner == "1/9"


def test_a_worker_whose_turn_was_taken_for_a_trial_hears_of_it_when_it_comes_back(lcc):
    lease_to(lcc, ANOTHER, lcc.now)
    hold(lcc)
    assert lcc.look(ANOTHER, held=1).lost


def test_an_unknown_url_is_tried_as_declared_without_anything(lcc):
    tried = trial.subject(lcc.store, PID, url("new"))
    assert (tried.copy, tried.row.mimetype, tried.row.declared) == (None, "*/*", Declared())
    assert tried.roots == ("http://www.example.org/",)


def test_a_cached_url_is_tried_as_it_was_declared(lcc):
    lcc.push(update("a", b"body"))
    lcc.fetch_all(body=b"body")
    tried = trial.subject(lcc.store, PID, url("a"))
    assert tried.copy == lcc.cached("a")
    assert tried.row.declared == tried.copy.declared == Declared(None, 4, md5(b"body").hexdigest())


def test_a_waiting_url_is_tried_as_it_is_declared_now_without_its_hours_and_failures(lcc):
    lcc.store_pages("a")
    lcc.push(update("a", b"newer", timeofday="0" * 167 + "1"), removal("x"))
    tried = trial.subject(lcc.store, PID, url("a"))
    assert tried.row.md5 == md5(b"newer").hexdigest()
    assert (tried.row.timeofday, tried.row.tries, tried.row.not_before) == ("", 0, 0)
    assert tried.copy == lcc.cached("a")


def test_an_unknown_provider_is_named(lcc):
    with pytest.raises(NoSuchProvider):
        trial.subject(lcc.store, 99, url("a"))


def test_the_store_of_a_trial_has_books_that_balance_and_no_verdict_before_the_fetch(lcc):
    lcc.store_pages(*"abc")
    tried = trial.subject(lcc.store, PID, url("a"))
    its_store = MemoryStore()
    trial.furnish(its_store, tried)
    with its_store.read() as tx:
        copied = tx.provider(PID)
        assert (copied.fileused, copied.spaceused) == (3, lcc.provider().spaceused)
        assert (copied.nurlproc, tx.queued_total(), len(tx.cached_of(PID, b"", 10))) == (1, 1, 1)
        assert copied.password == ""
    assert trial.verdict(its_store, tried, ()) is None
