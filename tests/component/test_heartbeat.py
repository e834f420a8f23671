"""Heartbeats: the leases of a worker hold however long the jobs of its store thread take."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from same_thread import ByHand, SameThread
from twisted.internet.task import Clock

from lcc_scrapy.db.records import TurnDelta, WorkerRow
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.turn_limits import TurnLimits
from lcc_scrapy.providers import registration
from lcc_scrapy.queue.group_commit import GroupCommit
from lcc_scrapy.queue.heartbeat import BEATS, STUCK, Heartbeat
from lcc_scrapy.queue.leases import reap
from lcc_scrapy.queue.queue_manager import QueueManager
from lcc_scrapy.queue.turn_leases import Identity
from tests.memory_store import MemoryStore

LEASE = 60
NOON = 1_700_481_600.0


class House:
    """A worker whose store thread is the test's, and whose hearts beat at once."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.clock.rightNow = NOON
        self.store = MemoryStore()
        self.thread: Any = ByHand()
        self.hearts: Any = SameThread()
        self.job = 0.0
        registration.add(self.store, Provider(7, ""), ["http://h7/"])
        heartbeat = Heartbeat(
            self.store, self.hearts, self.clock, lease=LEASE, job=lambda: self.job, now=self.clock.seconds
        )
        self.manager = QueueManager(
            self.store,
            self.thread,
            GroupCommit(self.thread, self.clock, lambda _: []),
            self.clock,
            identity=Identity("1/0"),
            dead_owners=lambda: (),
            zone=ZoneInfo("UTC"),
            limits=TurnLimits(lease=LEASE),
            wake=lambda: None,
            now=self.clock.seconds,
            heartbeat=heartbeat,
        )
        self.manager.start()
        self.thread.work_off()

    def pass_time(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.clock.advance(1)

    def may_charge(self) -> bool:
        return self.clock.seconds() < self.manager.leases._leased_until

    def worker(self) -> WorkerRow | None:
        with self.store.read() as tx:
            return next(iter(tx.workers()), None)


@pytest.fixture
def house() -> House:
    return House()


def test_a_lease_outlives_a_job_that_takes_ten_times_as_long(house: House) -> None:
    house.pass_time(10 * LEASE)
    assert house.thread.jobs, "the store's thread has not come to the next look"
    assert house.may_charge()
    row = house.worker()
    assert row is not None
    assert row.expires > house.clock.seconds() + LEASE - 2 * LEASE / BEATS


def test_without_the_store_s_thread_nobody_else_takes_the_turns(house: House) -> None:
    with house.store.begin() as tx:
        tx.add_to_turns({"7": TurnDelta(1, arrived=True)})
        tx.lease_turns(["7"], "1/0", 1)
    house.pass_time(10 * LEASE)
    with house.store.begin() as tx:
        assert [one.owner for one in reap(tx, "2/0", house.clock.seconds())] == ["1/0"]
        assert tx.leased_turns("1/0")


def test_a_worker_that_was_taken_for_dead_renews_nothing_and_goes_on_with_nothing(house: House) -> None:
    with house.store.begin() as tx:
        tx.free_turns_of("1/0")
        tx.drop_worker("1/0")
    house.pass_time(LEASE / BEATS)
    assert not house.may_charge()
    assert house.worker() is None
    house.thread.work_off()
    assert house.may_charge(), "it has registered again"


def test_another_run_under_the_same_name_is_not_renewed(house: House) -> None:
    row = house.worker()
    assert row is not None
    with house.store.begin() as tx:
        tx.put_worker(WorkerRow("1/0", row.token + 1, 1, 1, 0, 5))
    house.pass_time(LEASE / BEATS)
    assert house.worker() == WorkerRow("1/0", row.token + 1, 1, 1, 0, 5)


def test_a_thread_that_hangs_keeps_its_turns_from_others_for_a_time_only(house: House) -> None:
    house.job = STUCK
    house.pass_time(LEASE)
    assert not house.may_charge()


def test_a_database_that_is_away_is_told_once_and_asked_again(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away() -> None:
        raise StoreUnavailable("gone away")

    begin = house.store.begin
    monkeypatch.setattr(house.store, "begin", away)
    house.pass_time(LEASE)
    assert not house.may_charge()
    assert caplog.messages == ["cannot renew the leases now, trying again: gone away"]
    monkeypatch.setattr(house.store, "begin", begin)
    house.pass_time(LEASE / BEATS)
    assert house.may_charge()


def test_it_ends_with_its_worker(house: House) -> None:
    house.manager.stop()
    house.thread.work_off()
    assert house.worker() is None
    house.pass_time(LEASE)
    assert house.worker() is None
    assert house.clock.getDelayedCalls() == []
