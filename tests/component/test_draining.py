"""Draining a Redis key: what holds when a run stops between two steps, with a real Redis."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
from redis import Redis as Client
from sqlalchemy import func, select

from lcc_scrapy.apps.sources import redis_key
from lcc_scrapy.apps.sources.draining import Drain, Redis
from lcc_scrapy.apps.sources.redis_key import RedisAway, RedisKey, client_of
from lcc_scrapy.apps.sources.rules import Kind, Report, Source
from lcc_scrapy.apps.sources.running import Stopped
from lcc_scrapy.apps.sources.store import rows_in
from lcc_scrapy.apps.sources.submitting import Rules
from lcc_scrapy.db.tables import psets
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.kit.fetching import CannotFetch
from lcc_scrapy.kit.work import at_once
from tests.redis_server import URL

pytestmark = pytest.mark.parametrize("store", ["sqlite"], indirect=True)

ROOT = "http://a.example/"
URLS = [f"{ROOT}{number}" for number in range(3)]


class Case:
    def __init__(self, store: Store, key: str) -> None:
        self.store = store
        self.source = Source(1, 7, Kind.REDIS, key, 5, owner="me")
        with self.store.begin() as tx:
            tx.insert_provider(Provider(7, "", state=State.ACTIVE), [ROOT])
            rows_in(tx).put_source(self.source)

    def run(self, source: Source | None = None, *, lost: bool = False) -> Report:
        redis = Redis(lambda: client_of({}, URL), "utf-8", at_once)
        drain = Drain(self.store, at_once, redis, source or self.source, Rules(), lost=lost)
        running = drain.run()
        with pytest.raises(StopIteration) as ended:  # nothing in it waits: it runs to its end at once
            running.send(None)
        report: Report = ended.value.value
        return report

    def queued(self) -> int:
        with self.store.read() as tx:
            return tx.queued_total()

    def received(self) -> int:
        with self.store.read() as tx:
            return int(tx._c.execute(select(func.sum(psets.c.received))).scalar_one() or 0)


@pytest.fixture
def case(store: Store, redis_server: tuple[Client, str]) -> Case:
    client, key = redis_server
    client.rpush(key, *URLS)
    return Case(store, key)


def test_a_batch_that_was_queued_and_not_acknowledged_is_not_queued_again(
    case: Case, redis_server: tuple[Client, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, key = redis_server

    def away(*_: object) -> None:
        raise RedisAway("Redis does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(RedisKey, "acknowledge", away)
        with pytest.raises(RedisAway):
            case.run()
    assert (case.queued(), case.received(), client.llen(key)) == (3, 3, 0)
    assert case.run().queued == 0
    assert (case.queued(), case.received()) == (3, 3)
    assert client.keys(f"*{key}*") == []


def test_a_small_batch_behind_a_large_one_gets_places_of_its_own(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_key, "ITEMS", 2)
    assert case.run().queued == 3
    with case.store.read() as tx:
        waiting = sorted(tx.queued_of(7, 0, 10), key=lambda row: (row.psetid, row.position))
    assert [row.furl for row in waiting] == URLS
    assert len({(row.psetid, row.position) for row in waiting}) == 3


def test_a_batch_that_was_not_queued_is_queued_by_the_next_run(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Drain, "_submit", broken)
        with pytest.raises(KeyboardInterrupt):
            case.run()
    assert case.queued() == 0
    assert case.run().queued == 3
    assert case.received() == 3


@pytest.mark.parametrize("gone", [True, False])
def test_a_run_whose_source_is_gone_or_another_s_queues_nothing_and_leaves_the_batch(
    case: Case, redis_server: tuple[Client, str], gone: bool
) -> None:
    client, key = redis_server
    with case.store.begin() as tx:
        rows_in(tx).delete_source(1) if gone else rows_in(tx).put_source(
            replace(case.source, owner="another")
        )
    with nullcontext() if gone else pytest.raises(Stopped):
        case.run()
    assert case.queued() == 0
    (batch,) = client.keys(f"*{key}*:batch")
    assert client.llen(batch) == 4


def test_a_run_that_hears_of_its_loss_stops_after_the_batch(case: Case) -> None:
    with pytest.raises(Stopped):
        case.run(lost=True)
    assert case.queued() == 3


def test_nothing_is_taken_for_a_provider_that_rests(case: Case, redis_server: tuple[Client, str]) -> None:
    client, key = redis_server
    with case.store.begin() as tx:
        tx.update_provider(7, {"state": State.PAUSED})
    with pytest.raises(CannotFetch):
        case.run()
    assert client.llen(key) == 3


def test_a_url_that_stands_in_a_batch_twice_is_queued_once(
    case: Case, redis_server: tuple[Client, str]
) -> None:
    client, key = redis_server
    client.rpush(key, URLS[0], "http://elsewhere.example/")
    report = case.run()
    assert (report.queued, report.refused, case.received()) == (3, {704: 1}, 3)


def test_a_run_is_bounded_and_the_next_one_goes_on(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lcc_scrapy.apps.sources.redis_key.ITEMS", 1)
    monkeypatch.setattr("lcc_scrapy.apps.sources.draining.BATCHES", 2)
    assert [case.run().queued, case.queued()] == [2, 2]
    assert [case.run().queued, case.queued()] == [1, 3]
