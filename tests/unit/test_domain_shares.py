"""Shares: what one client has leaves others theirs."""

import pytest

from lcc_scrapy.domain.shares import Kind, Share, Shares, ShareUsedUp
from lcc_scrapy.domain.throttling import KEYS, Rate


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def shares(clock, **values):
    return Shares(Share(**{"rate": Rate(10**9, 1.0), **values}), clock)


def refused(ask):
    with pytest.raises(ShareUsedUp) as caught:
        ask()
    return caught.value.seconds


def test_one_client_has_its_share_and_another_one_too(clock):
    all_shares = shares(clock, requests=2)
    visits = [all_shares.enter(["greedy"]) for _ in range(2)]
    assert refused(lambda: all_shares.enter(["greedy"])) == 1
    all_shares.enter(["honest"]).leave()
    visits[0].leave()
    all_shares.enter(["greedy"])


def test_a_request_counts_for_address_and_token_and_a_refused_one_for_neither(clock):
    all_shares = shares(clock, requests=1)
    all_shares.enter(["address", "token"])
    for keys in (["address", "another token"], ["another address", "token"]):
        refused(lambda keys=keys: all_shares.enter(keys))
    all_shares.enter(["another address", "another token"])


def test_streams_and_exports_have_bounds_of_their_own_and_end_with_their_request(clock):
    all_shares = shares(clock, streams=1, exports=1)
    first, second = all_shares.enter(["a"]), all_shares.enter(["a"])
    for kind, seconds in ((Kind.STREAM, 2), (Kind.EXPORT, 10)):
        first.begin(kind)
        first.begin(kind)  # it is one still
        assert refused(lambda kind=kind: second.begin(kind)) == seconds
    first.leave()
    first.leave()
    second.begin(Kind.STREAM)
    second.leave()
    assert len(all_shares) == 0


def test_a_rate_is_for_each_client_and_says_when_to_come_again(clock):
    all_shares = shares(clock, rate=Rate(3, 30.0))
    for _ in range(3):
        all_shares.enter(["greedy"]).leave()
    assert refused(lambda: all_shares.enter(["greedy"])) == 10
    all_shares.enter(["honest"]).leave()
    clock.now += 10
    all_shares.enter(["greedy"]).leave()
    assert refused(lambda: all_shares.enter(["greedy"])) == 10


def test_a_refusal_costs_nothing_of_the_rate(clock):
    all_shares = shares(clock, rate=Rate(2, 20.0), requests=1)
    visit = all_shares.enter(["a", "b"])
    for _ in range(5):
        refused(lambda: all_shares.enter(["a"]))
    visit.leave()
    all_shares.enter(["a"]).leave()
    assert refused(lambda: all_shares.enter(["a"])) == 10
    all_shares.enter(["b"]).leave()


def test_no_more_clients_are_remembered_than_a_bound(clock):
    all_shares = shares(clock, rate=Rate(1, 1e6))
    for number in range(2 * KEYS):
        all_shares.enter([number]).leave()
    assert (len(all_shares), len(all_shares._rates)) == (0, KEYS)
    refused(lambda: all_shares.enter([2 * KEYS - 1]))


def test_the_share_of_each_key_counts(clock):
    all_shares = shares(clock, rate=Rate(1, 60.0))
    all_shares.enter(["one"])
    assert refused(lambda: all_shares.enter(["other", "one"])) == 60
    all_shares.enter(["other"])
    all_shares.enter([])


def test_what_is_over_leaves_what_is_still_under_way(clock):
    all_shares = shares(clock, requests=2)
    first, _ = all_shares.enter(["one"]), all_shares.enter(["one"])
    first.leave()
    all_shares.enter(["one"])
    refused(lambda: all_shares.enter(["one"]))
