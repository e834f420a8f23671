"""No job of the store's thread computes for long, whatever the crowd: 10,000 providers on SQLite.

CPU time of the thread is what counts, so that a machine with much else to do is no failure; and it counts in
paces of the machine, for one that shares its processors computes half as fast.
"""

import gc
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from same_thread import ByHand
from twisted.internet.task import Clock

from lcc_scrapy.cache.delete_manager import DeleteManager
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.db import schema
from lcc_scrapy.db.job_watch import JobWatch
from lcc_scrapy.db.records import (
    ABSORBED,
    LAST_KEY,
    FileToDelete,
    LastOutcome,
    ProviderSet,
    Suspect,
)
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.cache import Answer, Body, Tombstone
from lcc_scrapy.domain.entries import Operation, UrlEntry
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.queue import Failed, Served, Ticket
from lcc_scrapy.domain.turn_limits import TurnLimits
from lcc_scrapy.domain.versions import version_of
from lcc_scrapy.intake.absorbing import Intake
from lcc_scrapy.ops.housekeeping import Housekeeper
from lcc_scrapy.providers import registration
from lcc_scrapy.providers.groups import pause_everything, regroup, resume_everything
from lcc_scrapy.queue.group_commit import GroupCommit
from lcc_scrapy.queue.queue_manager import QueueManager
from lcc_scrapy.queue.settlement import Settlement
from lcc_scrapy.queue.turn_leases import Identity
from tests import crowd
from tests.contract.little_lcc import FakeSet
from tests.pace import slowness

pytestmark = pytest.mark.slow

CROWD = 10_000
MILLION = 1_000_000
MANY = 20_000
"""Rows of one kind that one provider, or the books, may have."""

LONGEST = 0.5
"""CPU seconds of a job, on a machine that is as fast as ``tests.pace`` says."""

BUDGET = 0.05
"""CPU seconds after which a step of intake takes no further chunk."""

NOW = 1_800_000_000
DAY = 86_400
POLICY = QueuePolicy(max_removal=1.0)


class Watched(ByHand):
    """Runs jobs one after the other, and watches them as the store's thread does."""

    def __init__(self, watch: JobWatch) -> None:
        super().__init__()
        self.watch = watch

    def run(self, job: Callable[..., Any], *args: Any) -> Any:
        return super().run(self.watch.run, job, *args)


class House:
    """A worker on a crowded database, with one thread for everything."""

    def __init__(self, store: SqlStore, folder: Any) -> None:
        self.store = store
        self.clock = Clock()
        self.clock.rightNow = NOW
        self.watch = JobWatch(warn=0)
        self.thread: Any = Watched(self.watch)
        self.content = ContentFiles(folder, 1, 0)
        self.content.prepare()
        self.manager = QueueManager(
            store,
            self.thread,
            GroupCommit(self.thread, self.clock, self.commit),
            self.clock,
            identity=Identity("1/0"),
            dead_owners=lambda: (),
            zone=ZoneInfo("UTC"),
            limits=TurnLimits(places=100),
            wake=lambda: None,
            now=self.clock.seconds,
        )

    def commit(self, outcomes: Any) -> Any:
        with self.store.begin() as tx:
            return Settlement(
                tx, outcomes, owner="1/0", machineid=1, now=int(self.clock.seconds()), policy=POLICY,
                keep=lambda _: None,
            ).run()  # fmt: skip

    def start(self) -> None:
        self.manager.start()
        self.thread.work_off()

    def pass_time(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.clock.advance(1)
            self.thread.work_off()

    def fetch(self, count: int) -> int:
        """Let so many URLs be fetched, most of which are served; returns how many there were."""
        tickets = [ticket for _ in range(count) if (ticket := self.manager.next_ticket())]
        for number, ticket in enumerate(tickets):
            self.manager.fetch_ended(ticket)
            outcome = self.served(ticket) if number % 5 else Failed(ticket, 404, "", NOW, final=True)
            self.manager.settle(outcome)
        self.thread.work_off()
        return len(tickets)

    def served(self, ticket: Ticket) -> Served:
        answer = Answer(200, ticket.row.furl, "text/html", "", "", "", "[]", "HTTP/1.1 200 OK", "", NOW)
        return Served(ticket, answer, Body(6, "0" * 32, "0" * 64, data=b"a body"))

    def absorb(self, spooled: Any) -> None:
        intake, finished = Intake(self.store, spooled, POLICY), False
        while not finished:
            finished = self.watch.run(self.step, intake).finished

    def step(self, intake: Intake) -> Any:
        computed = self.watch._cpu()
        return intake.step(NOW, lambda _: self.watch._cpu() - computed < BUDGET)

    def sweep(self, policy: QueuePolicy = POLICY) -> None:
        keeper = Housekeeper(
            self.store, self.thread, self.clock, policy, owner="1/0", swept=lambda _: None,
            now=self.clock.seconds,
        )  # fmt: skip
        keeper.start()
        self.thread.work_off()
        while self.swept() < int(self.clock.seconds()) - 3600:
            self.pass_time(5)
        keeper.stop()

    def swept(self) -> int:
        with self.store.read() as tx:
            return int(tx.info("swept") or 0)

    def longest(self) -> dict[str, int]:
        """Return the jobs that computed for too long, in milliseconds."""
        jobs = self.watch.longest_by_name
        bound = LONGEST * slowness()
        return {name: round(job.cpu * 1000) for name, job in jobs.items() if job.cpu > bound}


@pytest.fixture
def store(tmp_path: Any) -> Any:
    url = f"sqlite:///{tmp_path / 'lcc.sqlite'}"
    schema.upgrade(url)
    made = SqlStore(url)
    gc.collect()
    gc.disable()  # what pytest keeps in memory is no job's fault
    yield made
    gc.enable()
    made.close()


@pytest.fixture
def house(store: SqlStore, tmp_path: Any) -> House:
    return House(store, tmp_path / "content")


def test_a_crowd_of_providers_makes_no_long_job(house: House) -> None:
    crowd.fill(house.store, range(1, CROWD + 1), urls=3, documents=1, now=NOW, confirmed=NOW)
    house.start()
    assert len(house.manager.turns) == CROWD
    assert sum(house.fetch(100) for _ in range(20)) >= 1000
    house.sweep()
    with house.store.begin() as tx:
        for pid in range(1, CROWD + 1, 10):
            registration.tell(tx, pid)
    pause_everything(house.store, NOW)
    house.pass_time(30)
    resume_everything(house.store)
    house.pass_time(4)
    house.watch.run(regroup, house.store, CROWD, "", NOW)
    house.manager.stop()
    house.thread.work_off()
    assert house.longest() == {}
    assert {
        "TurnLeases._look",
        "GroupCommit._try",
        "Housekeeper._slice",
    } <= house.watch.longest_by_name.keys()


def test_what_a_day_leaves_in_the_books_of_a_crowd_makes_no_long_job(house: House) -> None:
    crowd.fill(house.store, range(1, CROWD + 1), urls=0, documents=1, now=NOW, confirmed=NOW)
    with house.store.begin() as tx:
        for pid in range(1, CROWD + 1):
            tx.insert_psets(
                [ProviderSet(pid, pid, 1, "", "", False, 1, ABSORBED, 1, 1, started=NOW - 90 * DAY)]
            )
        tx.put_suspects([Suspect(crowd.stored(pid, 0, NOW).urlkey, pid, NOW - DAY) for pid in range(1, 500)])
        keys = [number.to_bytes(16) for number in range(MANY)]
        tx.put_tombstones(
            [
                Tombstone(key, 1, "u", "t", "u", "", NOW - 365 * DAY, number)
                for number, key in enumerate(keys, 1)
            ]
        )
        tx.put_outcomes([LastOutcome(key, 1, 404, "", 1) for key in keys])
        tx.take("feed", MANY)
        tx.delete_later([FileToDelete(1, number, 1, 1) for number in range(1, 2001)])
        for day in range(40):
            for pid in range(1, 200):
                tx.add_missed(pid, NOW // DAY - day, {"sampled": 1})
    house.sweep()
    deleting = DeleteManager(house.store, house.thread, house.clock, house.content, outcomes_kept=DAY)
    deleting.start()
    house.pass_time(700)
    deleting.stop()
    with house.store.read() as tx:
        assert tx.old_tombstones(NOW, 1) == []
        assert tx.pset_of(1, 1) is None
        assert tx.outcome(keys[0]) is None
        assert tx.files_to_delete(1, NOW, 10) == []
        assert tx.missed(1, 0).sampled == 30
    assert house.longest() == {}


def test_expiry_trimming_and_narrowing_of_many_documents_make_no_long_job(house: House) -> None:
    crowd.fill(house.store, range(1, 2), urls=2000, documents=20_000, now=NOW - 365 * DAY)
    crowd.fill(house.store, range(2, 4), urls=0, documents=20_000, now=NOW, confirmed=NOW)
    with house.store.begin() as tx:
        kept = [crowd.stored(2, number, NOW) for number in range(20_000)]
        tx.insert_versions([version_of(row, NOW - 9 * DAY) for row in kept])
    registration.change(house.store, 3, {}, lambda _: ["http://elsewhere.example/"])
    house.sweep()
    with house.store.read() as tx:
        assert [tx.provider(pid).fileused for pid in (1, 2, 3)] == [0, 20_000, 0]  # type: ignore[union-attr]
        assert tx.next_versioned(0) is None
    assert house.longest() == {}


def test_absorbing_a_large_set_makes_no_long_job(house: House) -> None:
    crowd.fill(house.store, range(1, 2), urls=0, documents=20_000, now=NOW)
    urls = [crowd.stored(1, number, NOW).curl for number in range(20_000)]
    new = [f"{crowd.root(1)}more-{number}.html" for number in range(MANY)]
    house.absorb(FakeSet(1, 1, [_update(url) for url in (*urls, *new)]))
    house.absorb(FakeSet(1, 2, [_update(url) for url in (*urls, *new)]))
    house.absorb(FakeSet(1, 3, [_update(url) for url in (*urls[:10_000], *new)], full=True))
    house.absorb(FakeSet(1, 4, [UrlEntry(url, "text/html", Operation.REMOVE) for url in urls[:10_000]]))
    with house.store.read() as tx:
        provider = tx.provider(1)
        assert provider is not None
        assert (provider.fileused, provider.nurlproc) == (0, 20_000 + MANY)
    assert house.longest() == {}


def test_a_full_set_that_leaves_few_of_many_documents_out_makes_no_long_job(house: House) -> None:
    known, absent = 60_000, 10_000
    crowd.fill(house.store, range(1, 2), urls=0, documents=1, now=NOW)
    crowd.lengthen(house.store, 1, MANY)
    crowd.stock(house.store, 1, known)
    named = [crowd.kept(1, number) for number in range(1, known - absent + 1)]
    said = [UrlEntry(url, "text/html", Operation.PRESENT) for url in named]
    for connseq in (1, 2):
        house.absorb(FakeSet(1, connseq, said, full=True))
    with house.store.read() as tx:
        assert tx.provider(1).fileused == len(named)  # type: ignore[union-attr]
        assert tx.count_absent(1, 1 << 40, b"", LAST_KEY) == len(named)
    assert house.longest() == {}


def _update(url: str) -> UrlEntry:
    return UrlEntry(url, "text/html", furl=url, burl=url)


def test_a_million_urls_of_one_provider_make_no_long_job(house: House) -> None:
    crowd.fill(house.store, range(1, 101), urls=3, documents=1, now=NOW, confirmed=NOW)
    crowd.lengthen(house.store, 1, MILLION)
    house.start()
    assert sum(house.fetch(100) for _ in range(10)) >= 300
    house.pass_time(4)
    house.absorb(FakeSet(1, 2, [_update(f"{crowd.root(1)}more-{number}.html") for number in range(2000)]))
    house.manager.touched(1)
    house.thread.work_off()
    house.sweep()
    house.manager.stop()
    house.thread.work_off()
    assert house.longest() == {}


def test_the_watch_of_these_tests_sees_a_long_job(house: House) -> None:
    def compute() -> None:
        end = house.watch._cpu() + 4 * LONGEST
        while house.watch._cpu() <= end:
            pass

    house.thread.run(compute)
    house.thread.work_off()
    assert list(house.longest().values()) >= [2000]
