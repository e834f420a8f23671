"""When a full set is wanted, why, and what ends the wish, on every store."""

import pytest
from little_lcc import PID, update

from lcc_scrapy.cache import full_set_requests
from lcc_scrapy.domain.providers import Wanted
from lcc_scrapy.intake.absorbing import Intake
from lcc_scrapy.providers import registration
from lcc_scrapy.providers.registration import NoSuchProvider, want_full_set


def log_in(lcc):
    """Take note of a login, as the login service does; the next set is its."""
    lcc.connseq += 1
    lcc.change(lastconnseq=lcc.connseq)
    lcc.connseq -= 1


def push_full(lcc, *names):
    log_in(lcc)
    return lcc.push(*map(update, names), full=True)


def wanted(lcc):
    return lcc.provider().fullsetwanted


def test_a_full_set_of_a_later_login_fulfils_the_wish(lcc):
    log_in(lcc)
    want_full_set(lcc.store, PID, "cache crash")
    push_full(lcc, "a")
    assert wanted(lcc) == "cache crash"
    push_full(lcc, "a")
    assert wanted(lcc) == ""


def test_a_wish_that_is_raised_while_a_full_set_is_absorbed_outlives_it(lcc):
    want_full_set(lcc.store, PID, "old files")
    log_in(lcc)
    intake = Intake(lcc.store, lcc.spooled(*map(update, "abcdefgh"), full=True), lcc.policy)
    intake.step(lcc.now)
    with lcc.store.begin() as tx:
        full_set_requests.want(tx, PID, Wanted.CACHE_CRASH)
    while not intake.step(lcc.now).finished:
        pass
    assert wanted(lcc) == "cache crash"
    push_full(lcc, "a")
    assert wanted(lcc) == ""


def test_a_set_that_was_sent_before_the_wish_does_not_fulfil_it_when_it_is_absorbed_after(lcc):
    log_in(lcc)
    waiting = lcc.spooled(update("a"), full=True)
    want_full_set(lcc.store, PID, "old files")
    lcc.absorb(waiting)
    assert wanted(lcc) == "old files"


@pytest.mark.parametrize("content", [{}, {"content": ["a"], "full": False}])
def test_an_empty_full_set_and_a_partial_set_fulfil_nothing(lcc, content):
    want_full_set(lcc.store, PID, "old files")
    log_in(lcc)
    lcc.push(*map(update, content.get("content", [])), full=content.get("full", True))
    assert wanted(lcc) == "old files"


@pytest.mark.parametrize(
    ("standing", "reason", "told"),
    [
        ("", "old files", "old files"),
        ("moving house", "old files", "old files"),
        ("old files", "expired files", "expired files"),
        ("expired files", "old files", "expired files"),
        ("expired files", "cache crash", "cache crash"),
        ("cache crash", "moving house", "cache crash"),
        ("moving house", "moving out", "moving out"),
    ],
)
def test_the_graver_reason_is_told(lcc, standing, reason, told):
    lcc.change(fullsetwanted=standing, lastconnseq=5)
    assert want_full_set(lcc.store, PID, reason) == told
    assert (wanted(lcc), lcc.provider().wantedseq) == (told, 5)


def test_the_operator_takes_a_wish_back(lcc):
    want_full_set(lcc.store, PID, "cache crash")
    assert want_full_set(lcc.store, PID, "") == ""
    assert wanted(lcc) == ""


def test_wanting_from_nobody_is_refused_or_nothing(lcc):
    with pytest.raises(NoSuchProvider):
        want_full_set(lcc.store, 99, "old files")
    with lcc.store.begin() as tx:
        assert full_set_requests.want(tx, 99, "old files") == ""
        full_set_requests.fulfil(tx, 99, 1)
    assert [one.pid for one in registration.all_providers(lcc.store)] == [PID]
